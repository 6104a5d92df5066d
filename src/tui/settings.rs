//! The interface's own configuration, `config.yaml` in the configuration directory, and how it combines
//! with options and environment.
//!
//! ```yaml
//! theme: dark-cvd
//! color: always        # auto, always, never
//! preset: emacs        # keys: vi, vim, emacs, plain
//! ascii: false
//! keys:
//!   next: [n, space]   # replaces the action's keys
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;

use super::action::presets::PRESETS;
use super::action::{Keymap, Preset};
use super::app::LookOptions;
use super::background::Background;
use super::color::{self, ColorChoice, ColorDepth};
use super::glyph::Charset;
use super::theme::Library;
use kubestep_config::suggest;

/// Environment variable that replaces the configuration directory.
pub const CONFIG_DIR_VARIABLE: &str = "KUBESTEP_CONFIG_DIR";

/// The directory of `config.yaml` and `themes/`, when the platform has one. It need not exist.
pub fn config_dir(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(dir) = env(CONFIG_DIR_VARIABLE).filter(|d| !d.is_empty()) {
        return Some(PathBuf::from(dir));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("kubestep"))
}

/// What the command line says about the interface.
#[derive(Clone, Debug, Default)]
pub struct InterfaceOptions {
    /// The value of `--theme`.
    pub theme: Option<String>,
    /// The value of `--color`.
    pub color: Option<ColorChoice>,
    /// Whether `--ascii` is given.
    pub ascii: bool,
    /// Asks the terminal whether it is light or dark, where there is one to ask.
    pub ask: Option<fn() -> Option<Background>>,
}

/// What `config.yaml` can contain.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SettingsFile {
    theme: Option<String>,
    color: Option<ColorChoice>,
    ascii: bool,
    preset: Option<String>,
    keys: BTreeMap<String, Vec<String>>,
}

const KEYS: [&str; 5] = ["theme", "color", "ascii", "preset", "keys"];

/// Everything decided before the interface starts.
pub struct InterfaceSettings {
    /// Theme, colours and glyphs.
    pub appearance: LookOptions,
    /// The keys of all actions.
    pub keymap: Keymap,
    /// What was ignored, a sentence each.
    pub warnings: Vec<String>,
}

/// Decides by options, then `config.yaml`, then the environment (`env` looks a variable up).
pub fn load(options: &InterfaceOptions, env: impl Fn(&str) -> Option<String>) -> InterfaceSettings {
    let dir = config_dir(&env);
    let mut warnings = Vec::new();
    let file = dir.as_deref().map(|dir| read(&dir.join("config.yaml"), &mut warnings));
    let file = file.unwrap_or_default();
    let depth = color::depth(options.color, file.color, &env);
    let preset = preset(file.preset.as_deref(), &mut warnings);
    let (keymap, problems) = Keymap::with_preset(preset, &file.keys);
    warnings.extend(problems);
    let theme = options.theme.clone().or(file.theme).unwrap_or_else(|| {
        let said = options.ask.filter(|_| depth > ColorDepth::Ansi16).and_then(|ask| ask());
        default_theme(depth, said, &env)
    });
    let library = Library::new(dir.map(|d| d.join("themes")));
    let charset = Charset::choose(options.ascii || file.ascii, &env);
    InterfaceSettings {
        appearance: LookOptions { library, theme, depth, charset },
        keymap,
        warnings,
    }
}

/// The preset called so; the first one with a warning if there is none.
fn preset(name: Option<&str>, warnings: &mut Vec<String>) -> &'static Preset {
    let found = name.map_or(Some(&PRESETS[0]), Preset::find);
    found.unwrap_or_else(|| {
        let name = name.unwrap_or_default();
        let near = suggest::closest(name, Preset::names());
        let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
        let all: Vec<&str> = Preset::names().collect();
        let all = all.join(", ");
        warnings.push(format!("preset: there is no {name:?}{near}; presets are {all}"));
        &PRESETS[0]
    })
}

/// A file that is not there says nothing; one that is broken is ignored with a warning.
fn read(path: &Path, warnings: &mut Vec<String>) -> SettingsFile {
    let Ok(text) = std::fs::read_to_string(path) else { return SettingsFile::default() };
    let shown = path.display();
    if let Ok(map) = kubestep_api::yaml::from_str::<serde_yaml::Mapping>(&text) {
        for key in map.keys().filter_map(|k| k.as_str()).filter(|k| !KEYS.contains(k)) {
            let near = suggest::closest(key, KEYS);
            let hint = near.map(|n| format!(", did you mean {n:?}?")).unwrap_or_default();
            warnings.push(format!("{shown}: unknown key {key:?}{hint}"));
        }
    }
    let parsed: Result<Option<SettingsFile>, _> = kubestep_api::yaml::from_str(&text);
    parsed.map(Option::unwrap_or_default).unwrap_or_else(|problem| {
        warnings.push(format!("{shown}: ignored, {problem}"));
        SettingsFile::default()
    })
}

