//! What no scheduler does, on top of the [`Scheduler`]: asking what would happen and repeating
//! cycles; and, from `interventions`, deciding for it.
//!
//! A [`Probe`] tries a pod without changing anything. [`Interventions`] decide for the scheduler
//! in cycles to come, [`HoldRule`]s hold pods at Permit. A [`ReplayHint`] repeats a recorded cycle
//! faster than the first time.

mod probe;
mod replay;

use crate::Scheduler;
use crate::host::SchedulerHost;
use kubestep_api::{Pod, Time};
use kubestep_framework::plugin::JointPods;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;

pub use crate::interventions::{
    HoldRule, Interventions, ParseHoldError, PendingIntervention, PodSelection, release,
};
pub use probe::{FilterRejection, PreemptionProbe, Probe, Scored};
pub use replay::ReplayHint;

/// Runs the cycle of one pod before all others, in whichever queue it waits. `None` if it is in
/// no queue, or gated.
pub fn schedule_ahead(
    scheduler: &mut Scheduler,
    key: NamespacedName,
    now: Time,
    host: &mut dyn SchedulerHost,
) -> Option<CycleRecord> {
    let queued = scheduler.queue.pop_specific(&scheduler.cluster.queue_context(now), key)?;
    Some(scheduler.schedule(queued, now, host))
}

/// The pods that a plugin of the pod's profile places together with it or not at all.
pub fn joint_pods(scheduler: &Scheduler, pod: &Pod, now: Time) -> Option<JointPods> {
    let framework = scheduler.frameworks().get(&pod.spec.scheduler_name)?;
    let cx = scheduler.cluster.queue_context(now);
    framework.instances().iter().find_map(|plugin| plugin.joint_pods(&cx, pod))
}
