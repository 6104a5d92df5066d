//! SimKube's trace of a cluster: MessagePack with an event for each second in which a tracked
//! object was applied or deleted. The state at its end is read. Mostly workloads are tracked, whose
//! pods are created as their controllers would; nodes never are.
//!
//! Version 2 of the format is supported, as MessagePack or as the JSON that `msgpack2json` makes of
//! it.
//!
//! Upstream: `sk-core/src/trace/mod.rs`, `event.rs` and `docs/ref/trace-files.md` of
//! acrlabs/simkube.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Contents, ForeignFormat, as_is, first_field};
use crate::error::SourceError;
use crate::files::FileText;
use crate::item::{self, Expected, SourceItem};
use kubestep_api::words::count;
use kubestep_api::{Kind, Time};

/// The supported version of the format.
const VERSION: u16 = 2;
/// The top-level fields, any of which may be the first.
const FIELDS: &[&str] = &["version", "config", "events", "index", "pod_lifecycles"];

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    name: "a trace of SimKube",
    may_be: |text| first_field(text).is_some_and(|field| FIELDS.contains(&field)),
    prepare: as_is,
    read,
    holds: &[Kind::Pod, Kind::ReplicaSet, Kind::StatefulSet, Kind::ReplicationController],
    is_scheduler: false,
};

/// The fields that are read; the others are SimKube's bookkeeping.
#[derive(Serialize, Deserialize)]
struct Trace {
    version: u16,
    events: Vec<TraceEvent>,
}

#[derive(Serialize, Deserialize)]
struct TraceEvent {
    /// Seconds since 1970-01-01 UTC.
    ts: i64,
    applied_objs: Vec<Value>,
    deleted_objs: Vec<Value>,
}

/// Whether these are the first bytes of a trace in MessagePack: a short mapping, then a short
/// string.
pub(crate) fn is_trace(head: &[u8]) -> bool {
    let is = |field: &&str| {
        let length = 0xa0 | field.len() as u8;
        head.get(1) == Some(&length) && head[2..].starts_with(field.as_bytes())
    };
    head.first().is_some_and(|byte| byte & 0xf0 == 0x80) && FIELDS.iter().any(is)
}

/// Converts a trace in MessagePack to JSON.
pub(crate) fn to_json(name: &str, bytes: &[u8]) -> Result<String, Box<SourceError>> {
    let trace: Trace = rmp_serde::from_slice(bytes).map_err(|error| {
        let message =
            format!("is a trace of SimKube that is damaged or of another version: {error}");
        SourceError::of_file(name, message, "only version 2 of the format is read")
    })?;
    Ok(serde_json::to_string(&trace).unwrap_or_default())
}

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let Ok(trace) = serde_json::from_str::<Trace>(&file.text) else { return Ok(None) };
    if trace.version != VERSION {
        let message = format!("is a trace of SimKube in version {} of the format", trace.version);
        return Err(SourceError::of_file(&file.name, message, "only version 2 is read"));
    }
    let events = trace.events.len();
    let end = trace.events.last().map(|event| Time(event.ts.saturating_mul(1_000_000)));
    let mut state = IndexMap::new();
    for event in trace.events {
        for object in event.applied_objs {
            state.insert(identity(&object), Some(object));
        }
        for object in event.deleted_objs {
            state.insert(identity(&object), None);
        }
    }
    let mut contents = Contents::default();
    contents
        .notes
        .extend(end.map(|end| format!("as it was after {}, at {end}", count(events, "event"))));
    for object in state.into_values().flatten() {
        match has_template(&object) {
            true => contents.manifests.push(object),
            false => contents.items.push(SourceItem {
                document: 1,
                line: 1,
                content: item::ItemText::Value(object),
                expected: Expected::Anything,
            }),
        }
    }
    Ok(Some(contents))
}

/// API version, kind, namespace and name.
fn identity(object: &Value) -> [String; 4] {
    let metadata = &object["metadata"];
    [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]]
        .map(|field| field.as_str().unwrap_or_default().to_owned())
}

/// Whether the object is a workload with a pod template.
fn has_template(object: &Value) -> bool {
    ["/spec/template", "/spec/jobTemplate"].iter().any(|path| object.pointer(path).is_some())
}
