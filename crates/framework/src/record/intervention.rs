//! What the user decided instead of the scheduler in one cycle. Every record lists the
//! interventions that were in force, so that a decision of the user never looks like one of the
//! scheduler. The scheduler holds those for later cycles.

use std::fmt;

use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name};
use kubestep_config::ExtensionPoint;

use crate::cycle_state::FAULT;
use crate::record::CycleRecord;
use crate::status::Status;

/// Extension points at which a fault can be injected.
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

/// The name of a hold at Permit where a plugin's name is expected. Holds are not part of
/// kube-scheduler, so no plugin has this name.
pub const HOLD: &str = "kubestep.Hold";

/// Something that decides instead of the scheduler during one cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intervention {
    /// Selects this node if it shares the best score.
    Choose(Name),
    /// Selects this node, whatever PreFilter, Filter and Score return.
    Force(Name),
    /// Excludes this node although it passes the filters.
    Veto(Name),
    /// Makes the plugin fail with an error at that point.
    Fail(ExtensionPoint, Symbol),
    /// Holds the pod at Permit for at most that time.
    Hold(Duration),
}

impl Intervention {
    /// The status of a node that this excludes.
    pub fn rejection(self) -> Status {
        Status::unschedulable(match self {
            Intervention::Force(_) => "node(s) excluded: another node is forced",
            _ => "node(s) vetoed manually",
        })
    }

    /// Whether it affected a cycle, as far as that is recorded: if the lists per node were left
    /// out, it is assumed to have.
    pub fn decided(self, record: &CycleRecord) -> bool {
        let lists_are_omitted = record.omitted.is_some();
        match self {
            Intervention::Choose(node) => record.node == Some(node) && record.tied > 0,
            Intervention::Force(node) => record.node == Some(node),
            Intervention::Veto(_) if lists_are_omitted => true,
            Intervention::Veto(_) => record
                .verdicts
                .find(&self.rejection())
                .is_some_and(|id| record.filter.verdicts.iter().any(|verdict| verdict == id)),
            Intervention::Fail(point, plugin) => failed_at(record, point, plugin),
            Intervention::Hold(_) => record.permit.iter().any(|answer| answer.plugin == HOLD),
        }
    }
}

fn failed_at(record: &CycleRecord, point: ExtensionPoint, plugin: Symbol) -> bool {
    let answers = match point {
        ExtensionPoint::Filter if record.omitted.is_some() => return true,
        ExtensionPoint::Filter => {
            let text = format!("running {plugin:?} filter plugin: {FAULT}");
            let id = record.verdicts.find(&Status::error(&text).by(plugin));
            return record.filter.verdicts.iter().any(|verdict| Some(verdict) == id);
        }
        // A failed column is not in the record.
        ExtensionPoint::Score => return record.message.ends_with(FAULT),
        point => record.answers(point),
    };
    answers.iter().any(|answer| answer.plugin == plugin)
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Intervention::Choose(node) => write!(f, "node {node} chosen manually"),
            Intervention::Force(node) => write!(f, "node {node} forced manually"),
            Intervention::Veto(node) => write!(f, "node {node} vetoed manually"),
            Intervention::Fail(point, plugin) => write!(f, "{plugin} made to fail at {point}"),
            Intervention::Hold(most) => write!(f, "held manually at Permit, at most {most}"),
        }
    }
}
