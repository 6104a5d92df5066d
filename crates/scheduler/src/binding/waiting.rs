//! Pods that wait at Permit: allowed, rejected, or timed out (FW-162…167); pods that wait in
//! PreBind until their devices are ready (DRA-029), their volumes are bound, or a write is
//! answered; and pods whose binding is not answered yet.

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::duration::Duration;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::node_statuses::add_once;
use kubestep_framework::status::{Code, Status};

/// A plugin that holds a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The plugin.
    pub plugin: Symbol,
    /// How long it holds the pod at most, in microseconds.
    pub timeout: i64,
    /// When that time is over.
    pub deadline: Time,
}

/// How often PreBind looks whether devices are ready: every five seconds, in microseconds.
const POLL: i64 = 5_000_000;

/// Where in its binding cycle a pod waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// At Permit, for plugins or people.
    Permit,
    /// In PreBind, for devices, volumes, or the answer to a write.
    PreBind,
    /// For the answer to its binding.
    Bind,
}

/// A pod that waits. Its place on the node is taken meanwhile.
#[derive(Clone)]
pub struct WaitingPod {
    /// Shared by the copies of a cluster: it holds matrices.
    cycle: Arc<Cycle>,
    node: Symbol,
    /// In PreBind the holds are the plugins that wait, until they look again.
    holds: Vec<Hold>,
    stage: Stage,
}

