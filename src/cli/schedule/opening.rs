//! Opens a cluster whose API server may not be reachable yet: as with kube-scheduler, the process
//! keeps running, reports that it is not ready, and retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::cli::cluster;
use kubestep_live::failure::RequestFailure;
use kubestep_live::{
    ClusterSnapshot, Feed, KubeconfigTarget, LinkError, MissingKindAccess, NamespaceScope, Pace,
};

use super::log::Log;

/// The first and the longest pause between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Opens the cluster as soon as its API server answers and all kinds for which `reads` holds can be
/// listed. `None`: the process was terminated before.
///
/// # Errors
/// Retrying would not help: the kubeconfig is invalid, or the credentials are rejected.
pub(super) fn open(
    target: &KubeconfigTarget,
    reads: impl Fn(&MissingKindAccess) -> bool,
    log: &Log,
    ending: &StopSignals,
) -> Result<Option<(ClusterSnapshot, Feed)>> {
    let runtime = cluster::runtime()?;
    let opened = runtime.block_on(async {
        let ended = ending.requested()?;
        tokio::select! {
            opened = wait_for(target, reads, log) => opened.map(Some),
            () = ended => Ok(None),
        }
    });
    // Does not wait for a pending request.
    runtime.shutdown_background();
    opened
}

/// SIGTERM and SIGINT. One that arrives while nothing waits for it, such as between the lists and
/// the first cycle, ends the next wait.
pub(super) struct StopSignals(Arc<AtomicBool>);

impl StopSignals {
    /// Begins to listen: from now on, these signals no longer end the process by themselves.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn listen() -> Result<StopSignals> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            flag::register(signal, asked.clone()).context("SIGTERM and SIGINT")?;
        }
        Ok(StopSignals(asked))
    }

    /// Whether one has arrived.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for one of them. Needs a runtime.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn requested(&self) -> Result<impl Future<Output = ()> + use<>> {
        let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
        // Read after the handlers are installed, so that no signal is missed in between.
        let has_come = self.has_come();
        Ok(async move {
            if has_come {
                return;
            }
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
}

async fn wait_for(
    target: &KubeconfigTarget,
    reads: impl Fn(&MissingKindAccess) -> bool,
    log: &Log,
) -> Result<(ClusterSnapshot, Feed)> {
    let [mut pause, longest] = PAUSES;
    let mut logged = String::new();
    loop {
        let target = target.clone();
        let open = move || Feed::open(target, NamespaceScope::default(), Pace::default());
        let problem = match spawn_blocking(open).await? {
            Ok((snapshot, feed)) => match unread(&snapshot, &reads) {
                Some(problem) => problem,
                None => {
                    if !logged.is_empty() {
                        log.line(1, "the API server answers");
                    }
                    return Ok((snapshot, feed));
                }
            },
            Err(LinkError::Unreachable { server, failure }) if passes(&failure) => {
                format!("{server}: {failure}")
            }
            Err(error) => return Err(cluster::explained(error)),
        };
        if problem != logged {
            log.line(0, &format!("waiting for the API server: {problem}"));
            logged = problem;
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// The first kind that the scheduler needs and that a retry may read.
fn unread(
    snapshot: &ClusterSnapshot,
    reads: impl Fn(&MissingKindAccess) -> bool,
) -> Option<String> {
    let missing = snapshot.missing.iter().find(|it| reads(it) && passes(&it.failure))?;
    Some(format!("{} cannot be read: {}", missing.what(), missing.failure))
}

/// Whether a retry may succeed without a change of the configuration.
fn passes(failure: &RequestFailure) -> bool {
    matches!(
        failure,
        RequestFailure::Unreachable(_)
            | RequestFailure::Server { .. }
            | RequestFailure::Busy { .. }
            | RequestFailure::Expired(_)
    )
}
