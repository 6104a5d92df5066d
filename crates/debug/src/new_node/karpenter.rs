//! The nodes that karpenter's NodePools can create: each pool with each known instance type and
//! offering that its requirements allow.
//!
//! Labels and limits are karpenter's; whether a pod fits the node is left to the scheduler.
//! Upstream: `pkg/controllers/provisioning/scheduling` of kubernetes-sigs/karpenter.

use std::sync::Arc;

use super::catalogue::{
    CAPACITY_TYPE, CatalogueOffering, CatalogueType, INSTANCE_TYPE, REGION, ZONE, difference,
};
use super::requirement::{Offered, allows, allows_some, values};
use super::template::{HOSTNAME, NodeTemplate, TemplateOrigin, take_startup_taints};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Condition, ConditionStatus, LabelRequirement, Labels, Name, Node, NodePool,
    NodeSelectorOperator, Pod, Provisioning, Quantity, ResourceList,
};
use kubestep_cluster::World;

pub(super) const NODE_POOL: &str = "karpenter.sh/nodepool";
/// Labels that karpenter sets on each of its nodes.
const MARKS: [&str; 2] = ["karpenter.sh/registered", "karpenter.sh/initialized"];
/// The older names of labels, which cloud providers still set.
const OLD_NAMES: [(&str, &str); 5] = [
    (INSTANCE_TYPE, "beta.kubernetes.io/instance-type"),
    (ZONE, "failure-domain.beta.kubernetes.io/zone"),
    (REGION, "failure-domain.beta.kubernetes.io/region"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
];
/// Combinations of values that pods choose, for one pool.
const CHOICES: usize = 8;

/// A NodePool with what it can create: instance types within its limits.
pub(super) struct Pool<'a> {
    pool: &'a NodePool,
    /// Its own labels, which restrict instance types like requirements.
    labels: Labels,
    /// What it may still create; `None` without limits.
    left: Option<ResourceList>,
    closed: Option<String>,
    types: Vec<CatalogueType>,
}

impl<'a> Pool<'a> {
    pub fn new(world: &World, pool: &'a NodePool, types: &[CatalogueType]) -> Pool<'a> {
        let class = &pool.spec.template.spec.node_class_ref;
        let mut labels = pool.spec.template.metadata.labels.clone();
        labels.insert(NODE_POOL.into(), pool.metadata.name);
        if !class.name.is_empty() {
            let key = format!("{}/{}", class.group, class.kind.to_lowercase());
            labels.insert(Symbol::new(&key), class.name);
        }
        let offered: Offered = labels.iter().map(|(key, value)| (key, vec![*value])).collect();
        let overlays = &world.provisioning().node_overlays;
        let types = types.iter().map(|known| known.overlaid(overlays, &offered)).collect();
        Pool { pool, labels, left: left(world, pool), closed: closed(pool), types }
    }

    /// The requirements of the pool.
    pub fn requirements(&self) -> &'a [LabelRequirement] {
        &self.pool.spec.template.spec.requirements
    }

    /// A template for each type and offering, and for each value that a pod may choose. The
    /// requirement `relaxed` allows any value.
    pub fn templates(&self, pods: &[&Pod], relaxed: Option<usize>) -> Vec<NodeTemplate> {
        let mut counted: Vec<&LabelRequirement> = self.requirements().iter().collect();
        let any = relaxed.and_then(|at| counted.get(at)).map(|requirement| LabelRequirement {
            operator: "Exists".into(),
            values: Vec::new(),
            ..(*requirement).clone()
        });
        if let (Some(at), Some(any)) = (relaxed, &any) {
            counted[at] = any;
        }
        let mut templates = Vec::new();
        for known in &self.types {
            let choices = self.choices(&counted, known, pods);
            for offering in &known.offerings {
                if self.allowed(&counted, known, offering) {
                    let template = |choice: &Vec<(Symbol, Name)>| {
                        self.template(&counted, known, offering, choice)
                    };
                    templates.extend(choices.iter().map(template));
                }
            }
        }
        templates
    }

    /// Whether pool and offering are compatible.
    fn allowed(
        &self,
        requirements: &[&LabelRequirement],
        known: &CatalogueType,
        offering: &CatalogueOffering,
    ) -> bool {
        let offered = |key| values(&offering.labels, key).or(values(&known.labels, key));
        let meets = |requirement: &&LabelRequirement| {
            offered(requirement.key).is_none_or(|values| allows_some(requirement, values))
        };
        let agrees = |(key, value): (Symbol, &Name)| {
            offered(key).is_none_or(|values| values.contains(value))
        };
        requirements.iter().all(meets) && self.labels.iter().all(agrees)
    }

