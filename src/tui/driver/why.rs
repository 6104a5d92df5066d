//! The answer to "why?", in a window and as an outline that folds.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;

use super::{Driver, answer};
use crate::report::outline::{LinkTarget, OutlineItem};
use crate::report::why::{candidate_id, of_node, outline};
use crate::tui::command_result::{CommandResult, WindowContent};
use crate::tui::model::{FoldedOutline, OutlineKind};
use crate::tui::view_id::ViewId;
use crate::tui::widget::status_line::Severity;
use kubestep_api::Name;
use kubestep_debug::why::{ask, ask_of_cycle};
use kubestep_framework::pod::NamespacedName;

impl Driver {
    /// Why the pod is where it is, at the position.
    pub(super) fn why(&mut self, pod: NamespacedName) -> CommandResult {
        match ask(&mut self.session, pod, &[]) {
            Some(why) => {
                let lines = answer::lines(&why, &self.model.node_names);
                CommandResult::window(WindowContent::Answer(format!("Why {pod}?"), lines))
            }
            None => deleted_pod(pod),
        }
    }

    /// What a cycle found of a node: every cause, every input of its scores.
    pub(super) fn why_node(&mut self, cycle: u64, node: Name) -> CommandResult {
        let Some(why) = ask_of_cycle(&mut self.session, cycle, &[node]) else {
            return CommandResult::info(format!("cycle {cycle} does not exist at this position"));
        };
        let title = format!("{} on {node} in cycle {cycle}", why.pod);
        CommandResult::window(WindowContent::Lines(title, of_node(&why, node)))
    }

    /// Why the pod is where it is at the position, as an outline.
    pub(super) fn why_view(&mut self, pod: NamespacedName) -> CommandResult {
        let Some(answer) = ask(&mut self.session, pod, &[]) else { return deleted_pod(pod) };
        let mut outline = outline(&answer);
        if !answer.is_schedulable() {
            let text = "What would make it fit? Enter looks for the smallest changes";
            outline.items.push(OutlineItem::heading("fixes", text).to(LinkTarget::Search(pod)));
        }
        // What was folded for one pod says nothing of another.
        let before = self.model.why.take().filter(|before| before.outline.title == outline.title);
        self.model.why = Some(FoldedOutline::new(outline, before, Some(pod)));
        self.model.revision += 1;
        CommandResult { look_at: Some(ViewId::Why), ..CommandResult::default() }
    }

    /// The same, at the line of a candidate node for preemption.
    pub(super) fn why_candidate(&mut self, pod: NamespacedName, node: Name) -> CommandResult {
        let shown = self.why_view(pod);
        let line = candidate_id(node);
        let row = self.model.why.as_mut().and_then(|why| why.reveal(&line));
        let message = match (&shown.message, row) {
            (None, None) => Some((
                Severity::Info,
                format!("{node} is not a candidate for {pod} at the debugger's position"),
            )),
            (message, _) => message.clone(),
        };
        CommandResult { row, message, ..shown }
    }

    /// Folds a line of an outline, or unfolds it.
    pub(super) fn fold(&mut self, outline: OutlineKind, key: u64) -> CommandResult {
        let folding = match outline {
            OutlineKind::Groups => &mut self.model.groups,
            OutlineKind::Why => &mut self.model.why,
        };
        if let Some(folding) = folding {
            folding.toggle(key);
        }
        self.model.revision += 1;
        CommandResult::default()
    }
}

pub(super) fn deleted_pod(pod: NamespacedName) -> CommandResult {
    let text = format!("{pod} does not exist at this position");
    CommandResult::error(text)
}
