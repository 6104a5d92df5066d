//! `kubestep record`: records a cluster and its changes to a file that `-f` replays.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::cli::capture::GivenSettings;
use crate::cli::cluster;
use crate::cli::exit::Exit;
use crate::cli::options::{ClusterOptions, DestinationOptions, Redact, UnknownPluginPolicy};
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use crate::tui::signals::Signals;
use kubestep_api::words::count;
use kubestep_live::record::{Recorder, RecordingCounts, RecordingOutput, header};
use kubestep_live::redact::Redactor;
use kubestep_live::scheduler_events::{self, SchedulerEvent};
use kubestep_live::{ClusterSnapshot, Feed, FeedEvent, NamespaceScope, Notice, Pace, auxiliary};
use kubestep_source::Auxiliary;
use kubestep_source::recording::RecordingHeader;

/// How often the file is flushed and progress is shown.
const STEP: Duration = Duration::from_secs(1);
/// An upper bound of the recording time, in seconds.
const FOREVER: u64 = 100 * 365 * 86_400;

/// Record a cluster and its changes to a file that -f plays back, until Ctrl-C
#[derive(Args, Debug)]
pub(super) struct RecordCommand {
    #[command(flatten)]
    cluster: ClusterOptions,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Stop after this duration: 90s, 1h30m; the initial lists do not count
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<String>,
    /// The scheduler's configuration, to include in the recording
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    #[command(flatten)]
    redact: Redact,
}

impl Subcommand for RecordCommand {
    const NAME: &'static str = "record";

    /// Lists the cluster and records its changes until it is stopped.
    fn run(&self) -> Result<Exit> {
        let given = GivenSettings::read(self.config.as_deref(), &self.scheduler, &self.unknown)?;
        let span = self.span.as_deref().map(parse_span).transpose()?;
        let target = cluster::target(&self.cluster)?;
        let (links, file) = (self.destination.links(), self.destination.name());
        RecordingOutput::check(&self.destination.output, links).with_context(|| file.clone())?;
        let scope = NamespaceScope { namespaces: self.namespaces.clone() };
        let opened = Feed::open(target, scope, Pace::default());
        let (mut snapshot, feed) = opened.map_err(cluster::explained)?;
        snapshot.notices().iter().for_each(kubestep_output::line);
        let mut header = self.header(&given, &snapshot, feed.link().name())?;
        let mut objects = snapshot.take_objects();
        let runtime = cluster::runtime()?;
        // Messages of controllers contain names.
        let auxiliary = match self.redact.redact {
            true => Auxiliary::default(),
            false => runtime.block_on(auxiliary::read(feed.link())),
        };
        let redactor = self.redact.redact.then(|| {
            let mut redactor = Redactor::new(objects.iter());
            redactor.header(&mut header);
            objects.iter_mut().for_each(|object| *object = redactor.object(object));
            redactor
        });
        let output = RecordingOutput::create(&self.destination.output, links);
        let output = output.with_context(|| file.clone())?;
        let mut recorder = Recorder::new(output, &header).with_context(|| file.clone())?;
        recorder.auxiliary(&auxiliary).with_context(|| file.clone())?;
        let objects = recorder.lists(objects.iter()).with_context(|| file.clone())?;
        recorder.out().publish().with_context(|| file.clone())?;
        let of = format!("{} ({})", feed.link().name(), header.server_version);
        kubestep_output::line(format!(
            "{objects} objects of {of} in {file}; recording, Ctrl-C ends it"
        ));
        let recording = RunningRecording { feed, recorder, redactor, file: file.clone(), shown: 0 };
        match runtime.block_on(recording.run(span)) {
            // The reader closed the pipe early.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            done => done.context(file)?,
        }
        Ok(Exit::Fine)
    }
}

