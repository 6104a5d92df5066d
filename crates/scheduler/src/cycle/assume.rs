//! Assume, Reserve and Permit: the pod takes its place in memory (S-030…S-033).

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::{Milestone, SchedulerHost};
use crate::interventions::{by_hand, holds};
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, Feature};
use kubestep_framework::plugin::BindContext;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::runtime::binding::PermitOutcome;
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::Diagnosis;

impl Scheduler {
    /// Assumes the pod on `node`, reserves, and asks Permit.
    pub(crate) fn assume_and_permit(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
    ) -> Result<PermitOutcome, Failure> {
        self.assume(cycle, node).map_err(Failure::plain)?;
        let (answers, status) = self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_reserve(cx, &mut cycle.state)
        });
        cycle.record.reserve = answers;
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Reserve));
        if !status.is_success() {
            return Err(self.undo_assume(cycle, node, status, host));
        }
        let mut outcome = self.permit(cycle, node, host);
        // A trial of a group asks Permit as well: only a pod that really takes its place is held.
        if let Some(timeout) = by_hand::hold(&cycle.record) {
            holds::hold(&mut outcome, timeout);
        }
        cycle.record.permit = std::mem::take(&mut outcome.answers);
        if !outcome.status.is_success() && !outcome.status.is_wait() {
            return Err(self.undo_assume(cycle, node, outcome.status, host));
        }
        self.activate_requested(cycle);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Permit));
        Ok(outcome)
    }

    /// Runs Permit, and does at once what its plugins ask for other pods.
    pub(crate) fn permit(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
    ) -> PermitOutcome {
        let outcome = self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_permit(cx, &mut cycle.state)
        });
        let wanted = std::mem::take(&mut cycle.state.activate_at_once);
        if !wanted.is_empty() {
            let (queue, cx) = self.queue_context(cycle.now);
            queue.activate(&cx, &wanted);
        }
        for (uid, plugin) in std::mem::take(&mut cycle.state.allow_at_once) {
            self.allow_waiting(uid, Some(plugin), cycle.now, host);
        }
        outcome
    }

    /// Puts the pod on its node in the cache (S-030).
    fn assume(&mut self, cycle: &mut Cycle, node: Symbol) -> Result<(), Status> {
        let assumed = self.assumed(cycle, node);
        self.cache.assume_pod(assumed.clone()).map_err(|text| Status::error(&text))?;
        self.shared.pod_groups.assume(&assumed.pod);
        self.queue.delete_nominated_pod_if_exists(assumed.uid());
        cycle.queued.info = assumed;
        Ok(())
    }

    /// The pod as it will be on the node, with what its claims take there (DRA-052).
    pub(crate) fn assumed(&self, cycle: &Cycle, node: Symbol) -> Arc<PodInfo> {
        let info = cycle.queued.info.as_ref();
        let mut pod = info.pod.as_ref().clone();
        pod.spec.node_name = node;
        if !self.features.enabled(Feature::DRANodeAllocatableResources) {
            return Arc::new(info.with_object(Arc::new(pod)));
        }
        let plugins = cycle.framework.instances().iter();
        pod.status.node_allocatable_resource_claim_statuses =
            plugins.flat_map(|plugin| plugin.node_resource_claims(&cycle.state, node)).collect();
        Arc::new(PodInfo::with_features(Arc::new(pod), &self.features))
    }

    /// Unreserves and forgets the pod; a refusal becomes a FitError about that one node (S-031).
    fn undo_assume(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        status: Status,
        host: &mut dyn SchedulerHost,
    ) -> Failure {
        // A pod that cannot be forgotten is only logged upstream.
        let _forgotten = self.unreserve_and_forget(cycle, node, host);
        match status.is_rejected() {
            true => self.fit_failure_on(cycle, status),
            false => Failure::plain(status),
        }
    }

    /// A FitError about the chosen node alone, from a refusal after the node was chosen.
    pub(crate) fn fit_failure_on(&self, cycle: &Cycle, status: Status) -> Failure {
        let mut diagnosis = Diagnosis::default();
        let chosen = cycle.record.node.and_then(|name| self.snapshot.by_name(name));
        let code = status.code();
        diagnosis.add_plugin_status(&status);
        match chosen {
            Some(node) => diagnosis.statuses.set(node.id, status),
            None => diagnosis.statuses.set_absent(status),
        }
        Failure::fit(code, diagnosis, 1, Some(Symbol::EMPTY))
    }

    /// Runs Unreserve and takes the pod out of the cache.
    pub(crate) fn unreserve_and_forget(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
    ) -> Result<(), String> {
        self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_unreserve(cx, &mut cycle.state);
        });
        self.cache.forget_pod(&cycle.queued.info)?;
        self.shared.pod_groups.forget(&cycle.queued.info.pod);
        Ok(())
    }

    /// Moves pods that plugins want tried next into the active queue (S-033).
    pub(crate) fn activate_requested(&mut self, cycle: &mut Cycle) {
        let wanted = std::mem::take(&mut cycle.state.pods_to_activate);
        if wanted.is_empty() {
            return;
        }
        let keys: Vec<_> = wanted
            .into_iter()
            .map(|(namespace, name)| NamespacedName::new(namespace, name))
            .collect();
        let (queue, cx) = self.queue_context(cycle.now);
        queue.activate(&cx, &keys);
    }

    /// Calls `run` with what plugins see from Reserve to PostBind.
    pub(crate) fn with_bind_context<T>(
        &mut self,
        cycle: &mut Cycle,
        node: Symbol,
        host: &mut dyn SchedulerHost,
        run: impl FnOnce(&mut Cycle, &mut BindContext<'_>) -> T,
    ) -> T {
        let pod = cycle.queued.info.clone();
        let mut cx = BindContext {
            pod: &pod,
            node,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            shared: &mut self.shared,
            host,
            now: cycle.now,
        };
        run(cycle, &mut cx)
    }
}
