//! Runs the workloads of scheduler_perf, the benchmark of kube-scheduler: its
//! `performance-config.yaml` files, unchanged.
//!
//! [`suite`] reads such a file, [`template`] and [`manifest`] turn its templates into objects,
//! [`run`] runs the operations of a workload on a [`BenchTarget`], and [`measure`] makes the figures.
//! The target is the scheduler in this process ([`embedded`]) or a real cluster, which the program
//! implements. Files and clocks come from outside.
//!
//! Upstream: `test/integration/scheduler_perf`.

pub mod embedded;
mod error;
pub mod manifest;
pub mod measure;
pub mod run;
pub mod suite;
pub mod target;
pub mod template;

pub use error::BenchError;
pub use target::BenchTarget;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
