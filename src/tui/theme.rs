//! Themes: a style for every [`Scope`], read from YAML and mapped to the terminal's colours.
//!
//! Files in `themes/` are part of the program; files in the configuration directory's `themes/` win over
//! them by name. Without colours every theme shows as `mono`, whose attributes alone keep the selection
//! and the verdicts apart.

mod file;
mod scope;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use ratatui::style::Style;

#[cfg(test)]
use file::BUILT_IN;
pub use file::Library;
pub use scope::Scope;

use super::color::{self, ColorDepth, Rgb};

/// Why a theme could not be loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("there is no theme {name:?}; themes are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The themes that exist.
        known: Vec<String>,
    },
    /// The file could not be read.
    #[error("cannot read theme {}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        /// The message of the operating system.
        error: String,
    },
    /// The file is not a YAML map.
    #[error("theme {name:?} is not a YAML map: {error}")]
    NotYaml {
        /// Name of the theme.
        name: String,
        /// The message of the parser, with line and column.
        error: String,
    },
    /// A theme inherits itself.
    #[error("theme {0:?} inherits itself")]
    Cycle(String),
}

/// A theme with its scopes resolved for one colour depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    styles: Vec<Style>,
    surface: Option<Rgb>,
}

impl Theme {
    /// Loads `name` for a terminal with `depth` colours; warnings name entries that were ignored.
    pub fn load(
        library: &Library,
        name: &str,
        depth: ColorDepth,
    ) -> Result<(Theme, Vec<String>), ThemeError> {
        let named = library.read(name)?;
        let shown = if depth == ColorDepth::None { library.read("mono")? } else { named };
        let sixteen = library.read("terminal")?;
        let style = |scope: Scope| match lookup(&shown, scope) {
            // A bar's colour among sixteen may be the background's: use the attributes made for sixteen.
            Style { fg: None, bg: Some(_), .. } if depth == ColorDepth::Ansi16 => {
                lookup(&sixteen, scope)
            }
            style => at_depth(style, depth),
        };
        let styles = Scope::ALL.iter().map(|scope| style(*scope)).collect();
        let theme = Theme { name: name.to_owned(), styles, surface: shown.surface };
        Ok((theme, shown.warnings))
    }

    /// The style of a place.
    pub fn style(&self, scope: Scope) -> Style {
        self.styles.get(scope as usize).copied().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The background it is made for, when it names one.
    pub fn surface(&self) -> Option<Rgb> {
        self.surface
    }
}

/// The style of the longest key that covers `scope`.
fn lookup(merged: &file::Merged, scope: Scope) -> Style {
    let mut key = scope.name();
    loop {
        if let Some(style) = merged.styles.get(key) {
            return *style;
        }
        match key.rfind('.') {
            Some(dot) => key = &key[..dot],
            None => return Style::new(),
        }
    }
}

fn at_depth(style: Style, depth: ColorDepth) -> Style {
    let mut mapped = style;
    mapped.fg = style.fg.map(|c| color::map(c, depth));
    mapped.bg = style.bg.map(|c| color::map(c, depth));
    mapped
}
