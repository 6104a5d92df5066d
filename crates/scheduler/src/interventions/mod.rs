//! Interventions: decisions that a person makes for the scheduler, such as which node a pod gets
//! or does not get in its next cycle, which pods are held at Permit, and which plugin fails.
//!
//! A cycle asks for them at fixed points. Its record holds those that were in force, so that
//! the scheduler's own decisions can be distinguished.

mod holds;

use crate::answers::PluginAnswers;
use kubestep_api::Name;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeId;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::intervention::{HOLD, Intervention};
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::runtime::binding::PermitOutcome;
use kubestep_framework::snapshot::Snapshot;

pub use holds::{HoldRule, ParseHoldError, PodSelection, release};

/// An intervention that waits for its cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingIntervention {
    /// The pod whose cycles it is for; `None` for all pods.
    pub pod: Option<NamespacedName>,
    /// The decision that it makes in the cycle.
    pub what: Intervention,
    /// Whether it stays in force after one cycle.
    pub lasting: bool,
}

/// The interventions that are in force, in the order they were made.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Interventions {
    pending: Vec<PendingIntervention>,
    holds: Vec<HoldRule>,
}

impl Interventions {
    /// Adds an intervention after those that are pending.
    pub fn add(&mut self, intervention: PendingIntervention) {
        self.pending.push(intervention);
    }

    /// Drops all. `false` if there were none.
    pub fn clear(&mut self) -> bool {
        let any = !self.pending.is_empty() || !self.holds.is_empty();
        self.pending.clear();
        self.holds.clear();
        any
    }

    /// Holds pods from now on. A rule replaces an earlier one with the same selection.
    pub fn hold(&mut self, rule: HoldRule) {
        self.end_hold(Some(&rule.pods));
        self.holds.push(rule);
    }

    /// Ends the rule with this selection, or all with `None`. `false` if there is none.
    pub(crate) fn end_hold(&mut self, pods: Option<&PodSelection>) -> bool {
        let before = self.holds.len();
        self.holds.retain(|rule| pods.is_some_and(|pods| rule.pods != *pods));
        self.holds.len() != before
    }

    /// Which pods are held.
    pub fn holds(&self) -> &[HoldRule] {
        &self.holds
    }

    /// The pending interventions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &PendingIntervention> {
        self.pending.iter()
    }

    /// Those for a cycle of that pod, which begins. Those for one cycle are removed.
    pub(crate) fn take(&mut self, pod: &PodInfo) -> Vec<Intervention> {
        let mut taken = Vec::new();
        let key = pod.key();
        self.pending.retain(|pending| {
            let applies = pending.pod.is_none_or(|only| only == key);
            if applies {
                taken.push(pending.what);
            }
            pending.lasting || !applies
        });
        let hold = self.holds.iter().rev().find(|rule| rule.pods.matches(pod));
        taken.extend(hold.map(|rule| Intervention::Hold(rule.timeout)));
        taken
    }
}

/// Whether one of these influences the decision; a hold does not.
pub(crate) fn decide(interventions: &[Intervention]) -> bool {
    !interventions.iter().all(|one| matches!(one, Intervention::Hold(_)))
}

/// The state of a cycle that begins, with the plugins that are made to fail.
pub(crate) fn initial_state(interventions: &[Intervention]) -> CycleState {
    let fault = |intervention: &Intervention| match *intervention {
        Intervention::Fail(point, plugin) => Some((point, plugin)),
        _ => None,
    };
    let mut state = CycleState::default();
    state.faults = interventions.iter().filter_map(fault).collect();
    state
}

/// The first intervention that forces an existing node on the pod, with that node.
pub(crate) fn forced(
    interventions: &[Intervention],
    snapshot: &Snapshot,
) -> Option<(Intervention, NodeId)> {
    interventions.iter().find_map(|intervention| match *intervention {
        Intervention::Force(name) => Some((*intervention, snapshot.by_name(name)?.id)),
        _ => None,
    })
}

/// Whether the node must not be selected in this cycle.
pub(crate) fn is_vetoed(interventions: &[Intervention], node: Name) -> bool {
    interventions.contains(&Intervention::Veto(node))
}

/// The verdict about a node, or the rejection if the node passes but is vetoed.
pub(crate) fn vetoed(
    answers: &mut PluginAnswers,
    interventions: &[Intervention],
    node: Name,
    verdict: VerdictId,
) -> VerdictId {
    match verdict == VerdictId::PASS && is_vetoed(interventions, node) {
        true => answers.verdict_id(&Intervention::Veto(node).rejection()),
        false => verdict,
    }
}

/// The node that was chosen for the pod, if it is among those with the best score.
pub(crate) fn chosen(record: &CycleRecord) -> Option<Name> {
    record.interventions.iter().find_map(|intervention| match intervention {
        Intervention::Choose(node) => {
            let tied = record.tied_nodes();
            tied.iter().map(|id| record.nodes.name(*id)).find(|name| name == node)
        }
        _ => None,
    })
}

/// Adds the hold that a rule asks for to what the Permit plugins answered. A pod that one of
/// them rejected is not held.
pub(crate) fn hold_at_permit(interventions: &[Intervention], outcome: &mut PermitOutcome) {
    let timeout = interventions.iter().find_map(|intervention| match *intervention {
        Intervention::Hold(timeout) => Some(timeout),
        _ => None,
    });
    if let Some(timeout) = timeout {
        outcome.add_wait(HOLD.into(), "held manually at Permit", timeout);
    }
}
