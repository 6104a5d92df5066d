//! Workloads: the pods that the controllers of Kubernetes would create for a manifest, with the
//! names, labels, owners and node affinity that they set.
//!
//! The input is the manifest as written; the output is what its controller would create, replica by
//! replica, so that any number of them can be tried. Random parts of names are replaced by numbers,
//! so that runs repeat. There is one file per group of controllers; `KINDS` lists them.
//!
//! Upstream: `pkg/controller` (`deployment`, `replicaset`, `statefulset`, `daemon`, `job`,
//! `cronjob`).

mod daemon_set;
mod job;
mod manifest;
mod owner;
mod replicas;
mod stateful_set;

use std::sync::Arc;

use kubestep_api::{DecodeError, Name, Node, Object, Pod};
use manifest::WorkloadManifest;
use serde_json::Value;

pub use daemon_set::suits_daemon;
pub(crate) use daemon_set::{DaemonFit, for_node, template as daemon_template, without_affinity};
pub(crate) use manifest::MOST_REPLICAS;
pub use owner::workload_of;
pub(crate) use replicas::TEMPLATE_HASH;

/// What the controller of a manifest would create.
pub struct ExpandedWorkload {
    /// Kind, namespace and name: `Deployment shop/web`.
    pub name: String,
    /// Objects that it creates in addition to pods, if a scheduler reads them.
    pub owners: Vec<Object>,
    /// How many pods it would create.
    pub replicas: usize,
    /// Whether any number of replicas is possible; the number of a DaemonSet depends on the nodes.
    pub can_grow: bool,
    /// Differences from a real cluster, and what was skipped; one sentence each.
    pub notices: Vec<String>,
    make: Box<dyn Fn(usize) -> Vec<Object> + Send>,
}

impl ExpandedWorkload {
    /// The objects of one replica, counted from 0: its claims, then its pod.
    pub fn replica(&self, number: usize) -> Vec<Object> {
        (self.make)(number)
    }

    /// Everything that its controller would create, in the order of creation.
    pub fn objects(&self) -> Vec<Object> {
        let replicas = (0..self.replicas).flat_map(|number| self.replica(number));
        self.owners.iter().cloned().chain(replicas).collect()
    }
}

/// What a controller needs in addition to the manifest.
pub struct WorkloadInputs<'a> {
    /// Overrides the number of replicas in the manifest.
    pub replicas: Option<usize>,
    /// The nodes of the cluster, for DaemonSets.
    pub nodes: &'a [Arc<Node>],
}

type Expand =
    fn(&WorkloadManifest<'_>, &WorkloadInputs<'_>) -> Result<ExpandedWorkload, DecodeError>;

/// The kinds that create pods, with their API groups.
const KINDS: &[(&str, &str, Expand)] = &[
    ("Pod", "", replicas::pod),
    ("ReplicationController", "", replicas::replication_controller),
    ("ReplicaSet", "apps", replicas::replica_set),
    ("Deployment", "apps", replicas::deployment),
    ("StatefulSet", "apps", stateful_set::expand),
    ("DaemonSet", "apps", daemon_set::expand),
    ("Job", "batch", job::job),
    ("CronJob", "batch", job::cron_job),
];

/// The names of the kinds that create pods.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(kind, ..)| *kind)
}

/// What the controller of the manifest would create; `None` if its kind creates no pods.
///
/// # Errors
/// A field is invalid.
pub fn expand(
    value: &Value,
    surroundings: &WorkloadInputs<'_>,
) -> Option<Result<ExpandedWorkload, DecodeError>> {
    let manifest = WorkloadManifest::new(value);
    let group = manifest.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let known = KINDS.iter().find(|(kind, of_group, _)| {
        *kind == manifest.kind && (manifest.api_version.is_empty() || *of_group == group)
    });
    known.map(|(_, _, expand)| expand(&manifest, surroundings))
}

/// The pod of a template: in the workload's namespace, owned by it, not bound.
fn owned_pod(manifest: &WorkloadManifest<'_>) -> Result<Pod, DecodeError> {
    let mut pod = manifest.template_pod()?;
    pod.metadata.owner_references = vec![manifest.owner()].into();
    Ok(pod)
}

/// A copy of the pod with that name.
fn named(pod: &Pod, name: &str) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.name = Name::new(name);
    pod
}

#[cfg(test)]
mod tests;
