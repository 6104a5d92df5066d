//! The hits of a breakpoint at one entry of the recording.
//!
//! What concerns the whole cycle is asked first, so that most cycles cost next to nothing; then
//! each distinct verdict or score once; and only what is left is asked of each node.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::breakpoint::condition::{Condition, ConditionPart};
use crate::breakpoint::grain::HitUnit;
use crate::breakpoint::location::Location;
use crate::breakpoint::outcome::CycleEvent;
use crate::breakpoint::recording::RecordedRun;
use crate::breakpoint::variables::{Facts, NodeFacts, Reach, ScoreFacts, StatusFacts};
use crate::frames::{self, Position};
use crate::ledger::NodeAmounts;
use crate::trace::{Entry, EntryId};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_cluster::START;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::{CycleRecord, NodeNames, QueueMove, QueueName, VerdictId};
use kubestep_framework::status::{Code, Status};

/// What a breakpoint remembers between entries, for speed only.
#[derive(Clone, Debug, Default)]
pub struct ConditionCache {
    /// The results of the condition for nodes, and after which numbers of entries they apply.
    nodes: HashMap<Name, (Range<usize>, bool)>,
    /// What it said of nodes with these amounts, where it asks for no more. Only a few: most
    /// nodes of a large cluster are like others.
    amounts: Vec<(NodeAmounts, bool)>,
    /// What it said of these scores of plugins; of one cycle if it asks for more.
    scores: HashMap<(Symbol, ScoreFacts), bool>,
    /// Which of these nodes are meant.
    meant: Option<(Arc<NodeNames>, NodesMeant)>,
    /// Why the condition could not be worked out, the last time that happened.
    pub problem: Option<String>,
}

/// So many different amounts are remembered.
const DIFFERENT_AMOUNTS: usize = 16;
/// So many different scores are remembered.
const DIFFERENT_SCORES: usize = 4096;

impl ConditionCache {
    /// Drops the results for nodes, some of which may be deleted.
    pub(crate) fn forget_nodes(&mut self) {
        (self.nodes, self.amounts) = (HashMap::new(), Vec::new());
    }

    fn of_amounts(&self, of: &NodeAmounts) -> Option<bool> {
        let same = |known: &NodeAmounts| {
            (known.pods, &known.free, &known.allocatable) == (of.pods, &of.free, &of.allocatable)
        };
        self.amounts.iter().find(|(known, _)| same(known)).map(|(_, answer)| *answer)
    }

    fn learn(&mut self, of: &NodeAmounts, answer: bool) {
        if self.amounts.len() == DIFFERENT_AMOUNTS {
            self.amounts.remove(0);
        }
        self.amounts.push((NodeAmounts { object: None, ..of.clone() }, answer));
    }
}

/// A breakpoint's place with its condition.
#[derive(Clone, Copy)]
pub struct BreakpointProbe<'a> {
    /// What the breakpoint is set at.
    pub location: &'a Location,
    /// How closely to look.
    pub grain: HitUnit,
    /// The condition after `if`; without one, each hit counts.
    pub condition: Option<&'a Condition>,
}

