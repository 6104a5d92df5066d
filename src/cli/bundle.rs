//! `kubestep bundle`: everything that a decision depends on in one file, for a bug report or as a
//! test.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use crate::cli::exit::Exit;
use crate::cli::open::{build, read, read_config};
use crate::cli::options::{DestinationOptions, InputOptions, Redact};
use crate::cli::recorded;
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::waiting::with_progress;
use crate::report::run::RunReport;
use crate::report::usage::Usage;
use kubestep_api::Time;
use kubestep_config as config;
use kubestep_debug::expect::{Expect, PodExpect, rejected_by};
use kubestep_live::record::{Recorder, RecordingOutput};
use kubestep_live::redact::Redactor;
use kubestep_live::replay::event;
use kubestep_live::scheduler_events::SchedulerEvent;
use kubestep_live::{FeedEvent, Notice};
use kubestep_source::recording::{
    RecordedChange, RecordedNote, RecordingHeader, RecordingLine, SCHEMA, TimedNote,
};
use kubestep_source::{Auxiliary, Loaded, Progress};

/// Pack a cluster, its scheduler's configuration and a recording into one file for -f and "kubestep
/// test"
#[derive(Args, Debug)]
pub(super) struct Bundle {
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Run it and record the result of each pod, so that "kubestep test" can check that it stays
    /// the same
    #[arg(long)]
    expect: bool,
    #[command(flatten)]
    redact: Redact,
}

impl Subcommand for Bundle {
    const NAME: &'static str = "bundle";

    fn run(&self) -> Result<Exit> {
        let progress = Progress::with_limit(self.input.input_limit);
        let (mut read, mut name) = with_progress(&progress, || read(&self.input, &progress))?;
        let until = recorded::until(&self.input, read.recording.as_ref())?;
        read.warnings.iter().for_each(kubestep_output::line);
        let mut header = self.header(&read, &name)?;
        if self.redact.redact {
            name.clear();
            Redactor::input(&mut read, &mut header);
            // Messages of controllers contain names.
            read.auxiliary = Auxiliary::default();
        }
        let expect = match self.expect {
            true => Some(self.present(&read, until, name)?),
            false => None,
        };
        let changes = read.recording.as_ref().map_or(&[][..], |recording| recording.until(until));
        let notes = read.recording.iter().flat_map(|recording| recording.notes_until(until));
        let notes: Vec<&TimedNote> = notes.collect();
        let lists = (&read.objects[..], &read.auxiliary);
        let count = self.write(&header, expect.as_ref(), lists, (changes, &notes));
        let count = count.with_context(|| self.destination.name())?;
        let expected = match expect.map(|expect| expect.pods.len()) {
            Some(pods) => format!(", what is expected of {pods} pods"),
            None => String::new(),
        };
        let (changes, file) = (changes.len(), self.destination.name());
        kubestep_output::line(format!("{count} objects, {changes} changes{expected} in {file}"));
        Ok(Exit::Fine)
    }
}

impl Bundle {
    /// The header for the input, with the configuration that the options name.
    fn header(&self, read: &kubestep_source::ReadInput, name: &str) -> Result<RecordingHeader> {
        let captured = &read.captured;
        let of_recording = read.recording.as_ref().map(|recording| &recording.header);
        let chosen = self.input.scheduler.choose(captured)?;
        let (features, release) = (chosen.gates, chosen.release.asked);
        let emulated = Some(features.emulated()).filter(|it| *it != features.version());
        let text = match (&self.input.config, &read.scheduler_config) {
            (Some(path), _) => Some((read_config(path)?, path.display().to_string())),
            (None, Some(found)) => Some((found.text.clone(), found.origin.file.to_string())),
            (None, None) => None,
        };
        let mut scheduler_config = None;
        if let Some((text, from)) = text {
            let unknown = self.input.unknown.or_opaque();
            let registry = crate::plugins::registry_for(Some(&text), unknown)?.0.descriptors();
            config::resolve_as(Some(&text), Vec::new(), &features, &registry, unknown)
                .context(from.clone())?;
            scheduler_config = Some(kubestep_api::yaml::from_str::<Value>(&text).context(from)?);
        }
        Ok(RecordingHeader {
            schema: SCHEMA.into(),
            record: "header".into(),
            kubestep: env!("CARGO_PKG_VERSION").into(),
            server_version: captured.server_version.clone(),
            context: of_recording.map_or(name.to_owned(), |header| header.context.clone()),
            listed_at: Time::parse(&captured.at).ok(),
            namespaces: self.input.namespaces.clone(),
            missing: captured.missing.clone(),
            scheduler_config,
            // Not the default of the kubestep that reads it.
            kube_version: Some(release).filter(|release| *release != captured.server_version),
            emulated_version: emulated.map(|version| version.to_string()),
            feature_gates: chosen.set,
            redacted: of_recording.is_some_and(|header| header.redacted),
        })
    }

