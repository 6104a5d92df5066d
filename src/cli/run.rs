//! `kubestep run`: schedules the whole queue, without the debugger.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::edits;
use crate::cli::exit::Exit;
use crate::cli::format;
use crate::cli::memory;
use crate::cli::open::{exit_of, session};
use crate::cli::options::InputOptions;
use crate::cli::registry::Subcommand;
use crate::cli::stops;
use crate::cli::survive;
use crate::cli::trace_file::TraceFile;
use crate::cli::tries::{AddedObjects, HEADING, Tries};
use crate::cli::waiting::Steps;
use crate::report;
use crate::report::pending::NodeAllowance;
use crate::report::run::{self, RunReport};
use crate::report::timings::Timings;
use crate::report::usage::Usage;
use kubestep_debug::capacity::{Capacity, capacity};
use kubestep_debug::new_node::{self, Supply};
use kubestep_debug::{Session, StepOutcome};
use kubestep_output::clean::clean;
use kubestep_output::document::json_line;
use kubestep_output::file::{Links, NewFile};

/// Schedule everything without the debugger and print the result of each pod
#[derive(Args, Debug)]
pub(super) struct RunCommand {
    #[command(flatten)]
    input: InputOptions,
    /// Edit the cluster first: "cordon node a", "resize pod web cpu=500m"; may be repeated, applied
    /// in order
    #[arg(long = "edit", value_name = "EDIT")]
    edits: Vec<String>,
    /// Hold these pods at Permit: app=web, shop/web-0, "web-* for 5m"; may be repeated. Their
    /// capacity on the node stays reserved, and they are not bound
    #[arg(long = "hold", value_name = "SELECTOR")]
    holds: Vec<String>,
    /// Stop after this many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_cycles: usize,
    /// Run until no pod can be tried without an event or a timer (the default)
    #[arg(long)]
    until_idle: bool,
    /// Replace percentageOfNodesToScore of the configuration, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=100))]
    percentage_of_nodes_to_score: Option<i32>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: RunFormat,
    /// Print a JSON object with the times taken, instead of the pods
    #[arg(long, conflicts_with = "output")]
    timings: bool,
    /// Write one line of JSON per cycle to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// If the trace is a symbolic link, replace its target instead of failing
    #[arg(long, requires = "trace")]
    follow_symlinks: bool,
    /// How much a line of the trace contains
    #[arg(long, value_name = "DETAIL", default_value = "summary")]
    #[arg(value_parser = ["summary", "full"])]
    trace_detail: String,
    /// Stop at this breakpoint, written as after :break in the debugger: 'on:preemption',
    /// 'Filter/TaintToleration if attempts > 2'. With the word log, print a line instead; may be
    /// repeated
    #[arg(long = "break", value_name = "LOCATION", help_heading = "Breakpoints")]
    breaks: Vec<String>,
    /// The same with the breakpoints and watches of a file, as :break save writes it
    #[arg(long, value_name = "FILE", help_heading = "Breakpoints")]
    breakpoints: Option<PathBuf>,
    /// Lose each value of this node label in turn, such as topology.kubernetes.io/zone or zone, or
    /// each "node", and print what becomes of the pods; zone=a and "node a-0" lose one. Without a
    /// value, each zone, or each node if there are fewer than two. Exit code 1 if some then have no
    /// node
    #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["capacity", "timings", "trace", "breaks"])]
    survive: Option<String>,
    /// Also report which new nodes would take the pods that stay pending, and how many: of
    /// NodePools, of cluster-autoscaler's node groups, and copies of existing nodes
    #[arg(long, conflicts_with_all = ["survive", "timings"])]
    new_node: bool,
    #[command(flatten)]
    tries: Tries,
    /// Report how many more pods of each workload in --pod would fit after the run, and what stops
    /// the next one
    #[arg(long, requires = "pods", help_heading = HEADING)]
    capacity: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RunFormat {
    /// For people
    #[default]
    Text,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
    /// One line per pod, fields separated by commas
    Csv,
    /// One line of JSON per cycle as it runs, and one for the result
    Stream,
    /// JUnit XML: each pod is a test, one that stays pending is a failure
    Junit,
}

impl Subcommand for RunCommand {
    const NAME: &'static str = "run";

