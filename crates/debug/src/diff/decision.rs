//! One attempt of a pod on both sides: its outcomes, and the verdicts that differ.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use indexmap::IndexMap;

use crate::diff::score::{self, ScoreDifference};
use crate::diff::{Pair, is_whole};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::certainty::Certainty;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus, VerdictId};
use kubestep_framework::status::Status;

/// Extension points at which every plugin gives one status.
const ANSWERING: [ExtensionPoint; 6] = [
    ExtensionPoint::PreFilter,
    ExtensionPoint::PostFilter,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
    ExtensionPoint::PreBind,
    ExtensionPoint::Bind,
];

/// An attempt with different outcomes.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionDifference {
    /// Which attempt, from 1.
    pub attempt: usize,
    /// The cycles; `None` on a side without such an attempt.
    pub cycle: Pair<Option<u64>>,
    /// How each cycle ended; `None` on a side without such an attempt.
    pub outcome: Pair<Option<Outcome>>,
    /// The nodes selected; `None` where none was.
    pub node: Pair<Option<Name>>,
    /// The whole messages; empty where the attempt succeeded.
    pub message: Pair<String>,
    /// The manual decisions in these cycles, in words.
    pub interventions: Pair<Vec<String>>,
    /// How certain the decisions are, where opaque plugins could have changed them.
    pub certainty: Pair<Option<Arc<Certainty>>>,
    /// The verdicts that differ; equal ones of several nodes are merged.
    pub verdicts: Vec<VerdictDifference>,
    /// The scores that differ, by node.
    pub scores: Vec<ScoreDifference>,
    /// Whether verdicts and scores were not compared, because a side's per-node lists were dropped
    /// to save memory.
    pub not_compared: bool,
}

/// What a plugin answered, as far as it is compared.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ComparedVerdict {
    /// None: the plugin does not exist, or the cycle did not get that far.
    None,
    /// None: the cycle had no such node.
    NoNode,
    /// The plugin returned Skip: it does not concern the pod, which has the effect of no verdict.
    Skipped,
    /// The plugin accepts the node or the pod.
    Passes,
    /// It rejects, waits or fails, with this message.
    Says(String),
}

/// A verdict that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerdictDifference {
    /// Where the plugin was called.
    pub point: ExtensionPoint,
    /// The plugin; the extenders together are `Extender`.
    pub plugin: Symbol,
    /// What the plugin answered on each side.
    pub verdict: Pair<ComparedVerdict>,
    /// The nodes, by name; empty at extension points that do not run per node.
    pub nodes: Vec<Name>,
}

impl VerdictDifference {
    /// The side that alone has the nodes: `a` or `b`.
    pub fn side(&self) -> Option<&'static str> {
        match (&self.verdict.a, &self.verdict.b) {
            (_, ComparedVerdict::NoNode) => Some("a"),
            (ComparedVerdict::NoNode, _) => Some("b"),
            _ => None,
        }
    }
}

impl DecisionDifference {
    /// The difference of an attempt; `None` if there is none.
    pub(super) fn of(
        attempt: usize,
        pair: Pair<Option<&CycleRecord>>,
    ) -> Option<DecisionDifference> {
        let of =
            |record: Option<&CycleRecord>| (record.map(|r| r.outcome), record.and_then(|r| r.node));
        let ((a_outcome, a_node), (b_outcome, b_node)) = (of(pair.a), of(pair.b));
        let message = |record: Option<&CycleRecord>| record.map(|r| r.message.clone());
        let whole = [pair.a, pair.b].into_iter().flatten().all(is_whole);
        let mut decision = DecisionDifference {
            attempt,
            cycle: Pair { a: pair.a.map(|r| r.cycle), b: pair.b.map(|r| r.cycle) },
            outcome: Pair { a: a_outcome, b: b_outcome },
            node: Pair { a: a_node, b: b_node },
            message: Pair {
                a: message(pair.a).unwrap_or_default(),
                b: message(pair.b).unwrap_or_default(),
            },
            interventions: Pair { a: interventions(pair.a), b: interventions(pair.b) },
            certainty: Pair {
                a: pair.a.and_then(CycleRecord::certainty),
                b: pair.b.and_then(CycleRecord::certainty),
            },
            verdicts: Vec::new(),
            scores: Vec::new(),
            not_compared: !whole,
        };
        if let (Some(a), Some(b)) = (pair.a, pair.b) {
            decision.verdicts = given(a, b);
            if whole {
                let nodes = NodePairs::new(a, b);
                decision.verdicts.extend(filtered(a, b, &nodes));
                decision.scores = score::compare(a, b);
            }
        }
        let differs = decision.outcome.differs()
            || decision.node.differs()
            || decision.message.differs()
            || decision.interventions.differs()
            || !decision.verdicts.is_empty()
            || !decision.scores.is_empty();
        differs.then_some(decision)
    }
}

