//! kwok's snapshots of a cluster: ordinary documents, except that `kwokctl snapshot export`
//! replaces times by offsets from its start. With `--record`, patches follow, each a document of
//! the kind `ResourcePatch`: the state after the last one is read.
//!
//! Upstream: `pkg/kwokctl/recording/time.go`, `pkg/kwokctl/snapshot/save.go` and
//! `pkg/apis/action/v1alpha1/resource_patch_types.go` of kubernetes-sigs/kwok.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::patch;
use super::{Contents, ForeignFormat};
use crate::error::SourceError;
use crate::files::FileText;
use crate::item::{Expected, ItemText, SourceItem};
use crate::split;
use kubestep_api::words::count;
use kubestep_api::{DecodeError, Kind, Time};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    name: "a snapshot of kwok",
    may_be: |text| text.contains(OFFSET) || text.contains(PATCH),
    prepare,
    read,
    holds: &[
        Kind::Namespace,
        Kind::Node,
        Kind::PriorityClass,
        Kind::ReplicaSet,
        Kind::StatefulSet,
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::Pod,
        Kind::Service,
    ],
    is_scheduler: false,
};

/// The placeholder for a time, up to the number of nanoseconds.
const OFFSET: &str = "$(time-offset-nanosecond ";
const PATCH: &str = "kind: ResourcePatch";
const PATCH_GROUP: &str = "action.kwok.x-k8s.io/";
/// The time that offsets are relative to: the file does not contain the real one.
const START: &str = "2026-01-01T00:00:00Z";

/// A change of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourcePatch {
    resource: PatchResource,
    target: PatchTarget,
    #[serde(default)]
    duration_nanosecond: i64,
    method: Method,
    #[serde(default)]
    template: Value,
}

#[derive(Deserialize)]
struct PatchResource {
    #[serde(default)]
    group: String,
    resource: String,
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct PatchTarget {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Method {
    Create,
    Patch,
    Delete,
}

/// Replaces offsets by times.
fn prepare(text: &mut String) {
    let Ok(start) = Time::parse(START) else { return };
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(OFFSET) {
        let (before, after) = (&rest[..at], &rest[at + OFFSET.len()..]);
        out.push_str(before);
        let number = after.split_once(')');
        match number.and_then(|(number, rest)| Some((number.parse::<i64>().ok()?, rest))) {
            Some((offset, after)) => {
                out.push_str(&Time(start.0.saturating_add(offset / 1_000)).to_string());
                rest = after;
            }
            None => {
                out.push_str(OFFSET);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    *text = out;
}

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let items = split(file)?;
    let mut notes = vec![format!("it has no timestamps: the export time is assumed to be {START}")];
    if !file.text.contains(PATCH) {
        return Ok(Some(Contents { items, notes, ..Contents::default() }));
    }
    let mut state = ReplayedObjects::default();
    for item in items {
        let (document, line) = (item.document, item.line);
        let taken = item.value().and_then(|value| state.take(value, document, line));
        taken.map_err(|error| file.piece().error(&item, error))?;
    }
    let seconds = state.end / 1_000_000_000;
    let patches = count(state.patches, "patch");
    notes.push(format!("as it was after {patches}, {seconds} s after the export's start"));
    Ok(Some(Contents { items: state.items(), notes, ..Contents::default() }))
}

/// An object with its document and line.
type PositionedValue = (Value, u32, u32);

/// The objects by kind, namespace and name.
#[derive(Default)]
struct ReplayedObjects {
    objects: IndexMap<(String, PatchTarget), Option<PositionedValue>>,
    patches: usize,
    /// Time of the last patch, in nanoseconds from the start.
    end: i64,
}

impl ReplayedObjects {
    fn take(&mut self, value: Value, document: u32, line: u32) -> Result<(), DecodeError> {
        let field = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        if !api_version.starts_with(PATCH_GROUP) {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let metadata = |name: &str| value["metadata"][name].as_str().unwrap_or_default().into();
            let target = PatchTarget { name: metadata("name"), namespace: metadata("namespace") };
            let resource = (format!("{group}/{}", plural(&kind)), target);
            self.objects.insert(resource, Some((value, document, line)));
            return Ok(());
        }
        let patch = ResourcePatch::deserialize(value).map_err(|error| wrong(error.to_string()))?;
        self.patches += 1;
        self.end = self.end.max(patch.duration_nanosecond);
        self.apply(patch, document, line)
    }

    fn apply(&mut self, patch: ResourcePatch, document: u32, line: u32) -> Result<(), DecodeError> {
        let name = patch.target.name.clone();
        let resource = format!("{}/{}", patch.resource.group, patch.resource.resource);
        let object = self.objects.entry((resource, patch.target)).or_default();
        match (patch.method, object) {
            (Method::Create, object) => *object = Some((patch.template, document, line)),
            (Method::Delete, object) => *object = None,
            (Method::Patch, Some((value, ..))) => patch::apply(value, patch.template),
            (Method::Patch, None) => {
                return Err(wrong(format!("changes {name:?}, which does not exist")));
            }
        }
        Ok(())
    }

    fn items(self) -> Vec<SourceItem<'static>> {
        let item = |(value, document, line)| SourceItem {
            document,
            line,
            content: ItemText::Value(value),
            expected: Expected::Anything,
        };
        self.objects.into_values().flatten().map(item).collect()
    }
}

fn wrong(message: String) -> DecodeError {
    DecodeError { object: "ResourcePatch".into(), message, ..DecodeError::default() }
}

/// The plural of a kind, which patches refer to.
fn plural(kind: &str) -> String {
    if let Some(kind) = Kind::by_name(kind) {
        return kind.plural().to_owned();
    }
    let name = kind.to_lowercase();
    match name.as_str() {
        "endpoints" => name,
        _ if name.ends_with(['s', 'x']) => name + "es",
        _ => name + "s",
    }
}
