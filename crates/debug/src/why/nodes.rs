//! What rejects each node: all plugins with their causes. The nodes are ranked by how much is
//! missing, and nodes with the same reasons are grouped.

use hashbrown::HashMap;
use indexmap::IndexMap;

use super::cause::{self, Cause, Memo, Outlook, RejectedCase};
use super::model::{
    Blocker, NodeCoverage, NodeWhy, PreFilterRejection, Reason, RejectedGroup, distinct_causes,
};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::record::{CycleRecord, PluginStatus, VerdictId};
use kubestep_framework::status::Status;
use kubestep_scheduler::what_if::{FilterRejection, Probe};

/// The result for all nodes.
#[derive(Default)]
pub(super) struct NodeResults {
    pub ahead: Vec<PreFilterRejection>,
    pub nodes: Vec<NodeWhy>,
    pub everywhere: Vec<Reason>,
    pub groups: Vec<RejectedGroup>,
}

/// Evaluates every node. `last` is the pod's last cycle, which contains the results of extenders.
pub(super) fn examine(probe: &Probe, last: Option<&CycleRecord>, memo: &Memo<'_>) -> NodeResults {
    let earlier = last.map(LastCycleNodes::new);
    let rejections = probe.rejections();
    let each = probe.snapshot().iter().zip(rejections).map(|(node, rejections)| {
        let mut blockers = all_blockers(probe, memo, node, &rejections);
        if blockers.is_empty() {
            blockers.extend(earlier.as_ref().and_then(|earlier| earlier.extender(node.name)));
        }
        let seen =
            earlier.as_ref().map_or(NodeCoverage::NoCycle, |earlier| earlier.seen(node.name));
        node_why(node.name, blockers, seen)
    });
    let mut nodes: Vec<NodeWhy> = each.collect();
    // A stable sort: nodes that miss equally much stay in node order.
    nodes.sort_by(|a, b| {
        let key = |node: &NodeWhy| (!node.fits(), node.mismatches());
        key(a).cmp(&key(b)).then(a.missing.total_cmp(&b.missing))
    });
    let groups = groups(&nodes);
    NodeResults { ahead: ahead(probe), everywhere: everywhere(&groups), groups, nodes }
}

/// Evaluates one node, which no cycle has seen. `None` if there is no such node.
pub(super) fn examine_one(
    probe: &Probe,
    node: Name,
    memo: &Memo<'_>,
) -> Option<(Vec<PreFilterRejection>, NodeWhy)> {
    let node = probe.snapshot().by_name(node)?;
    let blockers = all_blockers(probe, memo, node, &probe.rejections_of(node));
    Some((ahead(probe), node_why(node.name, blockers, NodeCoverage::NewNode)))
}

/// The rejections by filters, or else by PreFilter.
fn all_blockers(
    probe: &Probe,
    memo: &Memo<'_>,
    node: &NodeInfo,
    rejections: &[FilterRejection],
) -> Vec<Blocker> {
    let mut blockers = blockers(probe, memo, node, rejections);
    if blockers.is_empty() {
        blockers.extend(narrowed_away(probe, node.name));
    }
    blockers
}

fn node_why(node: Name, blockers: Vec<Blocker>, seen: NodeCoverage) -> NodeWhy {
    let causes = || distinct_causes(&blockers).map(|(_, cause)| cause);
    NodeWhy {
        node,
        missing: causes().map(|cause| cause.missing).sum(),
        outlook: causes().map(|cause| cause.outlook).max().unwrap_or(Outlook::Cluster),
        blockers,
        seen,
    }
}

fn blockers(
    probe: &Probe,
    memo: &Memo<'_>,
    node: &NodeInfo,
    rejections: &[FilterRejection],
) -> Vec<Blocker> {
    let filters = probe.framework().at(ExtensionPoint::Filter);
    let filled =
        rejections.iter().any(|rejection| rejection.by_nominated).then(|| probe.filled(node));
    let filled = filled.flatten();
    let blocker = |rejection: &FilterRejection| {
        let plugin = filters[rejection.filter].name();
        let (state, judged) = match &filled {
            Some(filled) if rejection.by_nominated => (&filled.state, &filled.node),
            _ => (probe.state(), node),
        };
        let status = &rejection.status;
        let case = RejectedCase { probe, memo, state, node: judged, plain: node, status };
        let causes = cause::of(plugin, &rejection.status, &case);
        new_blocker(plugin, &rejection.status, rejection.by_nominated, causes)
    };
    rejections.iter().map(blocker).collect()
}

