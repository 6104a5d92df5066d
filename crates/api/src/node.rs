//! Nodes (`core/v1`), as far as the scheduler reads them.

use std::fmt;

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::shared::pooled;
use crate::{Condition, Name, ObjectMeta, Pooled, ResourceList, TaintEffect, Time};

api_structs! {
    /// `v1.Node`, with what scheduling decisions read.
    pub struct Node {
        pub metadata: ObjectMeta,
        pub spec: NodeSpec,
        pub status: NodeStatus,
    }

    /// How a node is to be used.
    pub struct NodeSpec {
        pub unschedulable: bool,
        pub taints: Vec<Taint>,
        #[serde(rename = "providerID")]
        pub provider_id: Name,
    }

    /// `v1.Taint`; `effect` is NoSchedule, PreferNoSchedule or NoExecute.
    pub struct Taint {
        pub key: Symbol,
        pub value: Symbol,
        pub effect: TaintEffect,
        pub time_added: Option<Time>,
    }

    /// A node's status. An absent `allocatable` is defaulted from `capacity`.
    pub struct NodeStatus {
        pub capacity: Option<ResourceList>,
        pub allocatable: Option<ResourceList>,
        pub images: Vec<Pooled<ContainerImage>>,
        pub conditions: Vec<Condition>,
        pub declared_features: Vec<Symbol>,
    }

    /// An image on a node: all its names, and its size in bytes. Many nodes share the same.
    pub struct ContainerImage {
        pub names: Vec<Symbol>,
        pub size_bytes: i64,
    }
}

pooled!(ContainerImage);

/// In kubectl's notation: `key=value:NoSchedule`, `key:NoSchedule`.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

impl Node {
    /// The allocatable amounts; none if the node reports none.
    pub fn allocatable(&self) -> impl Iterator<Item = (Symbol, &crate::Quantity)> {
        self.status.allocatable.iter().flat_map(|amounts| amounts.iter())
    }
}
