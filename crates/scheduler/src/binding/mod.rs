//! The binding cycle (S-040…S-050).

pub(crate) mod waiting;

use std::task::Poll;

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::{Milestone, SchedulerHost};
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, Feature};
use kubestep_framework::events::{Action, ClusterEvent, EventObjects, EventResource};
use kubestep_framework::extender;
use kubestep_framework::host::{ApiEvent, PodStatusPatch};
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::Status;

/// A bound (or assumed) pod is gone: what frees resources.
pub(crate) const ASSIGNED_POD_DELETE: ClusterEvent =
    ClusterEvent::new(EventResource::AssignedPod, Action::DELETE);

impl Scheduler {
    /// Assumes the pod on `node`; then the binding cycle runs, or the pod waits at Permit.
    pub(crate) fn start_binding(
        &mut self,
        mut cycle: Cycle,
        node: Symbol,
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
        let record = self.wait_on_permit(cycle, node, &permit.waits);
        host.reached(self, record.cycle, Milestone::Ran(ExtensionPoint::Permit));
        record
    }

    /// PreBindPreFlight, and the nominated node for others to see while the binding takes its
    /// time (S-040).
    fn announce_node(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        waits: bool,
        host: &mut dyn SchedulerHost,
    ) -> Result<(), Status> {
        if !self.features.enabled(Feature::NominatedNodeNameForExpectation) {
            return Ok(());
        }
        let status = self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_pre_bind_pre_flight(cx, &mut cycle.state)
        });
        if !status.is_success() && !status.is_skip() {
            return Err(status);
        }
        let pod = &cycle.queued.info.pod;
        if (status.is_success() || waits) && pod.status.nominated_node_name != node {
            let patch = PodStatusPatch { condition: None, nominated_node: Some(node) };
            // Not worth failing for: upstream only logs it.
            let _patched = host.patch_pod_status(cycle.queued.key(), patch);
        }
        Ok(())
    }

    /// PreBind, then all that follows.
    pub(crate) fn finish_binding(
        &mut self,
        mut cycle: Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        self.queue.done(cycle.queued.uid()); // S-042
        let (answers, status) = self.with_bind_context(&mut cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_pre_bind(cx, &mut cycle.state)
        });
        cycle.record.pre_bind.retain(|answer| !answer.status.is_wait());
        cycle.record.pre_bind.extend(answers);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::PreBind));
        if status.is_wait() {
            return self.wait_on_pre_bind(cycle, node);
        }
        match status.is_success() {
            true => self.bind_and_tell(cycle, node, host),
            false => self.fail_binding(cycle, Failure::plain(status), host),
        }
    }

    /// Bind and PostBind. While the answer is not there the pod waits.
    pub(crate) fn bind_and_tell(
        &mut self,
        mut cycle: Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let status = self.bind(&mut cycle, node, host);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Bind));
        if status.is_wait() {
            return self.wait_on_bind(cycle, node);
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
        self.with_bind_context(&mut cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_post_bind(cx, &mut cycle.state);
        });
        self.activate_requested(&mut cycle);
        cycle.record.outcome = Outcome::Scheduled;
        cycle.record
    }

    /// Binds through the first extender that does, else through the plugins (S-046).
    fn bind(&mut self, cycle: &mut Cycle, node: Symbol, host: &mut dyn SchedulerHost) -> Status {
        let extenders = self.extenders.clone();
        let pod = cycle.queued.info.pod.clone();
        for (index, extender) in extenders.iter().enumerate().skip(cycle.state.binders_ignored) {
            if extender.bind_verb.is_empty() || !extender::is_interested(extender, &pod) {
                continue;
            }
            let status = match extender::bind((index, extender), &pod, node, host) {
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
        let (answers, status) = self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_bind(cx, &mut cycle.state)
        });
        cycle.record.bind = answers;
        status
    }

    /// Undoes what the pod reserved, tells the queue, and handles the failure (S-050).
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
            let (queue, cx) = self.queue_context(cycle.now);
            queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
        }
        self.fail(&mut cycle, failure, host);
        if forgotten && rejected {
            // After the failure handler, so that the pod is not woken by its own leaving.
            let uid = assumed.uid();
            let (queue, cx) = self.queue_context(cycle.now);
            queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, Some(&|pod| pod.uid() != uid));
        }
        cycle.record
    }
}
