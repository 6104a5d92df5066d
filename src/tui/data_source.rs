//! What feeds a session that is shown: a live cluster, a recording, or nothing.

use std::sync::Arc;

use crate::tui::speed::Speed;
use kubestep_api::Time;
use kubestep_live::{ComparedDecision, Following, InteractiveScheduler};

/// What feeds the session that is shown.
#[derive(Default)]
pub enum DataSource {
    /// Nothing after its start: files, or a built-in cluster.
    #[default]
    Nothing,
    /// A cluster that is followed.
    Live(Box<Following>),
    /// A cluster that the session's scheduler schedules.
    Scheduling(Box<InteractiveScheduler>),
    /// A recording that was played back before.
    Recording {
        /// When its lists were complete.
        start: Time,
        /// The decisions of the cluster's scheduler.
        decisions: Vec<Arc<ComparedDecision>>,
        /// Play at once, at that speed.
        speed: Option<Speed>,
    },
}
