//! Pods that wait in the binding cycle: at Permit, until they are allowed, rejected or timed out;
//! in PreBind, until their devices are ready, their volumes are bound or a write is answered; and
//! at Bind, until the binding is answered.

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::duration::Duration;
use kubestep_framework::host::Host;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::status::node_statuses::add_once;
use kubestep_framework::status::{Code, Status};

/// A plugin that makes a pod wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The plugin's name.
    pub plugin: Symbol,
    /// The maximum wait, in microseconds.
    pub timeout: i64,
    /// When that wait times out.
    pub deadline: Time,
}

/// How often PreBind checks whether devices are ready: every five seconds, in microseconds.
const POLL: i64 = 5_000_000;

/// Where in its binding cycle a pod waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// At Permit, for plugins or the user to allow it.
    Permit,
    /// In PreBind, for devices, volumes, or the answer to a write.
    PreBind,
    /// At Bind, for the answer to its binding.
    Bind,
}

/// A pod that waits in its binding cycle. It stays assumed on its node meanwhile.
#[derive(Clone)]
pub struct WaitingPod {
    /// Shared between copies of a scheduler, because it holds the filter and score matrices.
    cycle: Arc<Cycle>,
    node: Symbol,
    /// In PreBind: the plugins that wait, each until it polls again.
    holds: Vec<Hold>,
    stage: Stage,
}

impl WaitingPod {
    /// The pod, with its node set.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.cycle.queued.info
    }

    /// The node that the pod will be bound to.
    pub fn node(&self) -> Symbol {
        self.node
    }

    /// The first plugin that the pod waits for in PreBind; `None` if it waits at another stage.
    pub fn in_pre_bind(&self) -> Option<Symbol> {
        let hold = self.holds.first().filter(|_| self.stage == Stage::PreBind);
        hold.map(|hold| hold.plugin)
    }

    /// The stage at which it waits.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The plugins that still make it wait.
    pub fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// When it began to wait.
    pub fn since(&self) -> Time {
        self.cycle.now
    }

    /// The number of its scheduling cycle.
    pub fn cycle(&self) -> u64 {
        self.cycle.record.cycle
    }
}

impl Scheduler {
    /// Registers the pod as waiting at Permit.
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

    /// Registers the pod as waiting in PreBind until its plugins poll again.
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

    /// Registers the pod as waiting until its binding is answered.
    pub(crate) fn wait_on_bind(&mut self, mut cycle: Cycle, node: Symbol) -> CycleRecord {
        cycle.record.outcome = Outcome::Waiting;
        let record = cycle.record.clone();
        self.wait(cycle, node, Vec::new(), Stage::Bind);
        record
    }

    fn wait(&mut self, cycle: Cycle, node: Symbol, holds: Vec<Hold>, stage: Stage) {
        self.waiting.push(WaitingPod { cycle: Arc::new(cycle), node, holds, stage });
    }

    /// Continues the pods in PreBind whose plugin polls now.
    pub(crate) fn poll_pre_bind(&mut self, now: Time, host: &mut dyn Host) {
        let is_due = |waiting: &mut WaitingPod| {
            waiting.stage == Stage::PreBind && waiting.holds.iter().all(|hold| hold.deadline <= now)
        };
        let due: Vec<WaitingPod> = self.waiting.extract_if(.., is_due).collect();
        self.resume(due, now, host);
    }

    /// Continues after an answer to a write: with `Some(uid)`, the pod whose binding was answered;
    /// with `None`, all pods in PreBind.
    pub fn answered(&mut self, bound: Option<Symbol>, now: Time, host: &mut dyn Host) {
        let is_due = |waiting: &mut WaitingPod| match bound {
            Some(uid) => waiting.stage == Stage::Bind && waiting.pod().uid() == uid,
            None => waiting.stage == Stage::PreBind,
        };
        let due: Vec<WaitingPod> = self.waiting.extract_if(.., is_due).collect();
        self.resume(due, now, host);
    }

