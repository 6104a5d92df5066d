//! `kubestep test`: checks written expectations of a scheduler: files of kind `Test` that name
//! their cluster, and bundles that contain both.

mod find;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::open::session;
use crate::cli::options::{InputOptions, UnknownPluginPolicy};
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::version::Scheduler;
use crate::cli::{edits, format, memory};
use crate::report::cut::ended_after;
use crate::report::tested::{self, TestOutcome, TestReport, Tested};
use kubestep_api::glob::glob;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::expect::{Test, UnmetExpectation, check};

/// Check expectations of a scheduler: which pod gets which node, and which plugin rejects it
///
/// A test is a YAML document of apiVersion kubestep/v1 and kind Test that names its cluster, or a
/// bundle that "kubestep bundle --expect" wrote. Exit codes: 0 all passed, 1 some failed, 2 some
/// could not be run.
#[derive(Args, Debug)]
pub(super) struct TestCommand {
    /// Files with tests, bundles, and folders with them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Run only tests of this name, with * as wildcard; may be repeated
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// Stop each test after this many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_cycles: usize,
    /// The configuration of the scheduler for all tests, instead of their own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: TestFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TestFormat {
    /// For people
    #[default]
    Text,
    /// For programs, as described in schema/ of the repository
    Json,
    /// JUnit XML, which CI systems show
    Junit,
}

/// A test that could be run.
struct FinishedTest {
    failures: Vec<UnmetExpectation>,
    gates: FeatureGates,
    notices: Vec<String>,
}

impl Subcommand for TestCommand {
    const NAME: &'static str = "test";

    fn run(&self) -> Result<Exit> {
        let mut cases = find::all(&self.paths)?;
        if cases.is_empty() {
            bail!(
                "no tests: none of the files is of kind Test, and none is a bundle with \
                 expectations\n  help: \"kubestep bundle -f FILE --expect -o NAME.jsonl.gz\" makes one"
            );
        }
        let all = cases.len();
        let wanted =
            |name: &str| self.filter.is_empty() || self.filter.iter().any(|f| glob(f, name));
        cases.retain(|case| wanted(&case.name));
        if cases.is_empty() {
            bail!("--filter: none of the {all} tests has such a name");
        }
        let report = TestReport { tests: cases.iter().map(|case| self.tested(case)).collect() };
        match self.output {
            TestFormat::Text => kubestep_output::print(&tested::text(&report))?,
            TestFormat::Json => kubestep_output::print(&format::json(&tested::json(&report)))?,
            TestFormat::Junit => kubestep_output::print(&tested::junit(&report))?,
        }
        Ok(match report.counts() {
            [_, 0, 0] => Exit::Fine,
            [_, _, 0] => Exit::Unschedulable,
            _ => Exit::Usage,
        })
    }
}

impl TestCommand {
    fn tested(&self, case: &find::FoundTest) -> Tested {
        let ran = match &case.test {
            Ok(test) => self.ran(case, test).map_err(|error| format!("{error:#}")),
            Err(problem) => Err(problem.to_string()),
        };
        let (outcome, gates, notices) = match ran {
            Err(problem) => (TestOutcome::Broken(problem), None, Vec::new()),
            Ok(ran) if ran.failures.is_empty() => {
                (TestOutcome::Passed, Some(ran.gates), ran.notices)
            }
            Ok(ran) => (TestOutcome::Failed(ran.failures), Some(ran.gates), ran.notices),
        };
        Tested { file: case.file.clone(), name: case.name.clone(), outcome, gates, notices }
    }

    fn ran(&self, case: &find::FoundTest, test: &Test) -> Result<FinishedTest> {
        let beside = |path: &PathBuf| case.folder.join(path);
        let input = InputOptions {
            files: test.input.iter().map(beside).collect(),
            config: self.config.clone().or_else(|| test.config.as_ref().map(beside)),
            unknown: self.unknown.clone(),
            scheduler: self.scheduler.or_of_test(test)?,
            until: test.until.clone(),
            ..InputOptions::default()
        };
        if input.files.is_empty() {
            bail!("input: no file is given");
        }
        let opened = session(&input, &Tries::default(), None)?;
        let mut session = opened.session;
        session.only_forward();
        edits::apply(&mut session, "edits", &test.edits)?;
        memory::check(&session, self.max_cycles)?;
        if self.run_to_end(&mut session, test.timers) {
            bail!("{}: nothing was checked", ended_after(self.max_cycles));
        }
        let gates = *session.world().scheduler().features();
        Ok(FinishedTest { failures: check(&session, &test.expect), gates, notices: opened.notices })
    }

    /// Runs cycles, and lets timers expire; whether the limit of cycles ended the run.
    fn run_to_end(&self, session: &mut Session, timers: usize) -> bool {
        let mut ran = session.run_to_end(self.max_cycles, |_| false);
        for _ in 0..timers {
            if session.advance_to_next_timer().is_none() {
                break;
            }
            ran += session.run_to_end(self.max_cycles - ran, |_| false);
        }
        session.is_cut(ran, self.max_cycles)
    }
}