impl BreakpointProbe<'_> {
    /// Gives the frame of each hit at an entry, in any order.
    pub fn visit(
        &self,
        recording: &RecordedRun<'_>,
        at: usize,
        memory: &mut ConditionCache,
        found: &mut dyn FnMut(Position),
    ) {
        let id = EntryId(at as u32);
        match (self.grain, recording.history.get(id)) {
            (HitUnit::Move, Some(Entry::Move(moved)))
                if self.is_moved(recording, moved, memory) =>
            {
                found(Position::of_entry(id));
            }
            (HitUnit::Timeout, Some(Entry::Move(moved)))
                if self.is_timeout(recording, at, moved, memory) =>
            {
                found(Position::of_entry(id));
            }
            (HitUnit::Move | HitUnit::Timeout, _) => {}
            (_, Some(Entry::Cycle(record))) => {
                let cycle = InCycle { probe: self, recording, at, record, memory };
                cycle.visit(found);
            }
            _ => {}
        }
    }

    /// Whether the lists by node of a record are looked at.
    pub(crate) fn needs_lists(&self) -> bool {
        match self.grain {
            HitUnit::Turn | HitUnit::Answer | HitUnit::Score | HitUnit::Total => true,
            HitUnit::Event(_) => self.location.plugin.is_some(),
            _ => false,
        }
    }

    fn parts(&self) -> &[ConditionPart] {
        self.condition.map_or(&[], Condition::parts)
    }

    fn is_moved(
        &self,
        recording: &RecordedRun<'_>,
        moved: &QueueMove,
        memory: &mut ConditionCache,
    ) -> bool {
        let location = self.location;
        let fits = location.queue.is_none_or(|queue| queue == moved.to)
            && location.plugin.is_none_or(|plugin| moved.plugin == Some(plugin))
            && location.pod.as_ref().is_none_or(|pod| pod.matches_pod(moved.pod));
        if !fits {
            return false;
        }
        let asks = self.condition.is_some_and(|condition| condition.needs(Reach::Pod));
        let pod = if asks || location.labels.is_some() { recording.pod(moved.pod) } else { None };
        let labels = pod.as_ref().map(|pod| &pod.pod.metadata.labels);
        let selected = location
            .labels
            .as_ref()
            .is_none_or(|selected| labels.is_some_and(|labels| selected.selector.matches(labels)));
        let facts = Facts {
            key: moved.pod,
            pod: pod.as_deref(),
            micros: moved.time.0 - START.0,
            moved: Some(moved),
            ..Facts::default()
        };
        selected && all_hold(self.parts(), &facts, memory)
    }

    /// The move by which a pod leaves Permit after its time was over.
    fn is_timeout(
        &self,
        recording: &RecordedRun<'_>,
        at: usize,
        moved: &QueueMove,
        memory: &mut ConditionCache,
    ) -> bool {
        if moved.from != QueueName::InFlight {
            return false;
        }
        let cycle = last_cycle_before(recording, at, moved);
        let Some((cycle_at, record)) = cycle else { return false };
        let ended = CycleEvent::PermitTimeout.is_of(record);
        // The first move out of flight after the cycle is the one that ended it.
        let is_first = !moves_between(recording, cycle_at, at, moved);
        ended && is_first && {
            let cycle = InCycle { probe: self, recording, at: cycle_at, record, memory };
            let mut hit = false;
            cycle.visit_event(CycleEvent::PermitTimeout, &mut |_| hit = true);
            hit
        }
    }
}

fn last_cycle_before<'a>(
    recording: &RecordedRun<'a>,
    at: usize,
    moved: &QueueMove,
) -> Option<(usize, &'a CycleRecord)> {
    let mut earlier = recording.history.of_pod(moved.pod).rev();
    let (id, record) = earlier.find_map(|(id, entry)| {
        let record = entry.as_cycle().filter(|_| (id.0 as usize) < at)?;
        Some((id, record))
    })?;
    Some((id.0 as usize, record))
}

/// Whether the pod left flight between the two entries.
fn moves_between(recording: &RecordedRun<'_>, from: usize, to: usize, moved: &QueueMove) -> bool {
    let mut entries = recording.history.of_pod(moved.pod);
    entries.any(|(id, entry)| {
        let between = (from..to).contains(&(id.0 as usize));
        between && matches!(entry, Entry::Move(other) if other.from == QueueName::InFlight)
    })
}

/// Whether all parts hold; one that cannot be worked out does not.
fn all_hold<'a>(
    parts: impl IntoIterator<Item = &'a ConditionPart>,
    facts: &Facts<'_>,
    memory: &mut ConditionCache,
) -> bool {
    parts.into_iter().all(|part| match part.holds(facts) {
        Ok(answer) => answer,
        Err(problem) => {
            memory.problem = Some(problem.to_string());
            false
        }
    })
}

