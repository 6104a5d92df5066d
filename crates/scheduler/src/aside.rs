//! A pod that somebody outside decided about is left alone.

use crate::Scheduler;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

impl Scheduler {
    /// Puts a waiting pod aside in the name of `by`, which is no plugin: no event brings it
    /// back, only a change of the pod, the flush of leftovers or [`Scheduler::activate`].
    pub fn put_aside(&mut self, pod: NamespacedName, by: Symbol, now: Time) {
        let (queue, cx) = self.queue_context(now);
        let Some(mut queued) = queue.pop_specific(&cx, pod) else { return };
        // This was no attempt.
        queued.attempts -= 1;
        queued.unschedulable_plugins = vec![by];
        // It was just taken out, so it is in no other queue.
        let _put_back = queue.add_unschedulable_if_not_present(&cx, queued);
    }
}
