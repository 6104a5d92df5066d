//! Parking a pod that another scheduler or the user has already decided about.

use crate::Scheduler;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

impl Scheduler {
    /// Parks a waiting pod in the unschedulable queue with `by`, which is no plugin, as its
    /// rejector. No event requeues it; only an update of the pod, the flush of leftover pods or
    /// [`Scheduler::activate`] does.
    pub fn put_aside(&mut self, pod: NamespacedName, by: Symbol, now: Time) {
        let (queue, cx) = self.queue_context(now);
        let Some(mut queued) = queue.pop_specific(&cx, pod) else { return };
        // Popping the pod to park it is not a scheduling attempt.
        queued.attempts -= 1;
        queued.unschedulable_plugins = vec![by];
        // The pod was just popped, so it is in no other queue and the call cannot fail.
        let _put_back = queue.add_unschedulable_if_not_present(&cx, queued);
    }
}