/// A breakpoint that is evaluated in a cycle.
struct InCycle<'a> {
    probe: &'a BreakpointProbe<'a>,
    recording: &'a RecordedRun<'a>,
    at: usize,
    record: &'a CycleRecord,
    memory: &'a mut ConditionCache,
}

/// Answers known already in this column, by what they depend on.
type ColumnCache<K> = HashMap<K, bool>;

impl<'a> InCycle<'a> {
    fn visit(mut self, found: &mut dyn FnMut(Position)) {
        if !self.concerns_pod() || !self.holds_of_cycle() {
            return;
        }
        let location = self.probe.location;
        match self.probe.grain {
            HitUnit::Event(event) => self.visit_event(event, found),
            HitUnit::Cycle => found(frames::beginning(self.record)),
            HitUnit::Point => {
                let reached = location.point.filter(|p| frames::reaches(self.record, *p));
                reached.into_iter().for_each(|point| found(frame(point, None)));
            }
            HitUnit::Plugin => {
                for (point, plugin) in self.plugins() {
                    found(frame(point, Some(plugin)));
                }
            }
            HitUnit::Turn => self.visit_turns(found),
            HitUnit::Answer => self.visit_answers(found),
            HitUnit::Score => self.visit_scores(found),
            HitUnit::Total => self.visit_totals(found),
            HitUnit::Move | HitUnit::Timeout => {}
        }
    }

    fn concerns_pod(&self) -> bool {
        let location = self.probe.location;
        let labels = || self.record.info.as_ref().map(|info| &info.pod.metadata.labels);
        location.pod.as_ref().is_none_or(|pod| pod.matches_pod(self.record.pod))
            && location.labels.as_ref().is_none_or(|selected| {
                labels().is_some_and(|labels| selected.selector.matches(labels))
            })
    }

    /// Whether `message` is a plugin's here.
    fn message_is_answer(&self) -> bool {
        matches!(self.probe.grain, HitUnit::Answer | HitUnit::Turn)
    }

    /// The parts that need no more than the cycle.
    fn holds_of_cycle(&mut self) -> bool {
        let of_answer = self.message_is_answer();
        let parts = self.probe.parts().iter().filter(|part| part.is_of_cycle(of_answer));
        all_hold(parts, &Facts::of_cycle(self.record), self.memory)
    }

    /// The other parts, except those that evaluate the node.
    fn holds_of_answer(&mut self, facts: &Facts<'_>) -> bool {
        let of_answer = self.message_is_answer();
        let late = |part: &&ConditionPart| !part.is_of_cycle(of_answer) && !part.needs(Reach::Node);
        all_hold(self.probe.parts().iter().filter(late), facts, self.memory)
    }

    /// The parts that ask for the node.
    fn holds_of_node(&mut self, name: Name, facts: &Facts<'_>) -> bool {
        let probe = self.probe;
        let parts = || probe.parts().iter().filter(|part| part.needs(Reach::Node));
        if parts().next().is_none() {
            return true;
        }
        let of_node = parts().all(ConditionPart::is_of_node);
        let known = self.memory.nodes.get(&name).filter(|_| of_node);
        if let Some((_, answer)) = known.filter(|(entries, _)| entries.contains(&self.at)) {
            return *answer;
        }
        let version = self.recording.ledger.version_after(name, self.at);
        let amounts = version.as_ref().map(|version| version.amounts);
        let facts = Facts { node: Some(NodeFacts { name, amounts }), ..*facts };
        let Some(version) = version.filter(|_| of_node) else {
            return all_hold(parts(), &facts, self.memory);
        };
        // The next step may change the node.
        let entries = version.since..version.until.unwrap_or(self.recording.history.len());
        if let Some((_, answer)) = known.filter(|(known, _)| known.start == version.since) {
            let answer = *answer;
            self.memory.nodes.insert(name, (entries, answer));
            return answer;
        }
        let alike = amounts.filter(|_| parts().all(ConditionPart::is_of_amounts));
        let answer = alike.and_then(|amounts| self.memory.of_amounts(amounts));
        let answer = answer.unwrap_or_else(|| {
            let answer = all_hold(parts(), &facts, self.memory);
            alike.into_iter().for_each(|amounts| self.memory.learn(amounts, answer));
            answer
        });
        self.memory.nodes.insert(name, (entries, answer));
        answer
    }

