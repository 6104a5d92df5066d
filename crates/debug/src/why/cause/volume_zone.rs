//! VolumeZone: the claim, the zones of its volume, and the zone of the node.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::volume_zone::{Topology, conflicts};

/// A volume in another zone or region.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherZone {
    /// Namespace and name of the claim.
    pub claim: NamespacedName,
    /// Name of its volume.
    pub volume: Name,
    /// The volume's zone or region label.
    pub label: Symbol,
    /// The values of the volume's label.
    pub zones: Vec<Name>,
    /// The node's value of that label; `None` without the label.
    pub has: Option<Name>,
}

impl CauseText for OtherZone {
    fn gist(&self) -> String {
        let zones: Vec<String> = self.zones.iter().map(|zone| zone.to_string()).collect();
        let (claim, volume) = (self.claim, self.volume);
        format!("claim {claim} has volume {volume}, which is in {}={}", self.label, zones.join("|"))
    }

    fn text(&self) -> String {
        match self.has {
            Some(has) => format!("{}; the node is in {has}", self.gist()),
            None => format!("{}; the node has no such label", self.gist()),
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let labels = &node.metadata.labels;
    let cause = |topology: Topology| {
        let has = topology.of_node(labels);
        let Topology { claim, volume, label, values, .. } = topology;
        let zones = values.into_iter().collect();
        Cause::new(OtherZone { claim, volume, label, zones, has }, 1.0, Outlook::Mismatch)
    };
    conflicts(&case.probe.cx(), case.state, labels).into_iter().map(cause).collect()
}