    /// Schedules the whole queue and prints the result, or the times taken.
    fn run(&self) -> Result<Exit> {
        let started = Instant::now();
        if self.new_node
            && !matches!(self.output, RunFormat::Text | RunFormat::Json | RunFormat::Yaml)
        {
            bail!("--new-node prints text, json or yaml");
        }
        let opened = session(&self.input, &self.tries, self.percentage_of_nodes_to_score)?;
        let load_s = started.elapsed().as_secs_f64();
        self.print_notices(&opened.notices);
        let mut trace = self.trace.as_deref().map(|path| self.create(path)).transpose()?;
        let mut session = opened.session;
        session.only_forward();
        let mut notes = edits::apply(&mut session, "--edit", &self.edits)?;
        let holds: Vec<String> = self.holds.iter().map(|pods| format!("hold {pods}")).collect();
        notes.extend(edits::apply(&mut session, "--hold", &holds)?);
        if let Some(key) = &self.survive {
            return self.survive(&mut session, key, [opened.notices, notes].concat());
        }
        stops::set(&mut session, &self.breaks, self.breakpoints.as_deref())?;
        memory::check(&session, self.max_cycles)?;
        let before = Usage::of(session.world());
        let started = Instant::now();
        let is_cut = self.cycles(&mut session, trace.as_mut())?;
        let cycle_s = started.elapsed().as_secs_f64();
        let mut notices: Vec<String> = session.livelock().iter().map(ToString::to_string).collect();
        notices.extend(is_cut.then(|| report::cut::notice(self.max_cycles)));
        if let Some(trace) = trace {
            notices.extend(trace.finish(session.history()).context("--trace")?);
        }
        self.print_notices(&notices);
        let mut report = RunReport::new(&session, before);
        report.notices = [opened.notices, notes, notices].concat();
        report.capacity = self.capacity(&session, &opened.added)?;
        report.new_nodes = self.new_node.then(|| new_nodes(&session));
        if self.timings {
            kubestep_output::print(&json_line(&Timings::new(&session, load_s, cycle_s).to_json()))?;
        } else {
            if self.output == RunFormat::Text {
                report = report.with_causes(&mut session);
            }
            self.show(&report)?;
        }
        // The program ends: the system frees the memory faster than dropping each record does.
        std::mem::forget(session);
        Ok(exit_of(&report))
    }
}

/// Tries the nodes that could be created for the pending pods.
fn new_nodes(session: &Session) -> Supply {
    let steps = Steps::watch();
    let interrupt = steps.and_interrupt("stops");
    let words = |tried, most| format!("{tried} of {most} new nodes tried{interrupt}");
    let mut go_on = |tried, most| steps.go_on(tried, most);
    steps.show(words, || new_node::supply(session.world(), &mut go_on))
}

impl RunCommand {
    /// Runs cycles; whether the limit ended the run.
    fn cycles(&self, session: &mut Session, trace: Option<&mut TraceFile>) -> Result<bool> {
        let stream = self.output == RunFormat::Stream;
        if !session.breakpoints().items().is_empty() {
            let words = stops::run(session, self.max_cycles);
            for record in session.history().cycles().filter(|_| stream) {
                kubestep_output::print(&json_line(&run::json::cycle(record)))?;
            }
            words.iter().try_for_each(|line| self.print(line))?;
            return Ok(false);
        }
        let steps = Steps::watch();
        let stop = steps.and_interrupt("stops and prints what there is");
        let words = |done, active| format!("{done} scheduling cycles, {active} active pods{stop}");
        // Lines of cycles are progress enough.
        let done = match stream {
            true => self.cycles_until_done(session, trace, &steps),
            false => steps.show(words, || self.cycles_until_done(session, trace, &steps)),
        }?;
        if steps.is_stopped() {
            self.print("stopped by Ctrl-C: not every pod was tried")?;
        }
        Ok(session.is_cut(done, self.max_cycles))
    }

