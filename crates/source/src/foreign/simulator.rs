//! kube-scheduler-simulator's record of a cluster (`record.jsonl`): a line of JSON for each change,
//! `{"time", "event", "resource"}`. The state after the last one is read. For a deleted object a
//! line contains kind and name only. An incomplete last line is skipped.
//!
//! Upstream: `simulator/recorder/recorder.go` of kubernetes-sigs/kube-scheduler-simulator.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Contents, ForeignFormat, as_is, first_field, items};
use crate::error::SourceError;
use crate::files::FileText;
use crate::item::Expected;
use kubestep_api::Kind;
use kubestep_api::words::count;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    name: "a record of kube-scheduler-simulator",
    may_be,
    prepare: as_is,
    read,
    holds: &[
        Kind::Namespace,
        Kind::PriorityClass,
        Kind::StorageClass,
        Kind::PersistentVolumeClaim,
        Kind::Node,
        Kind::PersistentVolume,
        Kind::Pod,
    ],
    is_scheduler: false,
};

/// A line of a record of kube-scheduler-simulator: one change.
#[derive(Deserialize)]
struct ChangeLine<'a> {
    time: String,
    event: ChangeType,
    #[serde(borrow)]
    resource: &'a RawValue,
}

#[derive(Deserialize, PartialEq)]
enum ChangeType {
    Add,
    Update,
    Delete,
}

/// Identifies an object across lines.
#[derive(Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
struct Identity {
    api_version: String,
    kind: String,
    metadata: ObjectName,
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct ObjectName {
    name: String,
    #[serde(default)]
    namespace: String,
}

fn may_be(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    matches!(first_field(first), Some("time" | "event" | "resource"))
        && ["\"event\"", "\"resource\""].iter().all(|field| first.contains(field))
}

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    // A deleted object keeps its position: the order is that of the queue.
    let mut state: IndexMap<Identity, Option<(&str, u32)>> = IndexMap::new();
    let (mut changes, mut at, mut last) = (0, 0, String::new());
    let mut notes = Vec::new();
    let mut lines = serde_json::Deserializer::from_str(&file.text).into_iter::<ChangeLine<'_>>();
    while let Some(line) = lines.next() {
        match line.and_then(|line| Ok((identity(line.resource)?, line))) {
            Ok((identity, line)) => {
                changes += 1;
                let object = (line.resource.get(), changes);
                state.insert(identity, (line.event != ChangeType::Delete).then_some(object));
                last = line.time;
            }
            Err(error) if error.is_eof() && changes > 0 => {
                notes.push("its last line is truncated and was skipped".to_owned());
                break;
            }
            // The first line decides whether the file is a record.
            Err(_) if changes == 0 => return Ok(None),
            Err(error) => return Err(file.piece().syntax_error(changes + 1, at, &error)),
        }
        at = lines.byte_offset();
    }
    notes.insert(0, format!("as it was after {}, at {last}", count(changes, "change")));
    let left = state.into_values().flatten();
    let parts = left.map(|(text, line)| (text, line, Expected::Anything));
    Ok(Some(Contents { items: items(file, parts), notes, ..Contents::default() }))
}

fn identity(resource: &RawValue) -> serde_json::Result<Identity> {
    serde_json::from_str(resource.get())
}
