//! What a person decides in the scheduler's place: which node a pod gets or does not get in
//! its next cycle, which pods are held at Permit, and which plugin fails.
//!
//! This is data that the engine asks at fixed points of a cycle, and every cycle's record
//! holds those that were in force in it, so that no decision looks like the scheduler's own
//! when it was not.

use std::fmt;

use crate::config::ExtensionPoint;
use crate::config::duration::Duration;
use crate::engine::holds::{HOLD, HoldRule, PodSelection};
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::record::CycleRecord;
use crate::engine::status::Status;
use crate::intern::Symbol;

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

/// An intervention that waits for its cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The pod whose cycles it is for; all without.
    pub pod: Option<NamespacedName>,
    /// What it does.
    pub what: Intervention,
    /// Whether it stays in force after one cycle.
    pub lasting: bool,
}

/// The interventions that are in force, in the order they were made.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Interventions {
    standing: Vec<Standing>,
    holds: Vec<HoldRule>,
}

impl Interventions {
    /// Adds one.
    pub fn add(&mut self, standing: Standing) {
        self.standing.push(standing);
    }

    /// Takes all back. `false` if there were none.
    pub fn clear(&mut self) -> bool {
        let any = !self.standing.is_empty() || !self.holds.is_empty();
        self.standing.clear();
        self.holds.clear();
        any
    }

    /// Holds pods from now on. Of two rules for the same pods the newer one counts.
    pub fn hold(&mut self, rule: HoldRule) {
        self.end_hold(Some(&rule.pods));
        self.holds.push(rule);
    }

    /// Ends the rule that is written like this, or all. `false` if there is none.
    pub fn end_hold(&mut self, pods: Option<&PodSelection>) -> bool {
        let before = self.holds.len();
        self.holds.retain(|rule| pods.is_some_and(|pods| rule.pods != *pods));
        self.holds.len() != before
    }

    /// Which pods are held.
    pub fn holds(&self) -> &[HoldRule] {
        &self.holds
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.standing.iter()
    }

    /// Those for a cycle of that pod, which begins. Those for one cycle are used up by it.
    pub(super) fn take(&mut self, pod: &PodInfo) -> Vec<Intervention> {
        let mut taken = Vec::new();
        let key = pod.key();
        self.standing.retain(|standing| {
            let concerns = standing.pod.is_none_or(|only| only == key);
            if concerns {
                taken.push(standing.what);
            }
            standing.lasting || !concerns
        });
        let hold = self.holds.iter().rev().find(|rule| rule.pods.matches(pod));
        taken.extend(hold.map(|rule| Intervention::Hold(rule.timeout)));
        taken
    }
}

impl Intervention {
    /// The status of a node that this keeps from being taken.
    pub(super) fn refusal(self) -> Status {
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
