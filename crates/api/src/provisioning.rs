//! Where new nodes come from: karpenter's objects and instance types, the node groups and the
//! report of cluster-autoscaler, and the DaemonSets whose pods every new node gets.
//!
//! A scheduler reads none of this. Upstream: `pkg/apis/v1` and `kwok/cloudprovider` of
//! kubernetes-sigs/karpenter; `clusterstate/api/types.go` of cluster-autoscaler.

use serde::{Deserialize, Deserializer};

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::{Condition, Labels, Name, Node, ObjectMeta, Pod, ResourceList, Taint};

api_structs! {
    /// A pool of nodes that karpenter creates on demand (`karpenter.sh/v1`).
    pub struct NodePool {
        pub metadata: ObjectMeta,
        pub spec: NodePoolSpec,
        pub status: NodePoolStatus,
    }

    /// The nodes of a pool, and how much of each resource they may have together.
    pub struct NodePoolSpec {
        pub template: NodeClaimTemplate,
        pub limits: Option<ResourceList>,
        pub weight: i64,
        pub replicas: Option<i64>,
    }

    /// The template of a pool's nodes.
    pub struct NodeClaimTemplate {
        pub metadata: TemplateMeta,
        pub spec: NodeClaimSpec,
    }

    /// The metadata of a template.
    pub struct TemplateMeta {
        pub labels: Labels,
    }

    /// How a node has to be. Startup taints are removed by others once the node is set up.
    pub struct NodeClaimSpec {
        pub taints: Vec<Taint>,
        pub startup_taints: Vec<Taint>,
        pub requirements: Vec<LabelRequirement>,
        pub node_class_ref: NodeClassRef,
    }

    /// What a label of a node must be. Operators are those of node selectors, `Gte` and `Lte`.
    pub struct LabelRequirement {
        pub key: Symbol,
        pub operator: Symbol,
        pub values: Vec<Name>,
    }

    /// The provider's own settings of a pool's nodes.
    pub struct NodeClassRef {
        pub group: Symbol,
        pub kind: Symbol,
        pub name: Name,
    }

    /// What a pool's nodes have together.
    pub struct NodePoolStatus {
        pub resources: Option<ResourceList>,
        pub nodes: Option<i64>,
        pub conditions: Vec<Condition>,
    }

    /// A node that karpenter has requested (`karpenter.sh/v1`).
    pub struct NodeClaim {
        pub metadata: ObjectMeta,
        pub spec: NodeClaimSpec,
        pub status: NodeClaimStatus,
    }

    /// What became of a claim: the name of its node once that registered, and how large it is.
    pub struct NodeClaimStatus {
        pub node_name: Name,
        pub capacity: Option<ResourceList>,
        pub allocatable: Option<ResourceList>,
        pub conditions: Vec<Condition>,
    }

    /// A correction of prices and capacities of instance types (`karpenter.sh/v1alpha1`).
    pub struct NodeOverlay {
        pub metadata: ObjectMeta,
        pub spec: NodeOverlaySpec,
    }

    /// To which instance types a correction applies. A price is absolute; an adjustment is signed,
    /// an amount or a percentage.
    pub struct NodeOverlaySpec {
        pub requirements: Vec<LabelRequirement>,
        pub price: Option<String>,
        pub price_adjustment: Option<String>,
        pub capacity: Option<ResourceList>,
        pub weight: i64,
    }

    /// The ConfigMap `cluster-autoscaler-status`, decoded.
    pub struct AutoscalerStatus {
        pub time: String,
        pub node_groups: Vec<NodeGroupStatus>,
    }

    /// What cluster-autoscaler reports of a node group.
    pub struct NodeGroupStatus {
        pub name: Name,
        pub health: NodeGroupHealth,
        pub scale_up: NodeGroupScaleUp,
    }

    /// Whether a group's nodes are ready, and its size: `cloud_provider_target` is the present one.
    pub struct NodeGroupHealth {
        pub status: Symbol,
        pub cloud_provider_target: i64,
        pub min_size: i64,
        pub max_size: i64,
    }

    /// Whether a group can grow: `Backoff` after the provider rejected a request.
    pub struct NodeGroupScaleUp {
        pub status: Symbol,
        pub backoff_info: BackoffInfo,
    }

    /// Why a group is in backoff.
    pub struct BackoffInfo {
        pub error_code: String,
        pub error_message: String,
    }
}