/// The rejection of a node that passes all filters but that PreFilter excluded.
fn narrowed_away(probe: &Probe, node: Name) -> Option<Blocker> {
    let leaves_out = |answer: &&PluginStatus| {
        answer.nodes.as_ref().is_some_and(|nodes| nodes.binary_search(&node).is_err())
    };
    let answer = probe.answers().iter().find(leaves_out)?;
    let status = Status::unresolvable("PreFilter restricted the search to other nodes");
    let causes = vec![cause::left_out(answer.nodes.as_ref().map_or(0, Vec::len))];
    Some(new_blocker(answer.plugin, &status, false, causes))
}

fn new_blocker(plugin: Symbol, status: &Status, by_nominated: bool, causes: Vec<Cause>) -> Blocker {
    let reasons = status.reasons().to_vec();
    Blocker { plugin, code: status.code(), reasons, by_nominated, causes }
}

/// What the pod's last cycle recorded about nodes, by name.
struct LastCycleNodes<'a> {
    record: &'a CycleRecord,
    slots: HashMap<Name, NodeId>,
}

impl LastCycleNodes<'_> {
    fn new(record: &CycleRecord) -> LastCycleNodes<'_> {
        let order = record.nodes.order.iter();
        LastCycleNodes { record, slots: order.map(|id| (record.nodes.name(*id), *id)).collect() }
    }

    fn seen(&self, node: Name) -> NodeCoverage {
        let Some(slot) = self.slots.get(&node) else { return NodeCoverage::NewNode };
        match self.record.filter.verdicts.get(*slot) {
            Some(VerdictId::ENOUGH_FOUND) => NodeCoverage::EnoughFound,
            Some(VerdictId::NARROWED) => NodeCoverage::Narrowed,
            Some(VerdictId::NOMINATED_TAKEN) => NodeCoverage::NominatedTaken,
            Some(VerdictId::CYCLE_ENDED) | None => NodeCoverage::CycleEnded,
            Some(_) => NodeCoverage::Evaluated,
        }
    }

    /// The reason why an extender rejected the node.
    fn extender(&self, node: Name) -> Option<Blocker> {
        let slot = self.slots.get(&node)?;
        let said = self.record.filter.extender.iter().find(|(id, _)| id == slot);
        let (_, status) = said.filter(|(_, status)| !status.is_success())?;
        let causes = vec![cause::plugin_message(status)];
        Some(new_blocker("Extender".into(), status, false, causes))
    }
}

/// PreFilter results other than Success and Skip.
pub(super) fn ahead(probe: &Probe) -> Vec<PreFilterRejection> {
    let telling = |answer: &&PluginStatus| {
        !answer.status.is_skip() && (!answer.status.is_success() || answer.nodes.is_some())
    };
    let ahead = |answer: &PluginStatus| PreFilterRejection {
        plugin: answer.plugin,
        code: answer.status.code(),
        reasons: answer.status.reasons().to_vec(),
        only: answer.nodes.clone(),
        causes: match answer.status.is_success() {
            true => Vec::new(),
            false => cause::of_pre_filter(answer.plugin, &answer.status, probe),
        },
    };
    probe.answers().iter().filter(telling).map(ahead).collect()
}

/// The reasons that all groups share, if there are several groups.
fn everywhere(groups: &[RejectedGroup]) -> Vec<Reason> {
    let [first, others @ ..] = groups else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let shared = |reason: &&Reason| others.iter().all(|group| group.reasons.contains(reason));
    first.reasons.iter().filter(shared).cloned().collect()
}

/// Groups the ranked nodes by their reasons, in the order of each group's first node.
fn groups(nodes: &[NodeWhy]) -> Vec<RejectedGroup> {
    let mut groups: IndexMap<Vec<Reason>, RejectedGroup> = IndexMap::new();
    for node in nodes.iter().filter(|node| !node.fits()) {
        let reason = |(plugin, cause): (Symbol, &Cause)| Reason { plugin, text: cause.gist() };
        let reasons: Vec<Reason> = node.causes().map(reason).collect();
        match groups.get_mut(&reasons) {
            Some(group) => group.nodes.push(node.node),
            None => {
                let (nodes, mismatch) = (vec![node.node], node.mismatches());
                let missing = node.missing;
                let group = RejectedGroup { reasons: reasons.clone(), nodes, mismatch, missing };
                groups.insert(reasons, group);
            }
        }
    }
    groups.into_values().collect()
}
