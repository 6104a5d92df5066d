//! What a session shown in the interface goes after: a live cluster, a recording, or nothing.

use std::sync::Arc;

use crate::tui::speed::Speed;
use kubestep_api::Time;
use kubestep_live::{Decision, Following, InteractiveScheduler};

/// See the module.
#[derive(Default)]
pub enum DataSource {
    /// Nothing: files, or a built-in cluster.
    #[default]
    Nothing,
    /// A cluster that is followed.
    Live(Box<Following>),
    /// A cluster in which the session's scheduler decides for real.
    Scheduling(Box<InteractiveScheduler>),
    /// A recording that was played back before.
    Recording {
        /// When its lists were complete.
        start: Time,
        /// What the cluster's scheduler decided, beside ours.
        decisions: Vec<Arc<Decision>>,
        /// Play at once, at that speed.
        speed: Option<Speed>,
    },
}
