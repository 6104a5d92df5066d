//! Where a cycle asks for what a person decided in the scheduler's place, and what a person
//! does to the queue.

use std::collections::BTreeSet;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::cycle::matrix::number;
use crate::host::SchedulerHost;
use crate::interventions::Interventions;
use crate::interventions::holds::PodSelection;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, ObjectKey, Time};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::extender;
use kubestep_framework::node::NodeId;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::intervention::HOLD;
use kubestep_framework::record::intervention::Intervention;
use kubestep_framework::record::{CycleRecord, QueueName, VerdictId};
use kubestep_framework::status::node_statuses::Diagnosis;

impl Scheduler {
    /// What a person decided for cycles to come.
    pub fn interventions(&self) -> &Interventions {
        &self.interventions
    }

    /// What a person decided for cycles to come, to be changed.
    pub fn interventions_mut(&mut self) -> &mut Interventions {
        &mut self.interventions
    }

    /// Moves a pod into the active queue, whatever it waits for; gates still hold. `false` if
    /// it is in no queue or does not get there.
    pub fn activate(&mut self, key: NamespacedName, now: Time) -> bool {
        let (queue, cx) = self.queue_context(now);
        queue.activate(&cx, &[key]);
        queue.place_of(key) == QueueName::Active
    }

    /// Tries a pod again that waits for an event. `false` if it does not wait for one.
    pub fn retry(&mut self, key: NamespacedName, now: Time) -> bool {
        let (queue, cx) = self.queue_context(now);
        queue.retry(&cx, key)
    }

    /// Holds these pods no more, without a selection none: rules that are written like this end,
    /// and pods that wait go on as far as only their hold kept them. Gives whether a rule ended,
    /// and how many pods were let go.
    pub fn release(
        &mut self,
        pods: Option<&PodSelection>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> (bool, usize) {
        let ended = self.interventions.end_hold(pods);
        let held = self.waiting().iter().filter(|waiting| {
            let by_hand = waiting.holds().iter().any(|hold| hold.plugin == HOLD);
            by_hand && pods.is_none_or(|pods| pods.matches(waiting.pod()))
        });
        let held: Vec<Symbol> = held.map(|waiting| waiting.pod().uid()).collect();
        for uid in &held {
            self.allow_waiting(*uid, Some(HOLD.into()), now, host);
        }
        (ended, held.len())
    }

    /// Volumes, volume claims and resource claims that are decided in memory, by Reserve, and
    /// not yet written.
    pub fn reserved_objects(&self) -> BTreeSet<ObjectKey> {
        let key = |kind| {
            move |name: NamespacedName| ObjectKey {
                kind,
                namespace: name.namespace,
                name: name.name,
            }
        };
        let assumed = &self.shared.volumes;
        let volumes =
            assumed.volumes.names(&self.objects).into_iter().map(key(Kind::PersistentVolume));
        let claims =
            assumed.claims.names(&self.objects).into_iter().map(key(Kind::PersistentVolumeClaim));
        let devices = self.shared.claims.unwritten().map(key(Kind::ResourceClaim));
        volumes.chain(claims).chain(devices).collect()
    }

    /// The node that is forced on the pod, as the only one that is feasible. The verdicts
    /// that the filters give stay in the record.
    pub(crate) fn forced_node(
        &mut self,
        cycle: &mut Cycle,
        diagnosis: &mut Diagnosis,
    ) -> Option<Vec<NodeId>> {
        let force = |intervention: &Intervention| match *intervention {
            Intervention::Force(name) => Some((*intervention, self.snapshot.by_name(name)?.id)),
            _ => None,
        };
        let (forced, node) = cycle.record.interventions.iter().find_map(force)?;
        *diagnosis = Diagnosis::default();
        self.fill_matrix(cycle);
        let left_out = number(&mut self.verdicts, &forced.refusal());
        let verdicts = self.snapshot.order().iter().map(|id| match *id == node {
            true => VerdictId::PASS,
            false => left_out,
        });
        for (id, verdict) in self.snapshot.order().iter().zip(verdicts) {
            cycle.official[id.index()] = verdict;
        }
        cycle.evaluated.push(node);
        cycle.nodes = extender::infos(&self.snapshot, &[node]);
        Some(vec![node])
    }

    /// The verdict on a node, if it is not a pass that was vetoed.
    pub(crate) fn unless_vetoed(
        &mut self,
        cycle: &Cycle,
        node: Symbol,
        verdict: VerdictId,
    ) -> VerdictId {
        match verdict == VerdictId::PASS && is_vetoed(cycle, node) {
            true => number(&mut self.verdicts, &Intervention::Veto(node).refusal()),
            false => verdict,
        }
    }
}

/// Whether a node is not to be taken in this cycle.
pub(crate) fn is_vetoed(cycle: &Cycle, node: Symbol) -> bool {
    cycle.record.interventions.contains(&Intervention::Veto(node))
}

/// The node that a person chose, if it is among those with the best score.
pub(crate) fn chosen(record: &CycleRecord) -> Option<Symbol> {
    record.interventions.iter().find_map(|intervention| match intervention {
        Intervention::Choose(node) => {
            let mut tied = record.tie.iter().map(|id| record.nodes.name(*id));
            tied.find(|name| name == node)
        }
        _ => None,
    })
}

/// How long the pod is to be held at Permit, in microseconds.
pub(crate) fn hold(record: &CycleRecord) -> Option<i64> {
    record.interventions.iter().find_map(|intervention| match *intervention {
        Intervention::Hold(timeout) => Some(timeout),
        _ => None,
    })
}

/// The state of a cycle that begins.
pub(crate) fn state(interventions: &[Intervention]) -> CycleState {
    let fault = |intervention: &Intervention| match *intervention {
        Intervention::Fail(point, plugin) => Some((point, plugin)),
        _ => None,
    };
    let mut state = CycleState::default();
    state.faults = interventions.iter().filter_map(fault).collect();
    state
}