/// With sixteen colours the user's own palette; else light or dark as the terminal said, or as `COLORFGBG`
/// has it, which ends in the background's number: 7 and 9 to 15 are light. Dark if nobody says.
fn default_theme(
    depth: ColorDepth,
    said: Option<Background>,
    env: impl Fn(&str) -> Option<String>,
) -> String {
    let number = env("COLORFGBG").and_then(|v| v.rsplit(';').next()?.parse::<u8>().ok());
    match (depth, said, number) {
        (ColorDepth::Ansi16, _, _) => "terminal",
        (_, Some(Background::Light), _) | (_, None, Some(7 | 9..=15)) => "light",
        _ => "dark",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action;

    fn with_file(text: &str, options: &InterfaceOptions) -> InterfaceSettings {
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
        let settings = with_file(text, &InterfaceOptions::default());
        assert_eq!(settings.warnings, Vec::<String>::new());
        assert_eq!(settings.appearance.theme, "light");
        assert_eq!(settings.appearance.depth, ColorDepth::None);
        assert!(settings.appearance.charset == Charset::Ascii);
        let next = action::find("next").unwrap();
        assert_eq!(settings.keymap.keys_of(next).collect::<Vec<_>>(), ["Ctrl-n"]);
        let options = InterfaceOptions {
            theme: Some("mono".into()),
            color: Some(ColorChoice::Always),
            ..InterfaceOptions::default()
        };
        let settings = with_file(text, &options);
        assert_eq!(settings.appearance.theme, "mono");
        assert_eq!(settings.appearance.depth, ColorDepth::Ansi256);
    }

    #[test]
    fn presets_are_chosen_by_the_file_and_mistakes_are_reported() {
        let settings =
            with_file("preset: emacs\nkeys: { next: [ctrl-z] }\n", &InterfaceOptions::default());
        assert_eq!(settings.keymap.preset().name, "emacs");
        assert!(settings.warnings.iter().any(|w| w.contains("Ctrl-z belongs to next")));
        let settings = with_file("preset: emcas\n", &InterfaceOptions::default());
        assert_eq!(
            settings.warnings,
            [
                "preset: there is no \"emcas\", did you mean \"emacs\"?; presets are vi, vim, emacs, plain"
            ]
        );
    }

    #[test]
    fn the_terminal_is_asked_only_when_nobody_chose_and_there_are_colours() {
        fn light() -> Option<Background> {
            Some(Background::Light)
        }
        let asking = |text: &str, options: InterfaceOptions| {
            with_file(text, &InterfaceOptions { ask: Some(light), ..options }).appearance.theme
        };
        assert_eq!(asking("", InterfaceOptions::default()), "light");
        assert_eq!(asking("theme: dark", InterfaceOptions::default()), "dark");
        let chosen = InterfaceOptions { theme: Some("mono".into()), ..InterfaceOptions::default() };
        assert_eq!(asking("", chosen), "mono");
        assert_eq!(asking("color: never", InterfaceOptions::default()), "dark");
    }

    #[test]
    fn a_broken_file_is_a_warning() {
        let shown = |text| with_file(text, &InterfaceOptions::default()).warnings.join("|");
        assert!(shown("thme: light").contains("unknown key \"thme\", did you mean \"theme\"?"));
        assert!(shown("theme: [").contains("ignored"));
        assert!(shown("color: purple").contains("ignored"));
        assert_eq!(shown(""), "");
    }

    #[test]
    fn the_terminal_chooses_the_default_theme() {
        let theme = |depth, value: &'static str| {
            default_theme(depth, None, move |n| (n == "COLORFGBG").then(|| value.to_owned()))
        };
        assert_eq!(theme(ColorDepth::Rgb, ""), "dark");
        assert_eq!(theme(ColorDepth::Rgb, "15;0"), "dark");
        assert_eq!(theme(ColorDepth::Rgb, "0;15"), "light");
        assert_eq!(theme(ColorDepth::Rgb, "0;default;15"), "light");
        assert_eq!(theme(ColorDepth::Ansi16, "0;15"), "terminal");
    }

    #[test]
    fn the_variable_wins_unless_empty() {
        let moved = config_dir(|n| (n == CONFIG_DIR_VARIABLE).then(|| "/x/y".into()));
        assert_eq!(moved, Some(PathBuf::from("/x/y")));
        let default = config_dir(|_| Some(String::new()));
        assert!(default.is_none_or(|d| d.ends_with("kubestep")));
    }
}