/// Whether the verdicts have different effects. A plugin that does not exist on a side, was not
/// reached, or skips the pod has none.
fn differs_in_effect(verdict: &Pair<ComparedVerdict>) -> bool {
    let is_silent = |verdict: &ComparedVerdict| {
        matches!(verdict, ComparedVerdict::None | ComparedVerdict::Skipped)
    };
    verdict.differs() && !(is_silent(&verdict.a) && is_silent(&verdict.b))
}

fn interventions(record: Option<&CycleRecord>) -> Vec<String> {
    let Some(record) = record else { return Vec::new() };
    let decided = record.interventions.iter().filter(|one| one.decided(record));
    decided.map(ToString::to_string).collect()
}

/// The verdicts at extension points with one status per plugin.
fn given(a: &CycleRecord, b: &CycleRecord) -> Vec<VerdictDifference> {
    let mut found = Vec::new();
    for point in ANSWERING {
        let (of_a, of_b) = (a.answers(point), b.answers(point));
        let names = of_a.iter().chain(of_b).map(|answer| answer.plugin);
        let mut plugins: Vec<Symbol> = Vec::new();
        names.for_each(|name| {
            if !plugins.contains(&name) {
                plugins.push(name);
            }
        });
        for plugin in plugins {
            let verdict = Pair { a: answer(of_a, plugin), b: answer(of_b, plugin) };
            if differs_in_effect(&verdict) {
                found.push(VerdictDifference { point, plugin, verdict, nodes: Vec::new() });
            }
        }
    }
    found
}

fn answer(answers: &[PluginStatus], plugin: Symbol) -> ComparedVerdict {
    let answer = answers.iter().find(|answer| answer.plugin == plugin);
    answer.map_or(ComparedVerdict::None, |answer| ComparedVerdict::of(&answer.status))
}

/// The nodes of both cycles by name, with their ids.
struct NodePairs(Vec<(Name, Pair<Option<NodeId>>)>);

impl NodePairs {
    fn new(a: &CycleRecord, b: &CycleRecord) -> NodePairs {
        let slots = |record: &CycleRecord| -> HashMap<Name, NodeId> {
            record.nodes.order.iter().map(|id| (record.nodes.name(*id), *id)).collect()
        };
        let (of_a, of_b) = (slots(a), slots(b));
        let mut names: Vec<Name> = of_a.keys().chain(of_b.keys()).copied().collect();
        names.sort_unstable();
        names.dedup();
        let pair = |name| (name, Pair { a: of_a.get(&name).copied(), b: of_b.get(&name).copied() });
        NodePairs(names.into_iter().map(pair).collect())
    }
}

