//! Preemptions in progress: a cycle starts them, and they run in the background of later cycles.
//!
//! Upstream evicts in a goroutine beside the scheduling loop. Here each call of
//! [`Scheduler::evict_next`] takes one step, so that the caller can deliver events between steps.

use crate::{Scheduler, Stage as WaitingStage};
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::Feature;
use kubestep_framework::host::Host;
use kubestep_framework::plugin::Preemption;
use kubestep_framework::preemption::executor::{
    Eviction, EvictionContext, Preemptor, VictimHooks, evict_at_once,
};

impl Scheduler {
    /// Starts to evict victims for `preemptor`; with SchedulerAsyncPreemption off, evicts them at
    /// once.
    ///
    /// # Errors
    /// A victim could not be evicted.
    pub(crate) fn start_preemption(
        &mut self,
        preemptor: Preemptor,
        preemption: Preemption,
        now: Time,
        host: &mut dyn Host,
    ) -> Result<(), String> {
        if self.features.enabled(Feature::SchedulerAsyncPreemption) {
            if let Some(eviction) = Eviction::new(preemptor, preemption) {
                eviction.mark(&mut self.shared);
                self.preemptions.push_back(eviction);
            }
            return Ok(());
        }
        let (nominated, mut victims) = (self.queue.nominated_pods(), self.unbound_victims());
        let hooks = &mut victims;
        let mut cx = EvictionContext { host: &mut *host, hooks, nominated: &nominated, now };
        let outcome = evict_at_once(&mut cx, &preemptor, &preemption);
        self.preempt_all_waiting(victims, now, host);
        let unanswered = outcome?;
        if !unanswered.is_empty() {
            self.preemptions.push_back(Eviction::unanswered(preemptor, preemption, unanswered));
        }
        Ok(())
    }

    /// Takes the next step of the preemptions in progress; `false` if there is none to take.
    pub fn evict_next(&mut self, now: Time, host: &mut dyn Host) -> bool {
        (0..self.preemptions.len()).any(|_| self.evict_in_turn(now, host))
    }

    /// Continues the first preemption. `false` if it waits for answers; it moves to the end then.
    fn evict_in_turn(&mut self, now: Time, host: &mut dyn Host) -> bool {
        let Some(mut eviction) = self.preemptions.pop_front() else { return false };
        if eviction.is_over() {
            self.end_eviction(&eviction, now);
            return true;
        }
        let (nominated, mut victims) = (self.queue.nominated_pods(), self.unbound_victims());
        let hooks = &mut victims;
        let mut cx = EvictionContext { host: &mut *host, hooks, nominated: &nominated, now };
        if eviction.step(&mut cx).is_pending() {
            self.preempt_all_waiting(victims, now, host);
            self.preemptions.push_back(eviction);
            return false;
        }
        if !eviction.is_over() {
            eviction.mark(&mut self.shared);
            self.preempt_all_waiting(victims, now, host);
            self.preemptions.push_front(eviction);
        } else if victims.preempted.is_empty() {
            // It ends only after the victim's events are delivered: the preemptor is still gated by
            // its preemption when it sees that the victim was marked.
            self.preemptions.push_front(eviction);
        } else {
            self.end_eviction(&eviction, now);
            self.preempt_all_waiting(victims, now, host);
        }
        true
    }

    /// Ends a preemption, after which the preemptor is no longer gated. If an eviction failed, the
    /// preemptor is activated, because no event may ever requeue it.
    fn end_eviction(&mut self, eviction: &Eviction, now: Time) {
        eviction.mark(&mut self.shared);
        if eviction.has_failed() {
            let (queue, cx) = self.queue_context(now);
            queue.activate(&cx, &eviction.preemptor().pods);
        }
    }

    /// The preemptions in progress, in the order they were decided.
    pub fn preemptions(&self) -> impl Iterator<Item = &Eviction> {
        self.preemptions.iter()
    }

    fn unbound_victims(&self) -> UnboundVictims {
        let unbound = self.waiting.iter().filter(|waiting| waiting.stage() != WaitingStage::Bind);
        let waiting = unbound.map(|waiting| waiting.pod().uid()).collect();
        UnboundVictims { waiting, preempted: Vec::new() }
    }

    /// Ends the waits of victims. Upstream's binding goroutine does this when it is scheduled,
    /// which is after the preemptor is ungated. Otherwise the preemptor would still be gated when
    /// the event of its freed node arrives.
    fn preempt_all_waiting(&mut self, victims: UnboundVictims, now: Time, host: &mut dyn Host) {
        for (uid, plugin, message) in victims.preempted {
            self.preempt_waiting(uid, plugin, &message, now, host);
        }
    }
}

/// Victims that are assumed but not bound.
struct UnboundVictims {
    /// UIDs of the pods that wait at Permit or in PreBind.
    waiting: Vec<Symbol>,
    /// The preempted ones: UID, name of the preempting plugin, and message.
    preempted: Vec<(Symbol, Symbol, String)>,
}

impl VictimHooks for UnboundVictims {
    fn preempt_waiting(&mut self, uid: Symbol, plugin: Symbol, message: &str) -> Option<bool> {
        if !self.waiting.contains(&uid) {
            return None;
        }
        self.preempted.push((uid, plugin, message.to_owned()));
        Some(true)
    }

    /// A victim in PreBind is among `waiting`, so [`VictimHooks::preempt_waiting`] covers it.
    fn cancel_binding(&mut self, _: Symbol, _: &str) -> Option<bool> {
        None
    }
}
