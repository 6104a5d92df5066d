//! Classes of pods that other pods cannot distinguish.
//!
//! Affinity terms and spread constraints of other pods depend on a pod's namespace, its labels and
//! whether it is terminating; the pod itself adds its own terms. Pods that agree in all of these
//! are one class, shared in memory, so that work over the pods of a cluster is done once per class.

use std::sync::Arc;

use crate::pod::{AffinityTerm, WeightedTerm};
use kubestep_api::intern::Symbol;
use kubestep_api::shared::InternPool;
use kubestep_api::{Labels, Pod};

/// All affinity terms of a pod.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct AffinityTerms {
    /// `podAffinity.requiredDuringSchedulingIgnoredDuringExecution`, parsed.
    pub required_affinity: Vec<AffinityTerm>,
    /// `podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution`, parsed.
    pub required_anti_affinity: Vec<AffinityTerm>,
    /// `podAffinity.preferredDuringSchedulingIgnoredDuringExecution`, parsed.
    pub preferred_affinity: Vec<WeightedTerm>,
    /// `podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution`, parsed.
    pub preferred_anti_affinity: Vec<WeightedTerm>,
}

impl AffinityTerms {
    /// Whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        *self == AffinityTerms::default()
    }
}

/// What the pods of one class have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PodClass {
    /// The namespace that the pods share.
    pub namespace: Symbol,
    /// The labels that the pods share.
    pub labels: Labels,
    /// Whether they are terminating.
    pub terminating: bool,
    /// Their own affinity terms.
    pub terms: AffinityTerms,
}

static POOL: InternPool<PodClass> = InternPool::new();

impl PodClass {
    /// The class of a pod with these terms. Pods of equal classes share one instance.
    pub fn of(pod: &Pod, terms: AffinityTerms) -> Arc<PodClass> {
        POOL.share(PodClass {
            namespace: pod.metadata.namespace,
            labels: pod.metadata.labels.clone(),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            terms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PodBuilder, info, pod};

    #[test]
    fn pods_that_are_alike_share_their_class() {
        let class = |name: &str, app: &str| info(pod(name).label("app", app)).class.clone();
        assert!(Arc::ptr_eq(&class("a", "web"), &class("b", "web")));
        assert!(!Arc::ptr_eq(&class("a", "web"), &class("a", "db")));
        assert!(!Arc::ptr_eq(&class("x/a", "web"), &class("y/a", "web")));
    }
}
