//! How many new nodes all pending pods need: of each template alone, and of a mix.
//!
//! Nodes are added one by one, and after each the queue runs. The mix is chosen greedily: each time
//! the template with the lowest price for each pod that it takes; templates without a price come
//! last, those that take the most pods first. So the mix is possible, but not proven to be the
//! cheapest.

use hashbrown::HashSet;
use serde::Serialize;

use super::catalogue::{CAPACITY_TYPE, INSTANCE_TYPE, REGION, ZONE};
use super::template::{NodeTemplate, TemplateOrigin};
use super::{
    NearMiss, NewNodes, OnProgress, new_nodes, pending, pod_of, price_order, run, taken, templates,
};
use kubestep_api::{Name, Pod};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// Templates that are counted alone and considered for the mix, those with the lowest price for each
/// pod first.
const CANDIDATES: usize = 40;
/// Pods without a node in the end that are explained.
const EXPLAINED: usize = 20;

/// What all pending pods need.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Supply {
    /// Namespace and name of each pending pod.
    pub pending: Vec<NamespacedName>,
    /// The templates of which a node takes some of the pods, the lowest price for each pod first.
    pub offers: Vec<NodeOffer>,
    /// A mix of nodes that takes as many pods as possible.
    pub plan: Vec<NodeOrder>,
    /// The price of an hour of the mix, if all its prices are known.
    pub price: Option<f64>,
    /// The pods that no new node takes.
    pub unmet: Vec<UnmetPod>,
    /// The number of templates that were tried.
    pub tried: usize,
    /// The number of templates.
    pub of: usize,
}

/// What nodes of one template would do.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOffer {
    /// The pool, group or instance type that the nodes come from.
    pub origin: TemplateOrigin,
    /// The edit that adds one.
    pub edit: String,
    /// The price of an hour of one node.
    pub price: Option<f64>,
    /// How many more can be created; `None` if no limit is known.
    pub room: Option<usize>,
    /// Why none can be created at present.
    pub closed: Option<String>,
    /// The pods that one node takes.
    pub takes: Vec<NamespacedName>,
    /// How many such nodes take as many pods as such nodes can; `None` if that was not tried.
    pub nodes: Option<usize>,
    /// How many pods they take.
    pub pods: Option<usize>,
}

/// Nodes of the mix.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOrder {
    /// The pool, group or instance type that the nodes come from.
    pub origin: TemplateOrigin,
    /// The edit that adds them.
    pub edit: String,
    /// How many nodes of the template are added.
    pub count: usize,
    /// The price of an hour of all of them.
    pub price: Option<f64>,
    /// The pods that they take.
    pub pods: Vec<NamespacedName>,
}

/// A pod that no new node takes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// What keeps it from every node, one sentence each. This and what follows is empty for pods
    /// after the first few.
    pub reasons: Vec<String>,
    /// The node that misses the least.
    pub nearest: Option<Nearest>,
    /// Pools of which a node would fit without one of the pool's requirements.
    pub near_misses: Vec<NearMiss>,
}

/// A node that misses, and by what.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nearest {
    /// Where it comes from.
    pub origin: TemplateOrigin,
    /// The causes, each with its plugin, or why it cannot be created.
    pub causes: Vec<String>,
}

/// A template that takes some pods.
struct TemplateCandidate {
    template: NodeTemplate,
    takes: Vec<NamespacedName>,
}

impl TemplateCandidate {
    /// The price for each pod that it takes.
    fn price_of_pod(&self) -> Option<f64> {
        Some(self.template.price? / self.takes.len().max(1) as f64)
    }

    fn order(&self, other: &TemplateCandidate) -> std::cmp::Ordering {
        price_order(self.price_of_pod(), other.price_of_pod())
            .then(other.takes.len().cmp(&self.takes.len()))
    }
}

