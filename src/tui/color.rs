//! Whether and how many colours are used, and how a colour is mapped down to what the terminal has.
//!
//! kubestep decides and overrides crossterm: crossterm 0.29's own `NO_COLOR` handling resets the
//! attributes together with the colours and so erases the selection bar.

use ratatui::style::Color;

/// The user's choice, from `--color` or the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ColorChoice {
    /// Decide by `NO_COLOR`, `COLORTERM` and `TERM`.
    #[default]
    Auto,
    /// Colours, even with `NO_COLOR` set.
    Always,
    /// No colours; bold, reverse and underline remain.
    Never,
}

/// How many colours may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// No colours, only attributes such as bold.
    None,
    /// The sixteen colours that the terminal's theme defines.
    Ansi16,
    /// The 256 colours of xterm.
    Ansi256,
    /// 24 bits per colour.
    Rgb,
}

/// Decides the depth: `flag`, else `config`, else the environment (`env` looks a variable up).
pub fn depth(
    flag: Option<ColorChoice>,
    config: Option<ColorChoice>,
    env: impl Fn(&str) -> Option<String>,
) -> ColorDepth {
    let said = |choice: Option<ColorChoice>| choice.filter(|c| *c != ColorChoice::Auto);
    match said(flag).or(said(config)).unwrap_or_default() {
        ColorChoice::Never => ColorDepth::None,
        ColorChoice::Always => terminal_depth(&env).max(ColorDepth::Ansi16),
        // no-color.org: the variable counts when it is present and not empty.
        ColorChoice::Auto if env("NO_COLOR").is_some_and(|v| !v.is_empty()) => ColorDepth::None,
        ColorChoice::Auto => terminal_depth(&env),
    }
}

/// What the terminal says of itself.
fn terminal_depth(env: impl Fn(&str) -> Option<String>) -> ColorDepth {
    let term = env("TERM").unwrap_or_default().to_lowercase();
    let colorterm = env("COLORTERM").unwrap_or_default().to_lowercase();
    const RGB_TERMS: [&str; 6] = ["direct", "kitty", "alacritty", "wezterm", "ghostty", "foot"];
    if term == "dumb" {
        ColorDepth::None
    } else if matches!(colorterm.as_str(), "truecolor" | "24bit")
        || RGB_TERMS.iter().any(|name| term.contains(name))
    {
        ColorDepth::Rgb
    } else if term.contains("256") {
        ColorDepth::Ansi256
    } else {
        ColorDepth::Ansi16
    }
}

/// `color` as near as `depth` allows; [`Color::Reset`] without colours.
pub fn map(color: Color, depth: ColorDepth) -> Color {
    match (depth, color) {
        (ColorDepth::None, _) => Color::Reset,
        (ColorDepth::Rgb, _) | (_, Color::Reset) => color,
        (ColorDepth::Ansi256, Color::Rgb(r, g, b)) => Color::Indexed(nearest_256(Rgb(r, g, b))),
        (ColorDepth::Ansi16, Color::Rgb(r, g, b)) => ANSI_16[nearest_16(Rgb(r, g, b))].0,
        (ColorDepth::Ansi16, Color::Indexed(i)) => ANSI_16[nearest_16(indexed_rgb(i))].0,
        _ => color,
    }
}

/// A 24-bit colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The sixteen names with xterm's default values; terminals may show others.
pub const ANSI_16: [(Color, Rgb); 16] = [
    (Color::Black, Rgb(0, 0, 0)),
    (Color::Red, Rgb(205, 0, 0)),
    (Color::Green, Rgb(0, 205, 0)),
    (Color::Yellow, Rgb(205, 205, 0)),
    (Color::Blue, Rgb(0, 0, 238)),
    (Color::Magenta, Rgb(205, 0, 205)),
    (Color::Cyan, Rgb(0, 205, 205)),
    (Color::Gray, Rgb(229, 229, 229)),
    (Color::DarkGray, Rgb(127, 127, 127)),
    (Color::LightRed, Rgb(255, 0, 0)),
    (Color::LightGreen, Rgb(0, 255, 0)),
    (Color::LightYellow, Rgb(255, 255, 0)),
    (Color::LightBlue, Rgb(92, 92, 255)),
    (Color::LightMagenta, Rgb(255, 0, 255)),
    (Color::LightCyan, Rgb(0, 255, 255)),
    (Color::White, Rgb(255, 255, 255)),
];

