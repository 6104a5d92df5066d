//! The answer to "why?" in a window, and the smallest changes that would make the pod fit.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::{Done, Driver, Open};
use crate::debug::fix::{self, Limits};
use crate::debug::why::ask;
use crate::engine::pod::NamespacedName;
use crate::report::fixes;
use crate::report::why::{Detail, text};
use crate::tui::widget::status_line::Severity;

/// How long the search for changes may take before it shows what it has.
const SEARCH: Duration = Duration::from_secs(2);

impl Driver {
    /// Why the pod is where it is, at the position.
    pub(super) fn why(&mut self, pod: NamespacedName) -> Done {
        match ask(&mut self.session, pod, &[]) {
            Some(why) => window(format!("Why {pod}?"), &text(&why, &Detail::default())),
            None => gone(pod),
        }
    }

    /// What would make it fit, tried on copies of the state at the position.
    pub(super) fn fixes(&mut self, pod: NamespacedName) -> Done {
        let world = self.session.world_here();
        if world.api().objects().pod(pod).is_none() {
            return gone(pod);
        }
        let begin = Instant::now();
        let found = fix::fixes(world, pod, Limits::default(), &mut |_, _| begin.elapsed() < SEARCH);
        window(format!("What would make {pod} fit?"), &fixes::text(&found))
    }
}

fn window(title: String, text: &str) -> Done {
    let lines = text.lines().map(str::to_owned).collect();
    Done { open: Some(Open::Lines(title, lines)), ..Done::default() }
}

fn gone(pod: NamespacedName) -> Done {
    let text = format!("{pod} is not there at this position");
    Done { message: Some((Severity::Error, text)), ..Done::default() }
}
