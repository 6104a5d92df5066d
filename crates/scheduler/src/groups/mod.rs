//! The cycle of a pod group: its pods are placed one after the other in the snapshot, and
//! bound only if the group as a whole may start (PG-001…PG-011; alpha, behind GenericWorkload).
//!
//! This file takes the group out of the queue and holds the cycle together. [`attempt`] places
//! the pods, [`placements`] does so in one topology domain after the other, [`preemption`] looks
//! whom the group could evict, [`submit`] acts on the outcome. Upstream:
//! `pkg/scheduler/schedule_one_podgroup.go`.

mod attempt;
mod placements;
mod preemption;
mod submit;
#[cfg(test)]
mod tests;

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::SchedulerHost;
use kubestep_api::{Pod, Time};
use kubestep_config::Feature;
use kubestep_framework::pod::{NamespacedName, QueuedPod};
use kubestep_framework::pod_groups::{PodGroupState, group_of};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::runtime::stopwatch::Work;
use kubestep_framework::shared::GroupCycle;
use kubestep_framework::status::Status;

use attempt::Attempt;

/// What became of the group.
#[derive(Clone, Default)]
struct Verdict {
    /// Success, a refusal, or what went wrong.
    status: Status,
    /// Refused only until its victims are gone.
    awaits_preemption: bool,
}

/// The group after it was tried: its verdict, and what became of each of its pods.
struct Outcome {
    verdict: Verdict,
    cycles: Vec<Cycle>,
    /// Parallel to `cycles`; `None` for pods that were not tried any more.
    attempts: Vec<Option<Attempt>>,
}

impl Outcome {
    /// The end before any pod was tried.
    fn untried(cycles: Vec<Cycle>, status: Status) -> Outcome {
        let verdict = Verdict { status, awaits_preemption: false };
        let attempts = cycles.iter().map(|_| None).collect();
        Outcome { verdict, cycles, attempts }
    }
}

impl Scheduler {
    /// The group of a pod, while groups are a feature.
    pub(crate) fn group(&self, pod: &Pod) -> Option<NamespacedName> {
        group_of(pod).filter(|_| self.features.enabled(Feature::GenericWorkload))
    }

    /// Runs the cycle of the group that `first` belongs to. The record given back is that of the
    /// pod that was tried first; those of the others are among the finished ones.
    pub(crate) fn schedule_group(
        &mut self,
        first: QueuedPod,
        group: NamespacedName,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let mut records = self.group_cycle(first, group, now, host);
        for record in &mut records {
            // It waited, and another pod of the group let it go on.
            let decided = self.finished.iter().position(|other| other.cycle == record.cycle);
            if let Some(at) = decided {
                *record = self.finished.remove(at);
            }
        }
        records.sort_by_key(|record| record.cycle);
        let mut records = records.into_iter();
        let first = records.next().unwrap_or_default();
        self.finished.extend(records);
        first
    }