    fn nodes_meant(&mut self) -> NodesMeant {
        let names = &self.record.nodes;
        let Some(pattern) = &self.probe.location.node else { return NodesMeant(None) };
        if let Some((_, meant)) =
            self.memory.meant.as_ref().filter(|(of, _)| Arc::ptr_eq(of, names))
        {
            return meant.clone();
        }
        let matches = names.names.iter().map(|name| pattern.matches(*name));
        let meant = NodesMeant(Some(matches.collect()));
        self.memory.meant = Some((names.clone(), meant.clone()));
        meant
    }

    /// The plugins that ran at the points meant.
    fn plugins(&self) -> Vec<(ExtensionPoint, Symbol)> {
        let location = self.probe.location;
        let mut found = Vec::new();
        for point in frames::points(self.record) {
            if location.point.is_none_or(|meant| meant == point) {
                let plugins = frames::plugins(self.record, point).into_iter();
                let meant = plugins.filter(|p| location.plugin.is_none_or(|meant| meant == *p));
                found.extend(meant.map(|plugin| (point, plugin)));
            }
        }
        found
    }

    fn visit_event(mut self, event: CycleEvent, found: &mut dyn FnMut(Position)) {
        let (location, record) = (self.probe.location, self.record);
        let frame = event.frame(record);
        let node = event.node(record);
        let fits = event.is_of(record)
            && location.point.is_none_or(|point| frame.point == Some(point))
            && location.plugin.is_none_or(|plugin| event.is_by(record, plugin))
            && location
                .node
                .as_ref()
                .is_none_or(|pattern| node.is_some_and(|node| pattern.matches(node)));
        if !fits || !self.concerns_pod() {
            return;
        }
        let mut answers = frame.point.map_or(&[][..], |point| record.answers(point)).iter();
        let answer = answers.find(|answer| Some(answer.plugin) == frame.plugin);
        let facts = Facts {
            answer: frame
                .point
                .zip(answer)
                .map(|(point, a)| status_facts(point, a.plugin, &a.status)),
            ..Facts::of_cycle(record)
        };
        if self.holds_of_answer(&facts) && self.holds_of_node(node.unwrap_or_default(), &facts) {
            found(frame);
        }
    }

    /// Each node that was evaluated, with its final verdict.
    fn visit_turns(&mut self, found: &mut dyn FnMut(Position)) {
        let record = self.record;
        let Some(first) = record.filter.plugins.first().map(|column| column.plugin) else { return };
        let (mut known, meant) = (ColumnCache::new(), self.nodes_meant());
        for node in record.filter.evaluated.iter().filter(|node| meant.contains(**node)) {
            let id = record.filter.verdicts.get(*node).unwrap_or(VerdictId::PASS);
            let status = record.verdicts.get(id).unwrap_or(&Status::SUCCESS);
            let by = if status.plugin().is_empty() { first } else { status.plugin() };
            if self.hits(*node, status_facts(ExtensionPoint::Filter, by, status), id, &mut known) {
                found(Position::new(ExtensionPoint::Filter, Some(by), Some(*node)));
            }
        }
    }

    /// Whether the rest of the condition holds of a verdict on a node.
    fn hits(
        &mut self,
        node: NodeId,
        answer: StatusFacts<'_>,
        id: VerdictId,
        known: &mut ColumnCache<VerdictId>,
    ) -> bool {
        let facts =
            Facts { answer: Some(answer), message_of_answer: true, ..Facts::of_cycle(self.record) };
        let holds = match known.get(&id) {
            Some(known) => *known,
            None => *known.entry(id).or_insert(self.holds_of_answer(&facts)),
        };
        holds && self.holds_of_node(self.record.nodes.name(node), &facts)
    }

