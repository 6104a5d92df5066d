//! The outcomes of a cycle by the names that breakpoints have for them, and the frame that shows
//! them.

use std::fmt;

use crate::frames::{self, Position};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::Status;

/// An outcome of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CycleEvent {
    /// The pod was bound.
    Scheduled,
    /// No node was found, or the pod was rejected later.
    Unschedulable,
    /// The cycle's outcome is SchedulerError.
    Error,
    /// Pods are preempted for this one.
    Preemption,
    /// A node was nominated.
    Nomination,
    /// The pod waits at Permit.
    PermitWait,
    /// The wait at Permit timed out.
    PermitTimeout,
    /// Several nodes shared the best total score.
    Tie,
}

impl CycleEvent {
    /// All outcomes with their names.
    pub const ALL: [(CycleEvent, &'static str); 8] = [
        (CycleEvent::Scheduled, "scheduled"),
        (CycleEvent::Unschedulable, "unschedulable"),
        (CycleEvent::Error, "error"),
        (CycleEvent::Preemption, "preemption"),
        (CycleEvent::Nomination, "nomination"),
        (CycleEvent::PermitWait, "permit-wait"),
        (CycleEvent::PermitTimeout, "permit-timeout"),
        (CycleEvent::Tie, "tie"),
    ];

    /// Whether the cycle had this outcome.
    pub fn is_of(self, record: &CycleRecord) -> bool {
        match self {
            CycleEvent::Scheduled => record.outcome == Outcome::Scheduled,
            CycleEvent::Unschedulable => record.outcome == Outcome::Unschedulable,
            CycleEvent::Error => record.outcome == Outcome::SchedulerError,
            CycleEvent::Preemption => record.preemption.is_some(),
            CycleEvent::Nomination => record.nominated_node.is_some(),
            CycleEvent::PermitWait => record.permit.iter().any(|answer| answer.status.is_wait()),
            CycleEvent::PermitTimeout => timed_out(record).is_some(),
            CycleEvent::Tie => record.tied > 0,
        }
    }

    /// Whether it is only known after the cycle, when the pod leaves Permit.
    pub(crate) fn comes_later(self) -> bool {
        self == CycleEvent::PermitTimeout
    }

    /// The frame that shows it best.
    pub fn frame(self, record: &CycleRecord) -> Position {
        use ExtensionPoint::{Bind, Permit, PostFilter, Score};
        let frame = match self {
            CycleEvent::Scheduled => last_plugin(record, Bind),
            CycleEvent::Unschedulable | CycleEvent::Error => failure(record),
            CycleEvent::Preemption | CycleEvent::Nomination => {
                let nominates = |answer: &&PluginStatus| answer.nominated.is_some();
                plugin_at(PostFilter, record.post_filter.iter().find(nominates))
            }
            CycleEvent::PermitWait => {
                plugin_at(Permit, record.permit.iter().find(|answer| answer.status.is_wait()))
            }
            CycleEvent::PermitTimeout => timed_out(record)
                .map(|plugin| frame_of(Permit, Some(plugin)))
                .or_else(|| last_plugin(record, Permit)),
            CycleEvent::Tie => Some(frame_of(Score, None)),
        };
        frame.unwrap_or_else(|| frames::beginning(record))
    }

    /// The node it concerns: selected, nominated, or where pods were preempted.
    pub fn node(self, record: &CycleRecord) -> Option<Name> {
        match self {
            CycleEvent::Preemption => record.preemption.as_ref().map(|candidate| candidate.node),
            CycleEvent::Nomination => record.nominated_node,
            CycleEvent::Scheduled
            | CycleEvent::PermitWait
            | CycleEvent::PermitTimeout
            | CycleEvent::Tie => record.node,
            CycleEvent::Unschedulable | CycleEvent::Error => None,
        }
    }

    /// Whether the plugin contributed to it.
    pub(crate) fn is_by(self, record: &CycleRecord, plugin: Symbol) -> bool {
        let rejects = |answer: &PluginStatus| {
            answer.plugin == plugin && (answer.status.is_rejected() || answer.status.is_error())
        };
        let answers = || {
            let all = frames::points(record).into_iter();
            all.flat_map(|point| record.answers(point))
        };
        match self {
            CycleEvent::Unschedulable | CycleEvent::Error => {
                answers().any(rejects)
                    || wait_ended_by(record).is_some_and(|status| status.plugin() == plugin)
                    || rejected_a_node(record, plugin)
            }
            CycleEvent::PermitTimeout => timed_out(record) == Some(plugin),
            _ => self.frame(record).plugin == Some(plugin),
        }
    }
}

impl fmt::Display for CycleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CycleEvent::ALL.iter().find(|(event, _)| event == self).map(|(_, name)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// Whether the plugin's verdict is the Filter verdict of some node.
fn rejected_a_node(record: &CycleRecord, plugin: Symbol) -> bool {
    let mut seen = None;
    record.filter.verdicts.iter().any(|id| {
        // Neighbors mostly share their verdict.
        let known = seen.replace(id) == Some(id);
        !known && record.verdicts.get(id).is_some_and(|status| status.plugin() == plugin)
    })
}

fn frame_of(point: ExtensionPoint, plugin: Option<Symbol>) -> Position {
    Position::new(point, plugin, None)
}

fn plugin_at(point: ExtensionPoint, answer: Option<&PluginStatus>) -> Option<Position> {
    answer.map(|answer| frame_of(point, Some(answer.plugin)))
}

fn last_plugin(record: &CycleRecord, point: ExtensionPoint) -> Option<Position> {
    plugin_at(point, record.answers(point).last())
}

/// What ended the wait at Permit, if the pod was not allowed.
fn wait_ended_by(record: &CycleRecord) -> Option<&Status> {
    record.permit_wait.as_ref().filter(|status| !status.is_success())
}

/// The plugin at which the wait timed out. Only the engine's message distinguishes a timeout from a
/// manual rejection.
fn timed_out(record: &CycleRecord) -> Option<Symbol> {
    let status = wait_ended_by(record)?;
    let reason = status.reasons().first()?;
    reason.starts_with("rejected due to timeout").then(|| status.plugin())
}

/// Where a cycle failed: the last extension point reached, and the plugin that rejected the pod
/// there. PostFilter does not count unless it fails itself: it only tries to make the pod
/// schedulable.
fn failure(record: &CycleRecord) -> Option<Position> {
    if let Some(status) = wait_ended_by(record) {
        return Some(frame_of(ExtensionPoint::Permit, Some(status.plugin())));
    }
    let rejected = record.outcome == Outcome::Unschedulable;
    let mut points = frames::points(record);
    points.retain(|point| !(rejected && *point == ExtensionPoint::PostFilter));
    let point = points.pop()?;
    let rejects = |answer: &&PluginStatus| answer.status.is_rejected() || answer.status.is_error();
    let answer = record.answers(point).iter().find(rejects);
    Some(plugin_at(point, answer).unwrap_or_else(|| match point {
        ExtensionPoint::Filter | ExtensionPoint::Score => frame_of(point, None),
        _ => frames::last_plugin(record),
    }))
}
