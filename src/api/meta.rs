//! `metadata` and what all kinds share: object metadata, owner references,
//! conditions, label selectors as written, node selectors as written.

use crate::api::macros::{api_structs, open_enum};
use crate::api::{Labels, Time};
use crate::intern::Symbol;

api_structs! {
    /// `metav1.ObjectMeta`, without managed fields.
    pub struct ObjectMeta {
        pub name: Symbol,
        pub generate_name: Symbol,
        pub namespace: Symbol,
        pub uid: Symbol,
        pub resource_version: Symbol,
        pub generation: i64,
        pub creation_timestamp: Option<Time>,
        pub deletion_timestamp: Option<Time>,
        pub labels: Labels,
        pub annotations: Labels,
        pub owner_references: Vec<OwnerReference>,
        pub finalizers: Vec<Symbol>,
    }

    /// `metav1.OwnerReference`.
    pub struct OwnerReference {
        pub api_version: Symbol,
        pub kind: Symbol,
        pub name: Symbol,
        pub uid: Symbol,
        pub controller: Option<bool>,
        pub block_owner_deletion: Option<bool>,
    }

    /// A condition of a pod, node, claim or pod group (`PodCondition`, `metav1.Condition`, …).
    pub struct Condition {
        pub type_: Symbol,
        pub status: ConditionStatus,
        pub reason: Symbol,
        pub message: String,
        pub observed_generation: i64,
        pub last_probe_time: Option<Time>,
        pub last_transition_time: Option<Time>,
    }

    /// `metav1.LabelSelector` as written; matching is in [`crate::api::selector`].
    pub struct LabelSelector {
        pub match_labels: Labels,
        pub match_expressions: Vec<LabelSelectorRequirement>,
    }

    /// One expression of a label selector.
    pub struct LabelSelectorRequirement {
        pub key: Symbol,
        pub operator: LabelSelectorOperator,
        pub values: Vec<Symbol>,
    }

    /// `v1.NodeSelector`: terms are ORed.
    pub struct NodeSelector {
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// One term: all its expressions and fields must match; an empty term matches nothing.
    pub struct NodeSelectorTerm {
        pub match_expressions: Vec<NodeSelectorRequirement>,
        pub match_fields: Vec<NodeSelectorRequirement>,
    }

    /// One expression of a node selector term.
    pub struct NodeSelectorRequirement {
        pub key: Symbol,
        pub operator: NodeSelectorOperator,
        pub values: Vec<Symbol>,
    }

    /// `v1.ObjectReference`, as in a volume's `claimRef`.
    pub struct ObjectReference {
        pub api_version: Symbol,
        pub kind: Symbol,
        pub namespace: Symbol,
        pub name: Symbol,
        pub uid: Symbol,
        pub resource_version: Symbol,
        pub field_path: Symbol,
    }
}

open_enum! {
    /// A condition's status.
    pub enum ConditionStatus { True = "True", False = "False", Unknown = "Unknown" }
}

open_enum! {
    /// Operators of label selectors; an unknown one makes the selector invalid.
    pub enum LabelSelectorOperator {
        In = "In", NotIn = "NotIn", Exists = "Exists", DoesNotExist = "DoesNotExist",
    }
}

open_enum! {
    /// Operators of node selectors; an unknown one is a parse error of its term.
    pub enum NodeSelectorOperator {
        In = "In", NotIn = "NotIn", Exists = "Exists", DoesNotExist = "DoesNotExist",
        Gt = "Gt", Lt = "Lt",
    }
}

impl ObjectMeta {
    /// The owner that controls this object (`metav1.GetControllerOf`).
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}

/// The condition of that type, if there is one.
pub fn find_condition(conditions: &[Condition], type_: Symbol) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