    /// The answers of the plugins meant; at Filter on each node.
    fn visit_answers(&mut self, found: &mut dyn FnMut(Position)) {
        for (point, plugin) in self.plugins() {
            if point == ExtensionPoint::Filter {
                self.visit_column(plugin, found);
            } else if point != ExtensionPoint::Score && self.probe.location.node.is_none() {
                let record = self.record;
                let mut answers = record.answers(point).iter();
                let Some(answer) = answers.find(|answer| answer.plugin == plugin) else { continue };
                let facts = Facts {
                    answer: Some(status_facts(point, plugin, &answer.status)),
                    message_of_answer: true,
                    ..Facts::of_cycle(record)
                };
                let asks_node = self.probe.parts().iter().any(|part| part.needs(Reach::Node));
                if !asks_node && self.holds_of_answer(&facts) {
                    found(frame(point, Some(plugin)));
                }
            }
        }
    }

    fn visit_column(&mut self, plugin: Symbol, found: &mut dyn FnMut(Position)) {
        let record = self.record;
        let Some(verdicts) = column(record, plugin) else { return };
        let (mut known, meant) = (ColumnCache::new(), self.nodes_meant());
        for node in record.filter.evaluated.iter().filter(|node| meant.contains(**node)) {
            let id = verdicts.get(*node).unwrap_or(VerdictId::PASS);
            let status = record.verdicts.get(id).unwrap_or(&Status::SUCCESS);
            let mut answer = status_facts(ExtensionPoint::Filter, plugin, status);
            if id == VerdictId::SKIPPED {
                answer.code = Code::Skip;
            }
            if self.hits(*node, answer, id, &mut known) {
                let of = frame(ExtensionPoint::Filter, Some(plugin));
                found(Position { node: Some(*node), ..of });
            }
        }
    }

    /// The scores that the plugins meant gave the nodes.
    fn visit_scores(&mut self, found: &mut dyn FnMut(Position)) {
        let record = self.record;
        // Without the totals, most nodes are alike.
        let asks_total = self.probe.parts().iter().any(|part| part.needs(Reach::Total));
        let totals = asks_total.then_some(&record.score.totals);
        let meant = self.probe.location.plugin;
        for column in &record.score.plugins {
            if meant.is_none_or(|plugin| plugin == column.plugin) {
                let lists = [Some(&column.raw), Some(&column.normalized), totals];
                let scores = AskedScores { weight: column.weight, lists };
                self.visit_scored(column.plugin, &scores, found);
            }
        }
    }

    /// The nodes' total scores.
    fn visit_totals(&mut self, found: &mut dyn FnMut(Position)) {
        let record = self.record;
        let Some(first) = record.score.plugins.first() else { return };
        let scores = AskedScores { weight: 0, lists: [None, None, Some(&record.score.totals)] };
        self.visit_scored(first.plugin, &scores, found);
    }

    fn visit_scored(
        &mut self,
        plugin: Symbol,
        scores: &AskedScores<'_>,
        found: &mut dyn FnMut(Position),
    ) {
        let late = |part: &ConditionPart| !part.is_of_cycle(false) && !part.needs(Reach::Node);
        if !self.probe.parts().iter().filter(|part| late(part)).all(ConditionPart::is_of_scores) {
            self.memory.scores.clear();
        }
        if scores.if_same().is_some_and(|score| !self.holds_of_score(plugin, score)) {
            return;
        }
        // All scores of a window are read faster at once than one by one.
        let is_one_node = self.probe.location.node.is_some();
        let values = (!is_one_node).then(|| scores.values());
        let meant = self.nodes_meant();
        let feasible = self.record.feasible.slice();
        let feasible = feasible.iter().enumerate();
        let mut last = None;
        for (at, node) in feasible.filter(|(_, node)| meant.contains(**node)) {
            let score = match &values {
                Some(values) => scores.facts(|list| values[list].as_ref()?.get(at).copied()),
                None => scores.facts(|list| scores.lists[list]?.get(at)),
            };
            // Nodes next to each other often have equal scores.
            let holds = match last.filter(|(of, _)| *of == score) {
                Some((_, holds)) => holds,
                None => self.holds_of_score(plugin, score),
            };
            last = Some((score, holds));
            if !holds {
                continue;
            }
            let name = self.record.nodes.name(*node);
            if self.holds_of_node(name, &self.score_facts(plugin, score)) {
                let of = frame(ExtensionPoint::Score, Some(plugin));
                found(Position { node: Some(*node), ..of });
            }
        }
    }

