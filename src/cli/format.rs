//! Output formats of several commands.

use clap::ValueEnum;
use serde_json::Value;

pub(super) use kubestep_output::document::{json, yaml};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
}

impl Format {
    /// The answer in this format; only the closure for it is called.
    pub(super) fn show(
        self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> Value,
    ) -> String {
        match self {
            Format::Text => text(),
            Format::Json => json(&value()),
            Format::Yaml => yaml(&value()),
        }
    }
}

/// Columns of text output that does not go to a terminal.
pub(super) const WIDTH: usize = 100;
