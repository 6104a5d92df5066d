//! The log of a scheduler without a screen on standard error: one line per message, with the time.

use kubestep_framework::record::Outcome;
use kubestep_live::clock;
use kubestep_live::scheduling::{Report, words};

/// Logs up to a verbosity.
#[derive(Clone)]
pub(super) struct Log {
    verbosity: u8,
}

impl Log {
    /// A log of messages up to that level.
    pub fn new(verbosity: u8) -> Log {
        Log { verbosity }
    }

    /// Logs a line of that level.
    pub fn line(&self, level: u8, text: &str) {
        if level <= self.verbosity {
            kubestep_output::line(format!("{} {text}", clock::local()));
        }
    }

    /// Logs what happened, at its level.
    pub fn report(&self, report: Report) {
        match report {
            Report::Notice(notice) => self.line(u8::from(!notice.serious), &notice.text),
            Report::Cycle(record, _) if record.outcome == Outcome::Waiting => {}
            Report::Cycle(record, _) | Report::Decided(record) if self.verbosity >= 2 => {
                self.line(2, &words(&record));
            }
            Report::Answered { what, error: Some(error), .. } => {
                self.line(0, &format!("{what}: {error}"));
            }
            Report::Lead(lead) => self.line(1, &lead.words()),
            _ => {}
        }
    }
}
