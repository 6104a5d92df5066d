//! What is measured while a workload runs, and the figures that are made of it.

mod figures;
mod histogram;
mod throughput;

use std::collections::BTreeMap;

use kubestep_api::intern::Symbol;

pub use figures::{Figure, Figures, ThresholdCheck};
pub use histogram::Histogram;
pub use throughput::Throughput;

/// What was measured between the beginning and the end of a measurement. Times are nanoseconds
/// since the workload began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Nanoseconds at the beginning.
    pub begin: u64,
    /// Nanoseconds at the end.
    pub end: u64,
    /// When each pod was scheduled, ascending.
    pub scheduled: Vec<u64>,
    /// How long the scheduler worked, if that is known.
    pub busy: Option<u64>,
    /// How long attempts took, by their result: `scheduled`, `unschedulable`, `error`, `waiting`.
    pub attempts: BTreeMap<&'static str, Histogram>,
    /// How long all plugins of an extension point took in a cycle together.
    pub points: BTreeMap<&'static str, Histogram>,
    /// How long a plugin took in a cycle, for Filter and Score on all nodes together, by extension point and plugin.
    pub plugins: BTreeMap<(&'static str, Symbol), Histogram>,
    /// How long queueing hints took, by event and plugin.
    pub hints: BTreeMap<(String, Symbol), Histogram>,
    /// How long pods took from their creation until they were scheduled.
    pub pods: Histogram,
}
