//! Preemption of one cycle: the candidate nodes, whom the pod would evict there, and which was taken.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Open, View, verdict};
use crate::tui::app::Request;
use crate::tui::lines::Line;
use crate::tui::model::{Model, Position};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::record::{Candidate, CycleRecord, PluginStatus};

/// See the module.
pub struct PreemptionView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
}

impl<'a> PreemptionView<'a> {
    /// Preemption in the cycle at the debugger's position.
    pub fn new(model: &'a Model) -> PreemptionView<'a> {
        PreemptionView { model, cycle: model.cycle() }
    }

    fn candidate(&self, row: usize) -> Option<&'a Candidate> {
        self.cycle?.candidates.get(row)
    }

    /// The last cycle up to the position in which a pod pushed others out.
    fn elsewhere(&self) -> String {
        let cycles = self.model.position.map_or(0, |position| position.cycle + 1);
        let mut cycles = self.model.cycles.iter().take(cycles).rev();
        let found = cycles.find(|cycle| cycle.preemption.is_some());
        found.map_or(String::new(), |cycle| {
            let (number, pod) = (cycle.cycle, cycle.pod);
            format!(" It did in cycle {number} of {pod}; :cycle {number} goes there.")
        })
    }

    fn is_taken(&self, candidate: &Candidate) -> bool {
        let taken = self.cycle.and_then(|c| c.preemption.as_ref());
        taken.is_some_and(|t| t.node == candidate.node)
    }
}

fn victims(candidate: &Candidate) -> String {
    let names: Vec<String> = candidate.victims.iter().map(|v| v.to_string()).collect();
    names.join(", ")
}

impl GridSource for PreemptionView<'_> {
    fn rows(&self) -> usize {
        self.cycle.map_or(0, |c| c.candidates.len())
    }

    fn columns(&self) -> usize {
        5
    }

    fn column(&self, column: usize) -> Column {
        match column {
            0 => Column::name("candidate", 16, 36),
            1 => Column::text("taken", 9),
            2 => Column::number("victims", 8),
            3 => Column::number("budgets", 8),
            _ => Column::prose("who would be evicted", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(candidate) = self.candidate(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(&candidate.node),
            1 => {
                if self.is_taken(candidate) {
                    out.set("★ taken", Scope::ScoreWinner);
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

    fn is_failure(&self, row: usize) -> bool {
        self.candidate(row).is_some_and(|c| c.pdb_violations > 0)
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        super::nodes::label_of(self.model, self.candidate(row)?.node, key)
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
        let said = |a: &PluginStatus| format!("\n{}: {}", a.plugin, verdict::reasons(&a.status));
        let answers: String = cycle.post_filter.iter().map(said).collect();
        format!("No candidate node; gw tells why of each. What PostFilter said:{answers}")
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let Some(candidate) = self.candidate(row) else { return Vec::new() };
        let taken = if self.is_taken(candidate) { ", taken" } else { "" };
        let mut lines = vec![
            Line::heading(format!("Candidate {}{taken}", candidate.node)),
            Line::field("evicted", victims(candidate)),
            Line::field("budgets", format!("{} violated", candidate.pdb_violations)),
        ];
        let answers = self.cycle.map_or(&[][..], |c| c.post_filter.as_slice());
        let said = answers.iter().filter(|a| !a.status.message().is_empty());
        lines.extend(said.map(|a| Line::field(&a.plugin, a.status.message())));
        lines.push(Line::field("Enter", "what decides between them, and why other nodes are none"));
        lines
    }
    /// What decides between the candidates, and why other nodes are none.
    fn open(&self, _row: usize, _column: usize) -> Open {
        let asked = self.cycle.map(|cycle| Open::Ask(Request::Outline(cycle.pod)));
        asked.unwrap_or(Open::Describe)
    }

    fn moment(&self, row: usize, _column: usize) -> Option<Position> {
        self.candidate(row)?;
        self.model.at(Frame::new(ExtensionPoint::PostFilter, None, None))
    }
}