    /// Runs cycles to the end, up to the limit, or until Ctrl-C. Returns their number.
    fn cycles_until_done(
        &self,
        session: &mut Session,
        mut trace: Option<&mut TraceFile>,
        steps: &Steps,
    ) -> Result<usize> {
        let mut done = 0;
        while done < self.max_cycles && session.livelock().is_none() {
            let [active, ..] = session.world().scheduler().queue().lengths();
            if !steps.go_on(done, active) {
                break;
            }
            if session.run_cycle() != StepOutcome::NewCycle {
                match session.continue_disruption() {
                    true => continue,
                    false => break,
                }
            }
            done += 1;
            if let Some(record) = session.record().filter(|_| self.output == RunFormat::Stream) {
                kubestep_output::print(&json_line(&run::json::cycle(record)))?;
            }
            if let Some(trace) = &mut trace {
                trace.catch_up(session.history()).context("--trace")?;
            }
        }
        Ok(done)
    }

    /// Loses each domain of a label in turn and prints what becomes of the pods.
    fn survive(&self, session: &mut Session, key: &str, notices: Vec<String>) -> Result<Exit> {
        if matches!(self.output, RunFormat::Csv | RunFormat::Stream) {
            bail!("--survive prints text, json, yaml or junit");
        }
        // The other formats have the scheduler's messages only.
        let explained = matches!(self.output, RunFormat::Text).then(NodeAllowance::default);
        let mut report = survive::survive(session, key, self.max_cycles, explained)?;
        self.print_notices(&report.notices);
        report.notices.splice(..0, notices);
        kubestep_output::print(&match self.output {
            RunFormat::Json => format::json(&report::survive::json::json(&report)),
            RunFormat::Yaml => format::yaml(&report::survive::json::json(&report)),
            RunFormat::Junit => report::survive::junit::junit(&report),
            _ => report::survive::text::text(&report),
        })?;
        Ok(match report.survives() {
            true => Exit::Fine,
            false if report.fails() => Exit::Unschedulable,
            false => Exit::Incomplete,
        })
    }

    /// Prints notices, unless they are part of the output.
    fn print_notices(&self, notices: &[String]) {
        if !matches!(self.output, RunFormat::Json | RunFormat::Yaml | RunFormat::Stream) {
            notices.iter().for_each(kubestep_output::line);
        }
    }

    /// Prints a line besides the result: to standard output if that is text, otherwise to standard
    /// error.
    fn print(&self, line: &str) -> Result<()> {
        match self.output {
            RunFormat::Text => kubestep_output::print(&format!("{}\n", clean(line)))?,
            _ => kubestep_output::line(line),
        }
        Ok(())
    }

    /// Creates the trace file. This happens before the run, so that a wrong path fails at once.
    fn create(&self, path: &Path) -> Result<TraceFile> {
        let links = if self.follow_symlinks { Links::Follow } else { Links::Refuse };
        let file = NewFile::create(path, links);
        let file = file.with_context(|| format!("--trace: {}", path.display()))?;
        Ok(TraceFile::new(file, self.trace_detail == "full"))
    }

    fn capacity(&self, session: &Session, added: &AddedObjects) -> Result<Vec<Capacity>> {
        if !self.capacity {
            return Ok(Vec::new());
        }
        if let Some(fixed) = added.workloads.iter().find(|workload| !workload.can_grow) {
            bail!(
                "--capacity: {}: it has one pod for each node, so capacity does not apply",
                fixed.name
            );
        }
        let of = |workload| capacity(session.world(), workload, workload.replicas, self.max_cycles);
        Ok(added.workloads.iter().map(of).collect())
    }

    fn show(&self, report: &RunReport) -> Result<()> {
        match self.output {
            RunFormat::Text => kubestep_output::print(&run::text::run(report)),
            RunFormat::Json => kubestep_output::print(&format::json(&run::json::run(report))),
            RunFormat::Yaml => kubestep_output::print(&format::yaml(&run::json::run(report))),
            RunFormat::Csv => kubestep_output::print(&run::csv::run(report)),
            RunFormat::Stream => kubestep_output::print(&json_line(&run::json::end(report))),
            RunFormat::Junit => kubestep_output::print(&run::junit::run(report)),
        }?;
        Ok(())
    }
}
