//! Pods that no other pod can tell apart.
//!
//! Affinity terms and spread constraints of other pods see a pod's namespace, its labels and
//! whether it is on its way out; the pod itself adds its own terms. Pods that agree in all
//! this are one class, shared in memory, so that work over the pods of a cluster can be done
//! once per class.

use std::sync::Arc;

use crate::pod::{AffinityTerm, WeightedTerm};
use kubestep_api::intern::Symbol;
use kubestep_api::shared::Pool;
use kubestep_api::{Labels, Pod};

/// All affinity terms of a pod.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct AffinityTerms {
    /// Required affinity terms.
    pub required_affinity: Vec<AffinityTerm>,
    /// Required anti-affinity terms.
    pub required_anti_affinity: Vec<AffinityTerm>,
    /// Preferred affinity terms.
    pub preferred_affinity: Vec<WeightedTerm>,
    /// Preferred anti-affinity terms.
    pub preferred_anti_affinity: Vec<WeightedTerm>,
}

impl AffinityTerms {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == AffinityTerms::default()
    }
}

/// What pods of one class have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PodClass {
    /// The namespace.
    pub namespace: Symbol,
    /// The labels.
    pub labels: Labels,
    /// Whether their deletion was asked for.
    pub terminating: bool,
    /// Their own terms.
    pub terms: AffinityTerms,
}

static POOL: Pool<PodClass> = Pool::new();

impl PodClass {
    /// The class of a pod with these terms. Pods that are alike get the same one.
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
