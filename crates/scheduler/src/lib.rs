//! The scheduler: kube-scheduler 1.36 as a value, pure, synchronous and deterministic.
//!
//! [`Scheduler`] joins the profiles, the [`cache`], the [`queue`] and the listers. One call of
//! [`Scheduler::schedule_one`] runs one scheduling cycle with its binding cycle. Changes of
//! the cluster come in through [`Scheduler::handle`], timers through [`Scheduler::flush`]; the
//! time is an argument and the world outside a [`SchedulerHost`](host::SchedulerHost).
//!
//! One pod goes through these modules: `events` puts it into the [`queue`]; `cycle` takes it out,
//! brings the snapshot up to date from the [`cache`], finds the nodes that fit, scores them,
//! chooses one and assumes the pod on it; `binding` waits for Permit and binds. `preempt` carries
//! preemptions on, `groups` is the cycle of a pod group. What a person changes in a decision is in
//! [`interventions`], and a [`Probe`] tries a pod without touching anything.
//!
//! The plugins come in as a registry: this crate knows none of them. Upstream:
//! `pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go`.

mod aside;
mod binding;
pub mod cache;
mod cycle;
mod events;
mod groups;
pub mod host;
pub mod interventions;
mod preempt;
mod probe;
pub mod queue;
mod reconfigure;
mod scheduler;
#[cfg(test)]
mod tests;

pub use binding::waiting::{Hold, Stage, WaitingPod};
pub use cycle::again::Known;
pub use events::Change;
pub use probe::{PreemptionProbe, Probe, Refusal, Scored};
pub use scheduler::{Frameworks, Scheduler};
