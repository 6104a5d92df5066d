//! How long plugins take, measured with a clock from outside: the engine has none of its own, and
//! none of its decisions depends on one.
//!
//! The clock is read before and after all calls of a plugin at an extension point, for Filter and
//! Score over all nodes at once, so that measuring costs next to nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::events::ClusterEvent;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;

/// A clock from outside.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment; monotonic.
    fn nanos(&self) -> u64;
}

/// The time that a plugin took at an extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The extension point at which the plugin ran.
    pub point: ExtensionPoint,
    /// The plugin, by name.
    pub plugin: Symbol,
    /// How often it ran.
    pub turns: u64,
    /// The time that all runs took, in nanoseconds.
    pub nanos: u64,
    /// Number of nodes evaluated, if a run is over nodes.
    pub nodes: u64,
    /// Number of nodes that it rejected.
    pub rejected: u64,
}

impl Spent {
    fn nothing(point: ExtensionPoint, plugin: Symbol) -> Spent {
        Spent { point, plugin, turns: 0, nanos: 0, nodes: 0, rejected: 0 }
    }
}

/// Work of the scheduler other than plugin calls, with the labels of upstream's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Batching looked up a node hint.
    NodeHint {
        /// The profile, by its scheduler name.
        profile: Symbol,
        /// Whether there was one.
        hinted: bool,
    },
    /// The result of a cycle was stored for batching.
    StoredResults {
        /// The profile, by its scheduler name.
        profile: Symbol,
    },
    /// A queueing hint judged an event.
    QueueingHint {
        /// The plugin, by name.
        plugin: Symbol,
        /// The event that the hint judged.
        event: ClusterEvent,
        /// `Queue`, `QueueSkip` or `Error`.
        answer: Symbol,
    },
    /// The scheduling algorithm ran for all pods of a group.
    GroupAlgorithm,
    /// A cycle of a pod group.
    GroupAttempt {
        /// The profile, by its scheduler name.
        profile: Symbol,
        /// `scheduled`, `unschedulable`, `waiting_on_preemption` or `error`.
        result: &'static str,
    },
    /// The result of an attempt to use batching; takes no time.
    BatchAttempt {
        /// The profile, by its scheduler name.
        profile: Symbol,
        /// `no_hint`, `hint_used` or `hint_not_used`.
        result: &'static str,
    },
    /// The stored results could not be used; takes no time.
    BatchFlush {
        /// The profile, by its scheduler name.
        profile: Symbol,
        /// Why the ranking was dropped, as upstream's metric labels it.
        reason: &'static str,
    },
    /// A pod has waited for the binding conditions of a driver's devices.
    BindingConditions {
        /// The profile, by its scheduler name.
        profile: Symbol,
        /// The DRA driver, by name.
        driver: Symbol,
        /// `success`, `failure` or `timeout`.
        status: &'static str,
    },
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The kind of work.
    pub work: Work,
    /// How long it took, in nanoseconds.
    pub nanos: u64,
}

/// Adds `more` to a list with one entry per extension point and plugin.
pub fn add(list: &mut Vec<Spent>, more: &[Spent]) {
    for more in more {
        let sum = entry(list, more.point, more.plugin);
        sum.turns += more.turns;
        sum.nanos += more.nanos;
        sum.nodes += more.nodes;
        sum.rejected += more.rejected;
    }
}

fn entry(list: &mut Vec<Spent>, point: ExtensionPoint, plugin: Symbol) -> &mut Spent {
    let found = list.iter().position(|spent| spent.point == point && spent.plugin == plugin);
    let at = found.unwrap_or_else(|| {
        list.push(Spent::nothing(point, plugin));
        list.len() - 1
    });
    &mut list[at]
}

/// A clock and its measurements.
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    spent: Mutex<Vec<Spent>>,
    done: Mutex<Vec<Done>>,
}

impl Stopwatch {
    /// A stopwatch without measurements.
    pub fn new(clock: Arc<dyn Clock>) -> Stopwatch {
        Stopwatch { clock, spent: Mutex::default(), done: Mutex::default() }
    }

    /// The measurements since the last call, in the order in which plugins first ran.
    pub fn take(&self) -> Vec<Spent> {
        std::mem::take(&mut *self.spent())
    }

    /// The work since the last call, in order.
    pub fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn spent(&self) -> MutexGuard<'_, Vec<Spent>> {
        // Numbers are never half-written, so a poisoned lock is still valid.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, work: Work, nanos: u64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push(Done { work, nanos });
    }
}

