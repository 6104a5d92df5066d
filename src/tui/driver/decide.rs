//! Manual decisions about pods at Permit, and what they led to.

#[cfg(test)]
mod tests;

use super::Driver;
use crate::report::lines_shown;
use crate::tui::command_result::{CommandResult, WindowContent};
use crate::tui::model::span;
use crate::tui::widget::status_line::Severity;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_debug::decision::{DecisionEffect, ManualDecision, decide};
use kubestep_debug::edit::{Edit, EditError};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{Outcome, QueueMove, QueueName};
use kubestep_framework::resource::amount;

/// Other pods that are named; more are counted.
const NAMED: usize = 12;

impl Driver {
    /// Allows or rejects pods, one after the other; of a live scheduler that is
    /// written at once.
    pub(super) fn decide(
        &mut self,
        decision: &ManualDecision,
        pods: &[NamespacedName],
    ) -> CommandResult {
        if let Some(rejection) = self.reject_manual_run().or_else(|| self.rejected_in_past()) {
            return rejection;
        }
        let decided = |pod: &NamespacedName| decide(&mut self.session, *pod, decision);
        let decided: Vec<DecisionEffect> = pods.iter().filter_map(decided).collect();
        self.send();
        let verb = match decision {
            ManualDecision::Allow(_) => "allowed",
            ManualDecision::Reject(_) => "rejected",
        };
        let (severity, text) = match (decided.as_slice(), pods) {
            ([], [pod]) => (Severity::Error, format!("{pod} no longer waits at Permit")),
            ([], _) => (Severity::Error, "none of them still waits at Permit".to_owned()),
            ([one], _) => (Severity::Info, format!("{verb} {}", in_short(one))),
            (all, _) => (Severity::Info, format!("{verb} {}", in_sum(all))),
        };
        let rejects = matches!(decision, ManualDecision::Reject(_)) && !decided.is_empty();
        let lines = decided.iter().flat_map(|decided| self.story(decided)).collect();
        let made = !decided.is_empty();
        let window = rejects.then(|| WindowContent::Lines("What rejecting did".to_owned(), lines));
        CommandResult { window, decided: made, ..CommandResult::of(severity, text) }
    }

    /// `hold …` and `release …`: on this branch itself, as a decision and not as a what-if.
    pub(super) fn hold(&mut self, line: &str) -> CommandResult {
        if let Some(rejection) = self.reject_manual_run().or_else(|| self.rejected_in_past()) {
            return rejection;
        }
        let done = self.hold_or_release(line);
        self.send();
        match done {
            Ok(words) => CommandResult::info(words),
            Err(EditError(text)) => CommandResult::error(text),
        }
    }

    fn hold_or_release(&mut self, line: &str) -> Result<String, EditError> {
        let edit: Edit = line.parse()?;
        let words = edit.to_string();
        let applied = self.session.edit(edit, None)?;
        let notes = applied.notes.into_iter().map(|note| format!("; {note}"));
        Ok(format!("{words}{}", notes.collect::<String>()))
    }

    fn rejected_in_past(&self) -> Option<CommandResult> {
        let text = "this is the past: ! makes a new branch here, c returns to the newest state";
        (!self.session.is_at_newest()).then(|| CommandResult::error(text))
    }

    /// What it did, line by line.
    fn story(&self, decided: &DecisionEffect) -> Vec<String> {
        let mut lines = vec![format!("rejected {}", in_short(decided))];
        lines.extend(decided.outcome.iter().map(|(_, message)| format!("  message: {message}")));
        lines.push(format!("  released on {}: {}", decided.node, given_back(decided)));
        lines.extend(decided.free.as_ref().map(|free| {
            let (node, pods) = (decided.node, free.allowed_pods);
            format!("  free on {node} now: {}, capacity for {pods} pods", amount::resources(free))
        }));
        if !decided.unreserved.is_empty() {
            let names: Vec<String> = decided.unreserved.iter().map(ToString::to_string).collect();
            lines.push(format!("  unreserved, to be scheduled again: {}", names.join(", ")));
        }
        lines.extend(decided.moves.iter().map(|moved| format!("  moved {}", move_text(moved))));
        lines.extend(decided.until.map(|due| {
            let left = span((due.0 - self.session.now().0).max(0));
            format!("  retried in {left}, or earlier if an event requeues it")
        }));
        let requeued: Vec<String> = decided
            .requeued
            .iter()
            .map(|moved| format!("  requeued: {} moved {}", moved.pod, move_text(moved)))
            .collect();
        if requeued.is_empty() {
            lines.push("  no other pod was requeued".to_owned());
        }
        let shown = lines_shown(requeued.len(), NAMED);
        let more = requeued.len() - shown;
        lines.extend(requeued.into_iter().take(shown));
        lines.extend((more > 0).then(|| format!("  … and {more} more")));
        lines.extend(passed_over(decided));
        lines
    }
}

