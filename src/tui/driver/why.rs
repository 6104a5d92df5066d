//! The answer to "why?" in a window.

#[cfg(test)]
mod tests;

use super::{Done, Driver, Open, answer};
use crate::report::why::of_node;
use crate::tui::widget::status_line::Severity;
use kubestep_api::intern::Symbol;
use kubestep_debug::why::{ask, ask_of_cycle};
use kubestep_framework::pod::NamespacedName;

impl Driver {
    /// Why the pod is where it is, at the position.
    pub(super) fn why(&mut self, pod: NamespacedName) -> Done {
        match ask(&mut self.session, pod, &[]) {
            Some(why) => {
                let open = Open::Answer(format!("Why {pod}?"), answer::lines(&why));
                Done { open: Some(open), ..Done::default() }
            }
            None => gone(pod),
        }
    }

    /// What a cycle found of a node: every cause, every input of its scores.
    pub(super) fn why_node(&mut self, cycle: u64, node: Symbol) -> Done {
        let Some(why) = ask_of_cycle(&mut self.session, cycle, &[node]) else {
            return Done::said(format!("cycle {cycle} is not there at this position"));
        };
        let title = format!("{} on {node} in cycle {cycle}", why.pod);
        Done { open: Some(Open::Lines(title, of_node(&why, node))), ..Done::default() }
    }
}

pub(super) fn gone(pod: NamespacedName) -> Done {
    let text = format!("{pod} is not there at this position");
    Done { message: Some((Severity::Error, text)), ..Done::default() }
}