impl RecordCommand {
    /// The header of the recording, with the settings of the cluster's scheduler.
    fn header(
        &self,
        given: &GivenSettings,
        snapshot: &ClusterSnapshot,
        name: &str,
    ) -> Result<RecordingHeader> {
        let settings = given.of_server(&snapshot.server_version)?;
        Ok(RecordingHeader {
            scheduler_config: settings.scheduler_config,
            kube_version: settings.kube_version,
            emulated_version: settings.emulated_version,
            feature_gates: settings.feature_gates,
            ..header(snapshot, name, &self.namespaces)
        })
    }
}

fn parse_span(text: &str) -> Result<Duration> {
    let span: jiff::SignedDuration = text
        .parse()
        .ok()
        .with_context(|| format!("--for: {text:?} is not a duration such as 90s"))?;
    Duration::try_from(span).ok().with_context(|| format!("--for: {text:?} is in the past"))
}

/// A recording in progress.
struct RunningRecording {
    feed: Feed,
    recorder: Recorder<RecordingOutput>,
    redactor: Option<Redactor>,
    file: String,
    /// Columns of the progress line on the screen.
    shown: usize,
}

impl RunningRecording {
    async fn run(mut self, span: Option<Duration>) -> io::Result<()> {
        let link = self.feed.link().clone();
        let (sender, events) = mpsc::channel();
        // The receiver lives as long as this function.
        let following = scheduler_events::follow(&link, |event| drop(sender.send(event)));
        tokio::pin!(following);
        let mut is_followed = true;
        let mut signals = Signals::new()?;
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = Instant::now() + span.unwrap_or(Duration::from_secs(FOREVER));
        loop {
            tokio::select! {
                biased;
                _ = signals.exit_code() => break,
                () = sleep_until(end) => break,
                failure = &mut following, if is_followed => {
                    is_followed = false;
                    let text = format!("events cannot be read ({failure}): events of the \
                                        cluster's scheduler are not recorded");
                    self.take(&FeedEvent::Notice(Notice { serious: false, text }))?;
                }
                event = self.feed.next() => match event {
                    Some(event) => self.take(&event)?,
                    None => break,
                },
                _ = steps.tick() => {
                    self.write_events(&events)?;
                    self.recorder.out().publish()?;
                    self.show();
                }
            }
        }
        while let Some(event) = self.feed.try_next() {
            self.take(&event)?;
        }
        self.write_events(&events)?;
        self.end()
    }

    fn take(&mut self, event: &FeedEvent) -> io::Result<()> {
        if let FeedEvent::Notice(notice) = event {
            self.clear();
            kubestep_output::line(&notice.text);
        }
        let now = self.feed.link().now();
        match &mut self.redactor {
            Some(redactor) => self.recorder.take(now, &redactor.event(event)),
            None => self.recorder.take(now, event),
        }
    }

    fn write_events(&mut self, events: &Receiver<SchedulerEvent>) -> io::Result<()> {
        let now = self.feed.link().now();
        events.try_iter().try_for_each(|event| {
            let event = match &mut self.redactor {
                Some(redactor) => redactor.scheduler_event(&event),
                None => event,
            };
            self.recorder.scheduler_event(now, event)
        })
    }

    fn end(mut self) -> io::Result<()> {
        self.clear();
        let now = self.feed.link().now();
        let counts = self.describe();
        self.recorder.end(Some(now))?.finish()?;
        kubestep_output::line(format!("{counts} in {}", self.file));
        Ok(())
    }

    fn describe(&self) -> String {
        let RecordingCounts { changes, decisions } = self.recorder.counts;
        format!("{}, {} of the scheduler", count(changes, "change"), count(decisions, "decision"))
    }

    /// Overwrites the progress line. Prints nothing if standard error is not a terminal.
    fn show(&mut self) {
        if kubestep_output::stderr_is_terminal() {
            self.shown = kubestep_output::rewrite(&self.describe(), self.shown);
        }
    }

    fn clear(&mut self) {
        kubestep_output::erase(std::mem::take(&mut self.shown));
    }
}
