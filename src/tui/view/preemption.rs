//! Preemption of one cycle: what the dry run found on each node, which pods it would evict on the
//! candidates, and which was taken.

use crate::report;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::{OnEnter, View, ViewId, ViewShape, preemption_bars, shared, verdict};
use crate::tui::command::Command;
use crate::tui::glyph::FOLDS;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::words::count;
use kubestep_api::{Labels, Name};
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{Candidate, CycleRecord, PluginStatus, VerdictId};
use kubestep_framework::status::{Code, Status};

/// More rows than this are grouped by what the dry run found.
const GROUPED_ABOVE: usize = 50;

/// The rows of preemption: candidates first, then the other nodes.
pub struct PreemptionView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
    shape: ViewShape,
    /// The nodes that are no candidates, where the dry run ran, by what it found.
    groups: Vec<DryRunGroup>,
    rows: Vec<PreemptionRow>,
}

/// Nodes on which the dry run found the same.
struct DryRunGroup {
    key: u64,
    code: Code,
    words: String,
    nodes: Vec<NodeId>,
}

/// A line of the view: a heading, a candidate, a victim or a reason.
#[derive(Clone, Copy)]
enum PreemptionRow {
    /// A candidate, by its index.
    Candidate(usize),
    /// A group, by its index.
    Group(usize),
    /// A node of a group that is no candidate.
    Other(usize, NodeId),
}

impl<'a> PreemptionView<'a> {
    /// Preemption in the cycle at the debugger's position.
    pub fn new(model: &'a Model, shape: ViewShape) -> PreemptionView<'a> {
        let cycle = model.cycle();
        let others = cycle.map_or(Vec::new(), |c| others(c));
        let groups = cycle.map_or(Vec::new(), |c| groups(c, &others));
        let candidates = cycle.map_or(0, |c| c.candidates.len());
        let mut rows: Vec<PreemptionRow> = (0..candidates).map(PreemptionRow::Candidate).collect();
        if !shape.flat && candidates + others.len() > GROUPED_ABOVE {
            for (at, group) in groups.iter().enumerate() {
                rows.push(PreemptionRow::Group(at));
                let nodes = group.nodes.iter().filter(|_| shape.is_open(group.key));
                rows.extend(nodes.map(|node| PreemptionRow::Other(at, *node)));
            }
        } else {
            let group_of = groups.iter().enumerate();
            let group_of =
                group_of.flat_map(|(at, group)| group.nodes.iter().map(move |n| (*n, at)));
            let group_of: HashMap<NodeId, usize> = group_of.collect();
            let row = |node: &NodeId| Some(PreemptionRow::Other(*group_of.get(node)?, *node));
            rows.extend(others.iter().filter_map(row));
        }
        PreemptionView { model, cycle, shape, groups, rows }
    }

    /// Whether nodes that are no candidates are behind rows that stand for several.
    fn is_grouped(&self) -> bool {
        let candidates = self.cycle.map_or(0, |cycle| cycle.candidates.len());
        matches!(self.rows.get(candidates), Some(PreemptionRow::Group(_)))
    }

    /// The group of a row, with the node if it is of one.
    fn group(&self, row: usize) -> Option<(&DryRunGroup, Option<NodeId>)> {
        match self.rows.get(row)? {
            PreemptionRow::Candidate(_) => None,
            PreemptionRow::Group(at) => Some((self.groups.get(*at)?, None)),
            PreemptionRow::Other(at, node) => Some((self.groups.get(*at)?, Some(*node))),
        }
    }

    fn node(&self, row: usize) -> Option<Name> {
        match self.rows.get(row)? {
            PreemptionRow::Candidate(_) => Some(self.candidate(row)?.node),
            PreemptionRow::Group(_) => None,
            PreemptionRow::Other(_, node) => Some(self.cycle?.nodes.name(*node)),
        }
    }

    fn candidate(&self, row: usize) -> Option<&'a Candidate> {
        match self.rows.get(row)? {
            PreemptionRow::Candidate(at) => self.cycle?.candidates.get(*at),
            _ => None,
        }
    }

    /// The last cycle up to the position in which a pod preempted others, by its index.
    fn other_preemption(&self) -> Option<usize> {
        let cycles = self.model.position.map_or(0, |position| position.cycle + 1);
        let cycles = self.model.cycles.iter().take(cycles);
        cycles.enumerate().rfind(|(_, cycle)| cycle.preemption.is_some()).map(|(at, _)| at)
    }

    /// Whether PostFilter comes after the debugger's position.
    fn is_future(&self) -> bool {
        match self.model.stepped_frame().map(|frame| frame.point) {
            Some(Some(point)) => point < ExtensionPoint::PostFilter,
            _ => self.model.is_under_way(),
        }
    }