    fn group_cycle(
        &mut self,
        first: QueuedPod,
        group: NamespacedName,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Vec<CycleRecord> {
        let members = match self.shared.pod_groups.get(group) {
            Ok(state) => state.unscheduled().collect::<Vec<_>>(),
            // The text is lost on the way upstream: nobody is told anything (S-069).
            Err(_) => {
                let failure = Failure { nominate: None, ..Failure::plain(Status::SUCCESS) };
                return self.fail_all(vec![first], failure, now, host);
            }
        };
        let pods = self.pop_members(first, &members, now);
        if let Some(text) = different_schedulers(&pods) {
            return self.fail_all(pods, Failure::plain(Status::error(&text)), now, host);
        }
        let mut records = Vec::new();
        let mut cycles = Vec::new();
        for pod in pods {
            match self.begin(pod, now, host) {
                Ok(cycle) => cycles.push(cycle),
                Err(dropped) => records.push(*dropped),
            }
        }
        if let Some(first) = cycles.first() {
            let (timer, profile) = (self.shared.timer.clone(), first.framework.name());
            let turn = || self.decide_group(group, cycles, now, host);
            let (decided, _) =
                timer.work(turn, |(_, result)| Work::GroupAttempt { profile, result });
            records.extend(decided);
        }
        records
    }

    /// Tries the group, by preemption if need be, and acts on the outcome, which is given as
    /// upstream's metrics name it.
    fn decide_group(
        &mut self,
        group: NamespacedName,
        cycles: Vec<Cycle>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> (Vec<CycleRecord>, &'static str) {
        let preempts = self.features.enabled(Feature::WorkloadAwarePreemption);
        let fresh = preempts.then(|| cycles.clone());
        let state = self.shared.pod_groups.get(group);
        let scheduled_before = state.map_or(0, PodGroupState::scheduled);
        self.shared.group_cycle = Some(GroupCycle { scheduled_before, ..GroupCycle::default() });
        let timer = self.shared.timer.clone();
        let turn = || self.try_group(group, cycles, host);
        let mut outcome = timer.work(turn, |_| Work::GroupAlgorithm);
        if let Some(fresh) = fresh {
            self.preempt_for_group(group, &fresh, &mut outcome, host);
        }
        self.shared.group_cycle = None;
        let Outcome { verdict, cycles, attempts } = outcome;
        let mut records = Vec::new();
        for (cycle, attempt) in cycles.into_iter().zip(attempts) {
            records.push(self.submit(cycle, attempt, &verdict, host));
        }
        self.tell_group(group, &verdict, now, host);
        (records, verdict.result())
    }

    /// Tries the group where its constraints allow.
    fn try_group(
        &mut self,
        group: NamespacedName,
        cycles: Vec<Cycle>,
        host: &mut dyn SchedulerHost,
    ) -> Outcome {
        match self.features.enabled(Feature::TopologyAwareWorkloadScheduling) {
            true => self.try_placements(group, cycles, host),
            false => self.try_pods(cycles, host),
        }
    }

    /// Takes the group's other pods out of the queue (PG-001).
    fn pop_members(
        &mut self,
        first: QueuedPod,
        members: &[NamespacedName],
        now: Time,
    ) -> Vec<QueuedPod> {
        let own = first.key();
        let mut pods = vec![first];
        for key in in_upstreams_turn(members, self.cycles).filter(|key| **key != own) {
            let (queue, cx) = self.queue_context(now);
            pods.extend(queue.pop_specific(&cx, *key));
        }
        let since = |pod: &QueuedPod| pod.initial_attempt.unwrap_or_default();
        pods.sort_by_key(|pod| (std::cmp::Reverse(pod.info.priority()), since(pod)));
        pods
    }

    /// Fails pods before their cycle really began.
    fn fail_all(
        &mut self,
        pods: Vec<QueuedPod>,
        failure: Failure,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Vec<CycleRecord> {
        let mut records = Vec::new();
        for pod in pods {
            match self.begin(pod, now, host) {
                Ok(mut cycle) => {
                    self.fail(&mut cycle, failure.clone(), host);
                    records.push(cycle.record);
                }
                Err(dropped) => records.push(*dropped),
            }
        }
        records
    }
}

/// Upstream walks a map of the members. Go starts such a walk at one of eight slots, drawn by
/// lot; here the start goes round, so that each is met as often. Where it begins is chosen so
/// that all recorded cycles agree, which says little: a walk that always begins at the first
/// slot agrees with all but one (gang-11-0023, which needs the fifth).
fn in_upstreams_turn(
    members: &[NamespacedName],
    cycles: u64,
) -> impl Iterator<Item = &NamespacedName> {
    let slot = (cycles + 3) % 8;
    let start = usize::try_from(slot).ok().filter(|slot| *slot < members.len()).unwrap_or(0);
    members[start..].iter().chain(&members[..start])
}

/// PG-002
fn different_schedulers(pods: &[QueuedPod]) -> Option<String> {
    let mut names = pods.iter().map(|pod| pod.info.pod.spec.scheduler_name);
    let first = names.next()?;
    let other = names.find(|name| *name != first)?;
    Some(format!(
        "all pods in a single pod group should have the same .spec.schedulerName set, got: \
         {other:?} and {first:?}"
    ))
}
