//! Preemption for a group as a whole, when it found no place as it is (PG-007; alpha, behind
//! WorkloadAwarePreemption).

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use kubestep_api::PodGroup;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::ImageState;
use kubestep_framework::plugin::Preemption;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::preemption::executor::Preemptor;
use kubestep_framework::preemption::group_victims::{GroupPreemptor, Trial, Unit, units};
use kubestep_framework::preemption::{self, budgets::Budgets};
use kubestep_framework::record::Candidate;
use kubestep_framework::status::{Code, Status};

use super::Outcome;

/// What upstream calls the whole cluster where a node is named otherwise (PR-074).
const CLUSTER: &str = "cluster";

impl Scheduler {
    /// Evicts pods so that the group can start, if it was refused; what comes of that goes into
    /// `outcome`. `fresh` are the cycles of its pods as they began.
    pub(super) fn preempt_for_group(
        &mut self,
        group: NamespacedName,
        fresh: &[Cycle],
        outcome: &mut Outcome,
        host: &mut dyn SchedulerHost,
    ) {
        if outcome.verdict.status.code() != Code::Unschedulable {
            return;
        }
        match self.group_post_filter(group, fresh, host) {
            Ok(candidate) => {
                outcome.verdict.awaits_preemption = true;
                if let Some(cycle) = outcome.cycles.first_mut() {
                    cycle.record.preemption = Some(candidate);
                }
            }
            Err(status) if status.is_error() => outcome.verdict.status = status,
            Err(status) => {
                let mut reasons = outcome.verdict.status.reasons().to_vec();
                reasons.push(Symbol::new(&status.message()));
                outcome.verdict.status = Status::with_reasons(Code::Unschedulable, reasons);
            }
        }
    }

    /// Whom the group evicts; evicting them has begun.
    fn group_post_filter(
        &mut self,
        group: NamespacedName,
        fresh: &[Cycle],
        host: &mut dyn SchedulerHost,
    ) -> Result<Candidate, Status> {
        let object = self.preempting_group(group, fresh)?;
        let pods: Vec<Arc<PodInfo>> = fresh.iter().map(|cycle| cycle.queued.info.clone()).collect();
        let victims = self.group_victims(&object, &pods, fresh, host)?;
        let candidate = Candidate {
            node: CLUSTER.into(),
            victims: victims.iter().map(|victim| victim.key()).collect(),
            pdb_violations: 0,
        };
        let preemption = Preemption {
            plugin: preemption::PLUGIN.into(),
            node: CLUSTER.into(),
            victims,
            candidate: candidate.clone(),
        };
        let preemptor = Preemptor::group(&object, &pods);
        let now = fresh.first().map(|cycle| cycle.now).unwrap_or_default();
        self.start_preemption(preemptor, preemption, now, host)
            .map_err(|text| Status::error(&text))?;
        Ok(candidate)
    }

    /// The group's object, unless it cannot preempt.
    fn preempting_group(
        &self,
        group: NamespacedName,
        fresh: &[Cycle],
    ) -> Result<Arc<PodGroup>, Status> {
        let plugins = fresh.first().map(|cycle| cycle.framework.instances());
        if !plugins.into_iter().flatten().any(|plugin| plugin.name() == preemption::PLUGIN) {
            return Err(Status::unschedulable(
                "default preemption plugin is not registered, workload aware preemption is \
                 disabled",
            ));
        }
        let Some(object) = self.objects.pod_groups.get(&group) else {
            let name = group.name;
            return Err(Status::error(&format!(
                "failed to get pod group object: podgroup.scheduling.k8s.io {name:?} not found"
            )));
        };
        let constraints = object.spec.scheduling_constraints.as_ref();
        if constraints.is_some_and(|constraints| !constraints.topology.is_empty()) {
            return Err(Status::unschedulable(
                "workload aware preemption is not supported for pod groups with scheduling \
                 constraints",
            ));
        }
        Ok(object.clone())
    }

    /// Looks for victims on a copy of the nodes, which is dropped in the end.
    fn group_victims(
        &mut self,
        object: &PodGroup,
        pods: &[Arc<PodInfo>],
        fresh: &[Cycle],
        host: &mut dyn SchedulerHost,
    ) -> Result<Vec<Arc<PodInfo>>, Status> {
        let before = self.snapshot.clone();
        self.forget_image_counts();
        let now = fresh.first().map(|cycle| cycle.now).unwrap_or_default();
        let units = units(&self.snapshot, &self.objects, now);
        let budgets = Budgets::new(&self.objects);
        let group = NamespacedName::new(object.metadata.namespace, object.metadata.name);
        let preemptor = GroupPreemptor { group: object, pods };
        let mut trial = GroupTrial { scheduler: self, group, fresh, host };
        let victims = preemptor.select_victims(units, &budgets, &mut trial);
        self.snapshot = before;
        self.kept.clear();
        victims
    }

    /// The copies that upstream works on no longer know on how many nodes an image is (FW-039).
    pub(super) fn forget_image_counts(&mut self) {
        let with_images = self.snapshot.iter().filter(|node| !node.image_states.is_empty());
        let names: Vec<Symbol> = with_images.map(|node| node.name).collect();
        for name in names {
            self.snapshot.change_node(name, |node| {
                let uncounted = |image: &ImageState| ImageState { num_nodes: 0, ..*image };
                node.image_states = node.image_states.iter().map(uncounted).collect();
            });
        }
        self.kept.clear();
    }
}

/// The nodes of the scheduler's snapshot, while victims are looked for.
struct GroupTrial<'a> {
    scheduler: &'a mut Scheduler,
    group: NamespacedName,
    /// The cycles of the group's pods as they began.
    fresh: &'a [Cycle],
    host: &'a mut dyn SchedulerHost,
}

impl Trial for GroupTrial<'_> {
    fn remove(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            self.scheduler.change_in_snapshot(pod.pod.spec.node_name, |node| {
                node.remove_pod(pod.uid());
            });
        }
    }

    fn add(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            let node = pod.pod.spec.node_name;
            self.scheduler.change_in_snapshot(node, |node| node.add_pod(pod.clone()));
        }
    }

    /// No pod looks for victims of its own meanwhile (FW-130).
    fn schedule(&mut self) -> Status {
        let mut cycles = self.fresh.to_vec();
        for cycle in &mut cycles {
            cycle.state.skip_post_filters = true;
        }
        self.scheduler.try_group(self.group, cycles, self.host).verdict.status
    }
}
