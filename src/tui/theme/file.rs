//! Theme files: YAML with `inherits`, `palette`, and one entry a scope.
//!
//! ```yaml
//! inherits: dark
//! surface: "#101418"            # the background it is made for; contrast is tested against it
//! palette: { pass: "#56b4e9" }
//! verdict: { fg: text }         # falls back for verdict.*
//! verdict.fail: { fg: fail, mods: [bold] }
//! ```
//!
//! A mistake in an entry is a warning and costs that entry only; a file that is not YAML is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ratatui::style::{Color, Modifier, Style};
use serde_yaml::{Mapping, Value};

use super::ThemeError;
use super::scope::Scope;
use crate::tui::color::Rgb;
use kubestep_config::suggest;

/// The themes in the program, by name.
pub const BUILT_IN: [(&str, &str); 7] = [
    ("dark", include_str!("../../../themes/dark.yaml")),
    ("light", include_str!("../../../themes/light.yaml")),
    ("dark-cvd", include_str!("../../../themes/dark-cvd.yaml")),
    ("light-cvd", include_str!("../../../themes/light-cvd.yaml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.yaml")),
    ("mono", include_str!("../../../themes/mono.yaml")),
    ("terminal", include_str!("../../../themes/terminal.yaml")),
];

/// A theme after inheritance, before scopes are looked up.
#[derive(Debug, Default)]
pub struct Merged {
    /// Style by theme key.
    pub styles: BTreeMap<String, Style>,
    /// The background the theme is made for.
    pub surface: Option<Rgb>,
    /// Entries that were ignored, each a sentence.
    pub warnings: Vec<String>,
}

/// Where themes are found.
#[derive(Clone, Debug, Default)]
pub struct Library {
    user_dir: Option<PathBuf>,
}

impl Library {
    /// Built-in themes and the `*.yaml` files of `user_dir`, which win over built-in ones of the same name.
    pub fn new(user_dir: Option<PathBuf>) -> Library {
        Library { user_dir }
    }

    /// Every theme that can be loaded: the built-in ones in their order, then the user's by name.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut own = self.user_dir.as_deref().map(theme_files).unwrap_or_default();
        own.retain(|name| !names.contains(name));
        own.sort();
        names.extend(own);
        names
    }

    /// Reads `name` with everything it inherits.
    pub fn read(&self, name: &str) -> Result<Merged, ThemeError> {
        let chain = self.chain(name)?;
        let mut palette = BTreeMap::new();
        let mut merged = Merged::default();
        // The palette is complete before any entry is resolved, so that a theme can recolour its parent.
        for (name, map) in chain.iter().rev() {
            read_palette(name, map, &mut palette, &mut merged.warnings);
        }
        for (name, map) in chain.iter().rev() {
            read_entries(name, map, &palette, &mut merged);
        }
        Ok(merged)
    }

    /// The files from `name` to the root of its inheritance.
    fn chain(&self, name: &str) -> Result<Vec<(String, Mapping)>, ThemeError> {
        let mut chain: Vec<(String, Mapping)> = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next {
            // A user's `dark` that inherits `dark` builds on the built-in one.
            let seen = chain.iter().filter(|(n, _)| *n == name).count();
            if seen > 1 || chain.len() > 16 {
                return Err(ThemeError::Cycle(name));
            }
            let text = self.text(&name, seen > 0)?;
            let map = parse(&name, &text)?;
            next = map.get("inherits").and_then(Value::as_str).map(str::to_owned);
            chain.push((name, map));
        }
        Ok(chain)
    }

    fn text(&self, name: &str, built_in_only: bool) -> Result<String, ThemeError> {
        let plain = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if let Some(dir) = self.user_dir.as_deref().filter(|_| plain && !built_in_only) {
            let path = dir.join(format!("{name}.yaml"));
            if path.is_file() {
                return std::fs::read_to_string(&path)
                    .map_err(|error| ThemeError::Unreadable { path, error: error.to_string() });
            }
        }
        let found = BUILT_IN.iter().find(|(n, _)| *n == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| match built_in_only {
            true => ThemeError::Cycle(name.to_owned()),
            false => ThemeError::Unknown { name: name.to_owned(), known: self.names() },
        })
    }
}

fn theme_files(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
}

fn parse(name: &str, text: &str) -> Result<Mapping, ThemeError> {
    match kubestep_api::yaml::from_str::<Value>(text) {
        Ok(Value::Mapping(map)) => Ok(map),
        Ok(Value::Null) => Ok(Mapping::new()),
        Ok(_) => Err(ThemeError::NotYaml { name: name.to_owned(), error: "not a map".into() }),
        Err(error) => Err(ThemeError::NotYaml { name: name.to_owned(), error: error.to_string() }),
    }
}

type Palette = BTreeMap<String, Color>;