    fn score_facts(&self, plugin: Symbol, score: ScoreFacts) -> Facts<'a> {
        let answer = status_facts(ExtensionPoint::Score, plugin, &Status::SUCCESS);
        Facts { answer: Some(answer), score: Some(score), ..Facts::of_cycle(self.record) }
    }

    /// Whether the condition holds of a score, except for what it asks of the node.
    fn holds_of_score(&mut self, plugin: Symbol, score: ScoreFacts) -> bool {
        if let Some(known) = self.memory.scores.get(&(plugin, score)) {
            return *known;
        }
        let holds = self.holds_of_answer(&self.score_facts(plugin, score));
        if self.memory.scores.len() >= DIFFERENT_SCORES {
            self.memory.scores.clear();
        }
        self.memory.scores.insert((plugin, score), holds);
        holds
    }
}

/// By slot, whether a node is meant; `None`: all are.
#[derive(Clone, Debug)]
struct NodesMeant(Option<Arc<[bool]>>);

impl NodesMeant {
    fn contains(&self, node: NodeId) -> bool {
        self.0.as_ref().is_none_or(|meant| meant.get(node.index()).is_some_and(|meant| *meant))
    }
}

/// The lists of scores that a condition can ask for.
struct AskedScores<'a> {
    weight: i64,
    /// Raw and normalized scores of a plugin, and the totals.
    lists: [Option<&'a Scores>; 3],
}

impl AskedScores<'_> {
    /// The lists written out.
    fn values(&self) -> [Option<Cow<'_, [i64]>>; 3] {
        let [raw, normalized, totals] = self.lists;
        let written = normalized.map(Scores::values);
        let is_normalized = |raw: &Scores| normalized.is_some_and(|list| raw.is_shared_with(list));
        let raw = match raw {
            // Copying is faster than gathering the same scores again.
            Some(raw) if is_normalized(raw) => written.clone(),
            raw => raw.map(Scores::values),
        };
        [raw, written, totals.map(Scores::values)]
    }

    /// The scores of a node, by the value that each list has for it.
    fn facts(&self, value: impl Fn(usize) -> Option<i64>) -> ScoreFacts {
        let [raw, score, total] = [0, 1, 2].map(|list| value(list).unwrap_or_default());
        ScoreFacts { raw, score, weighted: score * self.weight, total }
    }

    /// The scores of every node, if they are the same for all.
    fn if_same(&self) -> Option<ScoreFacts> {
        let same = self.lists.iter().flatten().all(|list| matches!(list, Scores::Same { .. }));
        same.then(|| self.facts(|list| self.lists[list]?.get(0)))
    }
}

fn frame(point: ExtensionPoint, plugin: Option<Symbol>) -> Position {
    Position::new(point, plugin, None)
}

fn status_facts(point: ExtensionPoint, plugin: Symbol, status: &Status) -> StatusFacts<'_> {
    StatusFacts { point, plugin, code: status.code(), reasons: status.reasons() }
}

fn column(record: &CycleRecord, plugin: Symbol) -> Option<&Column<VerdictId>> {
    let mut columns = record.filter.plugins.iter();
    columns.find(|column| column.plugin == plugin).map(|column| &column.verdicts)
}
