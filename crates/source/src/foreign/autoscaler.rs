//! cluster-autoscaler's debugging snapshot (`/snapshotz`): the nodes with their pods, and pending
//! pods that it expects to fit. Pods that it expects to fit nowhere, and all other kinds of
//! objects, are not part of it. Its template nodes, one for each node group, are not part of the
//! cluster: they are the nodes that it could get.
//!
//! Upstream: `cluster-autoscaler/debuggingsnapshot/debugging_snapshot.go` of kubernetes/autoscaler;
//! before 1.31 each pod of a node was nested in a field `Pod`.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Contents, ForeignFormat, as_is, first_field, items};
use crate::error::SourceError;
use crate::files::FileText;
use crate::item::Expected;
use kubestep_api::{Kind, Name, NodeGroup, Provisioning};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
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
struct AutoscalerSnapshot<'a> {
    #[serde(borrow)]
    node_list: Option<Vec<ClusterNode<'a>>>,
    #[serde(borrow)]
    unscheduled_pods_can_be_scheduled: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    error: String,
    start_timestamp: String,
    #[serde(rename = "EndTimestamp")]
    _end_timestamp: String,
    #[serde(borrow)]
    template_nodes: Option<IndexMap<String, &'a RawValue>>,
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

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let Ok(snapshot) = serde_json::from_str::<AutoscalerSnapshot<'_>>(&file.text) else {
        return Ok(None);
    };
    let mut notes = notes(&snapshot);
    let node_groups = node_groups(&snapshot, &mut notes);
    let mut parts = Vec::new();
    for cluster_node in snapshot.node_list.unwrap_or_default() {
        parts.push((cluster_node.node.get(), Kind::Node));
        let pods = cluster_node.pods.unwrap_or_default();
        parts.extend(pods.into_iter().map(|pod| (of_node(pod), Kind::Pod)));
    }
    let pending = snapshot.unscheduled_pods_can_be_scheduled.unwrap_or_default();
    parts.extend(pending.into_iter().map(|pod| (pod.get(), Kind::Pod)));
    let parts = parts.into_iter().map(|(text, kind)| (text, 1, Expected::Kind(kind)));
    let provisioning = Provisioning { node_groups, ..Provisioning::default() };
    Ok(Some(Contents { items: items(file, parts), provisioning, notes, ..Contents::default() }))
}

/// The node groups with their templates; one that is not understood is noted.
fn node_groups(snapshot: &AutoscalerSnapshot<'_>, notes: &mut Vec<String>) -> Vec<NodeGroup> {
    let mut groups = Vec::new();
    for (name, template) in snapshot.template_nodes.iter().flatten() {
        match serde_json::from_str::<NodeGroup>(template.get()) {
            Ok(group) => groups.push(NodeGroup { name: Name::new(name), ..group }),
            Err(error) => notes.push(format!("the template node of {name} is not used: {error}")),
        }
    }
    groups
}

fn of_node(pod: &RawValue) -> &str {
    match serde_json::from_str::<PodInfo<'_>>(pod.get()) {
        Ok(info) => info.pod.get(),
        Err(_) => pod.get(),
    }
}

fn notes(snapshot: &AutoscalerSnapshot<'_>) -> Vec<String> {
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
        notes.push(format!("its template nodes serve --new-node, one for each of: {groups}"));
    }
    notes
}
