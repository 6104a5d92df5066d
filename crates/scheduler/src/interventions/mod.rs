//! What a person decides in the scheduler's place: which node a pod gets or does not get in
//! its next cycle, which pods are held at Permit, and which plugin fails.
//!
//! This is data that the engine asks at fixed points of a cycle, and every cycle's record
//! holds those that were in force in it, so that no decision looks like the scheduler's own
//! when it was not.

pub(crate) mod by_hand;
pub mod holds;

use crate::interventions::holds::{HoldRule, PodSelection};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::intervention::Intervention;

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
