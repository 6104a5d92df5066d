//! The outcome as text for people.

use std::fmt::Write;

use crate::debug::Session;
use crate::report::outcome::{pending, placed};

/// Which pods were placed where, which stayed pending and why.
pub fn outcome(session: &Session) -> String {
    let (placed, pending) = (placed(session), pending(session));
    let cycles = session.world().scheduler().cycles();
    let mut text = String::new();
    let width = placed.iter().map(|entry| entry.pod.to_string().len()).max().unwrap_or(0);
    // Writing into a String cannot fail.
    for entry in &placed {
        let pod = entry.pod.to_string();
        let _ = write!(text, "{pod:<width$}  on {}", entry.node);
        let _ = match entry.attempt {
            1 => writeln!(text),
            attempt => writeln!(text, " (attempt {attempt})"),
        };
    }
    for entry in &pending {
        let _ = writeln!(text, "{}  pending, {}", entry.pod, entry.place.as_str());
        let _ = writeln!(text, "    {}", entry.reason);
    }
    let _ = writeln!(
        text,
        "{} placed, {} pending, {cycles} scheduling cycles",
        placed.len(),
        pending.len()
    );
    text
}