/// How many new nodes all pending pods need.
pub fn supply(world: &World, go_on: OnProgress<'_>) -> Supply {
    let pending: Vec<NamespacedName> = pending(world).collect();
    let pods: Vec<&Pod> = pending.iter().filter_map(|key| pod_of(world, *key)).collect();
    let templates = distinct(world, &pods, templates(world, &pods));
    let of = templates.len();
    let mut supply = Supply { pending, of, ..Supply::default() };
    let mut candidates: Vec<TemplateCandidate> = Vec::new();
    for template in templates {
        if !go_on(supply.tried, of) {
            break;
        }
        supply.tried += 1;
        let takes = trial(world, &template, &supply.pending, &mut || go_on(of, of)).takes;
        if !takes.is_empty() {
            add(&mut candidates, TemplateCandidate { template, takes });
        }
    }
    candidates.sort_by(TemplateCandidate::order);
    for (at, one) in candidates.iter().enumerate() {
        let counted = (at < CANDIDATES).then(|| alone(world, one, &supply.pending, go_on));
        supply.offers.push(offer(one, counted.flatten()));
    }
    supply.offers.sort_by_key(|offer| offer.closed.is_some());
    candidates.retain(|one| one.template.closed.is_none());
    candidates.truncate(CANDIDATES);
    supply.choose(world, &candidates, go_on);
    supply
}

/// Adds a candidate unless one of the same pool and type takes the same pods for less.
fn add(candidates: &mut Vec<TemplateCandidate>, new: TemplateCandidate) {
    let kind =
        |one: &TemplateCandidate| (one.template.origin.source(), one.template.label(INSTANCE_TYPE));
    let same = |one: &&mut TemplateCandidate| kind(one) == kind(&new) && one.takes == new.takes;
    match candidates.iter_mut().find(same) {
        None => candidates.push(new),
        Some(there) if price_order(new.template.price, there.template.price).is_lt() => {
            *there = new
        }
        Some(_) => {}
    }
}

/// Keeps the cheapest of the offerings that differ only in labels that no pod, DaemonSet or volume
/// mentions.
pub(super) fn distinct(
    world: &World,
    pods: &[&Pod],
    mut templates: Vec<NodeTemplate>,
) -> Vec<NodeTemplate> {
    let text = mentioned(world, pods);
    let volumes = pods.iter().any(|pod| !pod.spec.volumes.is_empty());
    let is_read = |key: &str| match key {
        CAPACITY_TYPE => text.contains("capacity-type"),
        ZONE => volumes || text.contains("zone"),
        _ => volumes || text.contains("region"),
    };
    let read: Vec<&str> =
        [ZONE, REGION, CAPACITY_TYPE].into_iter().filter(|key| is_read(key)).collect();
    templates.sort_by(|a, b| price_order(a.price, b.price));
    let mut seen = HashSet::new();
    templates.retain(|template| match &template.origin {
        TemplateOrigin::NodePool { pool, instance_type, choice } => {
            let own: Vec<&String> = choice.iter().filter(|part| part.contains('=')).collect();
            let places: Vec<Option<Name>> = read.iter().map(|key| template.label(key)).collect();
            seen.insert(format!("{pool} {instance_type} {own:?} {places:?}"))
        }
        _ => true,
    });
    templates
}

/// Everything that may name a label of a node: the pods to place, the affinities of all others, the
/// DaemonSets, the plugins' arguments.
fn mentioned(world: &World, pods: &[&Pod]) -> String {
    let mut text = format!("{:?}", world.provisioning().daemon_sets);
    pods.iter().for_each(|pod| text += &format!("{:?}", pod.spec));
    let mut affinities = HashSet::new();
    for pod in world.api().objects().pods.values() {
        if let Some(affinity) = pod.spec.affinity.as_deref() {
            affinities.insert(format!("{:?}", affinity.pod_anti_affinity));
        }
    }
    text.extend(affinities);
    let frameworks = world.scheduler().frameworks().values();
    frameworks.for_each(|framework| text += &format!("{:?}", framework.profile().args));
    text
}

/// What became of a cluster with one more node.
struct NodeTrial {
    world: World,
    takes: Vec<NamespacedName>,
}

fn trial(
    world: &World,
    template: &NodeTemplate,
    pending: &[NamespacedName],
    go_on: &mut dyn FnMut() -> bool,
) -> NodeTrial {
    let mut copy = world.clone();
    let names = template.add(&mut copy, 1);
    run(&mut copy, go_on);
    let takes = taken(&copy, &names, pending);
    NodeTrial { world: copy, takes }
}

/// How many nodes of one template take how many pods. `None` if that was not run to its end.
fn alone(
    world: &World,
    TemplateCandidate { template, .. }: &TemplateCandidate,
    pending: &[NamespacedName],
    go_on: OnProgress<'_>,
) -> Option<(usize, usize)> {
    let most = template.room.unwrap_or(pending.len()).clamp(1, pending.len().max(1));
    let mut world = world.clone();
    let (mut nodes, mut pods) = (0, 0);
    while nodes < most {
        if !go_on(1, 1) {
            return None;
        }
        let next = trial(&world, template, pending, &mut || go_on(1, 1));
        if next.takes.is_empty() {
            break;
        }
        nodes += 1;
        pods += next.takes.len();
        world = next.world;
    }
    Some((nodes, pods))
}

