//! Which new node would take a pod? Hypothetical nodes, each tried with the real scheduler.
//!
//! Templates come from karpenter's pools (`karpenter`, with the types of `catalogue`), from
//! cluster-autoscaler's groups (`autoscaler`) and from groups of existing nodes (`like`). Each is
//! created on a copy of the cluster, alone and with the pods of its DaemonSets (`daemons`), because
//! a node changes the answers of others: a new zone changes every spread. There the filters are
//! asked as for any other node, and the queue runs to see which pods it takes. `supply` counts how
//! many nodes all pending pods need.

mod autoscaler;
mod catalogue;
mod daemons;
mod karpenter;
mod like;
mod model;
mod requirement;
mod supply;
mod template;
#[cfg(test)]
mod tests;

use hashbrown::{HashMap, HashSet};

use crate::edit::Edit;
use crate::why::{self, NodeWhy};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Pod};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

use karpenter::Pool;

pub use model::{NearMiss, NewNode, NewNodes};
pub use supply::{Nearest, NodeOffer, NodeOrder, Supply, UnmetPod, supply};
pub use template::{NodeTemplate, TemplateOrigin};

/// Templates whose pods are counted, the cheapest first.
const COUNTED: usize = 60;
/// Templates of one pool that are tried for `--fix`, the cheapest first.
const OF_SOURCE: usize = 200;
/// How long the queue runs after a node is added, in virtual microseconds: longer than any backoff.
const WATCHED: i64 = 60 * 1_000_000;
/// Cycles that run after a node is added.
const CYCLES: usize = 5_000;

/// Called with the number of trials done and their total; returning `false` ends the search.
pub type OnProgress<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

/// Every node that could be created. `pods` choose values of labels that karpenter leaves to them.
pub fn templates(world: &World, pods: &[&Pod]) -> Vec<NodeTemplate> {
    let types = catalogue::known_types(world);
    let provisioning = world.provisioning();
    let mut templates = karpenter::claims(world);
    let mut known = Vec::new();
    for pool in &provisioning.node_pools {
        let of_pool = Pool::new(world, pool, &types).templates(pods, None);
        if !of_pool.is_empty() {
            known.push(pool.metadata.name);
        }
        templates.extend(of_pool);
    }
    templates.extend(autoscaler::templates(provisioning));
    templates.extend(like::templates(world, &known));
    templates
}

/// The template with that id, as edits name it.
pub(crate) fn find(world: &World, id: &str) -> Option<NodeTemplate> {
    let all = templates(world, &[&asking_for(world, id)]);
    all.into_iter().find(|template| template.origin.id() == id)
}

/// A pod that asks for the labels in the id, so that pools choose the same ones.
fn asking_for(world: &World, id: &str) -> Pod {
    let pools = world.provisioning().node_pools.iter();
    let keys = pools.flat_map(|pool| &pool.spec.template.spec.requirements).map(|one| one.key);
    let value = |key: Symbol| {
        let (_, rest) = id.split_once(&format!("/{key}="))?;
        Some((key, Name::new(rest.split('/').next()?)))
    };
    let mut pod = Pod::default();
    pod.spec.node_selector = Some(keys.filter_map(value).collect());
    pod
}

/// The ids of all templates.
pub(crate) fn ids(world: &World) -> Vec<Symbol> {
    let pods: Vec<&Pod> = pending(world).filter_map(|key| pod_of(world, key)).collect();
    templates(world, &pods).iter().map(|template| Symbol::new(&template.origin.id())).collect()
}

/// Which new node would take the pod. `None` if there is no such pod.
pub fn new_nodes(world: &World, pod: NamespacedName, go_on: OnProgress<'_>) -> Option<NewNodes> {
    let object = pod_of(world, pod)?;
    let templates = templates(world, &[object]);
    let of = templates.len();
    let mut answer = NewNodes::new(world, pod, of);
    let mut tried: Vec<(NodeTemplate, NewNode)> = Vec::new();
    for template in templates {
        if !go_on(tried.len(), of) {
            break;
        }
        let Some(new) = answer.judge(world, &template) else { continue };
        tried.push((template, new));
    }
    answer.tried = tried.len();
    tried.sort_by(|(_, a), (_, b)| a.order(b));
    count(world, &mut tried, go_on);
    if !tried.iter().any(|(_, new)| new.is_available()) {
        answer.near_misses = near_misses(world, object, &tried, go_on);
    }
    answer.nodes = tried.into_iter().map(|(_, new)| new).collect();
    Some(answer)
}

/// The edits that add a node which the pod fits, for the cheapest such node of each pool and node
/// group that can create one.
pub(crate) fn edits(world: &World, pod: NamespacedName) -> Vec<Edit> {
    let known = world.provisioning();
    if known.node_pools.is_empty() && known.node_groups.is_empty() && known.node_claims.is_empty() {
        return Vec::new();
    }
    let Some(object) = pod_of(world, pod) else { return Vec::new() };
    let mut templates = supply::distinct(world, &[object], templates(world, &[object]));
    templates
        .retain(|one| !matches!(one.origin, TemplateOrigin::Like { .. }) && one.closed.is_none());
    templates.sort_by(|a, b| price_order(a.price, b.price));
    let mut tried: HashMap<String, usize> = HashMap::new();
    let mut edits: HashMap<String, Edit> = HashMap::new();
    for template in &templates {
        let source = template.origin.source();
        let tried = tried.entry(source.clone()).or_default();
        *tried += 1;
        if *tried > OF_SOURCE || edits.contains_key(&source) {
            continue;
        }
        if verdict(world, pod, template).is_some_and(|tried| tried.verdict.fits()) {
            edits.insert(source, template.origin.edit(1));
        }
    }
    let mut edits: Vec<Edit> = edits.into_values().collect();
    edits.sort_by_cached_key(Edit::line);
    edits
}

