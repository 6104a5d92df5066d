//! Preemptions in progress: a cycle starts them, and they go on beside the cycles.
//!
//! Upstream evicts in a goroutine beside the scheduling loop. Here each call of
//! [`Scheduler::evict_next`] takes one step, so that the caller can deliver
//! events in between.

use super::waiting::WaitingStage;
use crate::Scheduler;
use crate::host::SchedulerHost;
use kubestep_api::intern::Symbol;
use kubestep_api::{Time, Uid};
use kubestep_config::Feature;
use kubestep_framework::host::HostError;
use kubestep_framework::plugin::Preemption;
use kubestep_framework::preemption::executor::{
    Eviction, EvictionContext, Preemptor, VictimHooks, evict_at_once,
};

impl Scheduler {
    /// Begins to evict victims for `preemptor`; without SchedulerAsyncPreemption, evicts them.
    ///
    /// # Errors
    /// A victim could not be evicted.
    pub(crate) fn start_preemption(
        &mut self,
        preemptor: Preemptor,
        preemption: Preemption,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Result<(), HostError> {
        let behaviour = self.cluster.features.behaviour();
        let has_gate = self.cluster.features.enabled(Feature::SchedulerAsyncPreemption);
        if has_gate && preemption.is_asynchronous {
            if let Some(eviction) = Eviction::new(preemptor, preemption, behaviour) {
                eviction.mark(&mut self.cluster.shared);
                self.preemptions.push_back(eviction);
            }
            return Ok(());
        }
        let (nominated, mut victims) = (self.queue.update_nominated_pods(), self.unbound_victims());
        let hooks = &mut victims;
        let mut cx = EvictionContext { host: &mut *host, hooks, nominated: &nominated, now };
        let outcome = evict_at_once(&mut cx, &preemptor, &preemption, behaviour);
        self.preempt_all_waiting(victims, now, host);
        let unanswered = outcome?;
        if !unanswered.is_empty() {
            let rest = Eviction::unanswered(preemptor, preemption, unanswered, behaviour);
            self.preemptions.push_back(rest);
        }
        Ok(())
    }

    /// Takes the next step of the preemptions in progress; `false` when there is none to take.
    pub fn evict_next(&mut self, now: Time, host: &mut dyn SchedulerHost) -> bool {
        (0..self.preemptions.len()).any(|_| self.evict_in_turn(now, host))
    }

    /// Takes the next step of the first preemption; `false` if it waits for answers, which moves it
    /// to the end.
    fn evict_in_turn(&mut self, now: Time, host: &mut dyn SchedulerHost) -> bool {
        let Some(mut eviction) = self.preemptions.pop_front() else { return false };
        if eviction.is_over() {
            self.end_eviction(&eviction, now);
            return true;
        }
        let (nominated, mut victims) = (self.queue.update_nominated_pods(), self.unbound_victims());
        let hooks = &mut victims;
        let mut cx = EvictionContext { host: &mut *host, hooks, nominated: &nominated, now };
        if eviction.step(&mut cx).is_pending() {
            self.preempt_all_waiting(victims, now, host);
            self.preemptions.push_back(eviction);
            return false;
        }
        if !eviction.is_over() {
            eviction.mark(&mut self.cluster.shared);
            self.preempt_all_waiting(victims, now, host);
            self.preemptions.push_front(eviction);
        } else if victims.preempted.is_empty() && victims.rejected.is_empty() {
            // It ends after the victims' events were delivered: the update that marks a victim
            // reaches the preemptor while its preemption is still in progress.
            self.preemptions.push_front(eviction);
        } else {
            self.end_eviction(&eviction, now);
            self.preempt_all_waiting(victims, now, host);
        }
        true
    }

    /// Lets the preemptor back into the queue. After a failed eviction no event may requeue it,
    /// so it is activated.
    fn end_eviction(&mut self, eviction: &Eviction, now: Time) {
        eviction.mark(&mut self.cluster.shared);
        if eviction.has_failed() {
            let cx = self.cluster.queue_context(now);
            self.queue.activate(&cx, &eviction.preemptor().pods);
        }
    }

    /// The preemptions in progress, in the order decided.
    pub fn preemptions(&self) -> impl Iterator<Item = &Eviction> {
        self.preemptions.iter()
    }

    fn unbound_victims(&self) -> UnboundVictims {
        let unbound =
            self.waiting.pods().iter().filter(|waiting| waiting.stage() != WaitingStage::Bind);
        let waiting = unbound.map(|waiting| (waiting.pod().uid(), waiting.stage())).collect();
        UnboundVictims { waiting, preempted: Vec::new(), rejected: Vec::new() }
    }

    /// Ends the waits of victims. Upstream's binding goroutine does it after the preemptor was let
    /// back into the queue: otherwise the gate would keep the event of the freed resources from
    /// the preemptor.
    fn preempt_all_waiting(
        &mut self,
        victims: UnboundVictims,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        for (uid, plugin, message) in victims.preempted {
            self.preempt_waiting(uid, plugin, &message, now, host);
        }
        for (uid, plugin, message) in victims.rejected {
            self.reject_waiting(uid, plugin, &message, now, host);
        }
    }
}

/// Victims that are on their way to a node but not bound.
struct UnboundVictims {
    /// UIDs of the pods that wait at Permit, or in PreBind.
    waiting: Vec<(Uid, WaitingStage)>,
    /// Those of them that are preempted: UID, plugin, message.
    preempted: Vec<(Uid, Symbol, String)>,
    /// Those of them that are rejected at Permit.
    rejected: Vec<(Uid, Symbol, String)>,
}

impl VictimHooks for UnboundVictims {
    fn preempt_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> Option<bool> {
        if !self.waiting.iter().any(|(waiting, _)| *waiting == uid) {
            return None;
        }
        self.preempted.push((uid, plugin, message.to_owned()));
        Some(true)
    }

    fn reject_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> bool {
        let is_at_permit = self.waiting.contains(&(uid, WaitingStage::Permit));
        if is_at_permit {
            self.rejected.push((uid, plugin, message.to_owned()));
        }
        is_at_permit
    }

    /// A victim in PreBind is among those that wait.
    fn cancel_binding(&mut self, _: Uid, _: &str) -> Option<bool> {
        None
    }
}
