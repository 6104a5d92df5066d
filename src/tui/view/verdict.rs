//! From the engine's statuses and verdict numbers to signs and words.

use crate::tui::glyph::VerdictSign;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::{Code, Status};

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

/// The sign of a filter verdict.
pub fn of_id(cycle: &CycleRecord, id: VerdictId) -> VerdictSign {
    match cycle.verdicts.get(id) {
        Some(status) => of_code(status.code()),
        None if id == VerdictId::PASS => VerdictSign::Success,
        None if id == VerdictId::SKIPPED => VerdictSign::Skip,
        None => VerdictSign::NotEvaluated,
    }
}

/// What a filter verdict says, in words.
pub fn explain(cycle: &CycleRecord, id: VerdictId) -> String {
    if let Some(status) = cycle.verdicts.get(id) {
        return reasons(status);
    }
    let words = match id {
        VerdictId::PASS => "the node passes",
        VerdictId::SKIPPED => "the plugin has nothing to check for this pod",
        VerdictId::ENOUGH_FOUND => {
            "not evaluated: enough feasible nodes were found before this one"
        }
        VerdictId::OUTSIDE_PLACEMENT => "not evaluated: the pod's group was tried on other nodes",
        VerdictId::NARROWED => "not evaluated: PreFilter restricted the search to other nodes",
        VerdictId::NOMINATED_TAKEN => "not evaluated: the nominated node was feasible and taken",
        VerdictId::CYCLE_ENDED => "not evaluated: the cycle ended before this node's turn",
        _ => "unknown",
    };
    words.to_owned()
}

/// The reasons of a status, each named.
pub fn reasons(status: &Status) -> String {
    let reasons: Vec<&str> = status.reasons().iter().map(|r| r.as_str()).collect();
    if reasons.is_empty() { status.code().as_str().to_owned() } else { reasons.join("; ") }
}
