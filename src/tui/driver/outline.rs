//! The outlines that views fold: why a pod is where it is, and the pod groups.

#[cfg(test)]
mod tests;

use super::Driver;
use crate::report::outline::{Item, To};
use crate::report::why;
use crate::tui::command_result::CommandResult;
use crate::tui::model::{FoldedOutline, OutlineKind};
use crate::tui::view::ViewId;
use kubestep_debug::why::ask;
use kubestep_framework::pod::NamespacedName;

impl Driver {
    /// Why the pod is where it is at the position, as an outline.
    pub(super) fn outline(&mut self, pod: NamespacedName) -> CommandResult {
        let Some(answer) = ask(&mut self.session, pod, &[]) else { return super::why::gone(pod) };
        let mut outline = why::outline(&answer);
        if !answer.is_schedulable() {
            let text = "What would make it fit? Enter looks for the smallest changes";
            outline.items.push(Item::heading("fixes", text).to(To::Search(pod)));
        }
        // What was folded for one pod says nothing of another.
        let before = self.model.why.take().filter(|before| before.outline.title == outline.title);
        self.model.why = Some(FoldedOutline::new(outline, before, Some(pod)));
        self.model.revision += 1;
        CommandResult { look_at: Some(ViewId::Why), ..CommandResult::default() }
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
