//! The state of a pod.

use super::model::{Held, Place, QueuePlace};
use kubestep_api::Pod;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;
use kubestep_scheduler::WaitingPod;

/// The state of a pod: bound, waiting, or in a queue.
pub(super) fn of(world: &World, pod: &Pod) -> Place {
    let scheduler = world.scheduler();
    if pod.is_terminal() {
        return Place::Ended { phase: pod.status.phase.as_str() };
    }
    if !pod.spec.node_name.is_empty() {
        return Place::Bound { node: pod.spec.node_name };
    }
    if let Some(waiting) = scheduler.waiting().iter().find(|w| w.pod().uid() == pod.metadata.uid) {
        return waiting_place(waiting);
    }
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    match scheduler.queue().place_of(key) {
        QueueName::None if !scheduler.frameworks().contains_key(&pod.spec.scheduler_name) => {
            Place::Unserved { scheduler_name: pod.spec.scheduler_name }
        }
        QueueName::None => Place::Nowhere,
        queue => Place::Queue { queue: QueuePlace(queue) },
    }
}

fn waiting_place(waiting: &WaitingPod) -> Place {
    let held =
        |hold: &kubestep_scheduler::Hold| Held { plugin: hold.plugin, deadline: hold.deadline };
    Place::Waiting {
        node: waiting.node(),
        holds: waiting.holds().iter().map(held).collect(),
        in_pre_bind: waiting.in_pre_bind().is_some(),
        since: waiting.since(),
    }
}