    fn present_cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(candidate) = self.candidate(row) else {
            return self.other_cell(row, column, out);
        };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(self.model.node_names.short(&candidate.node.text())),
            1 => {
                match self.is_taken(candidate) {
                    true => out.set("★ chosen", Scope::ScoreWinner),
                    false => out.set("candidate", Scope::Text),
                }
                Ok(())
            }
            2 => write!(out, "{}", candidate.victims.len()),
            3 => {
                let violated = candidate.pdb_violations > 0;
                out.scope = if violated { Scope::VerdictFail } else { Scope::Text };
                write!(out, "{}", candidate.pdb_violations)
            }
            _ => out.write_str(&victims(candidate)),
        };
    }

    fn other_cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some((group, node)) = self.group(row) else { return };
        match (column, node) {
            (0, None) => {
                let fold = FOLDS[usize::from(self.shape.is_open(group.key))];
                out.set(&format!("{fold} {}", count(group.nodes.len(), "node")), Scope::TextStrong);
            }
            (0, Some(_)) => {
                out.set(if self.is_grouped() { "  " } else { "" }, Scope::Text);
                let name = self.node(row).unwrap_or_default();
                out.text.push_str(self.model.node_names.short(&name.text()));
            }
            (1, _) => out.verdict(verdict::of_code(group.code)),
            (2 | 3, _) => {}
            _ => out.set(&group.words, Scope::Text),
        }
    }

    fn other_detail(&self, row: usize) -> Vec<DetailLine> {
        let Some((group, _)) = self.group(row) else { return Vec::new() };
        let (heading, enter) = match self.node(row) {
            Some(name) => {
                (format!("{name} is not a candidate"), "what the cycle found on this node")
            }
            None => {
                let nodes = count(group.nodes.len(), "node");
                (format!("{nodes} that are no candidates"), "shows a row for each, or folds them")
            }
        };
        let mut lines = vec![DetailLine::heading(heading)];
        let scope = verdict::of_code(group.code).scope();
        let words = status_text(group.code, &group.words);
        lines.push(DetailLine::field("dry run", words).scoped(scope));
        lines.extend(self.rule().map(|rule| DetailLine::field("why", rule)));
        lines.extend(self.answers());
        lines.push(DetailLine::key("Enter", enter));
        lines
    }

    /// Which pods the plugin may preempt and why, if that is not their priority alone.
    fn rule(&self) -> Option<&'a str> {
        self.cycle?.victim_rule.as_deref()
    }

    /// The answers of PostFilter plugins, as details.
    fn answers(&self) -> Vec<DetailLine> {
        let answers = self.cycle.map_or(&[][..], |c| c.post_filter.as_slice());
        let said = answers.iter().filter(|a| !a.status.message().is_empty());
        said.map(|a| DetailLine::field(&a.plugin, a.status.message())).collect()
    }

    fn is_taken(&self, candidate: &Candidate) -> bool {
        let taken = self.cycle.and_then(|c| c.preemption.as_ref());
        taken.is_some_and(|t| t.node == candidate.node)
    }
}

/// A code and words; a node that was not tried has no code of the dry run's.
fn status_text(code: Code, words: &str) -> String {
    if code == Code::Skip { words.to_owned() } else { format!("{}: {words}", code.as_str()) }
}

fn victims(candidate: &Candidate) -> String {
    let names: Vec<String> = candidate.victims.iter().map(|v| v.to_string()).collect();
    names.join(", ")
}

/// The nodes of a cycle whose dry run ran that are no candidates, in node order.
fn others(cycle: &CycleRecord) -> Vec<NodeId> {
    if cycle.dry_run.is_none() {
        return Vec::new();
    }
    let candidates: HashSet<Name> = cycle.candidates.iter().map(|c| c.node).collect();
    let nodes = cycle.nodes.order.iter().copied();
    nodes.filter(|node| !candidates.contains(&cycle.nodes.name(*node))).collect()
}

/// The nodes that are no candidates by what the dry run found, the first ones first. There are many
/// nodes and few findings, so each is put into words once.
fn groups(cycle: &CycleRecord, others: &[NodeId]) -> Vec<DryRunGroup> {
    type Finding = (Option<*const Status>, Option<u64>, Option<VerdictId>);
    let mut places: HashMap<Finding, usize> = HashMap::new();
    let mut groups: Vec<DryRunGroup> = Vec::new();
    for node in others {
        let own = cycle.dry_run.as_ref().and_then(|statuses| statuses.own(*node));
        let extender = cycle.filter.by_extender(*node).filter(|_| own.is_none());
        let extender = extender.map(|status| shared::key_of_text(&status.message()));
        let finding = (own.map(std::ptr::from_ref), extender, cycle.filter.verdicts.get(*node));
        let at = *places.entry(finding).or_insert_with(|| {
            let (code, words) = found(cycle, *node);
            let key = shared::key_of_text(&status_text(code, &words));
            groups.push(DryRunGroup { key, code, words, nodes: Vec::new() });
            groups.len() - 1
        });
        groups[at].nodes.push(*node);
    }
    groups
}