    /// The values of labels that karpenter sets as the pod requires.
    fn choices(
        &self,
        requirements: &[&LabelRequirement],
        known: &CatalogueType,
        pods: &[&Pod],
    ) -> Vec<Vec<(Symbol, Name)>> {
        let mut choices: Vec<Vec<(Symbol, Name)>> = vec![Vec::new()];
        let mut keys: Vec<Symbol> = requirements.iter().map(|one| one.key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let is_fixed = values(&known.labels, key).is_some()
                || known.offerings.iter().any(|one| values(&one.labels, key).is_some())
                || self.labels.contains_key(key)
                || key == HOSTNAME;
            let of_key = requirements.iter().filter(|one| one.key == key);
            let of_key: Vec<&LabelRequirement> = of_key.copied().collect();
            let found = if is_fixed { Vec::new() } else { chosen(&of_key, pods) };
            if !found.is_empty() {
                let with = |choice: &Vec<(Symbol, Name)>, value: &Name| {
                    choice.iter().copied().chain([(key, *value)]).collect()
                };
                let all = choices.iter().flat_map(|choice| found.iter().map(|v| with(choice, v)));
                choices = all.take(CHOICES).collect();
            }
        }
        choices
    }

    fn template(
        &self,
        requirements: &[&LabelRequirement],
        known: &CatalogueType,
        offering: &CatalogueOffering,
        choice: &[(Symbol, Name)],
    ) -> NodeTemplate {
        let spec = &self.pool.spec.template.spec;
        let mut node = Node::default();
        let labels = &mut node.metadata.labels;
        *labels = self.labels.clone();
        for (key, values) in known.labels.iter().chain(&offering.labels) {
            let meets = |value: &&Name| {
                let mut of_key = requirements.iter().filter(|one| one.key == *key);
                of_key.all(|one| allows(one, Some(**value)))
            };
            if let Some(value) = values.iter().find(meets).or(values.first()) {
                labels.insert(*key, *value);
            }
        }
        for (key, value) in
            MARKS.map(|key| (key.into(), "true".into())).into_iter().chain(choice.iter().copied())
        {
            labels.insert(key, value);
        }
        for (key, old) in OLD_NAMES {
            if let Some(value) = labels.get_str(key).copied() {
                labels.insert(Symbol::new(old), value);
            }
        }
        node.spec.taints = spec.taints.clone();
        node.status.capacity = Some(known.capacity.clone());
        node.status.allocatable = Some(known.allocatable.clone());
        let label = |key: &str| node.metadata.labels.get_str(key).map(ToString::to_string);
        let chosen = choice.iter().map(|(key, value)| format!("{key}={value}"));
        let place = [ZONE, CAPACITY_TYPE].iter().filter_map(|key| label(key));
        let origin = TemplateOrigin::NodePool {
            pool: self.pool.metadata.name,
            instance_type: known.name,
            choice: place.chain(chosen).collect(),
        };
        let (room, full) = self.room(known);
        NodeTemplate {
            like: known.node,
            startup_taints: spec.startup_taints.clone(),
            price: offering.price,
            room,
            closed: self.closed.clone().or(full),
            ..NodeTemplate::new(origin, node)
        }
    }

    /// How many nodes of the type the limits leave, and the limit that leaves none.
    fn room(&self, known: &CatalogueType) -> (Option<usize>, Option<String>) {
        let Some(left) = &self.left else { return (None, None) };
        let mut room: Option<(usize, String)> = None;
        for (resource, left) in left.iter() {
            let one = match resource.as_str() {
                "nodes" => Quantity::parse("1").ok(),
                _ => known.capacity.get(resource).cloned(),
            };
            let Some(one) = one.filter(|one| one.sign().is_gt()) else { continue };
            let most = (left.as_approximate_f64() / one.as_approximate_f64()).floor() as usize;
            if room.as_ref().is_none_or(|(least, _)| most < *least) {
                room = Some((most, self.full(resource, left, &one)));
            }
        }
        match room {
            Some((0, full)) => (Some(0), Some(full)),
            Some((most, _)) => (Some(most), None),
            None => (None, None),
        }
    }

    fn full(&self, resource: Symbol, left: &Quantity, one: &Quantity) -> String {
        let limit = self.pool.spec.limits.as_ref().and_then(|limits| limits.get(resource));
        let limit = limit.map(ToString::to_string).unwrap_or_default();
        match resource.as_str() {
            "nodes" => format!("at its limit of {limit} nodes"),
            _ => format!("its limit of {limit} {resource} leaves {left}, and the node has {one}"),
        }
    }
}

