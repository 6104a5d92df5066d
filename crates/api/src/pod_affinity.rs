//! Affinity of pods to nodes and to other pods, as written.

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::{LabelSelector, NodeSelector, NodeSelectorTerm};

api_structs! {
    /// `spec.affinity` of a pod.
    pub struct Affinity {
        pub node_affinity: Option<NodeAffinity>,
        pub pod_affinity: Option<PodAffinity>,
        pub pod_anti_affinity: Option<PodAntiAffinity>,
    }

    /// `v1.NodeAffinity`: required terms are ORed, preferred ones add their weight.
    pub struct NodeAffinity {
        pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
        pub preferred_during_scheduling_ignored_during_execution: Vec<PreferredSchedulingTerm>,
    }

    /// A node preference; `weight` is 1 to 100.
    pub struct PreferredSchedulingTerm {
        pub weight: i32,
        pub preference: NodeSelectorTerm,
    }

    /// `v1.PodAffinity`: near the pods that each term selects.
    pub struct PodAffinity {
        pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
        pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
    }

    /// `v1.PodAntiAffinity`: away from the pods that any term selects.
    pub struct PodAntiAffinity {
        pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
        pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
    }

    /// A pod preference; `weight` is 1 to 100.
    pub struct WeightedPodAffinityTerm {
        pub weight: i32,
        pub pod_affinity_term: PodAffinityTerm,
    }

    /// Which pods, in which namespaces, within which topology. An absent `label_selector` selects
    /// no pod; an absent `namespace_selector` no namespace.
    pub struct PodAffinityTerm {
        pub label_selector: Option<LabelSelector>,
        pub namespaces: Vec<Symbol>,
        pub topology_key: Symbol,
        pub namespace_selector: Option<LabelSelector>,
        pub match_label_keys: Vec<Symbol>,
        pub mismatch_label_keys: Vec<Symbol>,
    }
}
