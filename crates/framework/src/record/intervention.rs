//! What a person decided in the scheduler's place in one cycle. Every record holds the
//! interventions that were in force, so that no decision looks like the scheduler's own when it was
//! not. The scheduler keeps those for cycles to come.

use std::fmt;

use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_config::duration::Duration;

use crate::record::CycleRecord;
use crate::status::Status;

/// Extension points at which a plugin can be made to fail.
pub const FAILING_POINTS: [ExtensionPoint; 9] = [
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::PostFilter,
    ExtensionPoint::PreScore,
    ExtensionPoint::Score,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
    ExtensionPoint::PreBind,
    ExtensionPoint::Bind,
];

/// The name that holds at Permit have where a plugin's name is expected. They are kubestep's own,
/// so the name is no plugin's.
pub const HOLD: &str = "kubestep.Hold";

/// What a fault says where a status or an error is expected.
pub const FAULT: &str = "fault injected by hand";

/// Something that decides in the scheduler's place during one cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intervention {
    /// Of nodes that share the best score, this one is taken.
    Choose(Symbol),
    /// This node is taken, whatever PreFilter, Filter and Score say.
    Force(Symbol),
    /// This node is not taken, though it passes the filters.
    Veto(Symbol),
    /// The plugin gives an error at that point.
    Fail(ExtensionPoint, Symbol),
    /// The pod is held at Permit for so many microseconds at most.
    Hold(i64),
}

impl Intervention {
    /// The status of a node that this keeps from being taken.
    pub fn refusal(self) -> Status {
        Status::unschedulable(match self {
            Intervention::Force(_) => "node(s) left out by hand: another one is forced",
            _ => "node(s) vetoed by hand",
        })
    }

    /// Whether it made a difference to a cycle, as far as that is recorded: where the lists by
    /// node were left out, it is taken to have made one.
    pub fn decided(self, record: &CycleRecord) -> bool {
        let lists_left_out = record.left_out.is_some();
        match self {
            Intervention::Choose(node) => record.node == Some(node) && !record.tie.is_empty(),
            Intervention::Force(node) => record.node == Some(node),
            Intervention::Veto(_) if lists_left_out => true,
            Intervention::Veto(_) => record
                .verdicts
                .find(&self.refusal())
                .is_some_and(|id| record.filter.official.iter().any(|verdict| verdict == id)),
            Intervention::Fail(point, plugin) => failed_at(record, point, plugin),
            Intervention::Hold(_) => record.permit.iter().any(|answer| answer.plugin == HOLD),
        }
    }
}

fn failed_at(record: &CycleRecord, point: ExtensionPoint, plugin: Symbol) -> bool {
    let answers = match point {
        ExtensionPoint::Filter if record.left_out.is_some() => return true,
        ExtensionPoint::Filter => {
            let text = format!("running {plugin:?} filter plugin: {FAULT}");
            let id = record.verdicts.find(&Status::error(&text).by(plugin));
            return record.filter.official.iter().any(|verdict| Some(verdict) == id);
        }
        // A column that failed is not in the record.
        ExtensionPoint::Score => return record.message.ends_with(FAULT),
        point => record.answers(point),
    };
    answers.iter().any(|answer| answer.plugin == plugin)
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Intervention::Choose(node) => write!(f, "node {node} chosen by hand"),
            Intervention::Force(node) => write!(f, "node {node} forced by hand"),
            Intervention::Veto(node) => write!(f, "node {node} vetoed by hand"),
            Intervention::Fail(point, plugin) => write!(f, "{plugin} made to fail at {point}"),
            Intervention::Hold(micros) => {
                write!(f, "held at Permit by hand, for {} at most", Duration::from_micros(*micros))
            }
        }
    }
}
