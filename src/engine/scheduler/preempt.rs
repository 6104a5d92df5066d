//! Preemption after the cycle that decided it (PR-050).
//!
//! Upstream evicts in a goroutine beside the scheduling loop: all victims but the last, then
//! the last. Here each call of [`Scheduler::evict_next`] does one of the two, so that whoever
//! drives the scheduler can deliver events in between.

use std::sync::Arc;

use crate::api::Time;
use crate::engine::framework::plugin::Preemption;
use crate::engine::host::Host;
use crate::engine::pod::PodInfo;
use crate::engine::scheduler::Scheduler;

impl Scheduler {
    /// Remembers that victims are to be evicted for `preemptor`.
    pub(super) fn start_preemption(&mut self, preemptor: Arc<PodInfo>, preemption: Preemption) {
        self.preemptions.push_back((preemptor, preemption));
    }

    /// Evicts the next victims that were decided on; `false` when there are none.
    pub fn evict_next(&mut self, now: Time, host: &mut dyn Host) -> bool {
        let Some((_, preemption)) = self.preemptions.pop_front() else { return false };
        for victim in &preemption.victims {
            if !self.preempt_waiting(victim.uid(), preemption.plugin, "preempted", now, host) {
                let _deleted = host.delete_pod(victim.key());
            }
        }
        true
    }
}
