//! `kubestep render`: any view as an image, for documentation and tickets.

use std::str::FromStr;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::open::session;
use crate::cli::options::{InputOptions, Screen};
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::tui::color::ColorChoice;
use crate::tui::offscreen::{Offscreen, parse_keys};
use crate::tui::screenshot::ScreenFormat;
use crate::tui::settings::{self, InterfaceOptions};
use crate::tui::view::ViewId;
use kubestep_config::suggest;

/// Draw a view of the debugger: as text, with terminal colours, as SVG or HTML
#[derive(Args, Debug)]
pub(super) struct Render {
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    tries: Tries,
    /// The view to show after the keys, by name or digit: cycle, timeline, queues, filter, scores,
    /// nodes, pods, waiting, preemption, events
    #[arg(long = "view", value_name = "VIEW")]
    show: Option<ViewName>,
    /// Columns and lines
    #[arg(long, value_name = "WxH", default_value = "120x40")]
    size: Size,
    /// Keys to press first: "nnn3jj<enter>", ":theme light<enter>"; c runs to the end
    #[arg(long, value_name = "KEYS", default_value = "c")]
    keys: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: ImageFormat,
    #[command(flatten)]
    look: Screen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ImageFormat {
    /// The glyphs alone
    #[default]
    Txt,
    /// With control sequences for colours
    Ansi,
    /// Scalable vector graphics
    Svg,
    /// A page by itself
    Html,
}

impl Subcommand for Render {
    const NAME: &'static str = "render";

    fn run(&self) -> Result<Exit> {
        let keys = parse_keys(&self.keys).context("--keys")?;
        let opened = session(&self.input, &self.tries, None)?;
        opened.notices.iter().for_each(kubestep_output::line);
        let options = InterfaceOptions {
            theme: self.look.theme.clone(),
            color: Some(self.look.color),
            ascii: self.look.ascii,
            ask: None,
        };
        let settings = settings::load(&options, |name| environment(name, self.look.color));
        settings.warnings.iter().for_each(kubestep_output::line);
        let size = (self.size.0, self.size.1);
        let mut screen = Offscreen::new(opened.session, opened.name, settings, size)?;
        screen.press(&keys);
        if let Some(ViewName(view)) = self.show {
            screen.show(view);
        }
        kubestep_output::print_colored(&screen.picture(match self.output {
            ImageFormat::Txt => ScreenFormat::Text,
            ImageFormat::Ansi => ScreenFormat::Ansi,
            ImageFormat::Svg => ScreenFormat::Svg,
            ImageFormat::Html => ScreenFormat::Html,
        }))?;
        Ok(Exit::Fine)
    }
}

/// The environment for rendering. An image does not depend on the terminal: it has all colors and
/// glyphs, unless the options say otherwise.
fn environment(name: &str, color: ColorChoice) -> Option<String> {
    match name {
        "TERM" => Some("xterm-256color".to_owned()),
        "COLORTERM" => Some("truecolor".to_owned()),
        "LANG" | "LC_ALL" | "LC_CTYPE" | "COLORFGBG" => None,
        "NO_COLOR" if color != ColorChoice::Never => None,
        name => std::env::var(name).ok(),
    }
}

/// A view by name.
#[derive(Clone, Copy, Debug)]
struct ViewName(ViewId);

impl FromStr for ViewName {
    type Err = String;

    fn from_str(text: &str) -> Result<ViewName, String> {
        let is_named =
            |view: &ViewId| view.title().eq_ignore_ascii_case(text) || text == view.key();
        let found = ViewId::all().find(is_named).map(ViewName);
        found.ok_or_else(|| {
            let titles = ViewId::all().map(ViewId::title);
            let near = suggest::closest(text, titles.clone());
            let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
            let all: Vec<&str> = titles.collect();
            format!("there is no such view{near}; there are {}", all.join(", "))
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Size(u16, u16);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let numbers = text.split_once('x').and_then(|(columns, lines)| {
            Some((columns.parse::<u16>().ok()?, lines.parse::<u16>().ok()?))
        });
        match numbers {
            Some((columns @ 20..=1000, lines @ 5..=1000)) => Ok(Size(columns, lines)),
            _ => Err("write columns x lines, from 20x5 to 1000x1000: 80x24".to_owned()),
        }
    }
}
