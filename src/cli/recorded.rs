//! Opens a recording in the debugger: its lists are the cluster at the start, and its later changes
//! are steps of the session, to go forward and back through.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow};

use crate::cli::attach::{scheduler_names, serve_all};
use crate::cli::open::{ReadSession, build_with, read};
use crate::cli::options::InputOptions;
use crate::cli::tries::Tries;
use crate::tui::data_source::DataSource;
use crate::tui::speed::Speed;
use kubestep_api::Time;
use kubestep_live::replay::{ReplayedDecision, replay};
use kubestep_source::{Progress, Recording};

/// A recording with the replay of it.
pub(super) struct ReplayedRecording {
    /// The session, at its end.
    pub opened: ReadSession,
    /// The header, changes and notes of the file.
    pub recording: Recording,
    /// The time up to which it was replayed.
    pub until: Time,
    /// The decisions of both schedulers.
    pub decisions: Vec<ReplayedDecision>,
}

impl ReplayedRecording {
    /// The number of replayed changes.
    pub(super) fn changes(&self) -> usize {
        self.recording.until(Some(self.until)).len()
    }
}

/// The time that `--until` names, if any.
///
/// # Errors
/// It is not a time of the recording, or the input is not a recording.
pub(super) fn until(input: &InputOptions, recording: Option<&Recording>) -> Result<Option<Time>> {
    let Some(text) = &input.until else { return Ok(None) };
    let recording = recording.ok_or_else(|| {
        anyhow!("--until: the input is not a recording: \"kubestep record\" makes one")
    })?;
    recording.moment(text).map(Some).context("--until")
}

/// Opens the input for the debugger; a recording at its start, with all later changes ahead.
pub(super) fn open(
    input: &InputOptions,
    speed: Option<Speed>,
    progress: &Progress,
) -> Result<(ReadSession, DataSource)> {
    let (read, name) = read(input, progress)?;
    if read.recording.is_none() {
        until(input, None)?;
        let opened = build_with(read, input, &Tries::default(), name, |_| Vec::new())?;
        return Ok((opened, DataSource::Nothing));
    }
    let played = play(read, name, input, progress, |_| {})?;
    let ReplayedRecording { mut opened, decisions, .. } = played;
    opened.session.go_to_stop(0);
    let start = opened.session.now();
    let decisions = decisions.into_iter().map(|compared| compared.decision).collect();
    Ok((opened, DataSource::Recording { start, decisions, speed }))
}

/// Replays a recording up to the time that the options name. `prepare` is called with the session
/// before that.
pub(super) fn play(
    mut read: kubestep_source::ReadInput,
    name: String,
    input: &InputOptions,
    progress: &Progress,
    prepare: impl FnOnce(&mut ReadSession),
) -> Result<ReplayedRecording> {
    let until = until(input, read.recording.as_ref())?;
    read.begin();
    let recording = read.recording.take().unwrap_or_default();
    let asked_for = scheduler_names(&read);
    let mut opened =
        build_with(read, input, &Tries::default(), name, |config| serve_all(config, &asked_for))?;
    prepare(&mut opened);
    let changes = recording.until(until);
    let end = until.unwrap_or(recording.ended_at);
    let decisions = replay(&mut opened.session, changes, end, |done| {
        progress.decoded.store(done as u64, Ordering::Relaxed);
    });
    Ok(ReplayedRecording { until: end, decisions, opened, recording })
}
