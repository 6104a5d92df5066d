//! The outside of a scheduler: the [`Host`] that its plugins see, which also learns how far each
//! cycle has come.

use kubestep_config::ExtensionPoint;
use kubestep_framework::host::Host;

use crate::Scheduler;

/// What a scheduling cycle has just done to the scheduler's state, in the order of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Milestone {
    /// Its pod left the queue.
    Popped,
    /// The plugins of an extension point ran, and what they decided is done. The pod is assumed
    /// on its node right before Reserve.
    Ran(ExtensionPoint),
    /// It failed, and its pod is back in the queue.
    Requeued,
}

/// The outside of a scheduler.
pub trait SchedulerHost: Host {
    /// A cycle, by its number, reached a milestone: a debugger can look at the scheduler here.
    fn reached(&mut self, _scheduler: &Scheduler, _cycle: u64, _milestone: Milestone) {}
}

#[cfg(any(test, feature = "testing"))]
impl SchedulerHost for kubestep_framework::testing::FakeHost {}
