//! `kubestep schedule` without a screen: cycles run whenever a pod can be popped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::clock::WallClock;
use crate::scheduling::in_flight::InFlightLimit;
use crate::scheduling::{
    Arrival, Cluster, LAG, LeaderStatus, LiveScheduler, Reporter, SchedulerState, SchedulingEnd,
    TICK,
};
use crate::updates::{ClusterUpdate, ClusterUpdates};
use crate::write::WriteResult;
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_cluster::remote::Outgoing;
use kubestep_framework::record::{CycleRecord, QueueMove};
use kubestep_framework::stopwatch::{Done, Spent, Stopwatch};

/// Most arrivals between two cycles.
const BATCH: usize = 1_000;
/// How long cycles may run before arrivals are handled again.
const CYCLES: Duration = Duration::from_millis(5);
/// Once no answer to a write has come for this long, bindings in flight hold back no cycle: the server or
/// a webhook hangs, and other pods may not need it.
const HANGS: Duration = Duration::from_secs(1);
/// Longest sleep, because clocks may be set.
const REST: Duration = Duration::from_secs(1);

/// The embedded scheduler, running by itself.
pub struct Scheduling {
    scheduler: LiveScheduler,
    state: MeasuredWorld,
    /// When the timers were last checked.
    ticked: Option<Instant>,
    /// When the last answer to a write came.
    answered: Instant,
    /// A pod that would only queue in the API server stays in the active queue instead, where a more
    /// important one that arrives meanwhile comes first, and its attempt begins on a newer state of the
    /// cluster.
    in_flight: InFlightLimit,
}

/// A world whose scheduler is measured. Nothing is recorded.
struct MeasuredWorld {
    world: World,
    stopwatch: Arc<Stopwatch>,
}

impl Scheduling {
    /// Schedules in `cluster`, whose lists are loaded into `world`. The world's API server is
    /// remote. Reports what happens to `report`.
    pub fn new(mut world: World, cluster: Box<dyn Cluster>, report: Reporter) -> Scheduling {
        let stopwatch = Arc::new(Stopwatch::new(Arc::new(WallClock::default())));
        world.scheduler_mut().measure(Some(stopwatch.clone()));
        let scheduler = LiveScheduler::new(cluster, &world, report);
        let state = MeasuredWorld { world, stopwatch };
        let (answered, in_flight) = (Instant::now(), InFlightLimit::default());
        Scheduling { scheduler, state, ticked: None, answered, in_flight }
    }

    /// Schedules until it is stopped or loses the lease.
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) -> SchedulingEnd {
        loop {
            let more = self.turn();
            if let LeaderStatus::Lost(reason) = &self.scheduler.status {
                return SchedulingEnd::LeadLost(reason.clone());
            }
            if *stop.borrow_and_update() {
                return SchedulingEnd::Stopped;
            }
            if more {
                yield_now().await;
                continue;
            }
            let rest = self.rest();
            let arrival = tokio::select! {
                arrival = self.scheduler.next() => match arrival {
                    None => return SchedulingEnd::FeedEnded,
                    arrival => arrival,
                },
                _ = stop.changed() => None,
                () = sleep(rest) => None,
            };
            if let Some(arrival) = arrival {
                self.take(arrival);
            }
        }
    }

    /// One iteration of the loop. Returns whether there may be more to do at once.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..BATCH {
            let Some(arrival) = self.scheduler.cluster.try_next() else { break };
            self.take(arrival);
            busy = true;
        }
        self.scheduler.check();
        self.tick();
        if self.scheduler.status == LeaderStatus::Leads {
            busy |= self.cycles();
        }
        busy
    }

    /// Notices are reported, and nobody else reads them.
    fn take(&mut self, arrival: Arrival) {
        if let Arrival::Answered(WriteResult { answer, in_binding_cycle, took, .. }) = &arrival {
            let since = self.answered.elapsed();
            self.answered += since;
            // What fails at once says nothing of how busy the server is.
            if let (Ok(_), Some(write)) = (answer, in_binding_cycle) {
                self.in_flight.answered(*write, *took, since);
            }
        }
        let _reported = self.scheduler.take(&mut self.state, arrival);
    }

    /// Advances the clock, and reports a change of the leadership at once. The first time is at the
    /// start, so that the scheduler is ready as soon as the cluster is listed.
    fn tick(&mut self) {
        let due = self.scheduler.due(&self.state.world).is_some_and(|due| due.is_zero());
        let changed = self.scheduler.status != self.scheduler.noticed;
        if due || changed || self.ticked.is_none_or(|ticked| ticked.elapsed() >= TICK) {
            self.ticked = Some(Instant::now());
            let _reported = self.scheduler.tick(&mut self.state, false);
        }
    }

    /// Runs cycles for at most [`CYCLES`]. Returns whether there may be more before something
    /// arrives.
    fn cycles(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < CYCLES {
            if self.is_full() || !self.scheduler.cycle(&mut self.state) {
                return false;
            }
            self.scheduler.send(&mut self.state);
        }
        true
    }

    /// Whether a pod would only queue for its binding.
    fn is_full(&mut self) -> bool {
        self.in_flight.is_reached(self.state.world.api().binding_cycle_writes())
            && self.answered.elapsed() < HANGS
    }

    fn rest(&self) -> Duration {
        let due = self.scheduler.due(&self.state.world).unwrap_or(REST);
        due.clamp(Duration::from_millis(1), REST)
    }
}

