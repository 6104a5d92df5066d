//! VolumeRestrictions: rejects conflicts over disks that only one pod may use, and over claims
//! with the access mode ReadWriteOncePod.
//!
//! Upstream: `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`.

use std::sync::Arc;

use crate::older_events;
use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, PersistentVolumeAccessMode, PersistentVolumeClaim, Pod};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

mod conflict;

use conflict::{is_restricted, pods_conflict};

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "disks and claims that only one pod may use",
    long_doc: "Rejects nodes where an in-line disk (GCE, AWS, iSCSI, RBD) is in use by another \
               pod, and pods whose ReadWriteOncePod claim is in use.",
    example: "A claim with the access mode ReadWriteOncePod is used by a running pod; a second pod \
              with the claim stays pending until the first one is deleted or preempted.",
    ..PluginDescriptor::new(
        "VolumeRestrictions",
        &[ExtensionPoint::PreFilter, ExtensionPoint::Filter],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    let (claim, holder) = Default::default();
    Ok(Arc::new(VolumeRestrictions {
        name: "VolumeRestrictions".into(),
        disk_conflict: rejection(VolumeConflict::Disk { holder }, features),
        claim_conflict: rejection(VolumeConflict::Claim { claim, holder }, features),
    }))
}

struct VolumeRestrictions {
    name: Symbol,
    disk_conflict: Status,
    claim_conflict: Status,
}

/// The pod's ReadWriteOncePod claims, and the number of those that pods in the snapshot use.
#[derive(Clone, PartialEq, Debug)]
struct ClaimConflicts {
    once_pod_claims: Vec<Name>,
    conflicts: i64,
}

impl ClaimConflicts {
    /// Looks up all claims that the pod names. The number of conflicts is global, not by node.
    fn new(cx: &CycleContext<'_>) -> Result<ClaimConflicts, PluginError> {
        let mut state = ClaimConflicts { once_pod_claims: Vec::new(), conflicts: 0 };
        for key in volumes::named_claims(&cx.pod.pod) {
            let claim = volumes::find_claim(cx.objects, key)?;
            let once_pod = PersistentVolumeAccessMode::ReadWriteOncePod;
            let known = state.once_pod_claims.contains(&key.name);
            if !known && claim.spec.access_modes.contains(&once_pod) {
                state.once_pod_claims.push(key.name);
                state.conflicts += i64::from(cx.snapshot.is_claim_used(key));
            }
        }
        Ok(state)
    }

    /// The pod's volumes whose claim name is in the list; as upstream, the namespace is ignored.
    fn uses(&self, pod: &Pod) -> i64 {
        let used = |key: &NamespacedName| self.once_pod_claims.contains(&key.name);
        volumes::named_claims(pod).filter(used).count() as i64
    }
}

/// Another pod that uses a volume exclusively.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VolumeConflict {
    /// A pod on the node uses the same disk.
    Disk {
        /// The pod that has it, by namespace and name.
        holder: NamespacedName,
    },
    /// A pod on any node uses a ReadWriteOncePod claim.
    Claim {
        /// The claim, by namespace and name.
        claim: NamespacedName,
        /// The pod that has it, by namespace and name.
        holder: NamespacedName,
    },
}

/// The pods on the node that use a disk of the pod.
fn disk_holders<'a>(
    pod: &'a Pod,
    node: &'a NodeInfo,
) -> impl Iterator<Item = &'a Arc<PodInfo>> + 'a {
    node.pods.iter().filter(move |other| pods_conflict(pod, &other.pod))
}

