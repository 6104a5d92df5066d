//! The cycle of a pod group: its pods are placed one after the other in the snapshot, and
//! bound only if the group as a whole can start (alpha, behind GenericWorkload).
//!
//! This file takes the group out of the queue and holds the cycle together. [`attempt`] places
//! the pods, [`placements`] does so in one topology domain after the other, [`preemption`] selects
//! the pods that the group could evict, [`submit`] acts on the outcome. Upstream:
//! `pkg/scheduler/schedule_one_podgroup.go`.

mod attempt;
mod placements;
mod preemption;
mod submit;
#[cfg(test)]
mod tests;

use super::{Cycle, Failure};
use crate::Scheduler;
use crate::host::SchedulerHost;
use kubestep_api::Time;
use kubestep_config::Feature;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::pod_groups::PodGroupState;
use kubestep_framework::record::{CycleRecord, GroupRecord};
use kubestep_framework::shared::GroupCycle;
use kubestep_framework::status::Status;
use kubestep_framework::stopwatch::Work;

use attempt::PodAttempt;

/// The result for the group.
#[derive(Clone, Default)]
struct GroupVerdict {
    /// Success, a rejection, or an error.
    status: Status,
    /// Rejected only until its victims are deleted.
    awaits_preemption: bool,
}

/// The group after it was tried: its verdict, and the attempt of each of its pods.
struct GroupOutcome {
    verdict: GroupVerdict,
    cycles: Vec<Cycle>,
    /// Parallel to `cycles`; `None` for pods that were not tried.
    attempts: Vec<Option<PodAttempt>>,
}

impl GroupOutcome {
    /// The number of pods that found a node.
    fn placed(&self) -> usize {
        let placed = |attempt: &&PodAttempt| matches!(attempt, PodAttempt::Placed(_));
        self.attempts.iter().flatten().filter(placed).count()
    }

    /// An end before any pod was tried.
    fn untried(cycles: Vec<Cycle>, status: Status) -> GroupOutcome {
        let verdict = GroupVerdict { status, awaits_preemption: false };
        let attempts = cycles.iter().map(|_| None).collect();
        GroupOutcome { verdict, cycles, attempts }
    }
}

/// The cycle of a group.
pub(crate) struct PodGroupCycle<'a> {
    pub scheduler: &'a mut Scheduler,
    pub group: NamespacedName,
    pub now: Time,
    pub host: &'a mut dyn SchedulerHost,
}