    /// The present result of each pod, as the expectation.
    fn present(
        &self,
        read: &kubestep_source::ReadInput,
        until: Option<Time>,
        name: String,
    ) -> Result<Expect> {
        let mut read = read.clone();
        read.wind(until);
        let mut input = self.input.clone();
        if self.redact.redact {
            // The file contains the original names. The input contains the configuration with the
            // new ones.
            input.config = None;
        }
        let mut session = build(read, &input, &Tries::default(), None, name)?.session;
        session.only_forward();
        let before = Usage::of(session.world());
        session.run_until_idle(usize::MAX, |_| false);
        let report = RunReport::new(&session, before);
        let mut expect = Expect { pending: Some(report.pending.len()), ..Expect::default() };
        for placed in &report.placed {
            let node = Some(placed.node.to_string());
            let of_pod = PodExpect { node, ..PodExpect::default() };
            expect.pods.insert(placed.pod.to_string(), of_pod);
        }
        for evicted in &report.evicted {
            let of_pod = PodExpect { deleted: Some(true), ..PodExpect::default() };
            expect.pods.insert(evicted.pod.to_string(), of_pod);
        }
        for pending in &report.pending {
            let plugins = rejected_by(session.world(), pending.pod);
            let rejected_by = Some(plugins.into_iter().collect::<Vec<_>>());
            let rejected_by = rejected_by.filter(|plugins| !plugins.is_empty());
            let of_pod = PodExpect { pending: Some(true), rejected_by, ..PodExpect::default() };
            expect.pods.insert(pending.pod.to_string(), of_pod);
        }
        Ok(expect)
    }

    /// Writes the file; returns the number of objects in it.
    fn write(
        &self,
        header: &RecordingHeader,
        expect: Option<&Expect>,
        (objects, auxiliary): (&[Loaded], &Auxiliary),
        (changes, notes): (&[RecordedChange], &[&TimedNote]),
    ) -> std::io::Result<usize> {
        let DestinationOptions { output, .. } = &self.destination;
        let output = RecordingOutput::create(output, self.destination.links())?;
        let mut recorder = Recorder::new(output, header)?;
        if let Some(expect) = expect {
            recorder.line(&RecordingLine::Expect { expect: serde_json::to_value(expect)? })?;
        }
        recorder.auxiliary(auxiliary)?;
        let count = recorder.lists(objects.iter().map(|loaded| &loaded.object))?;
        let mut notes = notes.iter().peekable();
        for change in changes {
            while let Some(noted) = notes.next_if(|noted| noted.line < change.line) {
                note(&mut recorder, noted)?;
            }
            recorder.take(change.at, &event(change))?;
        }
        notes.try_for_each(|noted| note(&mut recorder, noted))?;
        recorder.end(changes.last().map(|change| change.at).or(header.listed_at))?.finish()?;
        Ok(count)
    }
}

/// Writes what was recorded besides the changes.
fn note(recorder: &mut Recorder<RecordingOutput>, noted: &TimedNote) -> std::io::Result<()> {
    match noted.note.clone() {
        RecordedNote::Event { pod, uid, reporter, reason, message } => recorder
            .scheduler_event(noted.at, SchedulerEvent { pod, uid, reporter, reason, message }),
        RecordedNote::Notice { serious, text } => {
            recorder.take(noted.at, &FeedEvent::Notice(Notice { serious, text }))
        }
    }
}
