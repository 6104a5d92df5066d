//! Files of other tools: each format is recognized by its contents, and the objects that a
//! scheduler reads are taken from it. For each format it is known what it lacks, so that this can
//! be reported.
//!
//! One module per format; the table [`FORMATS`] lists them, and each names the upstream file that
//! writes it. The export of kube-scheduler-simulator is not among them, because captures have the
//! same format.

mod autoscaler;
mod instance_types;
mod kai;
mod kwok;
mod patch;
pub(super) mod simkube;
mod simulator;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::error::SourceError;
use super::files::FileText;
use super::item::{Expected, SourceItem};
use super::json::LineCounter;
use kubestep_api::{Kind, Provisioning};

/// The format of a file that another tool writes.
pub(super) struct ForeignFormat {
    /// The tool, and what it writes: `cluster-autoscaler's debugging snapshot`.
    pub name: &'static str,
    /// Whether a file that begins with this text may have the format. Fast, because it is called
    /// for every file.
    may_be: fn(&str) -> bool,
    /// Transforms the text before it is split.
    pub prepare: fn(&mut String),
    /// Splits the text into objects; `None` if it does not have the format after all.
    pub read: for<'a> fn(&'a FileText) -> Result<Option<Contents<'a>>, Box<SourceError>>,
    /// The kinds that it can contain; none for a file that only accompanies a cluster.
    holds: &'static [Kind],
    /// Whether the tool is itself a scheduler, which pods request by name.
    pub is_scheduler: bool,
}

const FORMATS: &[ForeignFormat] = &[
    simulator::FORMAT,
    autoscaler::FORMAT,
    kai::FORMAT,
    simkube::FORMAT,
    kwok::FORMAT,
    instance_types::FORMAT,
];

/// The contents of a file of another tool.
#[derive(Default)]
pub(super) struct Contents<'a> {
    /// The objects, in the order of the file.
    pub items: Vec<SourceItem<'a>>,
    /// Workloads whose pods are not in the file.
    pub manifests: Vec<Value>,
    /// Where new nodes come from.
    pub provisioning: Provisioning,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// A file of another tool that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// The file as it was named.
    pub file: String,
    /// The name of the format: `cluster-autoscaler's debugging snapshot`.
    pub format: &'static str,
    /// The kinds that the format cannot contain.
    pub lacks: Vec<Kind>,
    /// Whether the tool is itself a scheduler, which pods request by name.
    pub is_scheduler: bool,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// The formats that a file with this beginning may have.
pub(super) fn candidates(text: &str) -> Vec<&'static ForeignFormat> {
    FORMATS.iter().filter(|format| (format.may_be)(text)).collect()
}

impl ForeignFormat {
    /// The description of a file of this format.
    pub fn about(&self, file: &str, notes: Vec<String>) -> Foreign {
        let is_lacking = |kind: &Kind| !self.holds.is_empty() && !self.holds.contains(kind);
        Foreign {
            file: file.to_owned(),
            format: self.name,
            lacks: Kind::all().filter(is_lacking).collect(),
            is_scheduler: self.is_scheduler,
            notes,
        }
    }
}

/// Leaves the text unchanged.
fn as_is(_: &mut String) {}

/// The name of the first field of the JSON object at the start of a text.
fn first_field(text: &str) -> Option<&str> {
    let name = text.trim_start().strip_prefix('{')?.trim_start().strip_prefix('"')?;
    name.split_once('"').map(|(name, _)| name)
}

/// Converts parts of a file's JSON to items, in the order of the file.
fn items<'a>(
    file: &'a FileText,
    parts: impl IntoIterator<Item = (&'a str, u32, Expected)>,
) -> Vec<SourceItem<'a>> {
    let mut parts: Vec<_> =
        parts.into_iter().filter(|(text, ..)| *text != "null").enumerate().collect();
    // Lines are counted from the start of the file, so parts have to be in its order.
    parts.sort_by_key(|(_, (text, ..))| text.as_ptr() as usize);
    let mut counter = LineCounter::new(file.piece());
    let mut items: Vec<(usize, SourceItem<'a>)> = parts
        .into_iter()
        .map(|(at, (text, document, expected))| (at, counter.item(text, document, expected)))
        .collect();
    items.sort_by_key(|(at, _)| *at);
    items.into_iter().map(|(_, item)| item).collect()
}
