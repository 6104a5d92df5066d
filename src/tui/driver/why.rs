//! The answer to "why?" in a window.

#[cfg(test)]
mod tests;

use super::{Done, Driver, Open};
use crate::debug::why::ask;
use crate::engine::pod::NamespacedName;
use crate::report::why::{Detail, text};
use crate::tui::widget::status_line::Severity;

impl Driver {
    /// Why the pod is where it is, at the position.
    pub(super) fn why(&mut self, pod: NamespacedName) -> Done {
        match ask(&mut self.session, pod, &[]) {
            Some(why) => window(format!("Why {pod}?"), &text(&why, &Detail::default())),
            None => gone(pod),
        }
    }
}

fn window(title: String, text: &str) -> Done {
    let lines = text.lines().map(str::to_owned).collect();
    Done { open: Some(Open::Lines(title, lines)), ..Done::default() }
}

pub(super) fn gone(pod: NamespacedName) -> Done {
    let text = format!("{pod} is not there at this position");
    Done { message: Some((Severity::Error, text)), ..Done::default() }
}
