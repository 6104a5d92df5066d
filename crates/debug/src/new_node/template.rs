//! A node that could be created: where it comes from, what it looks like, what it costs.

use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name, Node, Object, Pod, Provisioning, Taint, Uid, admission};
use kubestep_cluster::World;
use serde::Serialize;

use super::{autoscaler, daemons, karpenter};
use crate::edit::{Edit, companions};
use crate::why::cause::is_kept_by_controller;

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// Taints of nodes that are about to be deleted: a new node does not have them.
const OF_LEAVING: [&str; 3] = [
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
];
/// Taints that a node has until it is set up, by the beginning of their keys: of karpenter's
/// `KnownEphemeralTaints`, and of cluster-autoscaler's startup taints.
const OF_STARTUP: [&str; 5] = [
    "karpenter.sh/unregistered",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "readiness.k8s.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
];

/// Where a new node comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum TemplateOrigin {
    /// Karpenter would create it.
    NodePool {
        /// Name of the pool.
        pool: Name,
        /// The provider's name for it: `m5.large`.
        instance_type: Name,
        /// Zone, capacity type and the labels that depend on the pod, as `KEY=VALUE` or a value.
        choice: Vec<String>,
    },
    /// Karpenter has requested it, and it has not registered yet.
    NodeClaim {
        /// Name of the claim.
        claim: Name,
    },
    /// cluster-autoscaler would enlarge the group.
    NodeGroup {
        /// The node group's id, as cluster-autoscaler reports it.
        group: Name,
    },
    /// A copy of an existing node.
    Like {
        /// Name of the node.
        node: Name,
        /// What its group has in common, as `KEY=VALUE`.
        group: Vec<String>,
        /// The number of nodes of the group.
        nodes: usize,
    },
}

impl TemplateOrigin {
    /// The pool or group: `NodePool general`.
    pub fn source(&self) -> String {
        match self {
            TemplateOrigin::NodePool { pool, .. } => format!("NodePool {pool}"),
            TemplateOrigin::NodeClaim { claim } => format!("NodeClaim {claim}"),
            TemplateOrigin::NodeGroup { group } => format!("node group {group}"),
            TemplateOrigin::Like { node, .. } => format!("like {node}"),
        }
    }

    /// What is created there: `c-4x-amd64-linux, test-zone-a, spot`.
    pub fn details(&self) -> String {
        match self {
            TemplateOrigin::NodePool { instance_type, choice, .. } => {
                let parts =
                    std::iter::once(instance_type.to_string()).chain(choice.iter().cloned());
                parts.collect::<Vec<_>>().join(", ")
            }
            TemplateOrigin::Like { group, nodes, .. } => {
                let nodes = kubestep_api::words::count(*nodes, "node");
                match group.is_empty() {
                    true => nodes,
                    false => format!("{}: {nodes}", group.join(", ")),
                }
            }
            TemplateOrigin::NodeClaim { .. } | TemplateOrigin::NodeGroup { .. } => String::new(),
        }
    }

    /// The name by which an edit adds such a node: `nodepool/general/c-4x-amd64-linux/zone-a/spot`.
    pub fn id(&self) -> String {
        match self {
            TemplateOrigin::NodePool { pool, instance_type, choice } => {
                let choice: String = choice.iter().map(|part| format!("/{part}")).collect();
                format!("nodepool/{pool}/{instance_type}{choice}")
            }
            TemplateOrigin::NodeClaim { claim } => format!("nodeclaim/{claim}"),
            TemplateOrigin::NodeGroup { group } => format!("group/{group}"),
            TemplateOrigin::Like { node, .. } => format!("node/{node}"),
        }
    }

    /// The edit that adds such nodes.
    pub fn edit(&self, count: u32) -> Edit {
        match self {
            TemplateOrigin::Like { node, .. } => Edit::AddNodes { count, like: *node },
            origin => Edit::AddNew { count, template: Symbol::new(&origin.id()) },
        }
    }

    /// The beginning of the names of such nodes.
    fn stem(&self) -> String {
        match self {
            TemplateOrigin::NodePool { pool, .. } => format!("{pool}-new"),
            TemplateOrigin::NodeClaim { claim } => format!("{claim}-new"),
            TemplateOrigin::NodeGroup { group } => {
                format!("{}-new", group.text().rsplit('/').next().unwrap_or_default())
            }
            TemplateOrigin::Like { node, .. } => format!("{node}-copy"),
        }
    }
}