impl PodGroupCycle<'_> {
    /// Runs the cycle of the group that `first` belongs to. Returns the record of the pod that
    /// was tried first; those of the others are among the finished ones.
    pub fn run(mut self, first: QueuedPodInfo) -> CycleRecord {
        let mut records = self.schedule(first);
        let finished = &mut self.scheduler.finished;
        for record in &mut records {
            // It waited, and another pod of the group allowed it.
            let decided = finished.iter().position(|other| other.cycle == record.cycle);
            if let Some(at) = decided {
                *record = finished.remove(at);
            }
        }
        records.sort_by_key(|record| record.cycle);
        let mut records = records.into_iter();
        let first = records.next().unwrap_or_default();
        finished.extend(records);
        first
    }

    fn schedule(&mut self, first: QueuedPodInfo) -> Vec<CycleRecord> {
        let members = match self.scheduler.cluster.shared.pod_groups.get(self.group) {
            Ok(state) => state.unscheduled().collect::<Vec<_>>(),
            // Upstream loses the text of the error, so nothing is reported.
            Err(_) => {
                let failure = Failure { nominate: None, ..Failure::plain(Status::SUCCESS) };
                return self.fail_all(vec![first], &failure);
            }
        };
        let pods = self.pop_members(first, &members);
        if let Some(text) = different_schedulers(&pods) {
            return self.fail_all(pods, &Failure::plain(Status::error(&text)));
        }
        let mut records = Vec::new();
        let mut cycles = Vec::new();
        for pod in pods {
            match self.scheduler.begin(pod, self.now, self.host) {
                Ok(cycle) => cycles.push(cycle),
                Err(dropped) => records.push(*dropped),
            }
        }
        if let Some(first) = cycles.first() {
            let profile = first.framework.name();
            let timer = self.scheduler.cluster.shared.timer.clone();
            let turn = || self.decide(cycles);
            let (decided, _) =
                timer.work(turn, |(_, result)| Work::GroupAttempt { profile, result });
            records.extend(decided);
        }
        records
    }

    /// Tries the group, with preemption if necessary, and acts on the outcome, which is returned
    /// as upstream's metrics name it.
    fn decide(&mut self, cycles: Vec<Cycle>) -> (Vec<CycleRecord>, &'static str) {
        let cluster = &mut self.scheduler.cluster;
        let preempts = cluster.features.enabled(Feature::WorkloadAwarePreemption);
        let fresh = preempts.then(|| cycles.clone());
        let state = cluster.shared.pod_groups.get(self.group);
        let scheduled_before = state.map_or(0, PodGroupState::scheduled);
        cluster.shared.group_cycle = Some(GroupCycle { scheduled_before, ..GroupCycle::default() });
        let timer = cluster.shared.timer.clone();
        let mut outcome = timer.work(|| self.try_group(cycles), |_| Work::GroupAlgorithm);
        if let Some(fresh) = fresh {
            self.preempt(&fresh, &mut outcome);
        }
        self.scheduler.cluster.shared.group_cycle = None;
        let recorded = self.record(outcome.placed());
        let GroupOutcome { verdict, cycles, attempts } = outcome;
        let mut records = Vec::new();
        for (mut cycle, attempt) in cycles.into_iter().zip(attempts) {
            cycle.record.group = Some(recorded.clone());
            records.push(self.submit(cycle, attempt, &verdict));
        }
        self.update_condition(&verdict);
        (records, verdict.result())
    }

    /// The state of the group in this attempt, in which `placed` of its pods found a node.
    fn record(&self, placed: usize) -> GroupRecord {
        let cluster = &self.scheduler.cluster;
        let object = cluster.objects.pod_groups.get(&self.group);
        let gang = object.and_then(|object| object.spec.scheduling_policy.gang.as_ref());
        let state = cluster.shared.pod_groups.get(self.group).ok();
        GroupRecord {
            group: self.group,
            min_count: gang.map(|gang| usize::try_from(gang.min_count).unwrap_or(0)),
            pods: state.map_or(0, PodGroupState::all),
            scheduled_before: state.map_or(0, PodGroupState::scheduled),
            placed,
        }
    }

    /// Tries the group where its constraints allow.
    fn try_group(&mut self, cycles: Vec<Cycle>) -> GroupOutcome {
        let features = &self.scheduler.cluster.features;
        match features.enabled(Feature::TopologyAwareWorkloadScheduling) {
            true => self.try_placements(cycles),
            false => self.try_pods(cycles),
        }
    }

    /// Pops the other pods of the group.
    fn pop_members(
        &mut self,
        first: QueuedPodInfo,
        members: &[NamespacedName],
    ) -> Vec<QueuedPodInfo> {
        let own = first.key();
        let mut pods = vec![first];
        let Scheduler { queue, cluster, cycles, .. } = &mut *self.scheduler;
        let cx = cluster.queue_context(self.now);
        for key in in_upstreams_turn(members, *cycles).filter(|key| **key != own) {
            pods.extend(queue.pop_specific(&cx, *key));
        }
        let since = |pod: &QueuedPodInfo| pod.initial_attempt.unwrap_or_default();
        pods.sort_by_key(|pod| (std::cmp::Reverse(pod.info.priority()), since(pod)));
        pods
    }

    /// Fails all pods at the beginning of their cycles.
    fn fail_all(&mut self, pods: Vec<QueuedPodInfo>, failure: &Failure) -> Vec<CycleRecord> {
        let mut records = Vec::new();
        for pod in pods {
            match self.scheduler.begin(pod, self.now, self.host) {
                Ok(mut cycle) => {
                    cycle.record.group = Some(self.record(0));
                    self.scheduler.fail(&mut cycle, failure.clone(), self.host);
                    records.push(cycle.record);
                }
                Err(dropped) => records.push(*dropped),
            }
        }
        records
    }
}

/// Where the walk over a group's members starts in the cycle before the first. Chosen so that all
/// recorded cycles agree, which proves little: a walk that always begins at the first slot agrees
/// with all but one (gang-11-0023, which needs the fifth).
const FIRST_SLOT: u64 = 3;

/// Upstream walks a map of the members. Go starts such a walk at a random one of eight slots;
/// here the start rotates, so that each is equally frequent.
fn in_upstreams_turn(
    members: &[NamespacedName],
    cycles: u64,
) -> impl Iterator<Item = &NamespacedName> {
    let slot = (cycles + FIRST_SLOT) % 8;
    let start = usize::try_from(slot).ok().filter(|slot| *slot < members.len()).unwrap_or(0);
    members[start..].iter().chain(&members[..start])
}

/// The error of a group whose pods have different schedulers.
fn different_schedulers(pods: &[QueuedPodInfo]) -> Option<String> {
    let mut names = pods.iter().map(|pod| pod.info.pod.spec.scheduler_name);
    let first = names.next()?;
    let other = names.find(|name| *name != first)?;
    Some(format!(
        "all pods in a single pod group should have the same .spec.schedulerName set, got: \
         {other:?} and {first:?}"
    ))
}