/// An instance type of a catalogue, in the format of karpenter's kwok provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceType {
    /// The name, such as `m5.large`.
    pub name: Name,
    /// Where, in which way and at which price it is offered.
    pub offerings: Vec<Offering>,
    /// The architecture, such as `amd64`.
    pub architecture: Name,
    /// The operating systems that it may have.
    pub operating_systems: Vec<Name>,
    /// What a new node of this kind offers.
    pub resources: ResourceList,
}

/// An offering of an instance type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Offering {
    /// The price of an hour, in the currency of the catalogue.
    #[serde(alias = "Price")]
    pub price: Option<f64>,
    /// Its zone, its capacity type and further labels.
    #[serde(alias = "Requirements", deserialize_with = "crate::macros::or_default")]
    pub requirements: Vec<LabelRequirement>,
}

/// A group of nodes that cluster-autoscaler can enlarge, with its template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeGroup {
    /// The group's id at the provider.
    pub name: Name,
    /// The node that a larger group would have.
    pub node: Node,
    /// The pods of DaemonSets on it.
    pub pods: Vec<Pod>,
}

/// A node of a debugging snapshot of cluster-autoscaler.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct GroupNode {
    node: Node,
    #[serde(deserialize_with = "crate::macros::or_default")]
    pods: Vec<Pod>,
}

impl<'de> Deserialize<'de> for NodeGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NodeGroup, D::Error> {
        let GroupNode { node, pods } = GroupNode::deserialize(deserializer)?;
        Ok(NodeGroup { name: Name::EMPTY, node, pods })
    }
}

/// Everything that is known about where new nodes come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provisioning {
    /// Karpenter's pools, each a template of nodes.
    pub node_pools: Vec<NodePool>,
    /// The nodes that Karpenter requested, and how far they are.
    pub node_claims: Vec<NodeClaim>,
    /// Karpenter's corrections of the catalogue.
    pub node_overlays: Vec<NodeOverlay>,
    /// The instance types that can be had, with prices.
    pub instance_types: Vec<InstanceType>,
    /// The groups of cluster-autoscaler.
    pub node_groups: Vec<NodeGroup>,
    /// The report of cluster-autoscaler.
    pub autoscaler: Option<AutoscalerStatus>,
    /// DaemonSets as written, whose pods run on new nodes.
    pub daemon_sets: Vec<serde_json::Value>,
}

/// The label of a node with the name of its NodePool.
const NODE_POOL: &str = "karpenter.sh/nodepool";

impl Provisioning {
    /// The NodePool that gives the node this taint until it is set up.
    pub fn pool_of_startup_taint(&self, node: &Node, taint: &Taint) -> Option<Name> {
        let name = node.metadata.labels.get_str(NODE_POOL)?;
        let pool = self.node_pools.iter().find(|pool| pool.metadata.name == *name);
        let is_it = |claim: &&NodeClaim| claim.status.node_name == node.metadata.name;
        let claim = self.node_claims.iter().find(is_it).map(|claim| &claim.spec);
        let of_pool = pool.map(|pool| &pool.spec.template.spec);
        let mut taints = of_pool.into_iter().chain(claim).flat_map(|spec| &spec.startup_taints);
        taints
            .any(|startup| (startup.key, startup.effect) == (taint.key, taint.effect))
            .then_some(*name)
    }

    /// Adds what another input has. Its objects replace those of the same name.
    pub fn merge(&mut self, other: Provisioning) {
        replace(&mut self.node_pools, other.node_pools, |pool| pool.metadata.name);
        replace(&mut self.node_claims, other.node_claims, |claim| claim.metadata.name);
        replace(&mut self.node_overlays, other.node_overlays, |overlay| overlay.metadata.name);
        self.instance_types.extend(other.instance_types);
        self.node_groups.extend(other.node_groups);
        self.autoscaler = other.autoscaler.or(self.autoscaler.take());
        replace(&mut self.daemon_sets, other.daemon_sets, |set| {
            let metadata = &set["metadata"];
            (metadata["namespace"].to_string(), metadata["name"].to_string())
        });
    }
}

fn replace<T, K: PartialEq>(list: &mut Vec<T>, new: Vec<T>, key: fn(&T) -> K) {
    let keys: Vec<K> = new.iter().map(key).collect();
    list.retain(|old| !keys.contains(&key(old)));
    list.extend(new);
}
