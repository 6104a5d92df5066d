//! Pods that wait in their binding cycle: at Permit until they are allowed, rejected, or time
//! out; in PreBind until their devices are ready, their volumes are bound, or a write is answered;
//! and in Bind until the binding is answered.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Cycle, Failure};
use crate::Scheduler;
use crate::host::SchedulerHost;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Time, Uid};
use kubestep_framework::effects::WaitingRejection;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::node_statuses::add_once;
use kubestep_framework::status::{Code, Status};

/// A plugin that holds a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// How long it holds the pod at most.
    pub timeout: Duration,
    /// When that time ends.
    pub deadline: Time,
}

/// How often PreBind checks whether devices are ready.
const POLL: Duration = Duration::from_secs(5);

/// Where in its binding cycle a pod waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitingStage {
    /// At Permit, for plugins or people.
    Permit,
    /// In PreBind, for devices, volumes, or the answer to a write.
    PreBind,
    /// For the answer to its binding.
    Bind,
}

/// A pod that waits. It stays assumed on its node.
#[derive(Clone)]
pub struct WaitingPod {
    /// Shared by the copies of a cluster: it holds matrices.
    cycle: Arc<Cycle>,
    node: Name,
    /// In PreBind: the plugins that wait, until they check again.
    holds: Vec<Hold>,
    stage: WaitingStage,
}

impl WaitingPod {
    /// The pod, with its node set.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.cycle.queued.info
    }

    /// The node it would be bound to.
    pub fn node(&self) -> Name {
        self.node
    }

    /// The plugin that it waits for in PreBind; `None` if it waits at another stage.
    pub fn in_pre_bind(&self) -> Option<Symbol> {
        let hold = self.holds.first().filter(|_| self.stage == WaitingStage::PreBind);
        hold.map(|hold| hold.plugin)
    }

    /// At Permit, or in PreBind.
    pub fn stage(&self) -> WaitingStage {
        self.stage
    }

    /// The plugins that still hold it.
    pub fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// When it began to wait.
    pub fn since(&self) -> Time {
        self.cycle.now
    }

    /// The cycle that led here.
    pub fn cycle(&self) -> u64 {
        self.cycle.record.cycle
    }
}

/// The waiting pods, in the order in which they began to wait.
#[derive(Clone, Default)]
pub(crate) struct WaitingPods(Vec<WaitingPod>);

impl WaitingPods {
    pub fn pods(&self) -> &[WaitingPod] {
        &self.0
    }

    /// Lets the pod wait at Permit. `waits` are the plugins, with their timeouts.
    pub(crate) fn wait_on_permit(
        &mut self,
        cycle: Cycle,
        node: Name,
        waits: &[(Symbol, Duration)],
    ) -> CycleRecord {
        let hold = |(plugin, timeout): &(Symbol, Duration)| Hold {
            plugin: *plugin,
            timeout: *timeout,
            deadline: cycle.now + *timeout,
        };
        let holds = waits.iter().map(hold).collect();
        self.wait(cycle, node, holds, WaitingStage::Permit)
    }

    /// Lets the pod wait until the plugins that wait check again.
    pub(crate) fn wait_on_pre_bind(&mut self, mut cycle: Cycle, node: Name) -> CycleRecord {
        let poll = cycle.state.poll_again_in.take().unwrap_or(POLL);
        let deadline = cycle.now + poll;
        let waits = cycle.record.pre_bind.iter().filter(|answer| answer.status.is_wait());
        let hold = |answer: &PluginStatus| Hold { plugin: answer.plugin, timeout: poll, deadline };
        let holds = waits.map(hold).collect();
        self.wait(cycle, node, holds, WaitingStage::PreBind)
    }

    /// Lets the pod wait until its binding is answered.
    pub(crate) fn wait_on_bind(&mut self, cycle: Cycle, node: Name) -> CycleRecord {
        self.wait(cycle, node, Vec::new(), WaitingStage::Bind)
    }

