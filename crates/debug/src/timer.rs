//! The pending timers of a cluster, with their pods.

use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::queue::SchedulingQueue;

/// What a timer does when it expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerKind {
    /// A backoff ends, and the pod enters the active queue.
    Backoff,
    /// A pod was unschedulable for too long and is flushed without an event.
    Flush,
    /// A plugin's wait at Permit times out, and the pod is rejected.
    Permit(Symbol),
    /// A plugin polls whether PreBind is done.
    PreBind(Symbol),
    /// A drain tries an eviction again.
    Eviction,
    /// A pod of a rollout becomes available.
    Available,
}

/// A timer of the simulation that has not expired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timer {
    /// When it expires; not before the current time.
    pub due: Time,
    /// What expires: a backoff, a wait, a poll, a retry.
    pub kind: TimerKind,
    /// The pod it is about.
    pub pod: NamespacedName,
    /// Number of other pods that have such a timer at the same moment.
    pub others: usize,
}

impl Timer {
    /// A sentence without its full stop.
    pub fn describe(&self) -> String {
        let pod = match self.others {
            0 => self.pod.to_string(),
            others => format!("{} and {}", self.pod, count(others, "more pod")),
        };
        match self.kind {
            TimerKind::Backoff => format!("the backoff of {pod} ends"),
            TimerKind::Flush => format!("flush requeues {pod}"),
            TimerKind::Permit(plugin) => format!("{plugin} rejects {pod} at Permit, on timeout"),
            TimerKind::PreBind(plugin) => format!("{plugin} checks {pod} again in PreBind"),
            TimerKind::Eviction => format!("the eviction of {pod} is retried"),
            TimerKind::Available => format!("{pod} becomes available (minReadySeconds)"),
        }
    }
}

/// The next timer of each kind, in order of time.
pub fn timers(world: &World) -> Vec<Timer> {
    let mut next: Vec<Timer> = Vec::new();
    for timer in all(world) {
        if !next.iter().any(|before| before.kind == timer.kind) {
            next.push(timer);
        }
    }
    next
}

/// All timers that expire by a moment, in order of time.
pub fn due_by(world: &World, moment: Time) -> Vec<Timer> {
    all(world).into_iter().take_while(|timer| timer.due <= moment).collect()
}

/// All timers, in order of time; those of one kind at the same moment are merged.
fn all(world: &World) -> Vec<Timer> {
    let (scheduler, now) = (world.scheduler(), world.now());
    let mut all = queue_timers(scheduler.queue());
    for waiting in scheduler.waiting() {
        for hold in waiting.holds() {
            let kind = match waiting.in_pre_bind() {
                Some(plugin) => TimerKind::PreBind(plugin),
                None => TimerKind::Permit(hold.plugin),
            };
            all.push((hold.deadline, kind, waiting.pod().key()));
        }
    }
    let blocked = world.disruptions().map_or(&[][..], |disruptions| disruptions.blocked());
    let evictions = blocked.iter().filter_map(|blocked| Some((blocked.due?, blocked.pod)));
    all.extend(evictions.map(|(due, pod)| (due, TimerKind::Eviction, pod)));
    let rollouts = world.disruptions().map_or(&[][..], |disruptions| disruptions.rollouts());
    let waits = rollouts.iter().flat_map(|rollout| rollout.waits(now));
    all.extend(waits.map(|(due, pod)| (due, TimerKind::Available, pod)));
    let mut timers: Vec<Timer> = Vec::new();
    // A stable sort: of several pods at the same moment, the first is named.
    all.sort_by_key(|(due, ..)| *due);
    for (due, kind, pod) in all {
        let due = due.max(now);
        let mut newest = timers.iter_mut().rev().take_while(|timer| timer.due == due);
        match newest.find(|timer| timer.kind == kind) {
            Some(timer) => timer.others += 1,
            None => timers.push(Timer { due, kind, pod, others: 0 }),
        }
    }
    timers
}

fn queue_timers(queue: &SchedulingQueue) -> Vec<(Time, TimerKind, NamespacedName)> {
    let settings = queue.settings();
    let mut all = Vec::new();
    for pod in queue.backoff() {
        let release = pod.backoff_expiration.map(|end| settings.backoff_release(end));
        all.extend(release.map(|due| (due, TimerKind::Backoff, pod.key())));
    }
    for pod in queue.unschedulable() {
        all.push((settings.flush_time(pod.timestamp), TimerKind::Flush, pod.key()));
    }
    all
}
