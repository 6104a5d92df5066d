//! The scheduler: kube-scheduler 1.36 as a value, pure, synchronous and deterministic.
//!
//! [`Scheduler`] joins the profiles, the [`cache`], the [`queue`] and the listers. One call of
//! [`Scheduler::schedule_one`] runs one scheduling cycle with its binding cycle. Changes of
//! the cluster come in through [`Scheduler::handle`], timers through [`Scheduler::flush`]; the
//! time is an argument, and a [`SchedulerHost`](host::SchedulerHost) is the outside world.
//!
//! One pod goes through these modules: `events` puts it into the [`queue`]; `cycle` takes it out,
//! updates the snapshot from the [`cache`], finds the nodes that fit, scores them, selects one,
//! assumes the pod on it and binds it. `answers` asks the plugins about nodes on its behalf, and
//! keeps what they answer. What no scheduler does is in `interventions` (deciding for it) and in
//! [`what_if`] (trying and repeating).
//!
//! The plugins come in as a registry: this crate knows none of them. Upstream:
//! `pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go`.

mod answers;
pub mod cache;
mod cluster_state;
mod cycle;
mod events;
mod events_without_hints;
pub mod host;
mod interventions;
mod profiles;
pub mod queue;
mod reconfigure;
mod scheduler;
#[cfg(test)]
mod tests;
pub mod what_if;

pub use cycle::waiting::{Hold, WaitingPod, WaitingStage};
pub use events::Change;
pub use profiles::{Frameworks, UnusableProfile};
pub use scheduler::Scheduler;
