//! The log of a scheduler without a screen on standard error: one line per message, with the time.

use kubestep_framework::record::Outcome;
use kubestep_live::clock;
use kubestep_live::scheduling::{SchedulingReport, describe_cycle};

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
    pub fn report(&self, report: SchedulingReport) {
        match report {
            SchedulingReport::Notice(notice) => self.line(u8::from(!notice.serious), &notice.text),
            SchedulingReport::Cycle(record, _) if record.outcome == Outcome::Waiting => {}
            SchedulingReport::Cycle(record, _) | SchedulingReport::Decided(record)
                if self.verbosity >= 2 =>
            {
                self.line(2, &describe_cycle(&record));
            }
            SchedulingReport::Answered { what, error: Some(error), .. } => {
                self.line(0, &format!("{what}: {error}"));
            }
            SchedulingReport::Lead(lead) => self.line(1, &lead.describe()),
            _ => {}
        }
    }
}
