//! The outcome as text for people.

use std::fmt::Write;

use crate::debug::Session;
use crate::engine::record::QueueName;
use crate::report::outcome::{evicted, pending, placed};

/// Which pods were placed where, who had to go for them, which stayed pending and why.
pub fn outcome(session: &Session) -> String {
    let (placed, evicted, pending) = (placed(session), evicted(session), pending(session));
    let mut text = String::new();
    let width = placed.iter().map(|entry| entry.pod.to_string().len()).max().unwrap_or(0);
    // Writing into a String cannot fail.
    for entry in &placed {
        let pod = entry.pod.to_string();
        let _ = write!(text, "{pod:<width$}  on {}", entry.node);
        let attempt = (entry.attempt > 1).then(|| format!("attempt {}", entry.attempt));
        let tie = entry.tie_break.map(|how| format!("tie broken by {how}"));
        let notes: Vec<String> = attempt.into_iter().chain(tie).collect();
        let _ = match notes.as_slice() {
            [] => writeln!(text),
            notes => writeln!(text, " ({})", notes.join(", ")),
        };
    }
    for entry in &evicted {
        let _ = writeln!(text, "{}  evicted from {} for {}", entry.pod, entry.node, entry.by);
    }
    for entry in &pending {
        let place = match entry.place {
            QueueName::None => "in no queue",
            place => place.as_str(),
        };
        let _ = writeln!(text, "{}  pending, {place}\n    {}", entry.pod, entry.reason);
    }
    let _ = write!(text, "{} placed, ", placed.len());
    if !evicted.is_empty() {
        let _ = write!(text, "{} evicted, ", evicted.len());
    }
    let cycles = session.world().scheduler().cycles();
    let plural = if cycles == 1 { "" } else { "s" };
    let _ = writeln!(text, "{} pending, {cycles} scheduling cycle{plural}", pending.len());
    text
}
