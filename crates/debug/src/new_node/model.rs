//! The answer: plain data, for reports and programs.

use std::cmp::Ordering;

use serde::Serialize;

use super::karpenter::NODE_POOL;
use super::template::{NodeTemplate, TemplateOrigin};
use super::{NodeVerdict, pending, price_order, verdict};
use crate::why::{self, NodeWhy, PodProblem, PreFilterRejection, ProblemKind, Why};
use kubestep_api::{Name, Taint};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// Which new nodes would take a pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNodes {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The number of pending pods, this one included.
    pub pending: usize,
    /// Problems that no new node resolves.
    pub problems: Vec<PodProblem>,
    /// The PreFilter results of plugins that reject the pod whatever the node.
    pub ahead: Vec<PreFilterRejection>,
    /// The nodes: those that fit and can be created, cheapest first; those that fit and cannot be
    /// created at present; then by how much is missing.
    pub nodes: Vec<NewNode>,
    /// If no node fits that can be created: pools of which one would fit without one of the pool's
    /// requirements.
    pub near_misses: Vec<NearMiss>,
    /// Known differences between the provisioner and the scheduler, one sentence each.
    pub notes: Vec<String>,
    /// The number of nodes that were tried.
    pub tried: usize,
    /// The number of nodes that could be tried.
    pub of: usize,
}

/// A hypothetical node with its verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNode {
    /// Where it comes from.
    pub origin: TemplateOrigin,
    /// The edit that adds it.
    pub edit: String,
    /// The price of an hour, in the currency of the catalogue.
    pub price: Option<f64>,
    /// How many more can be created; `None` if no limit is known.
    pub room: Option<usize>,
    /// Why none can be created at present.
    pub closed: Option<String>,
    /// Taints that it has only until it is set up, which do not count.
    pub startup_taints: Vec<Taint>,
    /// The DaemonSet pods on it.
    pub daemons: Vec<NamespacedName>,
    /// How many of the pending pods it takes; `None` if that was not tried.
    pub takes: Option<usize>,
    /// What the filters say.
    pub verdict: NodeWhy,
}

/// A pool that misses by one of its own requirements.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NearMiss {
    /// Name of the pool.
    pub pool: Name,
    /// The requirement, as in a selector.
    pub requirement: String,
    /// The cheapest node that fits without it.
    pub node: String,
    /// The price of an hour.
    pub price: Option<f64>,
}

impl NewNode {
    /// Whether the pod fits.
    pub fn fits(&self) -> bool {
        self.verdict.fits()
    }

    /// The causes of the rejection, each with its plugin.
    pub fn causes(&self) -> Vec<String> {
        let causes = self.verdict.causes();
        causes.map(|(plugin, cause)| format!("{plugin}: {}", cause.text())).collect()
    }

    /// Whether the pod fits and the node can be created.
    pub fn is_available(&self) -> bool {
        self.fits() && self.closed.is_none()
    }

    pub(super) fn order(&self, other: &NewNode) -> Ordering {
        let key = |new: &NewNode| (!new.fits(), new.closed.is_some(), new.verdict.mismatches());
        let missing = |new: &NewNode| if new.fits() { 0.0 } else { new.verdict.missing };
        key(self)
            .cmp(&key(other))
            .then(missing(self).total_cmp(&missing(other)))
            .then(price_order(self.price, other.price))
    }
}

impl NewNodes {
    pub(super) fn new(world: &World, pod: NamespacedName, of: usize) -> NewNodes {
        let why = why::why(world, pod);
        NewNodes {
            pod,
            pending: pending(world).count(),
            problems: why.as_ref().map(blocking).unwrap_or_default(),
            ahead: Vec::new(),
            nodes: Vec::new(),
            near_misses: Vec::new(),
            notes: weights(world)
                .into_iter()
                .chain(why.and_then(|why| default_spread(world, &why)))
                .collect(),
            tried: 0,
            of,
        }
    }

    /// The filters' verdict on a new node of the template; `ahead` keeps what PreFilter rejects on
    /// all of them.
    pub(super) fn judge(&mut self, world: &World, template: &NodeTemplate) -> Option<NewNode> {
        let NodeVerdict { ahead, verdict, daemons } = verdict(world, self.pod, template)?;
        let rejections: Vec<PreFilterRejection> =
            ahead.into_iter().filter(PreFilterRejection::rejects).collect();
        let is_first = self.tried == 0;
        self.tried += 1;
        self.ahead.retain(|one| rejections.contains(one));
        if is_first {
            self.ahead = rejections;
        }
        Some(NewNode {
            origin: template.origin.clone(),
            edit: template.origin.edit(1).to_string(),
            price: template.price,
            room: template.room,
            closed: template.closed.clone(),
            startup_taints: template.startup_taints.clone(),
            daemons,
            takes: None,
            verdict,
        })
    }

    /// What keeps the pod from every node, new ones included; one sentence each.
    pub fn obstacles(&self) -> Vec<String> {
        let problems = self.problems.iter().map(|problem| problem.text.clone());
        let ahead = self.ahead.iter().map(|ahead| {
            let reasons: Vec<&str> = ahead.reasons.iter().map(|reason| reason.as_str()).collect();
            format!("{}: {}", ahead.plugin, reasons.join(", "))
        });
        problems.chain(ahead).collect()
    }
}

/// The problems that no new node resolves.
fn blocking(why: &Why) -> Vec<PodProblem> {
    let is_of_pod =
        |problem: &&PodProblem| problem.blocking && problem.kind != ProblemKind::NoNodes;
    why.problems.iter().filter(is_of_pod).cloned().collect()
}

/// That karpenter prefers pools by weight, where pools have one.
fn weights(world: &World) -> Option<String> {
    let mut pools: Vec<_> = world.provisioning().node_pools.iter().collect();
    pools.sort_by_key(|pool| std::cmp::Reverse(pool.spec.weight));
    let weighted = pools.iter().filter(|pool| pool.spec.weight > 0);
    let names: Vec<String> =
        weighted.map(|pool| format!("{} ({})", pool.metadata.name, pool.spec.weight)).collect();
    let text = "karpenter tries pools by weight before it compares prices";
    (!names.is_empty()).then(|| format!("{text}: {}", names.join(", ")))
}

/// That karpenter is known to decide otherwise than the scheduler, where default spread constraints
/// apply to the pod.
fn default_spread(world: &World, why: &Why) -> Option<String> {
    let has_karpenter = !world.provisioning().node_pools.is_empty()
        || world.api().nodes().any(|node| node.metadata.labels.get_str(NODE_POOL).is_some());
    let own = &world.api().objects().pod(why.pod)?.spec.topology_spread_constraints;
    let by_default = own.is_empty() && !why.spread.is_empty();
    (has_karpenter && by_default).then(|| {
        "karpenter does not know the scheduler's default spread constraints unless its \
         --scheduler-config lists them: it may hold that the pod fits an existing node, and create \
         none"
            .to_owned()
    })
}
