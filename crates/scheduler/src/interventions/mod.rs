//! What the user decides instead of the scheduler: which node a pod gets or does not get in its
//! next cycle, which pods are held at Permit, and which plugin fails.
//!
//! Interventions are data that the engine reads at fixed points of a cycle. Every cycle's record
//! lists those that applied to it, so that a decision of the user never looks like one of the
//! scheduler.

pub(crate) mod by_hand;
pub mod holds;

use crate::interventions::holds::{HoldRule, PodSelection};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::intervention::Intervention;

/// An intervention that waits for its cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The pod to whose cycles it applies; `None` for all pods.
    pub pod: Option<NamespacedName>,
    /// What it does.
    pub what: Intervention,
    /// Whether it remains in force after one cycle.
    pub lasting: bool,
}

/// The interventions that are in force, in the order they were made.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Interventions {
    standing: Vec<Standing>,
    holds: Vec<HoldRule>,
}

impl Interventions {
    /// Adds an intervention.
    pub fn add(&mut self, standing: Standing) {
        self.standing.push(standing);
    }

    /// Removes all interventions. `false` if there were none.
    pub fn clear(&mut self) -> bool {
        let any = !self.standing.is_empty() || !self.holds.is_empty();
        self.standing.clear();
        self.holds.clear();
        any
    }

    /// Adds a hold rule. It replaces an earlier rule with the same selection.
    pub fn hold(&mut self, rule: HoldRule) {
        self.end_hold(Some(&rule.pods));
        self.holds.push(rule);
    }

    /// Ends the rule with this selection, or all with `None`. `false` if there is none.
    pub fn end_hold(&mut self, pods: Option<&PodSelection>) -> bool {
        let before = self.holds.len();
        self.holds.retain(|rule| pods.is_some_and(|pods| rule.pods != *pods));
        self.holds.len() != before
    }

    /// The hold rules.
    pub fn holds(&self) -> &[HoldRule] {
        &self.holds
    }

    /// All interventions.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.standing.iter()
    }

    /// The interventions for a cycle of that pod. Those for one cycle are removed.
    pub(crate) fn take(&mut self, pod: &PodInfo) -> Vec<Intervention> {
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
