//! Files that other tools write: each is recognized by what is in it, and read as far as it holds
//! what a scheduler reads. What it does not hold is known of each format, so that it can be told.
//!
//! One format a file, all in the table [`FORMATS`]; each names the upstream file that writes it.
//! The export of kube-scheduler-simulator is not here: captures are of the same format.

mod autoscaler;
mod kai;
mod kwok;
mod patch;
pub(super) mod simkube;
mod simulator;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::error::SourceError;
use super::files::File;
use super::item::{Expected, Item};
use super::json::Counter;
use kubestep_api::Kind;

/// A format of another tool.
pub(super) struct Format {
    /// The tool, and what it writes: `cluster-autoscaler's debugging snapshot`.
    pub name: &'static str,
    /// Whether a file that begins like that may be one. Quick: it is asked of every file.
    may_be: fn(&str) -> bool,
    /// What is done to the text before it is cut up.
    pub prepare: fn(&mut String),
    /// Cuts the text up; `None` if it is no such file after all.
    pub read: for<'a> fn(&'a File) -> Result<Option<Contents<'a>>, Box<SourceError>>,
    /// The kinds that it can hold.
    holds: &'static [Kind],
    /// Its tool is itself a scheduler, whose pods ask for it by name.
    pub is_scheduler: bool,
}

/// All formats.
const FORMATS: &[Format] =
    &[simulator::FORMAT, autoscaler::FORMAT, kai::FORMAT, simkube::FORMAT, kwok::FORMAT];

/// What a file of another tool comes to.
#[derive(Default)]
pub(super) struct Contents<'a> {
    /// The objects.
    pub items: Vec<Item<'a>>,
    /// Workloads whose pods are not in the file, but only what they would be made from.
    pub manifests: Vec<Value>,
    /// What a reader should know, one sentence each.
    pub notes: Vec<String>,
}

/// A file of another tool that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// The file as it was named.
    pub file: String,
    /// What it is: `cluster-autoscaler's debugging snapshot`.
    pub format: &'static str,
    /// The kinds that no file of the format holds.
    pub lacks: Vec<Kind>,
    /// Its tool is itself a scheduler, whose pods ask for it by name.
    pub is_scheduler: bool,
    /// What a reader should know, one sentence each.
    pub notes: Vec<String>,
}

/// The formats that a file may be of which begins like that.
pub(super) fn candidates(text: &str) -> Vec<&'static Format> {
    FORMATS.iter().filter(|format| (format.may_be)(text)).collect()
}

impl Format {
    /// What is to be told about a file of this format.
    pub fn about(&self, file: &str, notes: Vec<String>) -> Foreign {
        let is_lacking = |kind: &Kind| !self.holds.contains(kind);
        Foreign {
            file: file.to_owned(),
            format: self.name,
            lacks: Kind::all().filter(is_lacking).collect(),
            is_scheduler: self.is_scheduler,
            notes,
        }
    }
}

/// Leaves a text as it is.
fn as_is(_: &mut String) {}

/// The name of the first field of the JSON object that a text begins with.
fn first_field(text: &str) -> Option<&str> {
    let name = text.trim_start().strip_prefix('{')?.trim_start().strip_prefix('"')?;
    name.split_once('"').map(|(name, _)| name)
}

/// Parts of a file's JSON as items, in the order given.
fn items<'a>(
    file: &'a File,
    parts: impl IntoIterator<Item = (&'a str, u32, Expected)>,
) -> Vec<Item<'a>> {
    let mut parts: Vec<_> =
        parts.into_iter().filter(|(text, ..)| *text != "null").enumerate().collect();
    // Places are counted from the file's beginning on.
    parts.sort_by_key(|(_, (text, ..))| text.as_ptr() as usize);
    let mut counter = Counter::new(file.piece());
    let mut items: Vec<(usize, Item<'a>)> = parts
        .into_iter()
        .map(|(at, (text, document, expected))| (at, counter.item(text, document, expected)))
        .collect();
    items.sort_by_key(|(at, _)| *at);
    items.into_iter().map(|(_, item)| item).collect()
}