/// Every pod that conflicts with the pod on the node. The first decides Filter's status.
pub fn reasons(cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Vec<VolumeConflict> {
    let disks =
        disk_holders(&cx.pod.pod, node).map(|pod| VolumeConflict::Disk { holder: pod.key() });
    let mut reasons: Vec<VolumeConflict> = disks.collect();
    let Some(state) = state.read::<ClaimConflicts>().filter(|state| state.conflicts > 0) else {
        return reasons;
    };
    let namespace = cx.pod.pod.metadata.namespace;
    let claims = state.once_pod_claims.iter().map(|name| NamespacedName::new(namespace, *name));
    let held = |is_same: fn(&NamespacedName, &NamespacedName) -> bool| {
        let reason = |claim: NamespacedName| {
            let uses = |pod: &&Arc<PodInfo>| {
                volumes::named_claims(&pod.pod).any(|used| is_same(&used, &claim))
            };
            let mut placed =
                cx.snapshot.iter().flat_map(|node| node.pods.iter()).chain(node.pods.iter());
            placed.find(uses).map(|pod| VolumeConflict::Claim { claim, holder: pod.key() })
        };
        claims.clone().filter_map(reason).collect::<Vec<VolumeConflict>>()
    };
    let by_claim = held(|used, claim| used == claim);
    // AddPod and RemovePod of upstream compare names only, whatever the namespace.
    reasons.extend(if by_claim.is_empty() {
        held(|used, claim| used.name == claim.name)
    } else {
        by_claim
    });
    reasons
}

/// The status for a reason.
pub fn rejection(reason: VolumeConflict, features: &FeatureGates) -> Status {
    Status::unschedulable(match reason {
        VolumeConflict::Disk { .. } => "node(s) had no available disk",
        VolumeConflict::Claim { .. } if !features.has(Switch::ReadWriteOncePodMessage) => {
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod \
             access mode"
        }
        VolumeConflict::Claim { .. } => {
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
             already in-use by another pod"
        }
    })
}

impl VolumeRestrictions {
    fn count(&self, state: &mut CycleState, pod: &PodInfo, sign: i64) -> Status {
        let Some(state) = state.read_mut::<ClaimConflicts>() else { return state_missing() };
        state.conflicts += sign * state.uses(&pod.pod);
        Status::SUCCESS
    }
}

fn state_missing() -> Status {
    Status::error("cannot read \"PreFilterVolumeRestrictions\" from cycleState")
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::hinted(EventResource::Pod, Action::DELETE, after_pod_deletion),
            Registration::always(EventResource::Node, Action::ADD),
            Registration::hinted(
                EventResource::PersistentVolumeClaim,
                Action::ADD,
                after_claim_creation,
            ),
        ])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::labels_and_taints
    }

    /// Skips pods without restricted disks and without conflicting claims.
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let restricted = cx.pod.pod.spec.volumes.iter().any(is_restricted);
        let claims = match ClaimConflicts::new(cx) {
            Ok(claims) => claims,
            Err(text) => return volumes::unresolvable(text).into(),
        };
        if !restricted && claims.conflicts == 0 {
            return Status::skip().into();
        }
        state.write(claims);
        PreFilterAnswer::default()
    }

    fn add_pod(
        &self,
        _cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        self.count(state, added, 1)
    }

    fn remove_pod(
        &self,
        _cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        self.count(state, removed, -1)
    }

    /// Disk conflicts on this node come first, then claims that are in use on any node.
    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        if disk_holders(&cx.pod.pod, node).next().is_some() {
            return self.disk_conflict.clone();
        }
        match state.read::<ClaimConflicts>() {
            None => state_missing(),
            Some(state) if state.conflicts > 0 => self.claim_conflict.clone(),
            Some(_) => Status::SUCCESS,
        }
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        Ok(volumes::sign(&pod.pod))
    }
}

/// A new claim helps if the pod names it.
fn after_claim_creation(_: &QueueContext<'_>, pod: &PodInfo, objects: &EventObjects) -> HintResult {
    let pod = &pod.pod;
    let claim = volumes::new_claim_beside(pod, objects)?;
    let is_named = |claim: &PersistentVolumeClaim| {
        volumes::named_claims(pod).any(|key| key.name == claim.metadata.name)
    };
    Ok(QueueingHint::queue_if(claim.is_some_and(is_named)))
}

/// A deleted pod helps if it shared a disk or a claim with the pod, whatever the access modes.
fn after_pod_deletion(_: &QueueContext<'_>, pod: &PodInfo, objects: &EventObjects) -> HintResult {
    let (Some(deleted), _) = objects.pods()? else { return Ok(QueueingHint::Queue) };
    let pod = &pod.pod;
    let shared = |key| volumes::named_claims(deleted).any(|other| other == key);
    let same_namespace = deleted.metadata.namespace == pod.metadata.namespace;
    let shares = || pods_conflict(pod, deleted) || volumes::named_claims(pod).any(shared);
    Ok(QueueingHint::queue_if(same_namespace && shares()))
}

#[cfg(test)]
mod tests;
