//! `kubestep upgrade`: the input under two versions of kube-scheduler, and which changes between
//! them cause each difference.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::format;
use crate::cli::memory;
use crate::cli::open;
use crate::cli::options::InputOptions;
use crate::cli::recorded;
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::version::{ChosenScheduler, release};
use crate::cli::waiting::{with_progress, with_words};
use crate::report::cut::CutRuns;
use crate::report::upgrade::{self as report, RejectedInput, RejectedKind, UpgradeReport};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_config as config;
use kubestep_config::versions::{Served, differences};
use kubestep_config::{FeatureGateError, FeatureGates};
use kubestep_debug::Session;
use kubestep_debug::diff::Pair;
use kubestep_debug::upgrade::{RunError, Upgrade, compare};
use kubestep_source::{Progress, api_versions};

/// Show what an upgrade of Kubernetes changes for the pods, and which change of kube-scheduler
/// causes it
///
/// The cluster is scheduled as by both versions. Each difference gets its cause: the changes
/// between the versions that, applied alone to the first one, lead to the result of the second.
/// "kubestep versions A B" lists all changes. Exit code 3 if something differs or is rejected.
#[derive(Args, Debug)]
pub(super) struct UpgradeCommand {
    #[command(flatten)]
    input: InputOptions,
    /// The version after the upgrade; an older one shows a downgrade [default: 1.36]
    #[arg(long, value_name = "VERSION", hide_possible_values = true, value_parser = release())]
    to: Option<Served>,
    /// The version before the upgrade, as --kube-version
    #[arg(long, value_name = "VERSION", hide_possible_values = true, value_parser = release())]
    #[arg(conflicts_with = "kube_version")]
    from: Option<Served>,
    /// Stop each run after this many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_cycles: usize,
    /// End the search for causes after about this many runs; what was not found by then is marked
    #[arg(long, value_name = "N", default_value_t = 500)]
    max_runs: usize,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: UpgradeFormat,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UpgradeFormat {
    /// For people
    #[default]
    Text,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
    /// For CI systems: each pod is a test, and one that differs a failure
    Junit,
}

impl Subcommand for UpgradeCommand {
    const NAME: &'static str = "upgrade";

    fn run(&self) -> Result<Exit> {
        let mut input = self.input.clone();
        if self.from.is_some() {
            input.scheduler.version.kube_version.clone_from(&self.from);
        }
        let prepared = self.prepared(input)?;
        prepared.notices()?.iter().for_each(kubestep_output::line);
        let report = self.report(&prepared)?;
        let gates = Pair { a: prepared.from.gates, b: prepared.to.gates };
        kubestep_output::print(&match self.output {
            UpgradeFormat::Text => report::text::text(&report, gates),
            UpgradeFormat::Json => format::json(&report::json::document(&report)),
            UpgradeFormat::Yaml => format::yaml(&report::json::document(&report)),
            UpgradeFormat::Junit => report::junit::document(&report),
        })?;
        Ok(match report.is_empty() {
            _ if report.cut.any() => Exit::Incomplete,
            true => Exit::Fine,
            false => Exit::Differs,
        })
    }
}

/// The input, read once, and both schedulers.
struct PreparedUpgrade {
    input: InputOptions,
    read: kubestep_source::ReadInput,
    name: String,
    from: ChosenScheduler,
    to: TargetScheduler,
}

/// The scheduler after the upgrade.
struct TargetScheduler {
    release: Served,
    gates: FeatureGates,
    /// The gates of the input that it rejects.
    rejected: Vec<FeatureGateError>,
}

impl UpgradeCommand {
    fn prepared(&self, mut input: InputOptions) -> Result<PreparedUpgrade> {
        let progress = Progress::with_limit(input.input_limit);
        let (mut read, name) = with_progress(&progress, || open::read(&input, &progress))?;
        // Not once for each run.
        read.auxiliary.provisioning = open::provisioning(&mut read, &input)?;
        input.instance_types.clear();
        let until = recorded::until(&input, read.recording.as_ref())?;
        read.wind(until);
        let from = input.scheduler.choose(&read.captured)?;
        let to = after(&from, self.to.clone().unwrap_or_default())?;
        if differences(from.gates, to.gates).is_empty() {
            bail!(
                "nothing differs between {} and {}: name other versions with --from and --to",
                from.release.asked,
                to.release.asked
            );
        }
        Ok(PreparedUpgrade { input, read, name, from, to })
    }

    fn report(&self, prepared: &PreparedUpgrade) -> Result<UpgradeReport> {
        let PreparedUpgrade { from, to, .. } = prepared;
        let mut rejected: Vec<RejectedInput> =
            to.rejected.iter().map(RejectedInput::gate).collect();
        let problems = prepared.rejected_configuration()?;
        let starts = problems.is_empty();
        rejected.extend(problems);
        rejected.extend(prepared.unserved_versions());
        let searched = starts.then(|| self.search(prepared)).transpose()?;
        let (upgrade, sides) = searched.unzip();
        let sides = sides.unwrap_or_default();
        Ok(UpgradeReport {
            releases: Pair { a: from.release.asked.clone(), b: to.release.asked.clone() },
            rejected,
            upgrade,
            listed: report::listed(from.gates, to.gates),
            cut: CutRuns { sides, limit: self.max_cycles },
        })
    }