    fn wait(
        &mut self,
        mut cycle: Cycle,
        node: Name,
        holds: Vec<Hold>,
        stage: WaitingStage,
    ) -> CycleRecord {
        cycle.record.outcome = Outcome::Waiting;
        let record = cycle.record.clone();
        self.0.push(WaitingPod { cycle: Arc::new(cycle), node, holds, stage });
        record
    }

    /// When the next hold ends.
    fn next_deadline(&self) -> Option<Time> {
        self.0.iter().flat_map(|waiting| &waiting.holds).map(|hold| hold.deadline).min()
    }

    /// The position of a pod that waits at Permit.
    fn at_permit(&self, uid: Uid) -> Option<usize> {
        let is_it = |waiting: &WaitingPod| {
            waiting.stage == WaitingStage::Permit && waiting.pod().uid() == uid
        };
        self.0.iter().position(is_it)
    }

    /// Whether the pod with that UID waits at Permit.
    pub(crate) fn is_at_permit(&self, uid: Uid) -> bool {
        self.at_permit(uid).is_some()
    }

    /// The position of a pod that waits in PreBind for a plugin.
    fn in_pre_bind(&self, uid: Uid) -> Option<usize> {
        let is_it =
            |waiting: &WaitingPod| waiting.pod().uid() == uid && waiting.in_pre_bind().is_some();
        self.0.iter().position(is_it)
    }

    /// The hold at Permit that timed out first, with the position of its pod.
    fn next_expired(&self, now: Time) -> Option<(usize, Hold)> {
        let pods = self.0.iter().enumerate();
        let pods = pods.filter(|(_, waiting)| waiting.stage == WaitingStage::Permit);
        let holds =
            pods.flat_map(|(at, waiting)| waiting.holds.iter().map(move |hold| (at, *hold)));
        holds.filter(|(_, hold)| hold.deadline <= now).min_by_key(|(_, hold)| hold.deadline)
    }

    /// Ends the holds of one plugin, or all with `None`. `true` if none is left.
    fn end_holds(&mut self, at: usize, plugin: Option<Symbol>) -> bool {
        let holds = &mut self.0[at].holds;
        match plugin {
            Some(plugin) => holds.retain(|hold| hold.plugin != plugin),
            None => holds.clear(),
        }
        holds.is_empty()
    }

    fn take_due(&mut self, is_due: impl Fn(&WaitingPod) -> bool) -> Vec<WaitingPod> {
        self.0.extract_if(.., |waiting| is_due(waiting)).collect()
    }

    /// Takes a pod out, to go on with its cycle at `now`.
    fn take(&mut self, at: usize, now: Time) -> (Cycle, Name) {
        self.0.remove(at).resumed(now)
    }
}

impl WaitingPod {
    /// Its cycle, to go on at `now`, and its node.
    fn resumed(self, now: Time) -> (Cycle, Name) {
        let mut cycle = Arc::unwrap_or_clone(self.cycle);
        cycle.now = now;
        (cycle, self.node)
    }
}

