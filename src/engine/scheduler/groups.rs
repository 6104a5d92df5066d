//! The cycle of a pod group: its pods are placed one after the other in the snapshot, and
//! bound only if the group as a whole may start (PG-001…PG-011; alpha, behind GenericWorkload).
//!
//! Upstream: `pkg/scheduler/schedule_one_podgroup.go`.

use std::sync::Arc;

use crate::api::{Condition, ConditionStatus, Object, Pod, Time, find_condition};
use crate::config::Feature;
use crate::engine::host::Host;
use crate::engine::node::NodeInfo;
use crate::engine::pod::{NamespacedName, PodInfo, QueuedPod};
use crate::engine::pod_groups::group_of;
use crate::engine::record::CycleRecord;
use crate::engine::scheduler::Scheduler;
use crate::engine::scheduler::cycle::{Cycle, Failure};
use crate::engine::status::Status;
use crate::intern::Symbol;

/// What became of one pod in the simulation.
enum Attempt {
    /// It has no place.
    Failed(Failure),
    /// It has a place, for now.
    Placed(Placed),
}

/// A pod that was assumed in the snapshot.
struct Placed {
    node: Symbol,
    /// What Permit said: Success or Wait.
    permit: Status,
    /// Set when the place becomes free only by preemption.
    preempting: Option<Failure>,
    /// The pod as it came out of the queue.
    original: Arc<PodInfo>,
}

/// What became of the group.
#[derive(Default)]
struct Verdict {
    /// Success, a refusal, or what went wrong.
    status: Status,
    /// Refused only until its victims are gone.
    awaits_preemption: bool,
}

impl Verdict {
    fn refused() -> Verdict {
        let status = Status::unschedulable("pod group is unschedulable");
        Verdict { status, awaits_preemption: false }
    }
}

impl Scheduler {
    /// The group of a pod, while groups are a feature.
    pub(super) fn group(&self, pod: &Pod) -> Option<NamespacedName> {
        group_of(pod).filter(|_| self.features.enabled(Feature::GenericWorkload))
    }

