//! The embedded scheduler: pure, synchronous, deterministic.
//!
//! It knows no clock, no randomness and no I/O: time is handed in, the world outside is a
//! [`host::Host`]. Start reading at [`framework::plugin`] (what a plugin is), then
//! [`record`] (what a cycle leaves behind).

pub mod amount;
pub mod cache;
pub mod column;
pub mod conditions;
pub mod dra;
pub mod extended_resources;
pub mod extender;
pub mod framework;
pub mod go_sort;
pub mod holds;
pub mod host;
pub mod interventions;
pub mod node;
pub mod objects;
pub mod plugins;
pub mod pod;
pub mod pod_class;
pub mod pod_groups;
pub mod pod_index;
pub mod ports;
pub mod preemption;
pub mod queue;
pub mod record;
pub mod requests;
pub mod resource;
pub mod scheduler;
pub mod scores;
#[cfg(test)]
pub mod scripted;
pub mod shards;
pub mod snapshot;
pub mod status;
pub mod stopwatch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tie_break;
pub mod topology;
pub mod volumes;
