//! `kubestep report`: a run as one HTML file.

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::edits;
use crate::cli::exit::Exit;
use crate::cli::explain;
use crate::cli::memory;
use crate::cli::open::{exit_of, session};
use crate::cli::options::InputOptions;
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::waiting::Steps;
use crate::report::outcome::Pending;
use crate::report::page::{ExplainedPod, ReportPage};
use crate::report::run::RunReport;
use crate::report::usage::Usage;
use crate::report::{cut, fixes, why};
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_debug::Session;
use kubestep_debug::fix::SearchLimits;
use kubestep_debug::why::ask;
use kubestep_live::record::RecordingOutput;
use kubestep_output::file::Links;

/// Write a run as one HTML page for a ticket: pending pods with causes and fixes, cycles, nodes
#[derive(Args, Debug)]
pub(super) struct ReportCommand {
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    tries: Tries,
    /// The file to write, "-" for standard output. Only you can read it, and it appears whole or
    /// not at all
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// If FILE is a symbolic link, replace its target instead of failing
    #[arg(long)]
    follow_symlinks: bool,
    /// Edit the cluster first: "cordon node a"; may be repeated, applied in order
    #[arg(long = "edit", value_name = "EDIT")]
    edits: Vec<String>,
    /// Stop after this many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_cycles: usize,
    /// Explain this many pending pods; of pods with the same message, the first few
    #[arg(long, value_name = "N", default_value_t = 200)]
    explain: usize,
    /// Search fixes for this many of them, for one of those with the same message
    #[arg(long, value_name = "N", default_value_t = 20)]
    fixes: usize,
}

/// Pods with the same message that are explained.
const ALIKE: usize = 5;

impl Subcommand for ReportCommand {
    const NAME: &'static str = "report";

    fn run(&self) -> Result<Exit> {
        let links = if self.follow_symlinks { Links::Follow } else { Links::Refuse };
        let file = self.output.display().to_string();
        RecordingOutput::check(&self.output, links).with_context(|| file.clone())?;
        let opened = session(&self.input, &self.tries, None)?;
        let mut session = opened.session;
        let notes = edits::apply(&mut session, "--edit", &self.edits)?;
        memory::check(&session, self.max_cycles)?;
        let page = self.page(&mut session, opened.name, [opened.notices, notes].concat());
        let mut output =
            RecordingOutput::create(&self.output, links).with_context(|| file.clone())?;
        let written = output.write_all(page.html().as_bytes()).and_then(|()| output.finish());
        match written {
            // The reader closed the pipe early.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.with_context(|| file.clone())?,
        }
        if self.output != Path::new("-") {
            let run = &page.run;
            let (placed, pending) = (run.placed.len(), run.pending.len());
            kubestep_output::line(format!("{file}: {placed} placed, {pending} pending"));
        }
        Ok(exit_of(&page.run))
    }
}

impl ReportCommand {
    /// Runs the session to its end and explains what is pending.
    fn page(&self, session: &mut Session, name: String, notices: Vec<String>) -> ReportPage {
        let (begin, before) = (session.world().clone(), Usage::of(session.world()));
        let steps = Steps::watch();
        let start = session.world().now();
        let ran = self.run_all(session, &steps);
        let mut run = RunReport::new(session, before);
        run.notices = notices;
        run.notices.extend(session.livelock().map(|livelock| livelock.to_string()));
        let is_cut = session.is_cut(ran, self.max_cycles);
        run.notices.extend(is_cut.then(|| cut::notice(self.max_cycles)));
        let cycles = session.history().cycles().cloned().collect();
        let pending = self.explained(session, &begin, &run.pending, &steps);
        ReportPage { name, run, pending, cycles, start }
    }

    /// Returns the number of cycles.
    fn run_all(&self, session: &mut Session, steps: &Steps) -> usize {
        let most = self.max_cycles;
        let mut cycles = 0;
        steps.show(
            |done, most| format!("cycle {done} of at most {most}"),
            || {
                session.run_to_end(most, |_| {
                    cycles += 1;
                    !steps.go_on(cycles, most)
                })
            },
        )
    }

    /// Explains pods with different messages first of all, and searches fixes for one of each.
    fn explained(
        &self,
        session: &mut Session,
        begin: &World,
        pending: &[Pending],
        steps: &Steps,
    ) -> Vec<ExplainedPod> {
        let mut alike: HashMap<&str, usize> = HashMap::new();
        let (mut explained, mut searched) = (Vec::new(), 0);
        for pod in pending {
            let seen = alike.entry(&pod.reason).or_default();
            *seen += 1;
            if *seen > ALIKE || explained.len() >= self.explain {
                continue;
            }
            let Some(answer) = ask(session, pod.pod, &[]) else { continue };
            let search = *seen == 1 && searched < self.fixes && !steps.is_stopped();
            let fixes = search.then(|| {
                searched += 1;
                fixes::lines(&explain::fixes(
                    session,
                    begin,
                    pod.pod,
                    SearchLimits::default(),
                    steps,
                ))
            });
            let (cause, why) = (why::decisive_cause(&answer), why::outline(&answer));
            explained.push(ExplainedPod { pod: pod.pod, cause, why, fixes });
        }
        if pending.len() > explained.len() {
            let more = count(pending.len() - explained.len(), "more pending pod");
            kubestep_output::line(format!("{more} with the scheduler's message only"));
        }
        explained
    }
}
