//! What happened to drained and lost nodes and to rollouts, in a window.

use super::Driver;
use crate::report::disruption::{self, DisruptionReport};
use crate::tui::command_result::{CommandResult, WindowContent};

impl Driver {
    /// The disruptions of this branch so far.
    pub(super) fn disruptions(&self) -> CommandResult {
        let Some(report) = DisruptionReport::new(&self.session) else {
            let text = "nothing was drained, lost or rolled out: try E drain node NAME";
            return CommandResult::info(text);
        };
        let text = disruption::text(&report);
        let lines = text.lines().map(str::to_owned).collect();
        CommandResult::window(WindowContent::Lines("Drains, losses and rollouts".into(), lines))
    }
}
