//! The interface's own configuration, `config.yaml` in the configuration directory, and how it combines
//! with options and environment.
//!
//! ```yaml
//! theme: dark-cvd
//! color: always        # auto, always, never
//! ascii: false
//! keys:
//!   next: [n, space]   # replaces the action's keys
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::action::Keymap;
use super::app::Appearance;
use super::color::{self, ColorChoice, Depth};
use super::glyph::Charset;
use super::paths;
use super::theme::Library;
use crate::config::suggest;

/// What the command line says about the interface.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--theme`.
    pub theme: Option<String>,
    /// `--color`.
    pub color: Option<ColorChoice>,
    /// `--ascii`.
    pub ascii: bool,
}

/// Contents of `config.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    theme: Option<String>,
    color: Option<ColorChoice>,
    ascii: bool,
    keys: BTreeMap<String, Vec<String>>,
}

const KEYS: [&str; 4] = ["theme", "color", "ascii", "keys"];

/// Everything decided before the interface starts.
pub struct Settings {
    /// Theme, colours, glyphs.
    pub appearance: Appearance,
    /// Keys.
    pub keymap: Keymap,
    /// What was ignored, a sentence each.
    pub warnings: Vec<String>,
}

/// Decides by options, then `config.yaml`, then the environment (`env` looks a variable up).
pub fn load(options: &Options, env: impl Fn(&str) -> Option<String>) -> Settings {
    let dir = paths::config_dir(&env);
    let mut warnings = Vec::new();
    let file = dir.as_deref().map(|dir| read(&dir.join("config.yaml"), &mut warnings));
    let file = file.unwrap_or_default();
    let depth = color::depth(options.color, file.color, &env);
    let (keymap, problems) = Keymap::with_overrides(&file.keys);
    warnings.extend(problems);
    let theme = options.theme.clone().or(file.theme).unwrap_or_else(|| default_theme(depth, &env));
    let library = Library::new(dir.map(|d| d.join("themes")));
    let charset = Charset::choose(options.ascii || file.ascii, &env);
    Settings { appearance: Appearance { library, theme, depth, charset }, keymap, warnings }
}

/// A file that is not there says nothing; one that is broken is ignored with a warning.
fn read(path: &Path, warnings: &mut Vec<String>) -> File {
    let Ok(text) = std::fs::read_to_string(path) else { return File::default() };
    let shown = path.display();
    if let Ok(map) = serde_yaml::from_str::<serde_yaml::Mapping>(&text) {
        for key in map.keys().filter_map(|k| k.as_str()).filter(|k| !KEYS.contains(k)) {
            let near = suggest::closest(key, KEYS);
            let hint = near.map(|n| format!(", did you mean {n:?}?")).unwrap_or_default();
            warnings.push(format!("{shown}: unknown key {key:?}{hint}"));
        }
    }
    let parsed: Result<Option<File>, _> = serde_yaml::from_str(&text);
    parsed.map(Option::unwrap_or_default).unwrap_or_else(|problem| {
        warnings.push(format!("{shown}: ignored, {problem}"));
        File::default()
    })
}

/// With sixteen colours the user's own palette; else light or dark as the terminal says, dark if it does
/// not. `COLORFGBG` ends in the background's number: 7 and 9 to 15 are light.
fn default_theme(depth: Depth, env: impl Fn(&str) -> Option<String>) -> String {
    let background = env("COLORFGBG").and_then(|v| v.rsplit(';').next()?.parse::<u8>().ok());
    match (depth, background) {
        (Depth::Ansi16, _) => "terminal",
        (_, Some(7 | 9..=15)) => "light",
        _ => "dark",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::{Action, Execution};

    fn with_file(text: &str, options: &Options) -> Settings {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.yaml"), text).unwrap();
        let path = dir.path().display().to_string();
        load(options, move |name| match name {
            "KUBESTEP_CONFIG_DIR" => Some(path.clone()),
            "TERM" => Some("xterm-256color".into()),
            _ => None,
        })
    }

    #[test]
    fn the_file_is_read_and_options_win() {
        let text = "theme: light\ncolor: never\nascii: true\nkeys: { next: [ctrl-n] }\n";
        let settings = with_file(text, &Options::default());
        assert_eq!(settings.warnings, Vec::<String>::new());
        assert_eq!(settings.appearance.theme, "light");
        assert_eq!(settings.appearance.depth, Depth::None);
        assert!(settings.appearance.charset == Charset::Ascii);
        let next = Action::Execution(Execution::Next);
        assert_eq!(settings.keymap.keys_of(next).collect::<Vec<_>>(), ["Ctrl-n"]);
        let options =
            Options { theme: Some("mono".into()), color: Some(ColorChoice::Always), ascii: false };
        let settings = with_file(text, &options);
        assert_eq!(settings.appearance.theme, "mono");
        assert_eq!(settings.appearance.depth, Depth::Ansi256);
    }

    #[test]
    fn a_broken_file_is_a_warning() {
        let shown = |text| with_file(text, &Options::default()).warnings.join("|");
        assert!(shown("thme: light").contains("unknown key \"thme\", did you mean \"theme\"?"));
        assert!(shown("theme: [").contains("ignored"));
        assert!(shown("color: purple").contains("ignored"));
        assert_eq!(shown(""), "");
    }

    #[test]
    fn the_terminal_chooses_the_default_theme() {
        let theme = |depth, value: &'static str| {
            default_theme(depth, move |n| (n == "COLORFGBG").then(|| value.to_owned()))
        };
        assert_eq!(theme(Depth::Rgb, ""), "dark");
        assert_eq!(theme(Depth::Rgb, "15;0"), "dark");
        assert_eq!(theme(Depth::Rgb, "0;15"), "light");
        assert_eq!(theme(Depth::Rgb, "0;default;15"), "light");
        assert_eq!(theme(Depth::Ansi16, "0;15"), "terminal");
    }
}
