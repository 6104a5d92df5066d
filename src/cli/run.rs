//! `kubestep run`: the whole queue to its end, without a screen.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::cli::exit::Exit;
use crate::cli::open::{exit_of, session};
use crate::cli::options::Run;
use crate::cli::print;
use crate::debug::Session;
use crate::report;
use crate::report::timings::Timings;
use crate::trace;

/// Runs the queue to its end and prints the outcome, or the times taken.
pub(super) fn run(run: &Run) -> Result<Exit> {
    let started = Instant::now();
    let opened = session(&run.input, run.percentage_of_nodes_to_score)?;
    let load_s = started.elapsed().as_secs_f64();
    for notice in &opened.notices {
        eprintln!("{notice}");
    }
    let trace = run.trace.as_deref().map(create).transpose()?;
    let mut session = opened.session;
    let started = Instant::now();
    session.run_until_idle(run.max_cycles, |_| false);
    let cycle_s = started.elapsed().as_secs_f64();
    if let Some(file) = trace {
        write_trace(&session, file, run.trace_detail == "full").context("--trace")?;
    }
    print(&match run.timings {
        true => format!("{}\n", Timings::new(&session, load_s, cycle_s).to_json()),
        false => report::text::outcome(&session),
    })?;
    Ok(exit_of(&session))
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