fn read_palette(theme: &str, map: &Mapping, palette: &mut Palette, warnings: &mut Vec<String>) {
    let Some(entries) = map.get("palette").and_then(Value::as_mapping) else { return };
    for (key, value) in entries {
        let (Some(key), Some(value)) = (key.as_str(), value.as_str()) else {
            warnings.push(format!("theme {theme}: palette entries are name: colour"));
            continue;
        };
        match parse_color(value, palette) {
            Some(color) => drop(palette.insert(key.to_owned(), color)),
            None => {
                warnings.push(format!("theme {theme}: palette.{key}: unknown colour {value:?}"))
            }
        }
    }
}

fn read_entries(theme: &str, map: &Mapping, palette: &Palette, merged: &mut Merged) {
    for (key, value) in map {
        let Some(key) = key.as_str() else { continue };
        match key {
            "inherits" | "palette" => {}
            "surface" => match value.as_str().and_then(|v| parse_color(v, palette)) {
                Some(Color::Rgb(r, g, b)) => merged.surface = Some(Rgb(r, g, b)),
                _ => {
                    merged.warnings.push(format!("theme {theme}: surface is not a #rrggbb colour"))
                }
            },
            _ if Scope::is_known(key) => match read_style(value, palette) {
                Ok(style) => drop(merged.styles.insert(key.to_owned(), style)),
                Err(problem) => merged.warnings.push(format!("theme {theme}: {key}: {problem}")),
            },
            _ => merged.warnings.push(unknown_key(theme, key)),
        }
    }
}

fn unknown_key(theme: &str, key: &str) -> String {
    let names = Scope::ALL.iter().map(|s| s.name()).chain(["inherits", "palette", "surface"]);
    match suggest::closest(key, names) {
        Some(near) => format!("theme {theme}: unknown key {key:?}, did you mean {near:?}?"),
        None => format!("theme {theme}: unknown key {key:?}"),
    }
}

fn read_style(value: &Value, palette: &Palette) -> Result<Style, String> {
    let color = |value: &Value| {
        let name = value.as_str().ok_or("a colour is text")?;
        parse_color(name, palette).ok_or_else(|| format!("unknown colour {name:?}"))
    };
    let map = match value {
        Value::String(_) => return Ok(Style::new().fg(color(value)?)),
        Value::Mapping(map) => map,
        _ => return Err("expected a colour or {fg, bg, mods}".into()),
    };
    let mut style = Style::new();
    for (key, value) in map {
        style = match key.as_str() {
            Some("fg") => style.fg(color(value)?),
            Some("bg") => style.bg(color(value)?),
            Some("mods") => style.add_modifier(read_modifiers(value)?),
            _ => return Err("only fg, bg and mods are known".into()),
        };
    }
    Ok(style)
}

fn read_modifiers(value: &Value) -> Result<Modifier, String> {
    let list = value.as_sequence().ok_or("mods is a list")?;
    list.iter().try_fold(Modifier::empty(), |all, item| match item.as_str() {
        Some("bold") => Ok(all | Modifier::BOLD),
        Some("dim") => Ok(all | Modifier::DIM),
        Some("italic") => Ok(all | Modifier::ITALIC),
        Some("underline") => Ok(all | Modifier::UNDERLINED),
        Some("reverse") => Ok(all | Modifier::REVERSED),
        Some("strike") => Ok(all | Modifier::CROSSED_OUT),
        _ => Err("mods are bold, dim, italic, underline, reverse, strike".into()),
    })
}

/// `#rrggbb`, a name of the palette, `default`, an ANSI name (`red`, `bright-red`), or `ansi-0..255`.
fn parse_color(text: &str, palette: &Palette) -> Option<Color> {
    if let Some(color) = palette.get(text) {
        return Some(*color);
    }
    if let Some(hex) = text.strip_prefix('#').filter(|h| h.len() == 6 && h.is_ascii()) {
        let value = u32::from_str_radix(hex, 16).ok()?;
        return Some(Color::from_u32(value));
    }
    if let Some(index) = text.strip_prefix("ansi-") {
        return index.parse().ok().map(Color::Indexed);
    }
    let (name, bright) = match text.strip_prefix("bright-") {
        Some(name) => (name, true),
        None => (text, false),
    };
    Some(match (name, bright) {
        ("default", false) => Color::Reset,
        ("black", false) => Color::Black,
        ("black", true) => Color::DarkGray,
        ("red", false) => Color::Red,
        ("red", true) => Color::LightRed,
        ("green", false) => Color::Green,
        ("green", true) => Color::LightGreen,
        ("yellow", false) => Color::Yellow,
        ("yellow", true) => Color::LightYellow,
        ("blue", false) => Color::Blue,
        ("blue", true) => Color::LightBlue,
        ("magenta", false) => Color::Magenta,
        ("magenta", true) => Color::LightMagenta,
        ("cyan", false) => Color::Cyan,
        ("cyan", true) => Color::LightCyan,
        ("white", false) => Color::Gray,
        ("white", true) => Color::White,
        _ => return None,
    })
}
