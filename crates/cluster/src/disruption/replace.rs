//! The controllers that replace pods: of ReplicaSets, StatefulSets, DaemonSets, Jobs and others.
//!
//! The replacement has the specification of the pod that left: what admission added to the
//! template, such as sidecars, is part of it.

use std::sync::Arc;

use super::{Replacement, key_of};
use crate::World;
use kubestep_api::admission::made_up_uid;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Kind, Object, ObjectMeta, OwnerReference, PersistentVolumeClaim, Pod, PodResourceClaimStatus,
    PodStatus, ResourceClaim, Time,
};
use kubestep_framework::pod::NamespacedName;

/// The annotation on the mirror pod of a static pod (`v1.MirrorPodAnnotationKey`).
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Why a pod without a controller is not recreated.
pub const NO_CONTROLLER: &str = "no controller recreates it";
/// Annotations of the persistent volume controller begin like this.
const BINDING: [&str; 2] = ["pv.kubernetes.io/", "volume.kubernetes.io/selected-node"];

/// Whether the pod is the mirror of a static pod.
pub(super) fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.contains_key(MIRROR.into())
        || pod.metadata.controller().is_some_and(|owner| owner.kind == "Node")
}

/// Whether a DaemonSet controls the pod.
pub(super) fn is_daemon(pod: &Pod) -> bool {
    pod.metadata.controller().is_some_and(|owner| owner.kind == "DaemonSet")
}

impl World {
    /// Creates what the controller of a pod creates when the pod is deleted.
    pub(super) fn replace(&mut self, pod: &Arc<Pod>) -> Replacement {
        self.free_claims(pod);
        match self.replacement(pod) {
            Err(why) => Replacement::Nothing(why),
            Ok(new) => {
                let mut object = Object::from(new);
                self.api.name(&mut object);
                let Object::Pod(new) = object else { return Replacement::Due };
                let new = self.with_claims(pod, Arc::unwrap_or_clone(new));
                let key = key_of(&new);
                self.create(new.into());
                Replacement::Pod(key)
            }
        }
    }

    /// The pod that the controller creates, maybe without a name yet; or why none.
    fn replacement(&self, pod: &Pod) -> Result<Pod, &'static str> {
        if is_mirror(pod) {
            return Err("a static pod, which runs only on its node");
        }
        let owner = pod.metadata.controller().ok_or(NO_CONTROLLER)?;
        if pod.is_terminal() {
            return Err("it had ended");
        }
        if is_daemon(pod) && self.api.node(pod.spec.node_name).is_none() {
            return Err("its DaemonSet runs one pod on each node");
        }
        let mut new = pod.clone();
        new.metadata = ObjectMeta {
            uid: made_up_uid(&format!("replacement of {}", pod.metadata.uid)),
            deletion_timestamp: None,
            // The API has whole seconds.
            creation_timestamp: Some(Time(self.now.0 - self.now.0.rem_euclid(1_000_000))),
            ..new.metadata
        };
        if owner.kind != "StatefulSet" {
            new.metadata.name = Symbol::EMPTY;
            if new.metadata.generate_name.is_empty() {
                new.metadata.generate_name = generated(pod, owner);
            }
        }
        new.spec.node_name = Symbol::EMPTY;
        new.status = PodStatus::default();
        Ok(new)
    }

    /// Removes a deleted pod from the claims that it used. A claim that was made for it alone is
    /// deleted with it, and one that has no user left is deallocated.
    fn free_claims(&mut self, pod: &Pod) {
        let used = |claim: &&Arc<ResourceClaim>| {
            let mut users = claim.status.reserved_for.iter();
            claim.metadata.namespace == pod.metadata.namespace
                && users.any(|user| user.uid == pod.metadata.uid || user.name == pod.metadata.name)
        };
        let claims = self.api.objects().resource_claims.values();
        for mut claim in claims.filter(used).cloned().collect::<Vec<_>>() {
            let claim = Arc::make_mut(&mut claim);
            let status = &mut claim.status;
            status.reserved_for.retain(|user| user.name != pod.metadata.name);
            if status.reserved_for.is_empty() {
                status.allocation = None;
            }
            self.api.put(claim.clone().into());
        }
    }

    /// Creates for the new pod the claims that belong to a single pod: those of templates for
    /// devices, and those of ephemeral volumes.
    fn with_claims(&mut self, old: &Pod, mut new: Pod) -> Pod {
        for status in &old.status.resource_claim_statuses {
            let name = self.copy_device_claim(old, &new, status);
            new.status
                .resource_claim_statuses
                .push(PodResourceClaimStatus { name: status.name, resource_claim_name: name });
        }
        let ephemeral = old.spec.volumes.iter().filter(|volume| volume.ephemeral.is_some());
        for volume in ephemeral {
            let name = |pod: &Pod| {
                let claim = format!("{}-{}", pod.metadata.name, volume.name.as_str());
                NamespacedName::new(pod.metadata.namespace, Symbol::new(&claim))
            };
            self.copy_volume_claim(name(old), name(&new), &new);
        }
        new
    }

    /// The name of the copy; `None` if the pod needs no claim.
    fn copy_device_claim(
        &mut self,
        old: &Pod,
        new: &Pod,
        status: &PodResourceClaimStatus,
    ) -> Option<Symbol> {
        let key = NamespacedName::new(old.metadata.namespace, status.resource_claim_name?);
        let claim = self.api.objects().resource_claims.get(&key).cloned()?;
        let mut copy = claim.as_ref().clone();
        let name = Symbol::new(&format!("{}-{}", new.metadata.name, status.name));
        copy.metadata = owned_by(&claim.metadata, name, new);
        copy.status = Default::default();
        self.api.remove(Kind::ResourceClaim, key);
        self.api.put(copy.into());
        Some(name)
    }

    fn copy_volume_claim(&mut self, from: NamespacedName, to: NamespacedName, pod: &Pod) {
        let claims = &self.api.objects().persistent_volume_claims;
        let Some(claim) = claims.get(&from).cloned() else { return };
        let mut copy: PersistentVolumeClaim = claim.as_ref().clone();
        copy.metadata = owned_by(&claim.metadata, to.name, pod);
        let binding = |key: &Symbol| BINDING.iter().any(|prefix| key.starts_with(prefix));
        let annotations = claim.metadata.annotations.iter();
        let kept = annotations.filter(|(key, _)| !binding(key));
        copy.metadata.annotations = kept.map(|(key, value)| (key, *value)).collect();
        copy.spec.volume_name = Symbol::EMPTY;
        copy.status = Default::default();
        self.api.remove(Kind::PersistentVolumeClaim, from);
        self.api.put(copy.into());
    }
}

/// The prefix of the names that a controller gives its pods.
fn generated(pod: &Pod, owner: &OwnerReference) -> Symbol {
    const INDEX: &str = "batch.kubernetes.io/job-completion-index";
    let index = pod.metadata.annotations.get(INDEX.into());
    match index.filter(|_| owner.kind == "Job") {
        Some(index) => Symbol::new(&format!("{}-{index}-", owner.name)),
        None => Symbol::new(&format!("{}-", owner.name)),
    }
}

/// The metadata of a copy that belongs to the pod.
fn owned_by(metadata: &ObjectMeta, name: Symbol, pod: &Pod) -> ObjectMeta {
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.metadata.name,
        uid: pod.metadata.uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    ObjectMeta {
        name,
        generate_name: Symbol::EMPTY,
        uid: made_up_uid(&format!("{name} of {}", pod.metadata.uid)),
        owner_references: vec![owner].into(),
        ..metadata.clone()
    }
}
