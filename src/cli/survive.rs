//! `kubestep run --survive [KEY]`: loses each failure domain in turn, on a copy of the cluster.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

use crate::cli::waiting::Steps;
use crate::report::pending::NodeAllowance;
use crate::report::survive::{LossProgress, SurviveReport};
use kubestep_debug::Session;
use kubestep_debug::survive::Losses;

/// Loses what `text` names, after the queue was scheduled, with at most `limit` cycles each, and with
/// causes as far as `explained`. The first Ctrl-C keeps the domains that were tried.
pub(super) fn survive(
    session: &mut Session,
    text: &str,
    limit: usize,
    explained: Option<NodeAllowance>,
) -> Result<SurviveReport> {
    let losses = Losses::parse(session.world(), text).context("--survive")?;
    let steps = Steps::watch();
    let cycles = AtomicU64::new(0);
    let words = |done, of| {
        let cycles = cycles.load(Ordering::Relaxed);
        let stop = steps.and_interrupt("stops");
        format!("{done} of {of} domains lost, {cycles} cycles in this one{stop}")
    };
    let go_on = |progress: LossProgress| {
        cycles.store(progress.cycles, Ordering::Relaxed);
        steps.go_on(progress.done, progress.of)
    };
    let work = || SurviveReport::new(session, &losses, limit, explained, &go_on);
    steps.show(words, work).context("--survive")
}
