//! The binding cycle: PreBind, Bind and PostBind, or the end of them.
//!
//! Upstream: `bindingCycle` in `pkg/scheduler/schedule_one.go`.

use std::task::Poll;

use super::{Cycle, Failure};
use crate::Scheduler;
use crate::host::{Milestone, SchedulerHost};
use crate::queue::pod_events::ASSIGNED_POD_DELETE;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{ExtensionPoint, Feature};
use kubestep_framework::events::EventObjects;
use kubestep_framework::extender;
use kubestep_framework::host::{ApiEvent, PodStatusPatch};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::Status;

impl Scheduler {
    /// Assumes the pod on `node`; then the binding cycle runs, or the pod waits at Permit.
    pub(crate) fn assume_and_bind(
        &mut self,
        mut cycle: Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let permit = match self.assume_and_permit(&mut cycle, node, host) {
            Ok(permit) => permit,
            Err(failure) => {
                self.fail(&mut cycle, failure, host);
                return cycle.record;
            }
        };
        let waits = permit.status.is_wait();
        if let Err(status) = self.announce_node(&mut cycle, node, waits, host) {
            return self.fail_binding(cycle, Failure::plain(status), host);
        }
        if !waits {
            return self.finish_binding(cycle, node, host);
        }
        let record = self.waiting.wait_on_permit(cycle, node, &permit.waits);
        host.reached(self, record.cycle, Milestone::Ran(ExtensionPoint::Permit));
        record
    }

    /// PreBindPreFlight; a pod whose binding takes time is nominated to its node meanwhile.
    fn announce_node(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        waits: bool,
        host: &mut dyn SchedulerHost,
    ) -> Result<(), Status> {
        if !self.cluster.features.enabled(Feature::NominatedNodeNameForExpectation) {
            return Ok(());
        }
        let pod = &cycle.queued.info;
        let cx = self.cluster.bind_context(pod, node, cycle.now, host);
        let status = cycle.framework.run_pre_bind_pre_flight(&cx, &mut cycle.state);
        if !status.is_success() && !status.is_skip() {
            return Err(status);
        }
        if (status.is_success() || waits) && pod.pod.status.nominated_node_name != node {
            let patch = PodStatusPatch { condition: None, nominated_node: Some(node) };
            // Upstream only logs an error.
            let patched = host.patch_pod_status(cycle.queued.key(), patch);
            cycle.announced = patched.is_ok().then_some(node);
        }
        Ok(())
    }

    /// Runs PreBind and what follows it.
    pub(crate) fn finish_binding(
        &mut self,
        mut cycle: Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        // Up to 1.32, what happens during PreBind can still requeue the pod, which PreBind may reject.
        let is_done = self.cluster.features.has(Switch::DoneBeforePreBind);
        if is_done {
            self.queue.done(cycle.queued.uid());
        }
        let mut cx = self.cluster.bind_context(&cycle.queued.info, node, cycle.now, host);
        let (answers, status) = cycle.framework.run_pre_bind(&mut cx, &mut cycle.state);
        let before = cycle.record.pre_bind.iter().filter(|answer| !answer.status.is_wait());
        let answers = before.cloned().chain(answers).collect();
        let records = &mut self.algorithm.answers.records;
        cycle.record.pre_bind = records.answers(ExtensionPoint::PreBind, answers);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::PreBind));
        if status.is_wait() {
            return self.waiting.wait_on_pre_bind(cycle, node);
        }
        if status.is_success() {
            self.queue.done(cycle.queued.uid());
            return self.bind(cycle, node, host);
        }
        let failure = match is_done {
            true => Failure::plain(status),
            false => Failure::after_selection(&self.cluster.snapshot, Some(node), status),
        };
        self.fail_binding(cycle, failure, host)
    }

    /// Runs Bind and PostBind. Until the API server answers, the pod waits.
    pub(crate) fn bind(
        &mut self,
        mut cycle: Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let status = self.run_binders(&mut cycle, node, host);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Bind));
        if status.is_wait() {
            return self.waiting.wait_on_bind(cycle, node);
        }
        if !status.is_success() {
            return self.fail_binding(cycle, Failure::plain(status), host);
        }
        let key = cycle.queued.key();
        host.event(ApiEvent {
            regarding: key,
            uid: cycle.queued.uid(),
            related: None,
            reporter: cycle.record.profile,
            kind: "Normal",
            reason: "Scheduled",
            action: "Binding",
            note: format!("Successfully assigned {key} to {node}"),
        });
        let mut cx = self.cluster.bind_context(&cycle.queued.info, node, cycle.now, host);
        cycle.framework.run_post_bind(&mut cx, &mut cycle.state);
        self.activate_requested(&mut cycle);
        cycle.record.outcome = Outcome::Scheduled;
        cycle.record
    }

    /// Binds through the first extender that binds this pod, else through the plugins.
    fn run_binders(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> Status {
        let pod = &cycle.queued.info;
        let extenders = &self.profiles.extenders;
        for (index, extender) in extenders.iter().enumerate().skip(cycle.state.binders_ignored) {
            if extender.bind_verb.is_empty() || !extender::is_interested(extender, &pod.pod) {
                continue;
            }
            let status = match extender::bind((index, extender), &pod.pod, node, host) {
                Poll::Pending => return Status::wait(),
                Poll::Ready(Ok(())) => Status::SUCCESS,
                Poll::Ready(Err(_)) if extender.ignorable => {
                    cycle.state.binders_ignored = index + 1;
                    continue;
                }
                Poll::Ready(Err(text)) => Status::error(&text),
            };
            let answer = PluginStatus::new(Symbol::new(&extender.url_prefix), status.clone());
            cycle.record.extender_bind = Some(answer);
            return status;
        }
        let mut cx = self.cluster.bind_context(pod, node, cycle.now, host);
        let (answers, status) = cycle.framework.run_bind(&mut cx, &mut cycle.state);
        let records = &mut self.algorithm.answers.records;
        cycle.record.bind = records.answers(ExtensionPoint::Bind, answers);
        status
    }

    /// Unreserves and forgets the pod, notifies the queue, and handles the failure.
    pub(crate) fn fail_binding(
        &mut self,
        mut cycle: Cycle,
        failure: Failure,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let node = cycle.record.node.unwrap_or_default();
        let assumed = cycle.queued.info.clone();
        let forgotten = self.unreserve_and_forget(&mut cycle, node, host).is_ok();
        let objects = EventObjects { old: Some(assumed.pod.clone().into()), new: None };
        let rejected = failure.status.is_rejected();
        if forgotten && !rejected {
            let cx = self.cluster.queue_context(cycle.now);
            self.queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
        }
        self.fail(&mut cycle, failure, host);
        if forgotten && rejected {
            // After the failure handler, so that its own deletion does not requeue the pod.
            let uid = assumed.uid();
            let cx = self.cluster.queue_context(cycle.now);
            let is_other = |pod: &PodInfo| pod.uid() != uid;
            self.queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, Some(&is_other));
        }
        cycle.record
    }
}