    fn resume(&mut self, due: Vec<WaitingPod>, now: Time, host: &mut dyn Host) {
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

    /// Ends a pod's wait in PreBind with a cancellation error. Upstream cancels the context of the
    /// binding cycle when the pod is preempted.
    fn cancel_pre_bind(&mut self, at: usize, by: Symbol, now: Time, host: &mut dyn Host) {
        let waiting = self.waiting.remove(at);
        let plugin = waiting.in_pre_bind().unwrap_or_default();
        let mut cycle = Arc::unwrap_or_clone(waiting.cycle);
        cycle.now = now;
        let text = format!("running PreBind plugin {plugin:?}: preempted by {by}");
        let failure = crate::cycle::Failure::plain(Status::error(&text).by(plugin));
        let record = self.fail_binding(cycle, failure, host);
        self.finished.push(record);
    }

    /// Allows a waiting pod for one plugin, or for all with `None`. Once no plugin makes it wait,
    /// it is bound. `false` if no such pod waits.
    pub fn allow_waiting(
        &mut self,
        uid: Symbol,
        plugin: Option<Symbol>,
        now: Time,
        host: &mut dyn Host,
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

    /// Rejects a waiting pod with `plugin` as its rejector. `false` if no such pod waits.
    pub fn reject_waiting(
        &mut self,
        uid: Symbol,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn Host,
    ) -> bool {
        let Some(at) = self.waiting_index(uid) else { return false };
        self.decide(at, Status::unschedulable(message).by(plugin), now, host);
        true
    }

    /// Evicts a waiting pod for a preemptor. Its status is an error, not a rejection.
    pub(crate) fn preempt_waiting(
        &mut self,
        uid: Symbol,
        plugin: Symbol,
        message: &str,
        now: Time,
        host: &mut dyn Host,
    ) {
        let in_pre_bind =
            |waiting: &WaitingPod| waiting.pod().uid() == uid && waiting.in_pre_bind().is_some();
        if let Some(at) = self.waiting_index(uid) {
            self.decide(at, Status::new(Code::Error, message).by(plugin), now, host);
        } else if let Some(at) = self.waiting.iter().position(in_pre_bind) {
            self.cancel_pre_bind(at, plugin, now, host);
        }
    }

    /// Rejects every waiting pod whose timeout has passed.
    pub(crate) fn expire_waiting(&mut self, now: Time, host: &mut dyn Host) {
        while let Some((at, hold)) = self.next_expired(now) {
            let waited = Duration::from_micros(hold.timeout);
            let plugin = hold.plugin;
            let text = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
            self.decide(at, Status::unschedulable(&text).by(plugin), now, host);
        }
    }

    /// The next time at which a waiting pod times out.
    pub fn next_permit_timeout(&self) -> Option<Time> {
        self.waiting.iter().flat_map(|waiting| &waiting.holds).map(|hold| hold.deadline).min()
    }

    /// The index of the pod that waits at Permit.
    fn waiting_index(&self, uid: Symbol) -> Option<usize> {
        let at_permit = |waiting: &WaitingPod| waiting.stage == Stage::Permit;
        self.waiting.iter().position(|waiting| at_permit(waiting) && waiting.pod().uid() == uid)
    }

    /// The wait that timed out first.
    fn next_expired(&self, now: Time) -> Option<(usize, Hold)> {
        let holds =
            self.waiting.iter().enumerate().filter(|(_, waiting)| waiting.stage == Stage::Permit);
        let holds =
            holds.flat_map(|(at, waiting)| waiting.holds.iter().map(move |hold| (at, *hold)));
        holds.filter(|(_, hold)| hold.deadline <= now).min_by_key(|(_, hold)| hold.deadline)
    }

    /// Ends the wait at Permit: the binding cycle continues, or fails with a FitError about the one
    /// node (for a rejection) or with the error.
    fn decide(&mut self, at: usize, status: Status, now: Time, host: &mut dyn Host) {
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
                // Also the empty name: upstream then records a rejector without a name.
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