impl Scheduler {
    /// Allows a waiting pod for one plugin, or for all with `None`. When no plugin holds it any
    /// more, it is bound. `false` if no such pod waits.
    pub fn allow_waiting(
        &mut self,
        uid: Uid,
        plugin: Option<Symbol>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> bool {
        let Some(at) = self.waiting.at_permit(uid) else { return false };
        if self.waiting.end_holds(at, plugin) {
            self.end_permit(at, Status::SUCCESS, now, host);
        }
        true
    }

    /// Rejects a waiting pod in the name of `plugin`. `false` if no such pod waits.
    pub fn reject_waiting(
        &mut self,
        uid: Uid,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> bool {
        let Some(at) = self.waiting.at_permit(uid) else { return false };
        self.end_permit(at, Status::unschedulable(message).by(plugin), now, host);
        true
    }

    /// Rejects pods that wait at Permit, in their order. Plugins may request more rejections when
    /// these pods are unreserved; they follow at the end.
    pub(crate) fn reject_all_waiting(
        &mut self,
        rejections: Vec<WaitingRejection>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        if let Some(pending) = &mut self.rejections {
            pending.extend(rejections);
            return;
        }
        self.rejections = Some(rejections.into());
        while let Some(next) = self.rejections.as_mut().and_then(VecDeque::pop_front) {
            self.reject_waiting(next.uid, next.plugin, next.text, now, host);
        }
        self.rejections = None;
    }

    /// Preempts a waiting pod: an error, not a rejection.
    pub(crate) fn preempt_waiting(
        &mut self,
        uid: Uid,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        if let Some(at) = self.waiting.at_permit(uid) {
            self.end_permit(at, Status::new(Code::Error, message).by(plugin), now, host);
        } else if let Some(at) = self.waiting.in_pre_bind(uid) {
            self.cancel_pre_bind(at, plugin, now, host);
        }
    }

    /// Rejects every pod at Permit that timed out.
    pub(crate) fn expire_waiting(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        while let Some((at, hold)) = self.waiting.next_expired(now) {
            let Hold { plugin, timeout: waited, .. } = hold;
            let text = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
            self.end_permit(at, Status::unschedulable(&text).by(plugin), now, host);
        }
    }

    /// When the next hold of a waiting pod ends.
    pub fn next_permit_timeout(&self) -> Option<Time> {
        self.waiting.next_deadline()
    }

    /// Goes on with the pods in PreBind whose plugins check again now.
    pub(crate) fn poll_pre_bind(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        let due = self.waiting.take_due(|waiting| {
            let is_over = |hold: &Hold| hold.deadline <= now;
            waiting.stage == WaitingStage::PreBind && waiting.holds.iter().all(is_over)
        });
        self.resume(due, now, host);
    }

    /// Goes on after an answer to a write: with the pod of that UID if its binding was answered,
    /// with all pods in PreBind for `None`.
    pub fn answered(&mut self, bound: Option<Uid>, now: Time, host: &mut dyn SchedulerHost) {
        let due = self.waiting.take_due(|waiting| match bound {
            Some(uid) => waiting.stage == WaitingStage::Bind && waiting.pod().uid() == uid,
            None => waiting.stage == WaitingStage::PreBind,
        });
        self.resume(due, now, host);
    }

    fn resume(&mut self, due: Vec<WaitingPod>, now: Time, host: &mut dyn SchedulerHost) {
        for waiting in due {
            let stage = waiting.stage;
            let (cycle, node) = waiting.resumed(now);
            let record = match stage {
                WaitingStage::Bind => self.bind(cycle, node, host),
                _ => self.finish_binding(cycle, node, host),
            };
            if record.outcome != Outcome::Waiting {
                self.finished.push(record);
            }
        }
    }

    /// Ends the wait of a pod in PreBind, as upstream cancels its context.
    fn cancel_pre_bind(&mut self, at: usize, by: Symbol, now: Time, host: &mut dyn SchedulerHost) {
        let plugin = self.waiting.pods()[at].in_pre_bind().unwrap_or_default();
        let (cycle, _) = self.waiting.take(at, now);
        let text = format!("running PreBind plugin {plugin:?}: preempted by {by}");
        let failure = Failure::plain(Status::error(&text).by(plugin));
        let record = self.fail_binding(cycle, failure, host);
        self.finished.push(record);
    }

    /// Ends the wait at Permit: the binding goes on, or fails.
    fn end_permit(&mut self, at: usize, status: Status, now: Time, host: &mut dyn SchedulerHost) {
        let (mut cycle, node) = self.waiting.take(at, now);
        cycle.record.permit_wait = Some(status.clone());
        let plugin = status.plugin();
        let record = if status.is_success() {
            self.finish_binding(cycle, node, host)
        } else if status.is_rejected() {
            let snapshot = &self.cluster.snapshot;
            let mut failure = Failure::after_selection(snapshot, cycle.record.node, status);
            if let Some(diagnosis) = &mut failure.diagnosis {
                // Also an empty name: upstream counts it as a rejector.
                add_once(&mut diagnosis.unschedulable_plugins, plugin);
            }
            self.fail_binding(cycle, failure, host)
        } else {
            let text = format!("waiting on permit for pod: {}", status.message());
            let failure = Failure::plain(Status::error(&text).by(plugin));
            self.fail_binding(cycle, failure, host)
        };
        self.finished.push(record);
    }
}
