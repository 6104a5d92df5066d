//! Changing the configuration of a queue in use, and retrying pods at the user's request.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{MoveCause, QueueSettings, SchedulingQueue};
use crate::queue::backoff::BackoffQueue;
use crate::queue::hints::QueuePlugins;
use kubestep_api::Object;
use kubestep_api::intern::Symbol;
use kubestep_framework::events::{ClusterEvent, EventObjects};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::QueueName;
use kubestep_framework::runtime::Framework;

impl SchedulingQueue {
    /// Switches to other profiles and settings. Every pod stays in its queue, in the new order,
    /// unless a PreEnqueue plugin of the new profiles gates it or one of the old no longer does.
    /// Pods that wait for an event are requeued, because their rejectors may no longer exist.
    pub fn reconfigure(
        &mut self,
        cx: &QueueContext<'_>,
        settings: QueueSettings,
        frameworks: &IndexMap<Symbol, Arc<Framework>>,
    ) {
        self.begin(cx);
        let owned = |pods: Vec<&QueuedPodInfo>| pods.into_iter().cloned().collect::<Vec<_>>();
        let (active, backoff) = (owned(self.active()), owned(self.backoff()));
        self.plugins = Arc::new(QueuePlugins::new(&settings, frameworks));
        self.settings = settings;
        self.begin(cx);
        let waiting = self.unschedulable.walk(0, |_| true).into_iter();
        for mut pod in waiting.map(|pod| (**pod).clone()).collect::<Vec<_>>() {
            self.sign(cx, &mut pod);
            Arc::make_mut(&mut self.unschedulable).add_or_update(Arc::new(pod));
        }
        let gated = owned(self.gated());
        (self.active, self.backoff) = (Arc::default(), BackoffQueue::default());
        let cause = MoveCause::event(&ClusterEvent::RECONFIGURED.label());
        for mut pod in active {
            self.sign(cx, &mut pod);
            self.move_to_active(cx, pod, QueueName::Active, cause);
        }
        for mut pod in backoff {
            self.sign(cx, &mut pod);
            self.move_to_backoff(cx, pod, QueueName::Backoff, cause);
        }
        for pod in gated {
            self.leave_unschedulable(pod.key());
            self.move_to_active(cx, pod, QueueName::Gated, cause);
        }
        let objects = EventObjects { old: None, new: None };
        self.move_all(cx, ClusterEvent::RECONFIGURED, &objects, None);
    }

    /// Requeues a pod that waits for an event, as if a helpful event had occurred: at once, or when
    /// its backoff is over. `false` if it does not wait for one.
    pub fn retry(&mut self, cx: &QueueContext<'_>, key: NamespacedName) -> bool {
        let Some(pod) = self.unschedulable.get(key).filter(|pod| !pod.is_gated()) else {
            return false;
        };
        let uid = pod.uid();
        let new = Some(Object::Pod(pod.info.pod.clone()));
        let objects = EventObjects { old: None, new };
        let only = |info: &PodInfo| info.uid() == uid;
        self.move_all(cx, ClusterEvent::MANUAL, &objects, Some(&only));
        true
    }
}