const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The value of an entry of the 256-colour table.
pub fn indexed_rgb(index: u8) -> Rgb {
    match index {
        0..=15 => ANSI_16[usize::from(index)].1,
        16..=231 => {
            let i = usize::from(index - 16);
            Rgb(CUBE[i / 36], CUBE[i / 6 % 6], CUBE[i % 6])
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}

fn nearest_256(color: Rgb) -> u8 {
    // The first sixteen depend on the user's palette, so only the fixed entries are candidates.
    (16..=255).min_by_key(|i| distance(color, indexed_rgb(*i))).unwrap_or(15)
}

fn nearest_16(color: Rgb) -> usize {
    (0..16).min_by_key(|i| distance(color, ANSI_16[*i].1)).unwrap_or(7)
}

/// Weighted squared distance ("redmean"), good enough to keep a hue recognisable.
fn distance(a: Rgb, b: Rgb) -> i64 {
    let delta = |x: u8, y: u8| i64::from(x) - i64::from(y);
    let mean = (i64::from(a.0) + i64::from(b.0)) / 2;
    let (r, g, b) = (delta(a.0, b.0), delta(a.1, b.1), delta(a.2, b.2));
    (512 + mean) * r * r / 256 + 4 * g * g + (767 - mean) * b * b / 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn the_terminal_is_asked_when_nobody_says_anything() {
        assert_eq!(depth(None, None, env(&[("TERM", "xterm")])), ColorDepth::Ansi16);
        assert_eq!(depth(None, None, env(&[("TERM", "screen-256color")])), ColorDepth::Ansi256);
        assert_eq!(depth(None, None, env(&[("TERM", "xterm-kitty")])), ColorDepth::Rgb);
        let truecolor = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
        assert_eq!(depth(None, None, env(&truecolor)), ColorDepth::Rgb);
        assert_eq!(depth(None, None, env(&[("TERM", "dumb")])), ColorDepth::None);
    }

    #[test]
    fn no_color_counts_only_when_not_empty() {
        assert_eq!(
            depth(None, None, env(&[("TERM", "xterm"), ("NO_COLOR", "1")])),
            ColorDepth::None
        );
        assert_eq!(
            depth(None, None, env(&[("TERM", "xterm"), ("NO_COLOR", "")])),
            ColorDepth::Ansi16
        );
    }

    #[test]
    fn flag_beats_configuration_beats_environment() {
        use ColorChoice::{Always, Auto, Never};
        let no_color = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
        assert_eq!(depth(Some(Always), Some(Never), env(&no_color)), ColorDepth::Ansi256);
        assert_eq!(depth(Some(Auto), Some(Never), env(&[("TERM", "xterm")])), ColorDepth::None);
        assert_eq!(depth(None, Some(Always), env(&no_color)), ColorDepth::Ansi256);
        assert_eq!(depth(Some(Always), None, env(&[("TERM", "dumb")])), ColorDepth::Ansi16);
    }

    #[test]
    fn colours_map_down_to_the_nearest() {
        let vermillion = Color::Rgb(0xd5, 0x5e, 0x00);
        assert_eq!(map(vermillion, ColorDepth::Rgb), vermillion);
        assert_eq!(map(vermillion, ColorDepth::Ansi256), Color::Indexed(166));
        assert_eq!(map(Color::Rgb(250, 5, 5), ColorDepth::Ansi16), Color::LightRed);
        assert_eq!(map(Color::Rgb(128, 128, 128), ColorDepth::Ansi256), Color::Indexed(244));
        assert_eq!(map(Color::Indexed(21), ColorDepth::Ansi16), Color::Blue);
        assert_eq!(map(vermillion, ColorDepth::None), Color::Reset);
        assert_eq!(map(Color::Reset, ColorDepth::Ansi16), Color::Reset);
        assert_eq!(map(Color::Cyan, ColorDepth::Ansi16), Color::Cyan);
    }
}