/// Counts the pods that one node takes, for the cheapest template of each source and type.
fn count(world: &World, tried: &mut [(NodeTemplate, NewNode)], go_on: OnProgress<'_>) {
    let before: Vec<NamespacedName> = pending(world).collect();
    let mut seen: HashSet<(String, Option<Name>)> = HashSet::new();
    let of = tried.len();
    for (template, new) in tried.iter_mut().filter(|(_, new)| new.fits()).take(COUNTED) {
        let kind = (template.origin.source(), template.label(catalogue::INSTANCE_TYPE));
        if seen.insert(kind) && go_on(of, of) {
            let mut copy = world.clone();
            let names = template.add(&mut copy, 1);
            let is_whole = run(&mut copy, &mut || go_on(of, of));
            new.takes = is_whole.then(|| taken(&copy, &names, &before).len());
        }
    }
}

/// Pools of which a node would fit without one of the pool's requirements, if nothing else fits.
fn near_misses(
    world: &World,
    pod: &Pod,
    tried: &[(NodeTemplate, NewNode)],
    go_on: OnProgress<'_>,
) -> Vec<NearMiss> {
    let types = catalogue::known_types(world);
    let mut found = Vec::new();
    for pool in &world.provisioning().node_pools {
        let prepared = Pool::new(world, pool, &types);
        for (at, requirement) in prepared.requirements().iter().enumerate() {
            let relaxed = prepared.templates(&[pod], Some(at));
            let mut relaxed = supply::distinct(world, &[pod], relaxed);
            let is_known =
                |one: &NodeTemplate| tried.iter().any(|(other, _)| other.origin == one.origin);
            relaxed.retain(|one| one.closed.is_none() && !is_known(one));
            relaxed.sort_by(|a, b| price_order(a.price, b.price));
            let of = tried.len();
            let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
            let fits = relaxed.iter().find(|template| {
                go_on(of, of) && verdict(world, key, template).is_some_and(|it| it.verdict.fits())
            });
            found.extend(fits.map(|template| NearMiss {
                pool: pool.metadata.name,
                requirement: requirement::text_of(requirement),
                node: template.origin.details(),
                price: template.price,
            }));
        }
    }
    found
}

/// What the scheduler says of a new node.
struct NodeVerdict {
    /// What the PreFilter plugins say.
    ahead: Vec<why::PreFilterRejection>,
    verdict: NodeWhy,
    /// The pods that are on the node already.
    daemons: Vec<NamespacedName>,
}

/// Creates the node on a copy of the cluster and asks the filters.
fn verdict(world: &World, pod: NamespacedName, template: &NodeTemplate) -> Option<NodeVerdict> {
    let mut copy = world.clone();
    let name = *template.add(&mut copy, 1).first()?;
    let info = copy.scheduler().cache().nodes().find(|node| node.name == name)?;
    let daemons = info.pods.iter().map(|pod| pod.key()).collect();
    let (ahead, verdict) = why::of_one_node(&copy, pod, name)?;
    Some(NodeVerdict { ahead, verdict, daemons })
}

/// Known prices first, the lower ones before the higher.
pub(super) fn price_order(a: Option<f64>, b: Option<f64>) -> std::cmp::Ordering {
    a.is_none().cmp(&b.is_none()).then(a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)))
}

/// Runs the queue until no pod can be tried for a minute. `false` if it was stopped.
fn run(world: &mut World, go_on: &mut dyn FnMut() -> bool) -> bool {
    let start = world.now().0;
    for _ in 0..CYCLES {
        if !go_on() {
            return false;
        }
        if world.step().is_some() {
            continue;
        }
        let due = world.next_timer().filter(|due| due.0 <= start + WATCHED);
        let Some(due) = due else { break };
        world.advance((due.0 - world.now().0).max(0));
    }
    true
}

/// The pods of `before` that are on one of these nodes now.
fn taken(world: &World, nodes: &[Name], before: &[NamespacedName]) -> Vec<NamespacedName> {
    let is_there = |key: &&NamespacedName| {
        pod_of(world, **key).is_some_and(|pod| nodes.contains(&pod.spec.node_name))
    };
    before.iter().filter(is_there).copied().collect()
}

/// The pods without a node, in order of their names.
pub(super) fn pending(world: &World) -> impl Iterator<Item = NamespacedName> {
    let waits = |pod: &&std::sync::Arc<Pod>| pod.spec.node_name.is_empty() && !pod.is_terminal();
    let pods = world.api().objects().pods.values().filter(waits);
    let mut keys: Vec<NamespacedName> =
        pods.map(|pod| NamespacedName::new(pod.metadata.namespace, pod.metadata.name)).collect();
    keys.sort_unstable();
    keys.into_iter()
}

fn pod_of(world: &World, key: NamespacedName) -> Option<&Pod> {
    world.api().objects().pod(key).map(AsRef::as_ref)
}
