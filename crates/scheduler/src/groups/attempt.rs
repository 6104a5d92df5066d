//! Placing the pods of a group one after the other in the snapshot (PG-005).

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::SchedulerHost;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::{Code, Status};

use super::{Outcome, Verdict};

/// Why upstream says that a group cannot start.
const GROUP_UNSCHEDULABLE: &str = "pod group is unschedulable";

/// What became of one pod in the simulation.
pub(super) enum Attempt {
    /// It has no place.
    Failed(Failure),
    /// It has a place, for now.
    Placed(Placed),
}

/// A pod that was assumed in the snapshot.
pub(super) struct Placed {
    pub node: Symbol,
    /// What Permit said: Success or Wait.
    pub permit: Status,
    /// Set when the place becomes free only by preemption.
    pub preempting: Option<Failure>,
    /// The pod as it came out of the queue.
    pub original: Arc<PodInfo>,
}

impl Verdict {
    /// As upstream's metrics name it.
    pub(super) fn result(&self) -> &'static str {
        match () {
            () if self.status.is_success() => "scheduled",
            () if !self.status.is_rejected() => "error",
            () if self.awaits_preemption => "waiting_on_preemption",
            () => "unschedulable",
        }
    }

    /// Too few pods have a place.
    fn refused() -> Verdict {
        Verdict { status: group_refusal(""), awaits_preemption: false }
    }

    /// Permit found enough pods placed.
    fn with_quorum(preempts: bool) -> Verdict {
        match preempts {
            true => Verdict {
                status: group_refusal("pod group is waiting for preemption to complete"),
                awaits_preemption: true,
            },
            false => Verdict::default(),
        }
    }

    /// A pod met an error, so the group does.
    fn broken(status: &Status) -> Verdict {
        let text = status.message();
        let text = format!("failed to schedule other pod from a pod group: {text}");
        Verdict { status: Status::error(&text), awaits_preemption: false }
    }
}

/// The refusal of a group: upstream's error, then the reason if there is one.
pub(super) fn group_refusal(reason: &str) -> Status {
    let reasons = [GROUP_UNSCHEDULABLE, reason].into_iter().filter(|reason| !reason.is_empty());
    Status::with_reasons(Code::Unschedulable, reasons.map(Symbol::new).collect())
}

impl Scheduler {
    /// Places the pods one after the other, each seeing those before it, and takes everything
    /// back at the end.
    pub(super) fn try_pods(
        &mut self,
        mut cycles: Vec<Cycle>,
        host: &mut dyn SchedulerHost,
    ) -> Outcome {
        let before = self.snapshot.clone();
        let mut verdict = Verdict::refused();
        let mut attempts = Vec::new();
        let mut preempts = false;
        for cycle in &mut cycles {
            let attempt = self.try_pod(cycle, host);
            let broken = match &attempt {
                Attempt::Failed(failure) => (!failure.status.is_rejected()).then_some(failure),
                Attempt::Placed(placed) => {
                    preempts |= placed.preempting.is_some();
                    if placed.permit.is_success() {
                        verdict = Verdict::with_quorum(preempts);
                    }
                    None
                }
            };
            let broken = broken.map(|failure| Verdict::broken(&failure.status));
            attempts.push(Some(attempt));
            if let Some(broken) = broken {
                verdict = broken;
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
        Outcome { verdict, cycles, attempts }
    }

    fn try_pod(&mut self, cycle: &mut Cycle, host: &mut dyn SchedulerHost) -> Attempt {
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
        let assumed = self.assumed(cycle, node);
        self.change_in_snapshot(node, |info| info.add_pod(assumed.clone()));
        self.shared.pod_groups.assume(&assumed.pod);
        self.queue.delete_nominated_pod_if_exists(assumed.uid());
        cycle.queued.info = assumed;
    }

    /// Changes a node for the simulation alone.
    pub(super) fn change_in_snapshot(&mut self, node: Symbol, change: impl FnOnce(&mut NodeInfo)) {
        let changed = self.snapshot.change_node(node, change);
        self.kept.note(changed.as_slice(), self.snapshot.len());
    }

    /// Undoes what [`Scheduler::try_pod`] did to the pod (PG-010).
    fn take_back(&mut self, cycle: &mut Cycle, placed: &Placed, host: &mut dyn SchedulerHost) {
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
}
