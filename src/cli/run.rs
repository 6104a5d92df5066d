//! `kubestep run`: the whole queue to its end, without a screen.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::open::{exit_of, session};
use crate::cli::options::Input;
use crate::cli::print;
use crate::cli::registry::Subcommand;
use crate::debug::Session;
use crate::report;
use crate::report::timings::Timings;
use crate::trace;

/// Schedule everything without a screen and print what became of each pod
#[derive(Args, Debug)]
pub(super) struct Run {
    #[command(flatten)]
    input: Input,
    /// Stop after so many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_cycles: usize,
    /// Go on until no pod can be tried any more without an event or a timer (the default)
    #[arg(long)]
    until_idle: bool,
    /// Replace percentageOfNodesToScore of the configuration, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=100))]
    percentage_of_nodes_to_score: Option<i32>,
    /// Print one JSON object with the times taken instead of the placements
    #[arg(long)]
    timings: bool,
    /// Write one line of JSON a cycle to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// What a line of the trace holds
    #[arg(long, value_name = "DETAIL", default_value = "summary")]
    #[arg(value_parser = ["summary", "full"])]
    trace_detail: String,
}

impl Subcommand for Run {
    const NAME: &'static str = "run";

    /// Runs the queue to its end and prints the outcome, or the times taken.
    fn run(&self) -> Result<Exit> {
        let started = Instant::now();
        let opened = session(&self.input, self.percentage_of_nodes_to_score)?;
        let load_s = started.elapsed().as_secs_f64();
        for notice in &opened.notices {
            eprintln!("{notice}");
        }
        let trace = self.trace.as_deref().map(create).transpose()?;
        let mut session = opened.session;
        let started = Instant::now();
        session.run_until_idle(self.max_cycles, |_| false);
        let cycle_s = started.elapsed().as_secs_f64();
        if let Some(file) = trace {
            write_trace(&session, file, self.trace_detail == "full").context("--trace")?;
        }
        print(&match self.timings {
            true => format!("{}\n", Timings::new(&session, load_s, cycle_s).to_json()),
            false => report::text::outcome(&session),
        })?;
        Ok(exit_of(&session))
    }
}

/// The file of the trace: made before the run, so that a wrong path does not cost one.
fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("--trace: {}", path.display()))
}

/// One line of JSON a cycle.
fn write_trace(session: &Session, file: File, full: bool) -> Result<()> {
    let mut file = BufWriter::new(file);
    for record in session.history().cycles() {
        let line = match full {
            true => trace::json::cycle(record),
            false => trace::json::summary(record),
        };
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}
