//! Between the interface and the session: does what is asked, and draws up the picture that views show.
//!
//! The picture is brought up to date part by part, and only the parts that changed and that the view on
//! screen needs, so that a step costs the same in a small and in a large cluster.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::app::Request;
use super::model::{Model, Place, PodRow, Position, QueuedPod, WaitingPod, span};
use super::view::{ViewId, events};
use super::widget::status_line::Severity;
use crate::api::{Pod, Time};
use crate::debug::{Depth, Input, Position as Frame, Ran, Session};
use crate::engine::pod::{NamespacedName, QueuedPod as Queued};
use crate::engine::queue::SchedulingQueue;
use crate::engine::record::QueueName;
use crate::engine::scheduler::Scheduler;
use crate::sim;

/// What doing a request led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Something to say.
    pub message: Option<(Severity, String)>,
    /// A long run has begun: call `run_slice` until it ends.
    pub running: bool,
    /// The view in which the new position is best seen, after a step into or within a cycle.
    pub look_at: Option<ViewId>,
}

/// A session with its picture.
pub struct Driver {
    session: Session,
    model: Model,
    /// History entries taken into the picture.
    seen: usize,
    /// Pods and queues of the picture are older than the session.
    stale_queues: bool,
    stale_pods: bool,
    /// Cycles when the long run began.
    run_from: usize,
}

impl Driver {
    /// A session whose input is called `source`.
    pub fn new(session: Session, source: String) -> Driver {
        let model = Model { source, start: sim::START, ..Model::default() };
        let mut driver =
            Driver { session, model, seen: 0, stale_queues: true, stale_pods: true, run_from: 0 };
        driver.world_changed();
        driver
    }

    /// The picture, complete for `view`.
    pub fn model(&mut self, view: ViewId) -> &Model {
        if view == ViewId::Queues && std::mem::take(&mut self.stale_queues) {
            self.model.queued = queued(&self.session);
            self.model.revision += 1;
        }
        if view == ViewId::Pods && std::mem::take(&mut self.stale_pods) {
            self.model.pods = pods(&self.session);
            self.model.revision += 1;
        }
        &self.model
    }

    /// Does what the interface asks for.
    pub fn perform(&mut self, request: &Request) -> Done {
        let before = self.session.history().len();
        let time = self.session.world().now();
        let done = self.dispatch(request);
        if self.session.history().len() != before || self.session.world().now() != time {
            self.world_changed();
        }
        self.position_changed();
        done
    }

    fn dispatch(&mut self, request: &Request) -> Done {
        use Request::{
            Advance, Allow, Continue, Cycles, Finish, GoTo, GoToCycle, Next, Reject, Step,
        };
        match request {
            Step { count, back: false } => self.steps(*count, Session::step_into),
            Step { count, back: true } => self.steps(*count, Session::back_into),
            Next { count, back: false } => self.steps(*count, Session::step_over),
            Next { count, back: true } => self.steps(*count, Session::back_over),
            Finish { count, back: false } => self.steps(*count, Session::step_out),
            Finish { count, back: true } => self.steps(*count, Session::back_out),
            Cycles { count, back } => self.cycles(*count, *back),
            Continue { back: false } => self.begin_run(),
            Continue { back: true } => {
                self.session.go_to_stop(0);
                Done::default()
            }
            GoTo(position) => self.go_to(*position),
            GoToCycle(number) => self.show_cycle(*number),
            Advance(micros) => self.advance(*micros),
            Allow { pod, plugin } => self.decide(*pod, |session, pod| {
                let plugins = plugin.map_or("all plugins".to_owned(), |p| p.to_string());
                (session.allow(pod.uid(), *plugin), format!("allowed {} for {plugins}", pod.key()))
            }),
            Reject { pod, message } => self.reject(*pod, message),
        }
    }

    fn steps(&mut self, count: u32, step: fn(&mut Session) -> Ran) -> Done {
        let mut last = Ran::Moved;
        for _ in 0..count {
            last = step(&mut self.session);
            if matches!(last, Ran::Idle | Ran::AtStart) {
                break;
            }
        }
        Done { look_at: self.best_view(), ..self.said(last) }
    }

    fn cycles(&mut self, count: u32, back: bool) -> Done {
        let step = if back { Session::previous_cycle } else { Session::next_cycle };
        Done { look_at: None, ..self.steps(count, step) }
    }

    /// What a move has to say: a new cycle's outcome, or why there was none.
    fn said(&self, ran: Ran) -> Done {
        let message = match ran {
            Ran::Moved => None,
            Ran::NewCycle => self.session.record().map(|record| {
                let (cycle, pod, outcome) = (record.cycle, record.pod, record.outcome.as_str());
                (Severity::Info, format!("cycle {cycle} of {pod}: {outcome}"))
            }),
            Ran::Idle => Some((Severity::Info, self.idle_words())),
            Ran::AtStart => Some((Severity::Info, "this is the beginning of the recording".into())),
        };
        Done { message, ..Done::default() }
    }

