//! cluster-autoscaler's debugging snapshot (`/snapshotz`): the nodes with their pods, and pending
//! pods that it expects to fit. Pods that it expects to fit nowhere, and all other kinds of
//! objects, are not part of it. Its template nodes, one for each node group, are skipped.
//!
//! Upstream: `cluster-autoscaler/debuggingsnapshot/debugging_snapshot.go` of kubernetes/autoscaler;
//! before 1.31 each pod of a node was nested in a field `Pod`.

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Contents, Format, as_is, first_field, items};
use crate::error::SourceError;
use crate::files::File;
use crate::item::Expected;
use kubestep_api::Kind;

pub(super) const FORMAT: Format = Format {
    name: "a debugging snapshot of cluster-autoscaler",
    may_be: |text| first_field(text).is_some_and(|field| FIELDS.contains(&field)),
    prepare: as_is,
    read,
    holds: &[Kind::Node, Kind::Pod],
    is_scheduler: false,
};

const FIELDS: &[&str] = &[
    "NodeList",
    "UnscheduledPodsCanBeScheduled",
    "Error",
    "StartTimestamp",
    "EndTimestamp",
    "TemplateNodes",
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Snapshot<'a> {
    #[serde(borrow)]
    node_list: Option<Vec<ClusterNode<'a>>>,
    #[serde(borrow)]
    unscheduled_pods_can_be_scheduled: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    error: String,
    start_timestamp: String,
    #[serde(rename = "EndTimestamp")]
    _end_timestamp: String,
    template_nodes: Option<IndexMap<String, IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ClusterNode<'a> {
    #[serde(borrow)]
    node: &'a RawValue,
    #[serde(borrow)]
    pods: Option<Vec<&'a RawValue>>,
}

/// A pod of a node in the format of older versions.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PodInfo<'a> {
    #[serde(borrow)]
    pod: &'a RawValue,
}

fn read(file: &File) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let Ok(snapshot) = serde_json::from_str::<Snapshot<'_>>(&file.text) else { return Ok(None) };
    let notes = notes(&snapshot);
    let mut parts = Vec::new();
    for cluster_node in snapshot.node_list.unwrap_or_default() {
        parts.push((cluster_node.node.get(), Kind::Node));
        let pods = cluster_node.pods.unwrap_or_default();
        parts.extend(pods.into_iter().map(|pod| (of_node(pod), Kind::Pod)));
    }
    let pending = snapshot.unscheduled_pods_can_be_scheduled.unwrap_or_default();
    parts.extend(pending.into_iter().map(|pod| (pod.get(), Kind::Pod)));
    let parts = parts.into_iter().map(|(text, kind)| (text, 1, Expected::Kind(kind)));
    Ok(Some(Contents { items: items(file, parts), notes, ..Contents::default() }))
}

fn of_node(pod: &RawValue) -> &str {
    match serde_json::from_str::<PodInfo<'_>>(pod.get()) {
        Ok(info) => info.pod.get(),
        Err(_) => pod.get(),
    }
}

fn notes(snapshot: &Snapshot<'_>) -> Vec<String> {
    let mut notes = vec![format!(
        "taken at {}; of the pending pods it has only those that cluster-autoscaler expects to fit",
        snapshot.start_timestamp
    )];
    if !snapshot.error.is_empty() {
        notes.push(format!("cluster-autoscaler reports an error in it: {}", snapshot.error));
    }
    let groups: Vec<&str> =
        snapshot.template_nodes.iter().flatten().map(|(name, _)| name.as_str()).collect();
    if !groups.is_empty() {
        let groups = groups.join(", ");
        notes.push(format!("its template nodes are omitted, one for each of: {groups}"));
    }
    notes
}
