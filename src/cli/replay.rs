//! `kubestep replay`: compares the decisions of a recording's scheduler with ours.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::open::read;
use crate::cli::options::{InputOptions, MemoryOptions, UnknownPluginPolicy};
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use crate::cli::waiting::with_progress;
use crate::cli::{format, recorded};
use crate::report::replay::ReplayReport;
use kubestep_framework::tie_break::TieBreak;
use kubestep_source::Progress;

/// Compare the decisions of a recording's scheduler with kubestep's
#[derive(Args, Debug)]
pub(super) struct ReplayCommand {
    /// The recording, as "kubestep record" writes it; "-" for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Stop at this time: 2026-01-31T12:00:00Z, or 12m30s after the lists
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// The scheduler's configuration, instead of the recording's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    /// How ties between the best nodes are broken: upstream, first or seed:N. A tie that the
    /// recorded scheduler broke differently is always counted as a tie
    #[arg(long, value_name = "HOW", default_value = "upstream")]
    tie_break: TieBreak,
    #[command(flatten)]
    memory: MemoryOptions,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: ReplayFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReplayFormat {
    /// For people: the counts, and the decisions that are not the same
    #[default]
    Text,
    /// The same with every decision
    Wide,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
}

impl Subcommand for ReplayCommand {
    const NAME: &'static str = "replay";

    fn run(&self) -> Result<Exit> {
        let input = InputOptions {
            files: vec![self.file.clone()],
            until: self.until.clone(),
            namespaces: self.namespaces.clone(),
            config: self.config.clone(),
            unknown: self.unknown.clone(),
            scheduler: self.scheduler.clone(),
            tie_break: self.tie_break,
            memory: self.memory.clone(),
            ..InputOptions::default()
        };
        let progress = Progress::default();
        let played = with_progress(&progress, || {
            let (read, name) = read(&input, &progress)?;
            if read.recording.is_none() {
                bail!(
                    "{name}: is not a recording: \"kubestep record\" makes one of a live cluster"
                );
            }
            recorded::play(read, name, &input, &progress, |opened| {
                opened.session.only_forward();
                opened.session.forget_past();
            })
        })?;
        let report = ReplayReport {
            header: &played.recording.header,
            listed_at: played.recording.listed_at,
            until: played.until,
            changes: played.changes(),
            decisions: &played.decisions,
            gates: *played.opened.session.world().scheduler().features(),
            notices: &played.opened.notices,
        };
        if matches!(self.output, ReplayFormat::Text | ReplayFormat::Wide) {
            report.notices.iter().for_each(kubestep_output::line);
        }
        match self.output {
            ReplayFormat::Text => kubestep_output::print(&report.text(false))?,
            ReplayFormat::Wide => kubestep_output::print(&report.text(true))?,
            ReplayFormat::Json => kubestep_output::print(&format::json(&report.json()))?,
            ReplayFormat::Yaml => kubestep_output::print(&format::yaml(&report.json()))?,
        }
        Ok(if report.differs() { Exit::Differs } else { Exit::Fine })
    }
}