    /// What changes, and which of both runs the limit of cycles ended.
    fn search(&self, prepared: &PreparedUpgrade) -> Result<(Upgrade, Pair<bool>)> {
        let runs = AtomicUsize::new(0);
        let progress = || format!("{} runs", runs.load(Ordering::Relaxed));
        let started = Cell::new(false);
        let cut = Cell::new(Pair::default());
        let run = |gates| {
            let number = runs.fetch_add(1, Ordering::Relaxed);
            let rejected = |error| RunError::Rejected(format!("{error:#}"));
            let mut session = prepared.open(gates).map_err(rejected)?;
            memory::check(&session, self.max_cycles).map_err(rejected)?;
            started.set(true);
            let ran = session.run_to_end(self.max_cycles, |_| false);
            let is_cut = session.is_cut(ran, self.max_cycles);
            // The first two runs are those of the versions, the others search for causes.
            cut.set(match number {
                0 => Pair { a: is_cut, ..cut.get() },
                1 => Pair { b: is_cut, ..cut.get() },
                _ => cut.get(),
            });
            Ok(session)
        };
        let (from, to) = (prepared.from.gates, prepared.to.gates);
        let found = with_words(&progress, || compare(from, to, &run, self.max_runs));
        // The first run is that of the version before the upgrade.
        let release = if started.get() { &prepared.to.release } else { &prepared.from.release };
        let found = found.map_err(|error| anyhow!("kube-scheduler {}: {error}", release.asked))?;
        Ok((found, cut.get()))
    }
}

/// The scheduler after the upgrade: with the gates that were set before it, as far as it takes
/// them.
fn after(from: &ChosenScheduler, release: Served) -> Result<TargetScheduler> {
    let gates = release.gates();
    let set = from.set.as_deref().unwrap_or_default();
    let (gates, rejected) = match gates.adopted(set) {
        Ok(adopted) => adopted,
        // A gate that is on by default needs one that is set to false.
        Err(error @ FeatureGateError::Dependency { .. }) => (gates, vec![error]),
        Err(error) => return Err(error).context("--feature-gates after the upgrade"),
    };
    Ok(TargetScheduler { release, gates, rejected })
}

impl PreparedUpgrade {
    /// A session under these gates, before its first cycle.
    fn open(&self, gates: FeatureGates) -> Result<Session> {
        let mut input = self.input.clone();
        input.scheduler.decided = Some(gates);
        let (read, name) = (self.read.clone(), self.name.clone());
        let mut session = open::build(read, &input, &Tries::default(), None, name)?.session;
        // Those of both versions and one of a part of the changes are there at the same time.
        session.set_history_memory(input.memory.bytes() / 3);
        session.only_forward();
        Ok(session)
    }

    /// What the reader should know about the input and both versions.
    fn notices(&self) -> Result<Vec<String>> {
        let (read, name) = (self.read.clone(), self.name.clone());
        let opened = open::build(read, &self.input, &Tries::default(), None, name)?;
        let mut notices = opened.notices;
        notices.extend(self.to.release.notices());
        Ok(notices)
    }

    /// The API versions of the input's objects that Kubernetes does not serve after the upgrade.
    fn unserved_versions(&self) -> Vec<RejectedInput> {
        let after = self.to.release.version;
        let unserved = |((api_version, kind), number): (&(Symbol, Symbol), &usize)| {
            let served = api_versions::served(api_version, kind)?;
            if served.contains(&after.minor()) {
                return None;
            }
            let when = match *served.start() > after.minor() {
                true => format!("it came with 1.{}", served.start()),
                false => format!("1.{} was the last to serve it", served.end()),
            };
            Some(RejectedInput {
                kind: RejectedKind::ApiVersion,
                subject: format!("{api_version} {kind}"),
                reason: format!(
                    "Kubernetes {after} does not serve it ({}): {when}",
                    count(*number, "object")
                ),
            })
        };
        self.read.api_versions.iter().filter_map(unserved).collect()
    }

    /// The problems for which the scheduler after the upgrade would not start.
    fn rejected_configuration(&self) -> Result<Vec<RejectedInput>> {
        let (text, _) = open::config_text(&self.input, &self.read)?;
        let unknown = self.input.unknown.or_opaque();
        let registry = crate::plugins::registry_for(text.as_deref(), unknown)?.0.descriptors();
        let resolved =
            config::resolve_as(text.as_deref(), Vec::new(), &self.to.gates, &registry, unknown);
        let Err(error) = resolved else {
            return Ok(Vec::new());
        };
        let rejected = |problem: &config::Problem| {
            let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            let (subject, reason) = (problem.path.to_string(), problem.message.clone() + &help);
            RejectedInput { kind: RejectedKind::Configuration, subject, reason }
        };
        Ok(error.problems.iter().map(rejected).collect())
    }
}
