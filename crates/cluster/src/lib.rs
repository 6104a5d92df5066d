//! A cluster in memory around the embedded scheduler: a clock that moves only when it is advanced,
//! an API server that answers immediately, and the controllers that a scheduler depends on.
//!
//! The scheduler is driven step by step; after every cycle and every change, all background work
//! has finished: bindings, evictions, and the delivery of events to the queue.

mod api_server;
mod detach;
pub mod disruption;
pub mod faults;
mod host;
pub mod load;
mod mirror;
pub mod moments;
mod reconfigure;
pub mod remote;
pub mod rollout;
pub mod schedulers;
mod volume_controller;
pub mod workload;
mod world;

pub use api_server::{ApiServer, ExtenderFn, Write};
pub use load::load;
pub use world::{DeliveryObserver, START, World, WorldError};

#[cfg(test)]
mod contention_tests;
#[cfg(test)]
mod device_gate_tests;
#[cfg(test)]
mod device_tests;
#[cfg(test)]
mod gang_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod preemption_tests;
#[cfg(test)]
mod tie_break_tests;
