//! Preemption after the cycle that decided it (PR-050).
//!
//! Upstream evicts in a goroutine beside the scheduling loop: all victims but the last, then
//! the last. Here each call of [`Scheduler::evict_next`] does one of the steps, so that whoever
//! drives the scheduler can deliver events in between.

use std::sync::Arc;

use crate::api::Time;
use crate::engine::framework::plugin::Preemption;
use crate::engine::host::Host;
use crate::engine::pod::PodInfo;
use crate::engine::preemption::executor::{Eviction, EvictionContext, VictimHooks};
use crate::engine::scheduler::Scheduler;
use crate::intern::Symbol;

/// A preemption being carried out, and what comes next.
#[derive(Clone)]
pub(super) struct UnderWay {
    eviction: Eviction,
    plugin: Symbol,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    AllButLast,
    Last,
    Finish,
}

/// Victims that wait at Permit are noted here and decided on after the step, when the
/// scheduler is free again.
struct Noted<'a> {
    waiting: &'a [Symbol],
    rejected: Vec<(Symbol, String)>,
}

impl VictimHooks for Noted<'_> {
    fn preempt_waiting(&mut self, uid: Symbol, _plugin: Symbol, message: &str) -> Option<bool> {
        if !self.waiting.contains(&uid) {
            return None;
        }
        self.rejected.push((uid, message.to_owned()));
        Some(true)
    }

    /// PreBind ends within the cycle that started it, so no pod is ever found in it.
    fn cancel_binding(&mut self, _uid: Symbol, _cause: &str) -> Option<bool> {
        None
    }
}

impl Scheduler {
    /// Remembers that victims are to be evicted, and keeps the preemptor out of the queue.
    pub(super) fn start_preemption(&mut self, preemptor: Arc<PodInfo>, preemption: Preemption) {
        let plugin = preemption.plugin;
        if let Some(eviction) = Eviction::begin(preemptor, preemption, &mut self.shared) {
            self.preemptions.push_back(UnderWay { eviction, plugin, step: Step::AllButLast });
        }
    }

    /// Does the next step of the preemptions under way; `false` when there are none.
    pub fn evict_next(&mut self, now: Time, host: &mut dyn Host) -> bool {
        let Some(mut under_way) = self.preemptions.pop_front() else { return false };
        let waiting: Vec<Symbol> = self.waiting.iter().map(|pod| pod.pod().uid()).collect();
        let mut noted = Noted { waiting: &waiting, rejected: Vec::new() };
        let nominated = self.queue.nominated_pods();
        let mut cx =
            EvictionContext { host: &mut *host, hooks: &mut noted, nominated: &nominated, now };
        let next = match under_way.step {
            Step::AllButLast => {
                under_way.eviction.evict_all_but_last(&mut cx, &mut self.shared);
                Some(Step::Last)
            }
            Step::Last => {
                under_way.eviction.evict_last(&mut cx);
                Some(Step::Finish)
            }
            Step::Finish => None,
        };
        let plugin = under_way.plugin;
        for (uid, message) in noted.rejected {
            self.preempt_waiting(uid, plugin, &message, now, host);
        }
        match next {
            Some(step) => self.preemptions.push_front(UnderWay { step, ..under_way }),
            None => self.finish_preemption(under_way.eviction, now),
        }
        true
    }

    fn finish_preemption(&mut self, eviction: Eviction, now: Time) {
        let preemptor = eviction.preemptor().key();
        if eviction.finish(&mut self.shared) {
            let (queue, cx) = self.queue_context(now);
            queue.activate(&cx, &[preemptor]);
        }
    }
}