    fn idle_words(&self) -> String {
        let now = self.session.world().now();
        match self.session.next_timer() {
            Some(due) => {
                let left = span((due.0 - now.0).max(0));
                format!("no pod can be tried now; + lets {left} pass, to the next timer")
            }
            None => "no pod can be tried, and nothing is due: only a change would help".into(),
        }
    }

    /// Where the frame is best seen: nodes of Filter and Score in their matrix, the rest in the overview.
    fn best_view(&self) -> Option<ViewId> {
        use crate::config::ExtensionPoint::{Filter, Score};
        let frame = self.session.position();
        match (frame.depth(), frame.point) {
            _ if frame.entry.is_some() => Some(ViewId::Events),
            (Depth::Cycle, _) => None,
            (Depth::Node, Some(Filter)) => Some(ViewId::Filter),
            (Depth::Node, Some(Score)) => Some(ViewId::Scores),
            _ => Some(ViewId::Cycle),
        }
    }

    fn go_to(&mut self, position: Position) -> Done {
        if let Some(record) = self.model.cycles.get(position.cycle) {
            self.session.go_to_cycle(record.cycle);
            self.session.go_to(position.frame);
        }
        Done::default()
    }

    fn show_cycle(&mut self, number: u64) -> Done {
        let message = match self.session.go_to_cycle(number) {
            true => None,
            false => Some((Severity::Error, format!("no cycle {number} is recorded"))),
        };
        Done { message, ..Done::default() }
    }

    fn advance(&mut self, micros: Option<i64>) -> Done {
        let before = self.session.world().now();
        let moved = match micros {
            Some(micros) => {
                self.session.advance(micros);
                true
            }
            None => self.session.advance_to_next_timer().is_some(),
        };
        let passed = span(self.session.world().now().0 - before.0);
        let message = match moved {
            true => (Severity::Info, format!("{passed} passed; {}", self.active_words())),
            false => (Severity::Info, "no timer is set: nothing is due by itself".into()),
        };
        Done { message: Some(message), ..Done::default() }
    }

    fn active_words(&self) -> String {
        match self.session.world().scheduler().queue().lengths()[0] {
            0 => "no pod became active".into(),
            1 => "1 pod is active".into(),
            n => format!("{n} pods are active"),
        }
    }

    fn begin_run(&mut self) -> Done {
        self.run_from = self.session.history().cycles().count();
        // From an earlier position one wants to be at the end, also when nothing is left to run.
        self.session.go_to_end();
        Done { running: true, ..Done::default() }
    }

    /// Runs cycles for about `budget`; the words for the end of the run once it is over.
    pub fn run_slice(&mut self, budget: Duration) -> Option<String> {
        let start = Instant::now();
        let mut more = false;
        self.session.run_until_idle(usize::MAX, |_| {
            more = start.elapsed() >= budget;
            more
        });
        self.world_changed();
        self.position_changed();
        if more {
            return None;
        }
        let ran = self.model.cycles.len() - self.run_from;
        let plural = if ran == 1 { "" } else { "s" };
        Some(format!("{ran} cycle{plural} ran; {}", self.idle_words()))
    }

    fn reject(&mut self, pod: NamespacedName, message: &str) -> Done {
        self.decide(pod, |session, info| {
            let scheduler = session.world().scheduler();
            let waiting = scheduler.waiting().iter().find(|w| w.pod().uid() == info.uid());
            // A rejection is said by a plugin: by the first that holds the pod.
            let plugin = waiting.and_then(|w| Some(w.holds().first()?.plugin)).unwrap_or_default();
            let done = session.reject(info.uid(), plugin, message);
            (done, format!("rejected {pod} in the name of {plugin}"))
        })
    }

    fn decide(
        &mut self,
        pod: NamespacedName,
        decision: impl FnOnce(&mut Session, &crate::engine::pod::PodInfo) -> (bool, String),
    ) -> Done {
        let waiting = self.session.world().scheduler().waiting().iter();
        let info = waiting.map(|w| w.pod()).find(|p| p.key() == pod).cloned();
        let done = info.map(|info| decision(&mut self.session, &info));
        let message = match done {
            Some((true, words)) => (Severity::Info, words),
            _ => (Severity::Error, format!("{pod} does not wait at Permit any more")),
        };
        self.world_changed();
        Done { message: Some(message), ..Done::default() }
    }

    /// Takes over what changes only when something happens in the cluster.
    fn world_changed(&mut self) {
        let history = self.session.history();
        if history.len() < self.seen {
            self.model.events.clear();
            self.seen = 0;
        }
        let new = history.entries().iter().skip(self.seen);
        self.model.events.extend(new.filter(|e| e.as_cycle().is_none()).cloned());
        self.seen = history.len();
        self.model.cycles = history.cycles().cloned().collect();
        let scheduler = self.session.world().scheduler();
        self.model.waiting = waiting(scheduler);
        self.model.nodes = scheduler.cache().nodes().cloned().collect();
        self.model.now = self.session.world().now();
        self.model.idle = is_idle(scheduler.queue());
        self.stale_queues = true;
        self.stale_pods = true;
        self.position_changed();
    }

