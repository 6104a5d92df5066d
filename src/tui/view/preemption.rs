//! Preemption of one cycle: what the dry run found on each node, which pods it would evict on the
//! candidates, and which was taken.

use crate::report;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::{OnEnter, View, preemption_bars, shared, verdict};
use crate::tui::command::Command;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, GridColumn, GridSource};
use kubestep_api::Labels;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{Candidate, CycleRecord, PluginStatus};
use kubestep_framework::status::Code;

/// The rows of preemption: candidates first, then the other nodes.
pub struct PreemptionView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
    /// The nodes that are no candidates, where the dry run ran.
    others: Vec<NodeId>,
}

impl<'a> PreemptionView<'a> {
    /// Preemption in the cycle at the debugger's position.
    pub fn new(model: &'a Model) -> PreemptionView<'a> {
        let cycle = model.cycle();
        PreemptionView { model, cycle, others: cycle.map_or(Vec::new(), |c| others(c)) }
    }

    /// A node that is no candidate.
    fn other(&self, row: usize) -> Option<NodeId> {
        self.others.get(row.checked_sub(self.cycle?.candidates.len())?).copied()
    }

    fn node(&self, row: usize) -> Option<Symbol> {
        let candidate = self.candidate(row).map(|candidate| candidate.node);
        candidate.or_else(|| Some(self.cycle?.nodes.name(self.other(row)?)))
    }

    fn candidate(&self, row: usize) -> Option<&'a Candidate> {
        self.cycle?.candidates.get(row)
    }

    /// The last cycle up to the position in which a pod preempted others.
    fn elsewhere(&self) -> String {
        let cycles = self.model.position.map_or(0, |position| position.cycle + 1);
        let mut cycles = self.model.cycles.iter().take(cycles).rev();
        let found = cycles.find(|cycle| cycle.preemption.is_some());
        found.map_or(String::new(), |cycle| {
            let (number, pod) = (cycle.cycle, cycle.pod);
            format!(" It did in cycle {number} of {pod}; :cycle {number} goes there.")
        })
    }

    /// Whether PostFilter comes after the debugger's position.
    fn is_future(&self) -> bool {
        match self.model.stepped_frame().map(|frame| frame.point) {
            Some(Some(point)) => point < ExtensionPoint::PostFilter,
            _ => self.model.is_under_way(),
        }
    }

    fn present_cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(candidate) = self.candidate(row) else {
            return self.other_cell(row, column, out);
        };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(self.model.node_names.short(&candidate.node)),
            1 => {
                match self.is_taken(candidate) {
                    true => out.set("★ taken", Scope::ScoreWinner),
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
            _ => write!(out, "{}: {}", Code::Success.as_str(), victims(candidate)),
        };
    }

    fn other_cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some((cycle, node)) = self.cycle.zip(self.other(row)) else { return };
        let (code, words) = found(cycle, node);
        match column {
            0 => {
                let name = cycle.nodes.name(node);
                out.set(self.model.node_names.short(&name), Scope::Text);
            }
            1 => out.verdict(verdict::of_code(code)),
            2 | 3 => {}
            _ => out.set(&status_words(code, &words), Scope::Text),
        }
    }

    fn other_detail(&self, row: usize) -> Vec<DetailLine> {
        let Some((cycle, node)) = self.cycle.zip(self.other(row)) else { return Vec::new() };
        let (code, words) = found(cycle, node);
        let name = cycle.nodes.name(node);
        let mut lines = vec![DetailLine::heading(format!("{name} is no candidate"))];
        let scope = verdict::of_code(code).scope();
        lines.push(DetailLine::field("dry run", status_words(code, &words)).scoped(scope));
        lines.extend(self.answers());
        lines
    }

    /// What PostFilter answered.
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
fn status_words(code: Code, words: &str) -> String {
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
    let candidates: HashSet<Symbol> = cycle.candidates.iter().map(|c| c.node).collect();
    let nodes = cycle.nodes.order.iter().copied();
    nodes.filter(|node| !candidates.contains(&cycle.nodes.name(*node))).collect()
}

/// What the dry run found on a node that is no candidate: a code, and words.
fn found(cycle: &CycleRecord, node: NodeId) -> (Code, String) {
    let own = cycle.dry_run.as_ref().and_then(|statuses| statuses.own(node));
    if let Some(status) = own {
        return (status.code(), report::verdict::reasons(status));
    }
    let official = cycle.filter.verdicts.get(node);
    let verdict =
        cycle.filter.by_extender(node).or_else(|| official.and_then(|id| cycle.verdicts.get(id)));
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
        self.cycle.map_or(0, |c| c.candidates.len()) + self.others.len()
    }

    fn columns(&self) -> usize {
        5
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::fitted("node", 16, self.model.node_names.widest().into()),
            1 => GridColumn::text("dry run", 9),
            2 => GridColumn::number("victims", 8),
            3 => GridColumn::number("budgets", 8),
            _ => GridColumn::prose("status: victims, or why it is no candidate", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        self.present_cell(row, column, out);
        if self.is_future() {
            out.scope = Scope::Future;
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        self.candidate(row).is_none_or(|c| c.pdb_violations > 0)
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
            Some(cycle) => format!("Preemption for {} in cycle {}", cycle.pod, cycle.cycle),
            None => "Preemption".into(),
        }
    }

    fn empty(&self) -> String {
        let Some(cycle) = self.cycle else { return "No cycle yet: n runs the next one.".into() };
        if cycle.post_filter.is_empty() {
            return format!("Preemption did not run in this cycle.{}", self.elsewhere());
        }
        let said =
            |a: &PluginStatus| format!("\n{}: {}", a.plugin, report::verdict::reasons(&a.status));
        let answers: String = cycle.post_filter.iter().map(said).collect();
        format!("No candidate node; gw explains each. PostFilter said:{answers}")
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(candidate) = self.candidate(row) else { return self.other_detail(row) };
        let taken = if self.is_taken(candidate) { ", taken" } else { "" };
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
        lines.extend(self.answers());
        lines.push(DetailLine::field(
            "Enter",
            "how a candidate is chosen, and why other nodes are none",
        ));
        lines
    }

    /// The node that was taken.
    fn current(&self) -> Option<(usize, Option<usize>)> {
        let candidates = &self.cycle?.candidates;
        candidates.iter().position(|candidate| self.is_taken(candidate)).map(|row| (row, None))
    }

    fn node_of(&self, row: usize, _column: usize) -> Option<Symbol> {
        self.node(row)
    }

    /// What decides between the candidates, and why other nodes are none.
    fn open(&self, _row: usize, _column: usize) -> OnEnter {
        let asked = self.cycle.map(|cycle| OnEnter::Run(Command::WhyView(cycle.pod)));
        asked.unwrap_or(OnEnter::Describe)
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.node(row)?;
        self.model.at(Frame::new(ExtensionPoint::PostFilter, None, None))
    }
}