/// A node that could be created.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeTemplate {
    /// Where it comes from.
    pub origin: TemplateOrigin,
    /// The node without its name.
    pub node: Node,
    /// A node of the same kind, whose disks and devices it gets.
    pub like: Option<Name>,
    /// The pods of DaemonSets on it, if the source of the template knows them.
    pub pods: Option<Vec<Pod>>,
    /// Taints that it has only until it is set up; `node` does not have them.
    pub startup_taints: Vec<Taint>,
    /// The price of an hour, in the currency of the catalogue.
    pub price: Option<f64>,
    /// How many more can be created; `None` if no limit is known.
    pub room: Option<usize>,
    /// Why none can be created at present.
    pub closed: Option<String>,
}

impl NodeTemplate {
    /// A template that may be created without limit.
    pub(super) fn new(origin: TemplateOrigin, node: Node) -> NodeTemplate {
        NodeTemplate {
            origin,
            node,
            like: None,
            pods: None,
            startup_taints: Vec::new(),
            price: None,
            room: None,
            closed: None,
        }
    }

    /// A schedulable node of the same kind: cordons and conditions are not copied.
    pub(crate) fn like(
        provisioning: &Provisioning,
        original: &Node,
        group: Vec<String>,
        nodes: usize,
    ) -> NodeTemplate {
        let name = original.metadata.name;
        let mut node = original.clone();
        node.spec.unschedulable = false;
        node.status.conditions.clear();
        let mut startup_taints = take_startup_taints(&mut node.spec.taints);
        let of_pool =
            |taint: &mut Taint| provisioning.pool_of_startup_taint(original, taint).is_some();
        startup_taints.extend(node.spec.taints.extract_if(.., of_pool));
        let origin = TemplateOrigin::Like { node: name, group, nodes };
        NodeTemplate { like: Some(name), startup_taints, ..NodeTemplate::new(origin, node) }
    }

    /// Creates such nodes, with what kubelets, drivers and DaemonSets create on them. Returns their
    /// names.
    pub(crate) fn add(&self, world: &mut World, count: u32) -> Vec<Name> {
        let stem = self.origin.stem();
        let names = (1..).map(|number| Name::new(&format!("{stem}-{number}")));
        let names = names.filter(|name| world.api().node(*name).is_none());
        let names: Vec<Name> = names.take(count as usize).collect();
        for name in &names {
            world.create(self.named(*name));
            if let Some(like) = self.like {
                companions::create(world, like, *name);
            }
            daemons::create(world, self, *name);
        }
        self.report(world, &names);
        names
    }

    /// Counts new nodes where karpenter and cluster-autoscaler report what there is, as they would:
    /// limits hold for these nodes, too.
    fn report(&self, world: &mut World, names: &[Name]) {
        if matches!(self.origin, TemplateOrigin::Like { .. }) {
            return;
        }
        let mut known = Provisioning::clone(world.provisioning());
        for name in names {
            match self.origin {
                TemplateOrigin::NodePool { pool, .. } => {
                    karpenter::count(&mut known, pool, &self.node)
                }
                TemplateOrigin::NodeClaim { claim } => {
                    karpenter::register(&mut known, claim, *name)
                }
                TemplateOrigin::NodeGroup { group } => autoscaler::count(&mut known, group),
                TemplateOrigin::Like { .. } => {}
            }
        }
        world.set_provisioning(known);
    }

    fn named(&self, name: Name) -> Object {
        let mut node = self.node.clone();
        node.metadata.name = name;
        node.metadata.uid = Uid::EMPTY;
        let hostname = Symbol::new(HOSTNAME);
        let is_like = matches!(self.origin, TemplateOrigin::Like { .. });
        if !is_like || node.metadata.labels.contains_key(hostname) {
            node.metadata.labels.insert(hostname, name);
        }
        let mut object = Object::from(node);
        admission::identify(&mut object);
        object
    }

    /// A label of the node.
    pub(super) fn label(&self, key: &str) -> Option<Name> {
        self.node.metadata.labels.get_str(key).copied()
    }
}

/// Removes the taints that a new node does not keep. Returns those that it begins with.
pub(super) fn take_startup_taints(taints: &mut Vec<Taint>) -> Vec<Taint> {
    let is_startup = |taint: &Taint| OF_STARTUP.iter().any(|key| taint.key.starts_with(key));
    let startup = taints.iter().filter(|taint| is_startup(taint)).cloned().collect();
    taints.retain(|taint| {
        let leaves = OF_LEAVING.contains(&taint.key.as_str());
        !is_startup(taint) && !leaves && !is_kept_by_controller(taint.key)
    });
    startup
}

/// The values of labels in the order of `keys`, as far as the labels have them.
pub(super) fn known_labels(labels: &Labels, keys: &[&str]) -> Vec<(Symbol, Name)> {
    let known = |key: &&str| Some((Symbol::new(key), *labels.get_str(key)?));
    keys.iter().filter_map(known).collect()
}