fn offer(
    TemplateCandidate { template, takes }: &TemplateCandidate,
    counted: Option<(usize, usize)>,
) -> NodeOffer {
    NodeOffer {
        origin: template.origin.clone(),
        edit: template.origin.edit(1).to_string(),
        price: template.price,
        room: template.room,
        closed: template.closed.clone(),
        takes: takes.clone(),
        nodes: counted.map(|(nodes, _)| nodes),
        pods: counted.map(|(_, pods)| pods),
    }
}

fn unmet(pod: NamespacedName, answer: Option<NewNodes>) -> UnmetPod {
    let Some(answer) = answer else {
        return UnmetPod { pod, reasons: Vec::new(), nearest: None, near_misses: Vec::new() };
    };
    let nearest = answer.nodes.first().map(|new| {
        let mut causes: Vec<String> = new.causes().into_iter().chain(new.closed.clone()).collect();
        if causes.is_empty() {
            causes.push("it fits, and the search ended before it was added".to_owned());
        }
        Nearest { origin: new.origin.clone(), causes }
    });
    UnmetPod { pod, reasons: answer.obstacles(), nearest, near_misses: answer.near_misses }
}

impl Supply {
    /// Chooses the mix, and explains what is left.
    fn choose(&mut self, world: &World, candidates: &[TemplateCandidate], go_on: OnProgress<'_>) {
        let mut world = world.clone();
        while let Some((template, next)) = self.best(&world, candidates, go_on) {
            self.buy(template, next.takes);
            world = next.world;
        }
        let prices: Option<Vec<f64>> = self.plan.iter().map(|bought| bought.price).collect();
        self.price = prices.filter(|all| !all.is_empty()).map(|all| all.iter().sum());
        let left = self
            .pending
            .iter()
            .filter(|key| pod_of(&world, **key).is_some_and(|pod| pod.spec.node_name.is_empty()));
        for (at, pod) in left.enumerate() {
            let is_asked = at < EXPLAINED && go_on(1, 1);
            let answer = is_asked.then(|| new_nodes(&world, *pod, go_on)).flatten();
            self.unmet.push(unmet(*pod, answer));
        }
    }

    /// The next node to add, and what it does. Limits count the nodes that were added before.
    fn best<'a>(
        &self,
        world: &World,
        candidates: &'a [TemplateCandidate],
        go_on: OnProgress<'_>,
    ) -> Option<(&'a NodeTemplate, NodeTrial)> {
        let pods: Vec<&Pod> = self.pending.iter().filter_map(|key| pod_of(world, *key)).collect();
        let open: HashSet<String> = templates(world, &pods)
            .iter()
            .filter(|template| template.closed.is_none())
            .map(|template| template.origin.id())
            .collect();
        let mut best: Option<(TemplateCandidate, &NodeTemplate, NodeTrial)> = None;
        for TemplateCandidate { template, .. } in candidates {
            if !open.contains(&template.origin.id()) || !go_on(1, 1) {
                continue;
            }
            let trial = trial(world, template, &self.pending, &mut || go_on(1, 1));
            let new = TemplateCandidate { template: template.clone(), takes: trial.takes.clone() };
            let is_better = || best.as_ref().is_none_or(|(best, ..)| new.order(best).is_lt());
            if !new.takes.is_empty() && is_better() {
                best = Some((new, template, trial));
            }
        }
        best.map(|(_, template, trial)| (template, trial))
    }

    fn buy(&mut self, template: &NodeTemplate, pods: Vec<NamespacedName>) {
        let origin = &template.origin;
        match self.plan.iter_mut().find(|bought| bought.origin == *origin) {
            Some(bought) => {
                bought.count += 1;
                bought.edit = origin.edit(bought.count as u32).to_string();
                bought.price = bought.price.zip(template.price).map(|(sum, one)| sum + one);
                bought.pods.extend(pods);
            }
            None => self.plan.push(NodeOrder {
                origin: origin.clone(),
                edit: origin.edit(1).to_string(),
                count: 1,
                price: template.price,
                pods,
            }),
        }
    }
}