    /// Runs the cycle of the group that `first` belongs to. The record given back is that of the
    /// pod that was tried first; those of the others are among the finished ones.
    pub(super) fn schedule_group(
        &mut self,
        first: QueuedPod,
        group: NamespacedName,
        now: Time,
        host: &mut dyn Host,
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
        host: &mut dyn Host,
    ) -> Vec<CycleRecord> {
        let members = match self.shared.pod_groups.get(group) {
            Ok(state) => state.unscheduled().collect::<Vec<_>>(),
            Err(text) => {
                let text = format!("error while retrieving pod group state: {text}");
                let failure = Failure { nominate: None, ..Failure::plain(Status::error(&text)) };
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
        if !cycles.is_empty() {
            let (verdict, attempts) = self.try_group(&mut cycles, host);
            let all = cycles.into_iter().zip(attempts);
            records.extend(all.map(|(cycle, one)| self.submit(cycle, one, &verdict, host)));
            self.tell_group(group, &verdict, now, host);
        }
        records
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
        host: &mut dyn Host,
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

    /// Places the pods one after the other, each seeing those before it, and takes everything
    /// back at the end (PG-005).
    fn try_group(
        &mut self,
        cycles: &mut [Cycle],
        host: &mut dyn Host,
    ) -> (Verdict, Vec<Option<Attempt>>) {
        let before = self.snapshot.clone();
        let mut verdict = Verdict::refused();
        let mut attempts = Vec::new();
        let mut preempts = false;
        for cycle in cycles.iter_mut() {
            let attempt = self.try_pod(cycle, host);
            match &attempt {
                Attempt::Failed(failure) if failure.status.is_rejected() => {}
                Attempt::Failed(failure) => {
                    let text = failure.status.message();
                    let text = format!("failed to schedule other pod from a pod group: {text}");
                    verdict = Verdict { status: Status::error(&text), awaits_preemption: false };
                }
                Attempt::Placed(placed) => {
                    preempts |= placed.preempting.is_some();
                    if placed.permit.is_success() {
                        verdict = verdict_with_quorum(preempts);
                    }
                }
            }
            let broken = matches!(&attempt, Attempt::Failed(f) if !f.status.is_rejected());
            attempts.push(Some(attempt));
            if broken {
                break;
            }
        }
        for (cycle, attempt) in cycles.iter_mut().zip(&attempts).rev() {
            if let Some(Attempt::Placed(placed)) = attempt {
                self.take_back(cycle, placed, host);
            }
        }
        self.snapshot = before;
        attempts.resize_with(cycles.len(), || None);
        (verdict, attempts)
    }

    fn try_pod(&mut self, cycle: &mut Cycle, host: &mut dyn Host) -> Attempt {
        cycle.nominated = self.queue.nominated_pods();
        cycle.record.start_index = self.next_start_node_index;
        let (node, preempting) = match self.scheduling_algorithm(cycle, host) {
            Ok(node) => (node, None),
            Err(failure) => match failure.nominate.filter(|node| !node.is_empty()) {
                // The pods after it must see it where it is going to be.
                Some(node) => (node, Some(failure)),
                None => return Attempt::Failed(failure),
            },
        };
        cycle.record.node = Some(node);
        let original = cycle.queued.info.clone();
        let mut placed = Placed { node, permit: Status::SUCCESS, preempting, original };
        self.assume_in_snapshot(cycle, node);
        let (_, reserved) = self.with_bind_context(cycle, node, host, |cycle, cx| {
            cycle.framework.clone().run_reserve(cx, &mut cycle.state)
        });
        if reserved.is_success() {
            placed.permit = self.permit(cycle, node, host).status;
            if placed.permit.is_success() || placed.permit.is_wait() {
                return Attempt::Placed(placed);
            }
        }
        let status = if reserved.is_success() { placed.permit.clone() } else { reserved };
        let failure = match status.is_rejected() {
            true => self.fit_failure_on(cycle, status),
            false => Failure::plain(status),
        };
        self.take_back(cycle, &placed, host);
        Attempt::Failed(failure)
    }

    /// Puts the pod on the node in the snapshot alone. The lists of nodes with affinity stay as
    /// they were, as upstream.
    fn assume_in_snapshot(&mut self, cycle: &mut Cycle, node: Symbol) {
        let info = cycle.queued.info.as_ref();
        let mut pod = info.pod.as_ref().clone();
        pod.spec.node_name = node;
        let assumed = Arc::new(PodInfo { pod: Arc::new(pod), ..info.clone() });
        self.change_in_snapshot(node, |info| info.add_pod(assumed.clone()));
        self.shared.pod_groups.assume(&assumed.pod);
        self.queue.delete_nominated_pod_if_exists(assumed.uid());
        cycle.queued.info = assumed;
    }

    fn change_in_snapshot(&mut self, node: Symbol, change: impl FnOnce(&mut NodeInfo)) {
        let changed = self.snapshot.change_node(node, change);
        self.kept.note(changed.as_slice(), self.snapshot.len());
    }

    /// Undoes what [`Scheduler::try_pod`] did to the pod (PG-010).
    fn take_back(&mut self, cycle: &mut Cycle, placed: &Placed, host: &mut dyn Host) {
        self.with_bind_context(cycle, placed.node, host, |cycle, cx| {
            cycle.framework.clone().run_unreserve(cx, &mut cycle.state);
        });
        let assumed = std::mem::replace(&mut cycle.queued.info, placed.original.clone());
        self.change_in_snapshot(placed.node, |info| {
            info.remove_pod(assumed.uid());
        });
        self.shared.pod_groups.forget(&assumed.pod);
        cycle.record.node = None;
        let nominated = assumed.pod.status.nominated_node_name;
        if !nominated.is_empty() {
            self.queue.add_nominated_pod(&assumed, Some(nominated), &self.objects);
        }
    }

    /// Binds the pod, or gives it back to the queue (PG-008).
    fn submit(
        &mut self,
        mut cycle: Cycle,
        attempt: Option<Attempt>,
        verdict: &Verdict,
        host: &mut dyn Host,
    ) -> CycleRecord {
        let failure = match attempt {
            None => Failure::plain(verdict.status.clone()),
            Some(Attempt::Failed(failure)) => match verdict.status.is_error() {
                true if failure.status.is_rejected() => Failure::plain(verdict.status.clone()),
                _ => failure,
            },
            Some(Attempt::Placed(_)) if verdict.status.is_error() => {
                Failure::plain(verdict.status.clone())
            }
            Some(Attempt::Placed(placed))
                if verdict.status.is_success() && placed.preempting.is_none() =>
            {
                cycle.record.node = Some(placed.node);
                return self.start_binding(cycle, placed.node, host);
            }
            Some(Attempt::Placed(placed)) => failure_of_placed(placed, verdict),
        };
        self.fail(&mut cycle, failure, host);
        cycle.record
    }

    /// Writes the group's condition, which never goes back from True (PG-009).
    fn tell_group(&self, group: NamespacedName, verdict: &Verdict, now: Time, host: &mut dyn Host) {
        let Some(object) = self.objects.pod_groups.get(&group) else { return };
        let (status, reason) = match verdict.status.is_success() {
            true => (ConditionStatus::True, "Scheduled"),
            false if verdict.status.is_rejected() => (ConditionStatus::False, "Unschedulable"),
            false => (ConditionStatus::False, "SchedulerError"),
        };
        let mut condition = Condition {
            type_: "PodGroupScheduled".into(),
            status,
            reason: reason.into(),
            message: verdict.status.message(),
            observed_generation: object.metadata.generation,
            last_transition_time: Some(now),
            last_probe_time: None,
        };
        let mut changed = object.as_ref().clone();
        if let Some(old) = find_condition(&object.status.conditions, condition.type_) {
            if old.status == ConditionStatus::True && status != ConditionStatus::True {
                return;
            }
            if old.status == status {
                condition.last_transition_time = old.last_transition_time;
            }
            if *old == condition {
                return;
            }
        }
        changed.status.conditions.retain(|other| other.type_ != condition.type_);
        changed.status.conditions.push(condition);
        // A write that fails is only logged upstream.
        let _written = host.update(Object::from(changed));
    }
}

/// The verdict once Permit found enough pods placed.
fn verdict_with_quorum(preempts: bool) -> Verdict {
    match preempts {
        true => Verdict {
            status: Status::unschedulable("pod group is waiting for preemption to complete"),
            awaits_preemption: true,
        },
        false => Verdict::default(),
    }
}

/// Why a pod that has a place goes back to the queue with its group.
fn failure_of_placed(placed: Placed, verdict: &Verdict) -> Failure {
    match (placed.preempting, verdict.awaits_preemption) {
        (Some(own), true) => own,
        (None, true) => {
            Failure { nominate: Some(placed.node), ..Failure::plain(verdict.status.clone()) }
        }
        (_, false) => Failure::plain(Status::unschedulable(&placed.permit.message())),
    }
}

/// Upstream walks a map of the members. Go starts such a walk at one of eight slots, drawn by
/// lot; here the start goes round, so that each is met as often. Where it begins is chosen so
/// that all recorded cycles agree.
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