/// Measures with a stopwatch if there is one; otherwise it does nothing.
#[derive(Clone, Default)]
pub struct Timer(Option<Arc<Stopwatch>>);

impl Timer {
    /// A timer with this stopwatch, or one that does nothing.
    pub fn new(stopwatch: Option<Arc<Stopwatch>>) -> Timer {
        Timer(stopwatch)
    }

    /// Measures a plugin's run at an extension point.
    pub fn time<T>(&self, point: ExtensionPoint, plugin: Symbol, turn: impl FnOnce() -> T) -> T {
        let Some(stopwatch) = &self.0 else { return turn() };
        let begin = stopwatch.clock.nanos();
        let result = turn();
        let took = stopwatch.clock.nanos().saturating_sub(begin);
        let mut list = stopwatch.spent();
        let spent = entry(&mut list, point, plugin);
        spent.turns += 1;
        spent.nanos += took;
        result
    }

    /// Runs `turn` and measures it as the work that `work` derives from its result.
    pub fn work<T>(&self, turn: impl FnOnce() -> T, work: impl FnOnce(&T) -> Work) -> T {
        let Some(stopwatch) = &self.0 else { return turn() };
        let begin = stopwatch.clock.nanos();
        let result = turn();
        let took = stopwatch.clock.nanos().saturating_sub(begin);
        stopwatch.note(work(&result), took);
        result
    }

    /// Records work that takes no time.
    pub fn note(&self, work: Work) {
        self.took(work, 0);
    }

    /// Records work that took that many nanoseconds.
    pub fn took(&self, work: Work, nanos: u64) {
        if let Some(stopwatch) = &self.0 {
            stopwatch.note(work, nanos);
        }
    }

    /// Records the number of nodes that a run evaluated and how many of them it rejected.
    pub fn nodes(&self, point: ExtensionPoint, plugin: Symbol, nodes: usize, rejected: usize) {
        let Some(stopwatch) = &self.0 else { return };
        let mut list = stopwatch.spent();
        let spent = entry(&mut list, point, plugin);
        spent.nodes += nodes as u64;
        spent.rejected += rejected as u64;
    }
}

/// Timers are always equal: measuring is not part of any state.
impl PartialEq for Timer {
    fn eq(&self, _other: &Timer) -> bool {
        true
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Timer(on)" } else { "Timer(off)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Ticks(AtomicU64);

    impl Clock for Ticks {
        fn nanos(&self) -> u64 {
            self.0.fetch_add(10, Ordering::Relaxed)
        }
    }

    #[test]
    fn turns_add_up_by_point_and_plugin() {
        let stopwatch = Arc::new(Stopwatch::new(Arc::new(Ticks(AtomicU64::new(0)))));
        let timer = Timer::new(Some(stopwatch.clone()));
        let (point, name) = (ExtensionPoint::Filter, Symbol::new("NodeName"));
        assert_eq!(timer.time(point, name, || 7), 7);
        timer.time(point, name, || ());
        timer.nodes(point, name, 5, 2);
        let spent = Spent { point, plugin: name, turns: 2, nanos: 20, nodes: 5, rejected: 2 };
        assert_eq!(stopwatch.take(), [spent]);
        assert_eq!(stopwatch.take(), []);
        let mut sum = vec![spent];
        add(&mut sum, &[spent]);
        assert_eq!(sum[0].nanos, 40);
    }

    #[test]
    fn work_is_named_by_its_result() {
        let stopwatch = Arc::new(Stopwatch::new(Arc::new(Ticks(AtomicU64::new(0)))));
        let timer = Timer::new(Some(stopwatch.clone()));
        let profile = Symbol::new("p");
        let hint = |hinted: bool| Work::NodeHint { profile, hinted };
        assert!(timer.work(|| true, |hinted| hint(*hinted)));
        let attempt = Work::BatchAttempt { profile, result: "hint_used" };
        timer.note(attempt);
        let done = [Done { work: hint(true), nanos: 10 }, Done { work: attempt, nanos: 0 }];
        assert_eq!(stopwatch.take_done(), done);
        assert_eq!(stopwatch.take_done(), []);
    }

    #[test]
    fn without_a_stopwatch_nothing_is_measured() {
        let timer = Timer::default();
        assert_eq!(timer.time(ExtensionPoint::Bind, Symbol::EMPTY, || 1), 1);
        timer.nodes(ExtensionPoint::Bind, Symbol::EMPTY, 1, 1);
    }
}
