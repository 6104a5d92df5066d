//! The answer to "why?" in a window.

#[cfg(test)]
mod tests;

use super::Driver;
use crate::report::why::{Detail, of_node, text};
use crate::tui::command_result::{CommandResult, WindowContent};
use kubestep_api::intern::Symbol;
use kubestep_debug::why::{ask, ask_of_cycle};
use kubestep_framework::pod::NamespacedName;

impl Driver {
    /// Why the pod is where it is, at the position.
    pub(super) fn why(&mut self, pod: NamespacedName) -> CommandResult {
        match ask(&mut self.session, pod, &[]) {
            Some(why) => window(format!("Why {pod}?"), &text(&why, &Detail::default())),
            None => gone(pod),
        }
    }

    /// What a cycle found of a node: every cause, every input of its scores.
    pub(super) fn why_node(&mut self, cycle: u64, node: Symbol) -> CommandResult {
        let Some(why) = ask_of_cycle(&mut self.session, cycle, &[node]) else {
            return CommandResult::info(format!("cycle {cycle} does not exist at this position"));
        };
        let title = format!("{} on {node} in cycle {cycle}", why.pod);
        CommandResult::window(WindowContent::Lines(title, of_node(&why, node)))
    }
}

fn window(title: String, text: &str) -> CommandResult {
    let lines = text.lines().map(str::to_owned).collect();
    CommandResult::window(WindowContent::Lines(title, lines))
}

pub(super) fn gone(pod: NamespacedName) -> CommandResult {
    let text = format!("{pod} does not exist at this position");
    CommandResult::error(text)
}