/// The verdicts of every Filter plugin on every node, and of the extenders.
fn filtered(a: &CycleRecord, b: &CycleRecord, nodes: &NodePairs) -> Vec<VerdictDifference> {
    let point = ExtensionPoint::Filter;
    let columns = a.filter.plugins.iter().chain(&b.filter.plugins);
    let mut plugins: Vec<Symbol> = Vec::new();
    for column in columns {
        if !plugins.contains(&column.plugin) {
            plugins.push(column.plugin);
        }
    }
    let mut found: IndexMap<(Symbol, ComparedVerdict, ComparedVerdict), Vec<Name>> =
        IndexMap::new();
    for plugin in plugins {
        let (in_a, in_b) = (VerdictColumn::of(a, plugin), VerdictColumn::of(b, plugin));
        // There are many nodes but few verdicts: each pair of verdicts is put into words once.
        let mut by_ids: IndexMap<(Id, Id), Vec<Name>> = IndexMap::new();
        for (name, ids) in &nodes.0 {
            by_ids.entry((in_a.id(ids.a), in_b.id(ids.b))).or_default().push(*name);
        }
        for ((id_a, id_b), names) in by_ids {
            let verdict = Pair { a: in_a.verdict(id_a), b: in_b.verdict(id_b) };
            if differs_in_effect(&verdict) {
                found.entry((plugin, verdict.a, verdict.b)).or_default().extend(names);
            }
        }
    }
    for (name, ids) in &nodes.0 {
        let said = Pair { a: by_extender(a, ids.a), b: by_extender(b, ids.b) };
        if said.differs() {
            let key = (Symbol::new("Extender"), said.a, said.b);
            found.entry(key).or_default().push(*name);
        }
    }
    let differences = found.into_iter().map(|((plugin, a, b), mut nodes)| {
        nodes.sort_unstable();
        VerdictDifference { point, plugin, verdict: Pair { a, b }, nodes }
    });
    differences.collect()
}

/// The number of a verdict in its cycle, if the plugin gave one; `None` of a node that the cycle had not.
type Id = Option<Option<VerdictId>>;

fn by_extender(record: &CycleRecord, node: Option<NodeId>) -> ComparedVerdict {
    let rejection = record.filter.extender.iter().find(|(id, _)| Some(*id) == node);
    rejection.map_or(ComparedVerdict::None, |(_, status)| ComparedVerdict::of(status))
}

/// A plugin's verdicts in one cycle.
struct VerdictColumn<'a> {
    verdicts: Option<&'a kubestep_framework::record::column::Column<VerdictId>>,
    record: &'a CycleRecord,
}

impl VerdictColumn<'_> {
    fn of(record: &CycleRecord, plugin: Symbol) -> VerdictColumn<'_> {
        let column = record.filter.plugins.iter().find(|column| column.plugin == plugin);
        VerdictColumn { verdicts: column.map(|column| &column.verdicts), record }
    }

    fn id(&self, node: Option<NodeId>) -> Id {
        let node = node?;
        Some(self.verdicts.and_then(|verdicts| verdicts.get(node)))
    }

    fn verdict(&self, id: Id) -> ComparedVerdict {
        let Some(id) = id else { return ComparedVerdict::NoNode };
        match id {
            None => ComparedVerdict::None,
            Some(VerdictId::PASS) => ComparedVerdict::Passes,
            Some(VerdictId::SKIPPED) => ComparedVerdict::Skipped,
            Some(id) => {
                self.record.verdicts.get(id).map_or(ComparedVerdict::None, ComparedVerdict::of)
            }
        }
    }
}

impl ComparedVerdict {
    fn of(status: &Status) -> ComparedVerdict {
        if status.is_success() {
            return ComparedVerdict::Passes;
        }
        if status.is_skip() {
            return ComparedVerdict::Skipped;
        }
        match status.message() {
            text if text.is_empty() => ComparedVerdict::Says(status.code().as_str().into()),
            text => ComparedVerdict::Says(text),
        }
    }
}

impl fmt::Display for ComparedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparedVerdict::None => f.write_str("not run"),
            ComparedVerdict::NoNode => f.write_str("no such node"),
            ComparedVerdict::Skipped => f.write_str("skipped"),
            ComparedVerdict::Passes => f.write_str("passes"),
            ComparedVerdict::Says(text) => f.write_str(text),
        }
    }
}