/// The values that karpenter may give a label: those that pods ask for and the pool allows, else
/// any that it allows.
fn chosen(requirements: &[&LabelRequirement], pods: &[&Pod]) -> Vec<Name> {
    let Some(first) = requirements.first() else { return Vec::new() };
    let allowed = |value: &Name| requirements.iter().all(|one| allows(one, Some(*value)));
    let mut wanted: Vec<Name> = pods.iter().flat_map(|pod| asked_for(pod, first.key)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(allowed);
    if wanted.is_empty() {
        let listed = requirements.iter().filter(|one| one.operator == "In");
        wanted.extend(listed.flat_map(|one| one.values.iter().copied()).find(allowed));
    }
    wanted
}

/// The values of a label that a pod selects.
fn asked_for(pod: &Pod, key: Symbol) -> Vec<Name> {
    let selected = pod.spec.node_selector.iter().filter_map(|labels| labels.get(key).copied());
    let affinity = pod.spec.affinity.iter().filter_map(|one| one.node_affinity.as_ref());
    let required =
        affinity.filter_map(|one| one.required_during_scheduling_ignored_during_execution.as_ref());
    let expressions =
        required.flat_map(|one| &one.node_selector_terms).flat_map(|term| &term.match_expressions);
    let named =
        expressions.filter(|one| one.key == key && one.operator == NodeSelectorOperator::In);
    selected.chain(named.flat_map(|one| one.values.iter().copied())).collect()
}

/// What the limits of a pool leave: of each limited resource the limit without what its nodes have.
fn left(world: &World, pool: &NodePool) -> Option<ResourceList> {
    let limits = pool.spec.limits.as_ref()?;
    let used = used(world, pool);
    let left = |(resource, limit): (Symbol, &Quantity)| {
        let none = Quantity::default();
        (resource, difference(limit, used.get(resource).unwrap_or(&none)))
    };
    Some(limits.iter().map(left).collect())
}

/// What the nodes of a pool have: as karpenter reports it, or else as counted.
fn used(world: &World, pool: &NodePool) -> ResourceList {
    let name = pool.metadata.name;
    let nodes: Vec<&Arc<Node>> = world
        .api()
        .nodes()
        .filter(|node| node.metadata.labels.get_str(NODE_POOL) == Some(&name))
        .collect();
    let count = pool.status.nodes.unwrap_or(nodes.len() as i64);
    let mut used = pool.status.resources.clone().unwrap_or_else(|| {
        let mut sum = ResourceList::new();
        let amounts = nodes.iter().filter_map(|node| node.status.capacity.as_ref());
        amounts.for_each(|amounts| add(&mut sum, amounts));
        sum
    });
    used.insert("nodes".into(), Quantity::parse(&count.to_string()).unwrap_or_default());
    used
}

/// Counts a new node of a pool in what karpenter reports. What it does not report is counted from
/// the nodes there are.
pub(super) fn count(known: &mut Provisioning, pool: Name, node: &Node) {
    let pools = known.node_pools.iter_mut().filter(|one| one.metadata.name == pool);
    for status in pools.map(|pool| &mut pool.status) {
        status.nodes = status.nodes.map(|nodes| nodes + 1);
        let amounts = status.resources.iter_mut().zip(&node.status.capacity);
        amounts.for_each(|(sum, capacity)| add(sum, capacity));
    }
}

/// Lets a claim have a node.
pub(super) fn register(known: &mut Provisioning, claim: Name, node: Name) {
    let claims = known.node_claims.iter_mut().filter(|one| one.metadata.name == claim);
    claims.for_each(|claim| claim.status.node_name = node);
}

fn add(sum: &mut ResourceList, amounts: &ResourceList) {
    for (resource, amount) in amounts.iter() {
        match sum.get_mut(resource) {
            Some(there) => there.add(amount),
            None => drop(sum.insert(resource, amount.clone())),
        }
    }
}

/// Why karpenter would not create a node of the pool at all.
fn closed(pool: &NodePool) -> Option<String> {
    if pool.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted".to_owned());
    }
    if let Some(replicas) = pool.spec.replicas {
        return Some(format!("it has a fixed number of nodes: replicas is {replicas}"));
    }
    let is_not_ready = |condition: &&Condition| {
        condition.type_ == "Ready" && condition.status != ConditionStatus::True
    };
    let condition = pool.status.conditions.iter().find(is_not_ready)?;
    let Condition { reason, message, .. } = condition;
    Some(format!("it is not ready: {}", if message.is_empty() { reason } else { message.as_str() }))
}

/// The nodes that karpenter has requested and that have not registered.
pub(super) fn claims(world: &World) -> Vec<NodeTemplate> {
    let is_waiting = |name: Name| name.is_empty() || world.api().node(name).is_none();
    let claims = world.provisioning().node_claims.iter();
    let claims = claims.filter(|claim| is_waiting(claim.status.node_name));
    let template = |claim: &kubestep_api::NodeClaim| {
        let status = &claim.status;
        let allocatable = status.allocatable.clone().or(status.capacity.clone())?;
        let mut node = Node::default();
        node.metadata.labels = claim.metadata.labels.clone();
        for key in MARKS {
            node.metadata.labels.insert(key.into(), "true".into());
        }
        node.spec.taints = claim.spec.taints.clone();
        node.status.capacity = status.capacity.clone();
        node.status.allocatable = Some(allocatable);
        let mut startup_taints = take_startup_taints(&mut node.spec.taints);
        startup_taints.extend(claim.spec.startup_taints.iter().cloned());
        let origin = TemplateOrigin::NodeClaim { claim: claim.metadata.name };
        let closed = claim.metadata.deletion_timestamp.map(|_| "it is being deleted".to_owned());
        Some(NodeTemplate {
            startup_taints,
            room: Some(1),
            closed,
            ..NodeTemplate::new(origin, node)
        })
    };
    claims.filter_map(template).collect()
}
