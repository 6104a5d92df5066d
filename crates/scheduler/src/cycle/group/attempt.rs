//! Placing the pods of a group one after the other in the snapshot.

use std::sync::Arc;

use super::{GroupOutcome, GroupVerdict, PodGroupCycle};
use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::{Code, Status};

/// Why upstream says that a group cannot start.
const GROUP_UNSCHEDULABLE: &str = "pod group is unschedulable";

/// The result for one pod in the simulation.
pub(super) enum PodAttempt {
    /// No node was found.
    Failed(Failure),
    /// A node was found.
    Placed(Placed),
}

/// A pod that was assumed in the snapshot.
pub(super) struct Placed {
    pub node: Name,
    /// The status of Permit: Success or Wait.
    pub permit: Status,
    /// Set when the pod fits only after preemption.
    pub preempting: Option<Failure>,
    /// The pod as it came out of the queue.
    pub original: Arc<PodInfo>,
}

impl GroupVerdict {
    /// As upstream's metrics name it.
    pub(super) fn result(&self) -> &'static str {
        match () {
            () if self.status.is_success() => "scheduled",
            () if !self.status.is_rejected() => "error",
            () if self.awaits_preemption => "waiting_on_preemption",
            () => "unschedulable",
        }
    }

    /// Too few pods are placed.
    fn rejected() -> GroupVerdict {
        GroupVerdict { status: group_rejection(""), awaits_preemption: false }
    }

    /// Permit found enough pods placed.
    fn with_quorum(preempts: bool) -> GroupVerdict {
        match preempts {
            true => GroupVerdict {
                status: group_rejection("pod group is waiting for preemption to complete"),
                awaits_preemption: true,
            },
            false => GroupVerdict::default(),
        }
    }

    /// A pod failed with an error, so the group does.
    fn broken(status: &Status) -> GroupVerdict {
        let text = status.message();
        let text = format!("failed to schedule other pod from a pod group: {text}");
        GroupVerdict { status: Status::error(&text), awaits_preemption: false }
    }
}

/// The rejection of a group: upstream's error, then the reason if there is one.
pub(super) fn group_rejection(reason: &str) -> Status {
    let reasons = [GROUP_UNSCHEDULABLE, reason].into_iter().filter(|reason| !reason.is_empty());
    Status::with_reasons(Code::Unschedulable, reasons.map(Symbol::new).collect())
}

impl PodGroupCycle<'_> {
    /// Places the pods one after the other, each seeing those before it, and undoes everything
    /// at the end.
    pub(super) fn try_pods(&mut self, mut cycles: Vec<Cycle>) -> GroupOutcome {
        let before = self.scheduler.cluster.snapshot.clone();
        let mut verdict = GroupVerdict::rejected();
        let mut attempts = Vec::new();
        let mut preempts = false;
        for cycle in &mut cycles {
            let attempt = self.try_pod(cycle);
            let broken = match &attempt {
                PodAttempt::Failed(failure) => (!failure.status.is_rejected()).then_some(failure),
                PodAttempt::Placed(placed) => {
                    preempts |= placed.preempting.is_some();
                    if placed.permit.is_success() {
                        verdict = GroupVerdict::with_quorum(preempts);
                    }
                    None
                }
            };
            let broken = broken.map(|failure| GroupVerdict::broken(&failure.status));
            attempts.push(Some(attempt));
            if let Some(broken) = broken {
                verdict = broken;
                break;
            }
        }
        for (cycle, attempt) in cycles.iter_mut().zip(&attempts).rev() {
            if let Some(PodAttempt::Placed(placed)) = attempt {
                self.undo(cycle, placed);
            }
        }
        self.scheduler.cluster.snapshot = before;
        attempts.resize_with(cycles.len(), || None);
        GroupOutcome { verdict, cycles, attempts }
    }

    fn try_pod(&mut self, cycle: &mut Cycle) -> PodAttempt {
        let queue = &mut self.scheduler.queue;
        cycle.nominated = queue.update_nominated_pods();
        cycle.is_nominated = queue.is_nominated(cycle.queued.uid());
        cycle.record.start_index = self.scheduler.algorithm.next_start_node_index;
        let (node, preempting) = match self.scheduler.select_node(cycle, self.host) {
            Ok(node) => (node, None),
            Err(failure) => match failure.nominate.filter(|node| !node.is_empty()) {
                // The pods after it must see it on its future node.
                Some(node) => (node, Some(failure)),
                None => return PodAttempt::Failed(failure),
            },
        };
        cycle.record.node = Some(node);
        let original = cycle.queued.info.clone();
        let mut placed = Placed { node, permit: Status::SUCCESS, preempting, original };
        self.assume_in_snapshot(cycle, node);
        let pod = &cycle.queued.info;
        let mut cx = self.scheduler.cluster.bind_context(pod, node, cycle.now, self.host);
        let (_, reserved) = cycle.framework.run_reserve(&mut cx, &mut cycle.state);
        if reserved.is_success() {
            placed.permit = self.scheduler.permit(cycle, node, self.host).status;
            if placed.permit.is_success() || placed.permit.is_wait() {
                return PodAttempt::Placed(placed);
            }
        }
        let status = if reserved.is_success() { placed.permit.clone() } else { reserved };
        let snapshot = &self.scheduler.cluster.snapshot;
        let failure = Failure::after_selection(snapshot, cycle.record.node, status);
        self.undo(cycle, &placed);
        PodAttempt::Failed(failure)
    }

    /// Puts the pod on the node in the snapshot alone. The lists of nodes with affinity stay as
    /// they were, as upstream.
    fn assume_in_snapshot(&mut self, cycle: &mut Cycle, node: Name) {
        let assumed = cycle.pod_on(node, &self.scheduler.cluster.features);
        self.change_in_snapshot(node, |info| info.add_pod(assumed.clone()));
        self.scheduler.cluster.shared.pod_groups.assume(&assumed.pod);
        self.scheduler.queue.delete_nominated_pod_if_exists(assumed.uid());
        cycle.queued.info = assumed;
    }

    /// Changes a node for the simulation alone.
    pub(super) fn change_in_snapshot(&mut self, node: Name, change: impl FnOnce(&mut NodeInfo)) {
        let snapshot = &mut self.scheduler.cluster.snapshot;
        let changed = snapshot.change_node(node, change);
        let cache = &mut self.scheduler.algorithm.answers.cache;
        cache.note(changed.as_slice(), snapshot.len());
    }

    /// Undoes what [`PodGroupCycle::try_pod`] did to the pod.
    fn undo(&mut self, cycle: &mut Cycle, placed: &Placed) {
        let (cluster, pod) = (&mut self.scheduler.cluster, &cycle.queued.info);
        let mut cx = cluster.bind_context(pod, placed.node, cycle.now, self.host);
        cycle.framework.run_unreserve(&mut cx, &mut cycle.state);
        let assumed = std::mem::replace(&mut cycle.queued.info, placed.original.clone());
        self.change_in_snapshot(placed.node, |info| {
            info.remove_pod(assumed.uid());
        });
        let Scheduler { cluster, queue, .. } = &mut *self.scheduler;
        cluster.shared.pod_groups.forget(&assumed.pod);
        cycle.record.node = None;
        let nominated = assumed.pod.status.nominated_node_name;
        if !nominated.is_empty() {
            queue.add_nominated_pod(&assumed, Some(nominated), &cluster.objects);
        }
    }
}