impl WaitingPod {
    /// The pod, with its node set.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.cycle.queued.info
    }

    /// The node it would be bound to.
    pub fn node(&self) -> Symbol {
        self.node
    }

    /// Whether it waits in PreBind, and then for which plugin first.
    pub fn in_pre_bind(&self) -> Option<Symbol> {
        let hold = self.holds.first().filter(|_| self.stage == Stage::PreBind);
        hold.map(|hold| hold.plugin)
    }

    /// Where it waits.
    pub fn stage(&self) -> Stage {
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

impl Scheduler {
    /// Lets the pod wait.
    pub(crate) fn wait_on_permit(
        &mut self,
        mut cycle: Cycle,
        node: Symbol,
        waits: &[(Symbol, i64)],
    ) -> CycleRecord {
        cycle.record.outcome = Outcome::Waiting;
        let record = cycle.record.clone();
        let hold = |(plugin, timeout): &(Symbol, i64)| Hold {
            plugin: *plugin,
            timeout: *timeout,
            deadline: Time(cycle.now.0 + timeout),
        };
        let holds = waits.iter().map(hold).collect();
        self.wait(cycle, node, holds, Stage::Permit);
        record
    }

    /// Lets the pod wait until the plugins that wait look again.
    pub(crate) fn wait_on_pre_bind(&mut self, mut cycle: Cycle, node: Symbol) -> CycleRecord {
        cycle.record.outcome = Outcome::Waiting;
        let record = cycle.record.clone();
        let poll = cycle.state.look_again.take().unwrap_or(POLL);
        let deadline = Time(cycle.now.0 + poll);
        let waits = record.pre_bind.iter().filter(|answer| answer.status.is_wait());
        let hold = |answer: &PluginStatus| Hold { plugin: answer.plugin, timeout: poll, deadline };
        self.wait(cycle, node, waits.map(hold).collect(), Stage::PreBind);
        record
    }

    /// Lets the pod wait until its binding is answered.
    pub(crate) fn wait_on_bind(&mut self, mut cycle: Cycle, node: Symbol) -> CycleRecord {
        cycle.record.outcome = Outcome::Waiting;
        let record = cycle.record.clone();
        self.wait(cycle, node, Vec::new(), Stage::Bind);
        record
    }

    fn wait(&mut self, cycle: Cycle, node: Symbol, holds: Vec<Hold>, stage: Stage) {
        self.waiting.push(WaitingPod { cycle: Arc::new(cycle), node, holds, stage });
    }

    /// Goes on with the pods in PreBind whose plugin looks again now.
    pub(crate) fn poll_pre_bind(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        let is_due = |waiting: &mut WaitingPod| {
            waiting.stage == Stage::PreBind && waiting.holds.iter().all(|hold| hold.deadline <= now)
        };
        let due: Vec<WaitingPod> = self.waiting.extract_if(.., is_due).collect();
        self.resume(due, now, host);
    }

    /// Goes on after an answer to a write: with the pod of that UID if its binding was answered,
    /// with all pods in PreBind without one.
    pub fn answered(&mut self, bound: Option<Symbol>, now: Time, host: &mut dyn SchedulerHost) {
        let is_due = |waiting: &mut WaitingPod| match bound {
            Some(uid) => waiting.stage == Stage::Bind && waiting.pod().uid() == uid,
            None => waiting.stage == Stage::PreBind,
        };
        let due: Vec<WaitingPod> = self.waiting.extract_if(.., is_due).collect();
        self.resume(due, now, host);
    }

    fn resume(&mut self, due: Vec<WaitingPod>, now: Time, host: &mut dyn SchedulerHost) {
        for WaitingPod { cycle, node, stage, .. } in due {
            let mut cycle = Arc::unwrap_or_clone(cycle);
            cycle.now = now;
            let record = match stage {
                Stage::Bind => self.bind_and_tell(cycle, node, host),
                _ => self.finish_binding(cycle, node, host),
            };
            if record.outcome != Outcome::Waiting {
                self.finished.push(record);
            }
        }
    }

    /// Ends the wait of a pod in PreBind, as its context is cancelled upstream (FW-174, FW-176).
    fn cancel_pre_bind(&mut self, at: usize, by: Symbol, now: Time, host: &mut dyn SchedulerHost) {
        let waiting = self.waiting.remove(at);
        let plugin = waiting.in_pre_bind().unwrap_or_default();
        let mut cycle = Arc::unwrap_or_clone(waiting.cycle);
        cycle.now = now;
        let text = format!("running PreBind plugin {plugin:?}: preempted by {by}");
        let failure = crate::cycle::Failure::plain(Status::error(&text).by(plugin));
        let record = self.fail_binding(cycle, failure, host);
        self.finished.push(record);
    }

    /// Allows a waiting pod for one plugin, or for all with `None`. When no plugin holds it any
    /// more, it is bound. `false` if no such pod waits (FW-163).
    pub fn allow_waiting(
        &mut self,
        uid: Symbol,
        plugin: Option<Symbol>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> bool {
        let Some(at) = self.waiting_index(uid) else { return false };
        match plugin {
            Some(plugin) => self.waiting[at].holds.retain(|hold| hold.plugin != plugin),
            None => self.waiting[at].holds.clear(),
        }
        if self.waiting[at].holds.is_empty() {
            self.decide(at, Status::SUCCESS, now, host);
        }
        true
    }

    /// Rejects a waiting pod in the name of `plugin`. `false` if no such pod waits (FW-164).
    pub fn reject_waiting(
        &mut self,
        uid: Symbol,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> bool {
        let Some(at) = self.waiting_index(uid) else { return false };
        self.decide(at, Status::unschedulable(message).by(plugin), now, host);
        true
    }

    /// Evicts a waiting pod for a preemptor: an error, not a refusal (FW-164).
    pub(crate) fn preempt_waiting(
        &mut self,
        uid: Symbol,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        let in_pre_bind =
            |waiting: &WaitingPod| waiting.pod().uid() == uid && waiting.in_pre_bind().is_some();
        if let Some(at) = self.waiting_index(uid) {
            self.decide(at, Status::new(Code::Error, message).by(plugin), now, host);
        } else if let Some(at) = self.waiting.iter().position(in_pre_bind) {
            self.cancel_pre_bind(at, plugin, now, host);
        }
    }

    /// Rejects every pod whose time is over.
    pub(crate) fn expire_waiting(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        while let Some((at, hold)) = self.next_expired(now) {
            let waited = Duration::from_micros(hold.timeout);
            let plugin = hold.plugin;
            let text = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
            self.decide(at, Status::unschedulable(&text).by(plugin), now, host);
        }
    }

    /// When the next hold of a waiting pod ends.
    pub fn next_permit_timeout(&self) -> Option<Time> {
        self.waiting.iter().flat_map(|waiting| &waiting.holds).map(|hold| hold.deadline).min()
    }

    /// The pod at Permit.
    fn waiting_index(&self, uid: Symbol) -> Option<usize> {
        let at_permit = |waiting: &WaitingPod| waiting.stage == Stage::Permit;
        self.waiting.iter().position(|waiting| at_permit(waiting) && waiting.pod().uid() == uid)
    }

    /// The hold that is over the longest.
    fn next_expired(&self, now: Time) -> Option<(usize, Hold)> {
        let holds =
            self.waiting.iter().enumerate().filter(|(_, waiting)| waiting.stage == Stage::Permit);
        let holds =
            holds.flat_map(|(at, waiting)| waiting.holds.iter().map(move |hold| (at, *hold)));
        holds.filter(|(_, hold)| hold.deadline <= now).min_by_key(|(_, hold)| hold.deadline)
    }

    /// Ends the wait: the binding goes on, or fails (S-041).
    fn decide(&mut self, at: usize, status: Status, now: Time, host: &mut dyn SchedulerHost) {
        let WaitingPod { cycle, node, .. } = self.waiting.remove(at);
        let mut cycle = Arc::unwrap_or_clone(cycle);
        cycle.now = now;
        cycle.record.permit_wait = Some(status.clone());
        let record = if status.is_success() {
            self.finish_binding(cycle, node, host)
        } else if status.is_rejected() {
            let plugin = status.plugin();
            let mut failure = self.fit_failure_on(&cycle, status);
            if let Some(diagnosis) = &mut failure.diagnosis {
                // Also when it is nobody: an empty name is a rejector upstream.
                add_once(&mut diagnosis.unschedulable_plugins, plugin);
            }
            self.fail_binding(cycle, failure, host)
        } else {
            let text = format!("waiting on permit for pod: {}", status.message());
            let failure = crate::cycle::Failure::plain(Status::error(&text).by(status.plugin()));
            self.fail_binding(cycle, failure, host)
        };
        self.finished.push(record);
    }
}