impl SchedulerState for MeasuredWorld {
    /// Each update is measured on its own.
    const BATCH: usize = 1;

    fn world(&self) -> &World {
        &self.world
    }

    fn is_irrelevant(&self, _: &[ClusterUpdate], _: Option<&Object>, _: &Object) -> bool {
        false
    }

    /// Advancing the clock looks at all unschedulable pods, so it is not done for every update.
    fn apply(&mut self, updates: ClusterUpdates) {
        let ClusterUpdates { now, updates } = updates;
        if updates.is_empty() || now.0 - self.world.now().0 > LAG {
            self.world.advance_to(now);
        }
        for update in updates {
            // What arrives from a cluster can be applied.
            let _applied = update.apply(&mut self.world);
        }
    }

    fn cycle(&mut self) -> Option<Arc<CycleRecord>> {
        self.world.step()
    }

    fn take_requests(&mut self) -> Vec<Outgoing> {
        self.world.api_mut().take_outbox()
    }

    fn take_records(&mut self) -> (Vec<QueueMove>, Vec<Arc<CycleRecord>>) {
        let scheduler = self.world.scheduler_mut();
        let decided = scheduler.take_finished().into_iter().map(Arc::new).collect();
        scheduler.queue_mut().drain_hints();
        let moves = scheduler.queue_mut().drain_moves();
        self.world.api_mut().take_events();
        self.world.api_mut().take_deleted_pods();
        (moves, decided)
    }

