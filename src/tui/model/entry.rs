//! Entries of the history in words: queue moves, queueing hints, events and cycles.

use kubestep_debug::trace::Entry;

/// What kind of line it is.
pub fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Cycle(_) => "cycle",
        Entry::Move(_) => "move",
        Entry::Hint(_) => "hint",
        Entry::Event(..) => "event",
    }
}

/// What happened, in a few words.
pub fn what(entry: &Entry) -> String {
    match entry {
        Entry::Cycle(record) => record.outcome.as_str().to_owned(),
        Entry::Move(moved) => moved.describe(),
        Entry::Hint(hint) => format!("{}: {}", hint.plugin, hint.answer),
        // "Preempted by …" has its reason in itself.
        Entry::Event(_, event) if event.note.starts_with(event.reason) => event.note.clone(),
        Entry::Event(_, event) => format!("{}: {}", event.reason, event.note),
    }
}

/// One line about an entry: what it is, of which pod, and what happened.
pub fn entry_text(entry: &Entry) -> String {
    format!("{} of {}: {}", kind(entry), entry.pod(), what(entry))
}
