//! From the engine's statuses and verdict numbers to signs.

use crate::tui::glyph::VerdictSign;
use kubestep_framework::record::{CycleRecord, Outcome, VerdictId};
use kubestep_framework::status::Code;

/// The sign of a status code.
pub fn of_code(code: Code) -> VerdictSign {
    match code {
        Code::Success => VerdictSign::Success,
        Code::Error => VerdictSign::Error,
        Code::Unschedulable => VerdictSign::Unschedulable,
        Code::UnschedulableAndUnresolvable => VerdictSign::Unresolvable,
        Code::Wait => VerdictSign::Wait,
        Code::Skip => VerdictSign::Skip,
        Code::Pending => VerdictSign::Pending,
    }
}

/// The sign of a cycle's outcome.
pub fn of_outcome(outcome: Outcome) -> VerdictSign {
    match outcome {
        Outcome::Scheduled => VerdictSign::Success,
        Outcome::Waiting => VerdictSign::Wait,
        Outcome::Unschedulable => VerdictSign::Unschedulable,
        Outcome::SchedulerError => VerdictSign::Error,
        Outcome::Dropped => VerdictSign::Skip,
    }
}

/// The sign of a filter verdict.
pub fn of_id(cycle: &CycleRecord, id: VerdictId) -> VerdictSign {
    match cycle.verdicts.get(id) {
        Some(status) => of_code(status.code()),
        None if id == VerdictId::PASS => VerdictSign::Success,
        None if id == VerdictId::SKIPPED => VerdictSign::Skip,
        None if id == VerdictId::UNKNOWN => VerdictSign::Unknown,
        None => VerdictSign::NotEvaluated,
    }
}