    fn take_measurements(&mut self) -> (Vec<Spent>, Vec<Done>) {
        (self.stopwatch.take(), self.stopwatch.take_done())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::scheduling::SchedulingReport;
    use crate::scheduling::in_flight::FEWEST;
    use crate::scheduling::stand_in::StandIn;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;
    use kubestep_framework::testing::{node, object, pod};
    use serde_json::json;

    fn scheduling(server: &StandIn) -> (Scheduling, mpsc::Receiver<SchedulingReport>) {
        let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        world.mirror_remote();
        let (reports, reported) = mpsc::channel();
        let report = Box::new(move |_: &World, report| reports.send(report).unwrap());
        (Scheduling::new(world, Box::new(server.clone()), report), reported)
    }

    #[test]
    fn the_first_turn_reports_that_the_cluster_is_followed() {
        let (mut scheduling, reported) = scheduling(&StandIn::default());
        assert!(!scheduling.turn(), "there is nothing to do");
        let is_followed = |report| matches!(report, SchedulingReport::Tick { followed: true });
        assert!(reported.try_iter().any(is_followed));
    }

    #[test]
    fn no_cycle_begins_while_many_bindings_are_in_flight() {
        let server = StandIn::default();
        let (mut scheduling, _reported) = scheduling(&server);
        server.with(|server| server.holds_answers = true);
        let nodes = (0..3).map(|i| node(&format!("n{i}")));
        nodes.for_each(|node| server.put(node.into()));
        (0..100).for_each(|i| server.put(pod(&format!("p{i}")).into()));
        while scheduling.turn() {}
        assert_eq!(server.writes().len(), FEWEST);
        // All were answered as fast as the first, so that one more is in flight from now on.
        server.with(|server| server.answer_held(FEWEST));
        while scheduling.turn() {}
        assert_eq!(server.writes().len(), FEWEST + FEWEST + 1);
        // No answer for a long time: the rest does not wait for those that hang.
        scheduling.answered = Instant::now().checked_sub(HANGS).unwrap();
        while scheduling.turn() {}
        assert_eq!(server.writes().len(), 100);
    }

    #[test]
    fn no_cycle_begins_while_many_claims_are_written() {
        let server = StandIn::default();
        let (mut scheduling, _reported) = scheduling(&server);
        server.with(|server| server.holds_answers = true);
        server.put(node("n").into());
        server.put(object(json!({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})));
        let devices: Vec<_> = (0..100).map(|i| json!({"name": format!("d{i}")})).collect();
        server.put(object(json!({
            "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
                "driver": "d", "nodeName": "n", "devices": devices,
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            },
        })));
        let exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
        for i in 0..100 {
            server.put(object(json!({
                "kind": "ResourceClaim",
                "metadata": {"name": format!("c{i}"), "namespace": "default", "uid": format!("c{i}")},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            })));
            let claim = json!({"name": "c", "resourceClaimName": format!("c{i}")});
            server.put(object(json!({
                "kind": "Pod",
                "metadata": {"name": format!("p{i}"), "namespace": "default", "uid": format!("p{i}")},
                "spec": {"schedulerName": "default-scheduler", "resourceClaims": [claim]},
            })));
        }
        while scheduling.turn() {}
        let updates = || {
            let writes = server.writes();
            writes.iter().filter(|write| write.starts_with("update ResourceClaim")).count()
        };
        // Each pod counts for its binding, too.
        let pods = FEWEST / 2;
        assert_eq!(updates(), pods);
        // With the answers, also those to their nominations, the same pods go on: their claims are
        // written once more.
        server.with(|server| server.answer_held(2 * pods));
        while scheduling.turn() {}
        assert_eq!(updates(), 2 * pods);
    }

    #[test]
    fn pods_that_arrive_together_are_tried_in_order_and_everything_is_reported() {
        let server = StandIn::default();
        let (mut scheduling, reported) = scheduling(&server);
        server.put(node("n1").into());
        let names = ["d", "a", "c", "b", "e"];
        names.iter().for_each(|name| server.put(pod(name).into()));
        while scheduling.turn() {}
        let expected = names.map(|name| format!("bind default/{name} to n1"));
        assert_eq!(server.writes(), expected);
        let reports: Vec<SchedulingReport> = reported.try_iter().collect();
        let count =
            |is: fn(&SchedulingReport) -> bool| reports.iter().filter(|report| is(report)).count();
        assert_eq!(count(|report| matches!(report, SchedulingReport::Cycle(..))), 5);
        assert_eq!(count(|report| matches!(report, SchedulingReport::Decided(_))), 5);
        let handled = |name: &str| {
            let is = |report: &&SchedulingReport| matches!(report, SchedulingReport::Handled { event, .. } if event == name);
            reports.iter().filter(is).count()
        };
        // A pod that is bound leaves the queue and joins the cache.
        assert_eq!(handled("NodeAdd"), 1);
        assert_eq!(handled("UnschedulablePodAdd"), 5);
        assert_eq!(handled("UnschedulablePodDelete"), 5);
        assert_eq!(handled("AssignedPodAdd"), 5);
        assert!(count(|report| matches!(report, SchedulingReport::Moved(_))) >= 10);
        assert!(count(|report| matches!(report, SchedulingReport::Done(_))) > 0);
    }
}
