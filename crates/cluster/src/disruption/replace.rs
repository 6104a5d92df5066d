//! The controllers that replace pods: of ReplicaSets, StatefulSets, DaemonSets, Jobs and others.
//!
//! The replacement has the specification of the pod that left: what admission added to the
//! template, such as sidecars, is part of it.

use std::sync::Arc;

use super::claims::OwnClaims;
use super::{Replacement, key_of};
use crate::World;
use crate::rollout::Blueprint;
use kubestep_api::admission::derived_uid;
use kubestep_api::{Name, Object, ObjectMeta, OwnerReference, Pod, PodStatus, SharedText, Time};

/// The annotation on the mirror pod of a static pod (`v1.MirrorPodAnnotationKey`).
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Why a pod without a controller is not recreated.
const NO_CONTROLLER: &str = "no controller recreates it";

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
        let claims = OwnClaims::of(&self.api, pod);
        self.api.release_claims(pod, &claims);
        let updated = self.updated(pod);
        match self.replacement(pod, updated.as_deref().map_or(pod, |updated| &updated.pod)) {
            Err(why) => Replacement::Nothing(why),
            Ok(new) => {
                let mut object = Object::from(new);
                self.api.name(&mut object);
                let Object::Pod(new) = object else { return Replacement::Due };
                let mut new = Arc::unwrap_or_clone(new);
                let key = key_of(&new);
                let claims = match updated {
                    Some(updated) => updated.claims(&self.api, &mut new),
                    None => claims.make(&mut new),
                };
                claims.into_iter().for_each(|claim| self.api.put(claim));
                self.create(new.into());
                Replacement::Pod(key)
            }
        }
    }

    /// The pod of a rollout's template that the controller creates instead, if it has one.
    fn updated(&self, pod: &Pod) -> Option<Arc<Blueprint>> {
        let mut rollouts = self.disruptions()?.rollouts().iter().rev();
        rollouts.find_map(|rollout| rollout.successor(pod)).cloned()
    }

    /// The pod like `model` that the controller creates for `pod`, maybe without a name yet; or why
    /// none.
    fn replacement(&self, pod: &Pod, model: &Pod) -> Result<Pod, &'static str> {
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
        let mut new = fresh(model);
        new.metadata.uid = derived_uid(&format!("replacement of {}", pod.metadata.uid));
        new.metadata.creation_timestamp = Some(self.creation_time());
        if owner.kind != "StatefulSet" {
            new.metadata.name = Name::EMPTY;
            if new.metadata.generate_name.is_empty() {
                new.metadata.generate_name = generated(pod, owner);
            }
        }
        Ok(new)
    }

    /// The present time in whole seconds, as the API has it.
    pub(crate) fn creation_time(&self) -> Time {
        Time(self.now.0 - self.now.0.rem_euclid(1_000_000))
    }
}

/// The pod as before it was scheduled.
pub(crate) fn fresh(pod: &Pod) -> Pod {
    let mut new = pod.clone();
    new.metadata = ObjectMeta { deletion_timestamp: None, ..new.metadata };
    new.spec.node_name = Name::EMPTY;
    new.status = PodStatus::default();
    new
}

/// The prefix of the names that a controller gives its pods.
fn generated(pod: &Pod, owner: &OwnerReference) -> SharedText {
    const INDEX: &str = "batch.kubernetes.io/job-completion-index";
    let index = pod.metadata.annotations.get(INDEX.into());
    match index.filter(|_| owner.kind == "Job") {
        Some(index) => format!("{}-{index}-", owner.name).as_str().into(),
        None => format!("{}-", owner.name).as_str().into(),
    }
}
