//! `kubestep diff`: the same question asked of two clusters or schedulers, and what comes out
//! otherwise.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::edits;
use crate::cli::exit::Exit;
use crate::cli::format::Format;
use crate::cli::memory;
use crate::cli::open::session;
use crate::cli::options::InputOptions;
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::version::release;
use crate::report;
use crate::report::cut::CutRuns;
use kubestep_config::FeatureGates;
use kubestep_config::versions::Served;
use kubestep_debug::Session;
use kubestep_debug::diff::{Pair, Side, compare};

/// Compare two runs: what moved, which verdicts and scores differ, and from where
///
/// Side a is given by the usual options. Side b is the same except for the options that end in -b
/// and the edits.
#[derive(Args, Debug, Clone)]
pub(super) struct Diff {
    /// The files of both sides, as -f A --filename-b B
    #[arg(value_names = ["A", "B"], num_args = 2)]
    #[arg(conflicts_with_all = ["files", "files_b", "demo"])]
    pair: Vec<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    b: OtherSide,
    /// Stop each side after this many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_cycles: usize,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// For each option: a heading of the whole struct would be that of the options behind it.
const SIDE_B: &str = "Side b";

/// What is different on side b.
#[derive(Args, Debug, Clone)]
struct OtherSide {
    /// Other files; may be repeated
    #[arg(long = "filename-b", value_name = "PATH", help_heading = SIDE_B)]
    files_b: Vec<PathBuf>,
    /// Another configuration
    #[arg(long, value_name = "FILE", help_heading = SIDE_B)]
    config_b: Option<PathBuf>,
    /// Another version of kube-scheduler; "kubestep upgrade" also names the causes
    #[arg(long, value_name = "VERSION", help_heading = SIDE_B, hide_possible_values = true)]
    #[arg(value_parser = release())]
    kube_version_b: Option<Served>,
    /// Other feature gates
    #[arg(long, value_name = "GATES", help_heading = SIDE_B)]
    feature_gates_b: Option<String>,
    /// Edit the cluster or the scheduler first: "cordon node a", "weight NodeAffinity=5"; may be
    /// repeated, applied in order
    #[arg(long = "edit", value_name = "EDIT", help_heading = SIDE_B)]
    edits: Vec<String>,
}

impl Subcommand for Diff {
    const NAME: &'static str = "diff";

    fn run(&self) -> Result<Exit> {
        let mut named = self.clone();
        if let [a, b] = self.pair.as_slice() {
            named.input.files = vec![a.clone()];
            named.b.files_b = vec![b.clone()];
        }
        named.compare()
    }
}

fn gates(session: &Session) -> FeatureGates {
    *session.world().scheduler().features()
}

impl Diff {
    fn compare(&self) -> Result<Exit> {
        self.check()?;
        let opened = session(&self.input, &Tries::default(), None)?;
        let mut notices = opened.notices;
        let mut a = opened.session;
        let mut b = match self.b.reads() {
            true => {
                let other = session(&self.b.input(&self.input), &Tries::default(), None)?;
                let new = other.notices.into_iter().filter(|notice| !notices.contains(notice));
                let new: Vec<String> = new.collect();
                notices.extend(new);
                other.session
            }
            false => a.clone(),
        };
        notices.iter().for_each(kubestep_output::line);
        notices.extend(edits::apply(&mut b, "--edit", &self.b.edits)?);
        let sides = Pair { a: self.run_side(&mut a)?, b: self.run_side(&mut b)? };
        let cut = CutRuns { sides, limit: self.max_cycles };
        let difference = compare(Side::of(&a), Side::of(&b));
        let names = self.names();
        let gates = Pair { a: gates(&a), b: gates(&b) };
        kubestep_output::print(&self.output.show(
            || report::diff::text::text(&difference, &names, &cut),
            || {
                let mut document = report::diff::document(&difference, &names, &gates, &cut);
                document["notices"] = notices.into();
                document
            },
        ))?;
        Ok(match difference.is_empty() {
            _ if cut.any() => Exit::Incomplete,
            true => Exit::Fine,
            false => Exit::Differs,
        })
    }

    /// Runs a side to its end; whether the limit ended it.
    fn run_side(&self, session: &mut Session) -> Result<bool> {
        memory::check(session, self.max_cycles)?;
        // Both sides together take what was asked for.
        session.set_history_memory(self.input.memory.bytes() / 2);
        session.only_forward();
        let ran = session.run_to_end(self.max_cycles, |_| false);
        Ok(session.is_cut(ran, self.max_cycles))
    }

    /// That there are two sides, and that each can be read.
    fn check(&self) -> Result<()> {
        let b = &self.b;
        if !b.reads() && b.edits.is_empty() {
            bail!(
                "both sides are the same: say what is different on side b with --filename-b, \
                 --config-b, --kube-version-b, --feature-gates-b or --edit"
            );
        }
        let live = self.input.files.is_empty() && self.input.demo.is_none();
        if b.reads() && live {
            bail!(
                "two sides of a live cluster would be read at different times: save it with \
                 \"kubestep capture\" and compare with -f FILE"
            );
        }
        Ok(())
    }

    /// The sides in a few words.
    fn names(&self) -> Pair<String> {
        let of = |input: &InputOptions, edits: &[String]| {
            let mut words: Vec<String> =
                input.files.iter().map(|path| path.display().to_string()).collect();
            words.extend(input.demo.iter().map(|story| format!("demo: {story}")));
            words.extend(input.config.iter().map(|path| format!("--config {}", path.display())));
            words.extend(input.scheduler.describe());
            words.extend(edits.iter().cloned());
            if words.is_empty() { "the cluster".to_owned() } else { words.join(", ") }
        };
        Pair { a: of(&self.input, &[]), b: of(&self.b.input(&self.input), &self.b.edits) }
    }
}

impl OtherSide {
    /// Whether anything has to be read for it.
    fn reads(&self) -> bool {
        !self.files_b.is_empty()
            || self.config_b.is_some()
            || self.kube_version_b.is_some()
            || self.feature_gates_b.is_some()
    }

    /// The input of side b.
    fn input(&self, a: &InputOptions) -> InputOptions {
        let mut input = a.clone();
        if !self.files_b.is_empty() {
            input.files.clone_from(&self.files_b);
            input.demo = None;
        }
        input.config = self.config_b.clone().or(input.config);
        let scheduler = &mut input.scheduler;
        if self.kube_version_b.is_some() {
            scheduler.version.kube_version.clone_from(&self.kube_version_b);
            // An emulated version, and gates of side a, belong to the version of side a.
            scheduler.version.emulated_version = None;
            scheduler.adopts_gates = self.feature_gates_b.is_none();
        }
        let gates = &mut scheduler.feature_gates;
        *gates = self.feature_gates_b.clone().or(gates.take());
        input
    }
}