    fn position_changed(&mut self) {
        let number = self.session.latest_record().map(|record| record.cycle);
        let cycles = &self.model.cycles;
        let index = number.and_then(|n| cycles.binary_search_by_key(&n, |c| c.cycle).ok());
        let frame: Frame = self.session.position();
        self.model.position = index.map(|cycle| Position { cycle, frame });
        self.model.aside = aside(&self.session);
        self.model.at_end = self.session.is_at_newest();
        self.model.revision += 1;
    }
}

/// Where the session stands beside a cycle: what was done that is no cycle, and what followed.
fn aside(session: &Session) -> Vec<String> {
    let stop = session.stop().filter(|stop| stop.cycle.is_none());
    let step = stop.and_then(|stop| session.timeline().steps().get(stop.step));
    let done = step.and_then(|step| step.input.as_ref()).map(Input::words);
    let entry = session.position().entry.and_then(|id| session.history().get(id));
    done.into_iter().chain(entry.map(events::words)).collect()
}

/// Whether no pod can be popped now. With the gate SchedulerPopFromBackoffQ, pods that plugins rejected are
/// popped from backoff when nothing is active; those that failed with an error are not.
fn is_idle(queue: &SchedulingQueue) -> bool {
    let poppable = |pods: Vec<&Queued>| pods.iter().any(|pod| pod.consecutive_errors == 0);
    let from_backoff = queue.settings().pop_from_backoff;
    queue.lengths()[0] == 0 && !(from_backoff && poppable(queue.backoff()))
}

fn waiting(scheduler: &Scheduler) -> Vec<WaitingPod> {
    let row = |waiting: &crate::engine::scheduler::WaitingPod| WaitingPod {
        info: waiting.pod().clone(),
        node: waiting.node(),
        plugins: waiting.holds().iter().map(|hold| (hold.plugin, hold.deadline)).collect(),
    };
    scheduler.waiting().iter().map(row).collect()
}

fn queued(session: &Session) -> Vec<QueuedPod> {
    let queue = session.world().scheduler().queue();
    let settings = queue.settings();
    let backoff_end =
        |pod: &Queued| pod.backoff_expiration.map(|end| settings.backoff_release(end));
    let flush =
        |pod: &Queued| Some(Time(pod.timestamp.0 + settings.max_unschedulable_duration + 1));
    type Until<'a> = &'a dyn Fn(&Queued) -> Option<Time>;
    let never: Until = &|_| None;
    let queues: [(QueueName, Vec<&Queued>, Until); 5] = [
        (QueueName::Active, queue.active(), never),
        (QueueName::Backoff, queue.backoff(), &backoff_end),
        (QueueName::Unschedulable, queue.unschedulable(), &flush),
        (QueueName::Gated, queue.gated(), never),
        (QueueName::InFlight, queue.in_flight(), never),
    ];
    let mut rows = Vec::new();
    for (name, pods, until) in queues {
        rows.extend(pods.into_iter().map(|pod| queued_row(session, name, pod, until(pod))));
    }
    rows
}

fn queued_row(session: &Session, queue: QueueName, pod: &Queued, until: Option<Time>) -> QueuedPod {
    let rejected = pod.unschedulable_plugins.iter().chain(&pod.pending_plugins);
    let mut rejected_by: Vec<_> = rejected.copied().collect();
    rejected_by.extend(pod.gating_plugin.filter(|p| !rejected_by.contains(p)));
    let last = session.history().cycles_of(pod.key()).next_back();
    let mut waiting = session.world().scheduler().waiting().iter();
    let reason = if let Some(message) = pod.gating_message {
        message.to_string()
    } else if let Some(held) = waiting.find(|w| w.pod().key() == pod.key()) {
        format!("held at Permit with room on {}; 7 shows it", held.node())
    } else {
        last.map(|record| record.message.clone()).unwrap_or_default()
    };
    QueuedPod {
        info: pod.info.clone(),
        queue,
        attempts: pod.attempts,
        since: pod.timestamp,
        until,
        rejected_by,
        reason,
    }
}

fn pods(session: &Session) -> Vec<PodRow> {
    let scheduler = session.world().scheduler();
    let all = session.world().api().objects().pods.iter();
    let mut rows: Vec<(NamespacedName, &Arc<Pod>)> = all.map(|(key, pod)| (*key, pod)).collect();
    rows.sort_by_key(|(key, _)| *key);
    let row = |(key, pod): (NamespacedName, &Arc<Pod>)| PodRow {
        pod: pod.clone(),
        place: place(scheduler, key, pod),
    };
    rows.into_iter().map(row).collect()
}

fn place(scheduler: &Scheduler, key: NamespacedName, pod: &Pod) -> Place {
    if pod.is_terminal() {
        return Place::Ended;
    }
    if !pod.spec.node_name.is_empty() {
        return Place::Node(pod.spec.node_name);
    }
    if let Some(waiting) = scheduler.waiting().iter().find(|w| w.pod().key() == key) {
        return Place::Waiting(waiting.node());
    }
    match scheduler.frameworks().contains_key(&pod.spec.scheduler_name) {
        true => Place::Queue(scheduler.queue().place_of(key)),
        false => Place::NobodyServes,
    }
}