/// What the dry run found on a node that is no candidate: a code, and words.
fn found(cycle: &CycleRecord, node: NodeId) -> (Code, String) {
    let own = cycle.dry_run.as_ref().and_then(|statuses| statuses.own(node));
    if let Some(status) = own {
        return (status.code(), report::verdict::reasons(status));
    }
    let final_verdict = cycle.filter.verdicts.get(node);
    let verdict = cycle
        .filter
        .by_extender(node)
        .or_else(|| final_verdict.and_then(|id| cycle.verdicts.get(id)));
    match verdict {
        Some(status) if status.code() == Code::Unschedulable => {
            (Code::Skip, "not tried: enough candidates were found before".to_owned())
        }
        Some(status) => (
            Code::UnschedulableAndUnresolvable,
            format!("{} (not tried: preemption can't help)", report::verdict::reasons(status)),
        ),
        None => (
            Code::UnschedulableAndUnresolvable,
            "not tried, preemption can't help: the node was not evaluated".to_owned(),
        ),
    }
}

impl GridSource for PreemptionView<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        5
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let names = usize::from(self.model.node_names.widest());
                GridColumn::fitted(
                    "node",
                    16,
                    if self.is_grouped() { (names + 2).max(14) } else { names },
                )
            }
            1 => GridColumn::text("dry run", 9),
            2 => GridColumn::number("victims", 8),
            3 => GridColumn::number("budgets", 8),
            _ => GridColumn::prose_in(self, column, "victims, or why not a candidate", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        self.present_cell(row, column, out);
        if self.is_future() {
            out.scope = Scope::Future;
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        self.candidate(row).is_none_or(|c| c.pdb_violations > 0)
    }

    fn key(&self, row: usize) -> u64 {
        match (self.node(row), self.group(row)) {
            (Some(name), _) => shared::key_of_text(&name.text()),
            (None, group) => group.map_or(0, |(group, _)| group.key),
        }
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        shared::labels_of(self.model, self.node(row)?)
    }
}

impl View for PreemptionView<'_> {
    fn title(&self) -> String {
        match self.cycle {
            Some(cycle) => {
                format!(
                    "Preemption for {} in cycle {}",
                    shared::pod_in_title(cycle.pod),
                    cycle.cycle
                )
            }
            None => "Preemption".into(),
        }
    }

    fn empty(&self) -> String {
        let Some(cycle) = self.cycle else { return "No cycle yet: n runs the next one.".into() };
        if cycle.post_filter.is_empty() {
            let other = self.other_preemption().and_then(|at| self.model.cycles.get(at));
            let other = other.map(|cycle| (cycle.cycle, cycle.pod)).map(|(number, pod)| {
                format!(" It did in cycle {number} of {pod}: Enter shows that.")
            });
            return format!("Preemption did not run in this cycle.{}", other.unwrap_or_default());
        }
        let said =
            |a: &PluginStatus| format!("\n{}: {}", a.plugin, report::verdict::reasons(&a.status));
        let answers: String = cycle.post_filter.iter().map(said).collect();
        let rule = self.rule().map(|rule| format!("\n{rule}")).unwrap_or_default();
        format!("No candidate node; gw explains each. PostFilter said:{answers}{rule}")
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(candidate) = self.candidate(row) else { return self.other_detail(row) };
        let taken = if self.is_taken(candidate) { ", chosen" } else { "" };
        let mut lines = vec![DetailLine::heading(format!("Candidate {}{taken}", candidate.node))];
        let before = self.model.before_preemption.as_ref().zip(self.cycle);
        if let Some((before, cycle)) = before.filter(|(before, cycle)| before.cycle == cycle.cycle)
        {
            lines.extend(preemption_bars::lines(cycle, candidate, before));
        }
        if lines.len() == 1 {
            lines.push(DetailLine::field("evicted", victims(candidate)));
        }
        lines.push(DetailLine::field("budgets", format!("{} violated", candidate.pdb_violations)));
        lines.extend(self.rule().map(|rule| DetailLine::field("why", rule)));
        lines.extend(candidate.reasons.iter().map(|reason| DetailLine::field("", reason)));
        lines.extend(self.answers());
        lines.push(DetailLine::key(
            "Enter",
            "how the candidate is chosen, and why other nodes are not candidates",
        ));
        lines
    }

    /// The node that was taken.
    fn current(&self) -> Option<(usize, Option<usize>)> {
        let candidates = &self.cycle?.candidates;
        candidates.iter().position(|candidate| self.is_taken(candidate)).map(|row| (row, None))
    }

    fn node_of(&self, row: usize, _column: usize) -> Option<Name> {
        self.node(row)
    }

    /// What decides between the candidates; of another node, what the cycle found there.
    fn open(&self, row: usize, _column: usize) -> OnEnter {
        let Some(cycle) = self.cycle else { return OnEnter::Describe };
        match (self.group(row), self.node(row)) {
            (Some((group, None)), _) => OnEnter::Fold(group.key),
            (Some(_), Some(node)) => OnEnter::Run(Command::ExplainNode(cycle.cycle, node)),
            (None, Some(node)) => OnEnter::Run(Command::WhyCandidate(cycle.pod, node)),
            _ => OnEnter::Describe,
        }
    }

    fn open_empty(&self) -> Option<OnEnter> {
        let position = CyclePosition { cycle: self.other_preemption()?, frame: Frame::START };
        Some(OnEnter::Inspect(position, ViewId::Preemption))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.node(row)?;
        self.model.at(Frame::new(ExtensionPoint::PostFilter, None, None))
    }
}
