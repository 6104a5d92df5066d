//! Preemptions under way: begun by a cycle, carried on beside the cycles (PR-050).
//!
//! Upstream evicts in a goroutine beside the scheduling loop. Here each call of
//! [`Scheduler::evict_next`] takes one step, so that whoever drives the scheduler can deliver
//! events in between.

use std::sync::Arc;

use crate::api::Time;
use crate::config::Feature;
use crate::engine::framework::plugin::Preemption;
use crate::engine::host::Host;
use crate::engine::pod::PodInfo;
use crate::engine::preemption::executor::{
    Eviction, EvictionContext, Stage, VictimHooks, evict_at_once,
};
use crate::engine::scheduler::Scheduler;
use crate::intern::Symbol;

impl Scheduler {
    /// Begins to evict victims for `preemptor`; with SchedulerAsyncPreemption off, evicts them.
    ///
    /// # Errors
    /// A victim could not be evicted.
    pub(super) fn start_preemption(
        &mut self,
        preemptor: Arc<PodInfo>,
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
        let nominated = &self.queue.nominated_pods();
        let hooks = &mut UnboundVictims { scheduler: self, now };
        evict_at_once(&mut EvictionContext { host, hooks, nominated, now }, &preemptor, &preemption)
    }

    /// Takes the next step of the preemptions under way; `false` when there are none.
    pub fn evict_next(&mut self, now: Time, host: &mut dyn Host) -> bool {
        let Some(mut eviction) = self.preemptions.pop_front() else { return false };
        let nominated = &self.queue.nominated_pods();
        let hooks = &mut UnboundVictims { scheduler: self, now };
        let stage = eviction.step(&mut EvictionContext { host, hooks, nominated, now });
        eviction.mark(&mut self.shared);
        match stage {
            Stage::Begun | Stage::LastPending => self.preemptions.push_front(eviction),
            Stage::Done => {}
            Stage::Failed => {
                let (queue, cx) = self.queue_context(now);
                queue.activate(&cx, &[eviction.preemptor().key()]);
            }
        }
        true
    }

    /// The preemptions under way, in the order decided.
    pub fn preemptions(&self) -> impl Iterator<Item = &Eviction> {
        self.preemptions.iter()
    }
}

/// Victims that are on their way to a node but not bound.
struct UnboundVictims<'a> {
    scheduler: &'a mut Scheduler,
    now: Time,
}

impl VictimHooks for UnboundVictims<'_> {
    fn preempt_waiting(
        &mut self,
        uid: Symbol,
        plugin: Symbol,
        message: &str,
        host: &mut dyn Host,
    ) -> Option<bool> {
        self.scheduler.preempt_waiting(uid, plugin, message, self.now, host).then_some(true)
    }

    /// PreBind ends within the cycle that began it, so no victim is ever found in it.
    fn cancel_binding(&mut self, _: Symbol, _: &str, _: &mut dyn Host) -> Option<bool> {
        None
    }
}
