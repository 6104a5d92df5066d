//! Changes of the pods themselves: updates, deletions, activation.
//!
//! Upstream: `Update`, `Delete` and `Activate` in
//! `pkg/scheduler/backend/queue/scheduling_queue.go`.

use std::sync::Arc;

use super::{MoveCause, SchedulingQueue, with_orders};
use crate::queue::pod_events::pod_update_events;
use crate::queue::requeueing::{JudgedEvent, unschedulable_queue};
use kubestep_api::intern::Symbol;
use kubestep_api::{Object, Pod};
use kubestep_config::versions::Switch;
use kubestep_framework::events::{ClusterEvent, EventObjects};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::QueueName;

fn key_of(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}

impl SchedulingQueue {
    /// Handles an update of a pod. If it is in flight, its events are recorded; in the active or
    /// backoff queue it is replaced in place; an unschedulable one is requeued if an event of the
    /// update helps; one that is in no queue is added.
    pub fn update(&mut self, cx: &QueueContext<'_>, old: &Arc<Pod>, new: Arc<Pod>) {
        self.begin(cx);
        let events = pod_update_events(old, &new, cx.features);
        let objects = EventObjects {
            old: Some(Object::Pod(old.clone())),
            new: Some(Object::Pod(new.clone())),
        };
        if self.settings.hints && self.in_flight.contains(new.metadata.uid) {
            let list = Arc::make_mut(&mut self.in_flight);
            events.into_iter().for_each(|event| list.push_event(event, objects.clone()));
            return;
        }
        if self.replace_in_place(cx, old, &new) {
            return;
        }
        let key = key_of(&new);
        let Some(pod) = self.unschedulable.get(key) else {
            let info = Arc::new(PodInfo::with_features(new, cx.features));
            return self.add_new(cx, info, MoveCause::event("UnschedulablePodUpdate"));
        };
        let mut pod = QueuedPodInfo::clone(pod);
        pod.info = Arc::new(pod.info.updated(new.clone(), cx.features));
        self.sign(cx, &mut pod);
        self.update_nominated_pod(old, &pod.info.clone(), cx.objects);
        Arc::make_mut(&mut self.unschedulable).add_or_update(Arc::new(pod));
        if !self.settings.hints {
            return self.retry_without_hints(cx, key, old, &new);
        }
        self.retry_after_update(cx, key, &events, &objects);
    }

    /// Judges the events one by one until the pod has left the unschedulable pods.
    fn retry_after_update(
        &mut self,
        cx: &QueueContext<'_>,
        key: NamespacedName,
        events: &[ClusterEvent],
        objects: &EventObjects,
    ) {
        let plugins = self.plugins.clone();
        for event in events {
            let Some(pod) = self.unschedulable.get(key).cloned() else { return };
            let hints = plugins.matching(event);
            let verdict = self.judge(cx, &pod, JudgedEvent { event, objects, hints: &hints });
            let (from, label) = (unschedulable_queue(&pod), Symbol::new(&event.label()));
            self.requeue(cx, Arc::unwrap_or_clone(pod), from, verdict, label);
        }
    }

    /// Replaces the pod in the active or the backoff queue, if it is there.
    fn replace_in_place(&mut self, cx: &QueueContext<'_>, old: &Pod, new: &Arc<Pod>) -> bool {
        let key = key_of(old);
        let there = self.active.get(key).map(|pod| (pod, true));
        let there = there.or_else(|| self.backoff.get(key).map(|pod| (pod, false)));
        let Some((pod, is_active)) = there else { return false };
        let mut pod = QueuedPodInfo::clone(pod);
        pod.info = Arc::new(pod.info.updated(new.clone(), cx.features));
        self.sign(cx, &mut pod);
        let info = pod.info.clone();
        with_orders!(self, |less, order| match is_active {
            true => Arc::make_mut(&mut self.active).add_or_update(Arc::new(pod), less),
            false => self.backoff.replace(pod, order),
        });
        self.update_nominated_pod(old, &info, cx.objects);
        true
    }

    fn update_nominated_pod(&mut self, old: &Pod, new: &Arc<PodInfo>, objects: &Objects) {
        let known = self.nominator.contains(old.metadata.uid);
        if known || !new.pod.status.nominated_node_name.is_empty() {
            Arc::make_mut(&mut self.nominator).update(old, &new.pod, objects);
        }
    }

    /// Removes a deleted or bound pod from its queue. As upstream, it is found by namespace and
    /// name; the UID is not compared. A pod in flight stays until it is done.
    pub fn delete(&mut self, pod: &Pod) {
        self.delete_nominated_pod_if_exists(pod.metadata.uid);
        let key = key_of(pod);
        let from = self.queue_except_in_flight(key);
        with_orders!(self, |less, order| match from {
            QueueName::Active => drop(Arc::make_mut(&mut self.active).remove(key, less)),
            QueueName::Backoff => drop(self.backoff.remove(key, order)),
            QueueName::Unschedulable | QueueName::Gated => {
                drop(Arc::make_mut(&mut self.unschedulable).remove(key));
            }
            QueueName::None | QueueName::InFlight => {}
        });
        self.record(key, from, QueueName::None, MoveCause::event("UnschedulablePodDelete"));
    }

    /// Moves the pods into the active queue, also from backoff. A pod in flight is requeued
    /// immediately if it fails (up to 1.31, not); others are not affected.
    pub fn activate(&mut self, cx: &QueueContext<'_>, keys: &[NamespacedName]) {
        self.begin(cx);
        for key in keys {
            if !self.activate_one(cx, *key)
                && self.settings.behaviour.has(Switch::ActivationInFlight)
            {
                self.activate_in_flight(*key);
            }
        }
    }

    fn activate_in_flight(&mut self, key: NamespacedName) {
        self.moved_in_cycle = Some(self.cycle);
        let in_flight = self.in_flight.by_key(key).filter(|_| self.settings.hints);
        let Some(pod) = in_flight else { return };
        let objects = EventObjects { old: None, new: Some(Object::Pod(pod.info.pod.clone())) };
        Arc::make_mut(&mut self.in_flight).push_event(ClusterEvent::FORCE_ACTIVATE, objects);
    }

    /// Moves one pod. `true` if it is now in the active queue because of this.
    pub(super) fn activate_one(&mut self, cx: &QueueContext<'_>, key: NamespacedName) -> bool {
        let (pod, from) = match self.unschedulable.get(key) {
            Some(pod) => (pod.clone(), unschedulable_queue(pod)),
            None => {
                let removed = with_orders!(self, |_less, order| self.backoff.remove(key, order));
                let Some(pod) = removed else { return false };
                (pod, QueueName::Backoff)
            }
        };
        let cause = MoveCause::event("ForceActivate");
        self.move_to_active(cx, Arc::unwrap_or_clone(pod), from, cause) == QueueName::Active
    }
}
