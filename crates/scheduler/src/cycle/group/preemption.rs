//! Preemption for a group as a whole, when it cannot start as the cluster is (alpha, behind
//! WorkloadAwarePreemption).

use std::sync::Arc;

use super::{GroupOutcome, PodGroupCycle};
use crate::cycle::Cycle;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, PodGroup};
use kubestep_framework::node::ImageState;
use kubestep_framework::plugin::Preemption;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::preemption::PreemptionRules;
use kubestep_framework::preemption::budgets::DisruptionBudgets;
use kubestep_framework::preemption::executor::Preemptor;
use kubestep_framework::preemption::group_victims::{GroupPreemptor, PlacementTrial, Unit, units};
use kubestep_framework::record::Candidate;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::status::{Code, Status};

/// Upstream's name for the whole cluster, in place of a node's name.
const CLUSTER: &str = "cluster";

impl PodGroupCycle<'_> {
    /// Evicts pods so that the group can start, if it was rejected; `outcome` gets the result.
    /// `fresh` are the cycles of its pods as they began.
    pub(super) fn preempt(&mut self, fresh: &[Cycle], outcome: &mut GroupOutcome) {
        if outcome.verdict.status.code() != Code::Unschedulable {
            return;
        }
        match self.post_filter(fresh) {
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

    /// Selects the victims of the group and starts to evict them.
    fn post_filter(&mut self, fresh: &[Cycle]) -> Result<Candidate, Status> {
        let rules = preempting_plugin(fresh)?;
        let object = self.preempting_group()?;
        let pods: Vec<Arc<PodInfo>> = fresh.iter().map(|cycle| cycle.queued.info.clone()).collect();
        let victims = self.victims(&object, &pods, fresh)?;
        let candidate = Candidate {
            node: CLUSTER.into(),
            victims: victims.iter().map(|victim| victim.key()).collect(),
            pdb_violations: 0,
            reasons: Vec::new(),
        };
        let preemption = Preemption {
            plugin: rules.plugin(),
            node: CLUSTER.into(),
            victims,
            candidate: candidate.clone(),
            message_prefix: rules.message_prefix(),
            is_asynchronous: rules.is_asynchronous(),
        };
        let preemptor = Preemptor::group(&object, &pods);
        self.scheduler
            .start_preemption(preemptor, preemption, self.now, self.host)
            .map_err(Status::error)?;
        Ok(candidate)
    }

    /// The group's object, unless it cannot preempt.
    fn preempting_group(&self) -> Result<Arc<PodGroup>, Status> {
        let Some(object) = self.scheduler.cluster.objects.pod_groups.get(&self.group) else {
            let name = self.group.name;
            return Err(Status::error(format!(
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

    /// Selects victims on a copy of the nodes, which is dropped at the end.
    fn victims(
        &mut self,
        object: &PodGroup,
        pods: &[Arc<PodInfo>],
        fresh: &[Cycle],
    ) -> Result<Vec<Arc<PodInfo>>, Status> {
        let cluster = &mut self.scheduler.cluster;
        let before = cluster.snapshot.clone();
        forget_image_counts(&mut cluster.snapshot);
        let units = units(&cluster.snapshot, &cluster.objects, self.now);
        let budgets = DisruptionBudgets::new(&cluster.objects);
        let preemptor = GroupPreemptor { group: object, pods };
        self.scheduler.algorithm.answers.cache.clear();
        let victims =
            preemptor.select_victims(units, &budgets, &mut GroupTrial { cycle: self, fresh });
        self.scheduler.cluster.snapshot = before;
        self.scheduler.algorithm.answers.cache.clear();
        victims
    }
}

/// The rules of the plugin of the profile that preempts for groups.
fn preempting_plugin(fresh: &[Cycle]) -> Result<&dyn PreemptionRules, Status> {
    let plugins = fresh.first().map(|cycle| cycle.framework.instances());
    let mut rules = plugins.into_iter().flatten().filter_map(|plugin| plugin.preemption());
    rules.find(|rules| rules.preempts_for_groups()).ok_or_else(|| {
        Status::unschedulable(
            "default preemption plugin is not registered, workload aware preemption is disabled",
        )
    })
}

/// The copies that upstream works on do not count on how many nodes an image is.
pub(super) fn forget_image_counts(snapshot: &mut Snapshot) {
    let with_images = snapshot.iter().filter(|node| !node.image_states.is_empty());
    let names: Vec<Name> = with_images.map(|node| node.name).collect();
    for name in names {
        snapshot.change_node(name, |node| {
            let uncounted = |image: &ImageState| ImageState { num_nodes: 0, ..*image };
            node.image_states = node.image_states.iter().map(uncounted).collect();
        });
    }
}

/// The nodes of the snapshot, while victims are selected.
struct GroupTrial<'a, 'b> {
    cycle: &'a mut PodGroupCycle<'b>,
    /// The cycles of the group's pods as they began.
    fresh: &'a [Cycle],
}

impl PlacementTrial for GroupTrial<'_, '_> {
    fn remove(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            self.cycle.change_in_snapshot(pod.pod.spec.node_name, |node| {
                node.remove_pod(pod.uid());
            });
        }
    }

    fn add(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            let node = pod.pod.spec.node_name;
            self.cycle.change_in_snapshot(node, |node| node.add_pod(pod.clone()));
        }
    }

    /// Meanwhile no pod selects victims of its own.
    fn schedule(&mut self) -> Status {
        let mut cycles = self.fresh.to_vec();
        for cycle in &mut cycles {
            cycle.state.skip_post_filters = true;
        }
        self.cycle.try_group(cycles).verdict.status
    }
}