/// The pod, in whose name, and the result.
fn in_short(decided: &DecisionEffect) -> String {
    let DecisionEffect { pod, node, plugin, held, outcome, .. } = decided;
    let plugin = plugin.map_or("all plugins".to_owned(), |plugin| plugin.to_string());
    match outcome {
        None => {
            let held: Vec<&str> = held.iter().map(|plugin| plugin.as_str()).collect();
            format!("{pod} for {plugin}; {} still holds it", held.join(" and "))
        }
        Some((Outcome::Scheduled, _)) => format!("{pod} for {plugin}; it is bound to {node}"),
        Some((Outcome::Waiting, _)) => format!("{pod} for {plugin}; it is being bound to {node}"),
        Some(_) => format!("{pod} for {plugin}"),
    }
}

/// Several pods, and the results.
fn in_sum(all: &[DecisionEffect]) -> String {
    let outcome = |wanted: Option<Outcome>| {
        all.iter().filter(|one| one.outcome.as_ref().map(|(outcome, _)| *outcome) == wanted).count()
    };
    let parts = [
        (outcome(Some(Outcome::Scheduled)), "bound to their nodes"),
        (outcome(None), "still held by another plugin"),
    ];
    let said = parts.iter().filter(|(number, _)| *number > 0);
    let said: Vec<String> = said.map(|(number, words)| format!("{number} {words}")).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    format!("{}{said}", count(all.len(), "pod"))
}

fn given_back(decided: &DecisionEffect) -> String {
    let pods = match decided.freed.allowed_pods {
        0 => return "nothing".into(),
        1 => "capacity for 1 pod".to_owned(),
        n => format!("capacity for {n} pods"),
    };
    match amount::parts(&decided.freed).is_empty() {
        true => pods,
        false => format!("{}, {pods}", amount::resources(&decided.freed)),
    }
}

/// `from in flight to unschedulable (ScheduleAttemptFailure)`.
fn move_text(moved: &QueueMove) -> String {
    let to = match moved.to {
        QueueName::None => "out of the queue",
        to => to.as_str(),
    };
    let plugin = moved.plugin.map(|plugin| format!(", {plugin}")).unwrap_or_default();
    let order = moved.order.map(|by| format!(", order by {by}")).unwrap_or_default();
    format!("from {} to {to} ({}{plugin}{order})", moved.from.as_str(), moved.event)
}

/// The pods that plugins left where they are, by plugin and event.
fn passed_over(decided: &DecisionEffect) -> Vec<String> {
    let mut groups: Vec<(Symbol, String, Vec<NamespacedName>)> = Vec::new();
    for hint in &decided.passed_over {
        let event = hint.event.label();
        match groups.iter_mut().find(|group| group.0 == hint.plugin && group.1 == event) {
            Some(group) if group.2.contains(&hint.pod) => {}
            Some(group) => group.2.push(hint.pod),
            None => groups.push((hint.plugin, event, vec![hint.pod])),
        }
    }
    let line = |(plugin, event, pods): &(Symbol, String, Vec<NamespacedName>)| {
        let who = match pods.as_slice() {
            [pod] => pod.to_string(),
            pods => format!("{} pods", pods.len()),
        };
        format!("  not requeued: {who}; {plugin}: {event} does not help")
    };
    groups.iter().map(line).collect()
}
