//! Runs the chosen workloads, with one or two configurations in turns.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::against::RealCluster;
use crate::cli::open::read_config;
use crate::cli::version::Scheduler;
use crate::cli::waiting::with_words;
use crate::report::bench::{BenchReport, ChosenWorkload, ConfiguredResult, WorkloadOutcome};
use kubestep_api::intern::Symbol;
use kubestep_bench::BenchTarget;
use kubestep_bench::embedded::Embedded;
use kubestep_bench::run::{self, WorkloadResult};
use kubestep_bench::suite::THROUGHPUT;
use kubestep_cluster::World;
use kubestep_config::versions::Emulated;
use kubestep_config::{self as config, FeatureGates};
use kubestep_live::clock::WallClock;
use kubestep_source::Captured;

/// The last version in which queueing hints could be switched off: upstream emulates it for
/// workloads that do so.
const WITHOUT_HINTS: &str = "1.33";
const HINTS: &str = "SchedulerQueueingHints";
const BATCHING: &str = "OpportunisticBatching";

impl Bench {
    /// Runs the workloads under each configuration, in turns.
    pub(super) fn measure<'a>(
        &self,
        chosen: &[ChosenWorkload<'a>],
        real: Option<&RealCluster>,
    ) -> Result<BenchReport<'a>> {
        let files: Vec<Option<PathBuf>> = match &self.config_b {
            Some(other) => vec![self.config.clone(), Some(other.clone())],
            None => vec![self.config.clone()],
        };
        let texts = files.iter().map(|file| file.as_deref().map(read_config).transpose());
        let texts: Vec<Option<String>> = texts.collect::<Result<_>>()?;
        let (at, names) = (AtomicUsize::new(0), chosen.iter().map(ChosenWorkload::name));
        let names: Vec<String> = names.collect();
        let words = || {
            let at = at.load(Ordering::Relaxed);
            let name = names.get(at).map(String::as_str).unwrap_or_default();
            format!("{} of {} workloads, {name}", at + 1, names.len())
        };
        let mut report = BenchReport { workloads: Vec::new(), compares: self.config_b.is_some() };
        with_words(&words, || {
            for (number, chosen) in chosen.iter().enumerate() {
                at.store(number, Ordering::Relaxed);
                report.workloads.push(self.measured(*chosen, real, &files, &texts));
            }
        });
        Ok(report)
    }

    /// Runs one workload in all rounds with each configuration.
    fn measured<'a>(
        &self,
        chosen: ChosenWorkload<'a>,
        real: Option<&RealCluster>,
        files: &[Option<PathBuf>],
        texts: &[Option<String>],
    ) -> WorkloadOutcome<'a> {
        let mut rounds: Vec<Vec<Result<WorkloadRound>>> =
            files.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds {
            for (text, rounds) in texts.iter().zip(&mut rounds) {
                rounds.push(match real {
                    Some(real) => self.real_round(chosen, real),
                    None => self.round(chosen, text.as_deref()),
                });
            }
        }
        let sides = rounds.into_iter().zip(files).map(|(rounds, file)| side(rounds, file.as_ref()));
        WorkloadOutcome { chosen, sides: sides.collect() }
    }

    /// Runs one workload once.
    fn round(&self, chosen: ChosenWorkload<'_>, config: Option<&str>) -> Result<WorkloadRound> {
        let started = Instant::now();
        let folder = chosen.suite.folder();
        let (gates, mut notices) = gates(chosen, &self.scheduler)?;
        let own = chosen.case.scheduler_config_path.as_ref().map(|path| folder.join(path));
        let own = own.filter(|_| config.is_none()).map(|path| read_config(&path)).transpose()?;
        let (text, unknown) = (config.or(own.as_deref()), self.unknown.or_opaque());
        let (registry, absent_guests) = crate::plugins::registry_for(text, unknown)?;
        notices.extend(absent_guests);
        let descriptors = registry.descriptors();
        let resolved = config::resolve_as(text, Vec::new(), &gates, &descriptors, unknown);
        let resolved = resolved.context("the configuration of the scheduler")?;
        let opaque: BTreeSet<Symbol> =
            resolved.profiles.iter().flat_map(|profile| profile.opaque.iter().copied()).collect();
        notices.extend(
            opaque.iter().map(|plugin| {
                format!("plugin {plugin} is opaque: this is the throughput without it")
            }),
        );
        let world = World::new(&resolved, gates, &registry)?;
        let mut target = Embedded::new(world, Arc::new(WallClock::default()));
        let done = self.run_on(chosen, &mut target)?;
        notices.extend(unused(&done));
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(WorkloadRound { done, gates: Some(gates), notices, wall_seconds })
    }

    /// Runs one workload once in a real cluster.
    fn real_round(&self, chosen: ChosenWorkload<'_>, real: &RealCluster) -> Result<WorkloadRound> {
        let started = Instant::now();
        let mut target = real.open()?;
        let done = self.run_on(chosen, &mut target);
        let mut notices = target.clean_up();
        let done = match done {
            Ok(done) => done,
            Err(error) if notices.is_empty() => return Err(error),
            Err(error) => bail!("{error:#}\nleft in the cluster:\n{}", notices.join("\n")),
        };
        notices.extend(unused(&done));
        notices.extend(real_notices(chosen));
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(WorkloadRound { done, gates: None, notices, wall_seconds })
    }

    fn run_on(
        &self,
        chosen: ChosenWorkload<'_>,
        target: &mut dyn BenchTarget,
    ) -> Result<WorkloadResult> {
        let folder = chosen.suite.folder();
        let read = |path: &Path| {
            kubestep_source::read_whole(path).map_err(|error| error.to_string().into())
        };
        let topic = self.topic.clone().unwrap_or_else(|| topic_of(folder));
        Ok(run::run(folder, (chosen.case, chosen.workload), &topic, &read, target)?)
    }
}

fn unused(done: &WorkloadResult) -> Option<String> {
    let names = done.unused.join(", ");
    (!names.is_empty()).then(|| format!("no operation uses the parameters {names}"))
}

/// What the scheduler of a real cluster is not given.
fn real_notices(chosen: ChosenWorkload<'_>) -> Vec<String> {
    let gates = chosen.case.gates(chosen.workload);
    let gates: Vec<String> = gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    let config = chosen.case.scheduler_config_path.as_ref();
    let config = config.map(|path| format!("the cluster's scheduler may not have {path}"));
    let gates = (!gates.is_empty())
        .then(|| format!("the cluster's scheduler may not have {}", gates.join(",")));
    gates.into_iter().chain(config).collect()
}

/// A workload that ran once.
struct WorkloadRound {
    done: WorkloadResult,
    /// `None` in a real cluster.
    gates: Option<FeatureGates>,
    notices: Vec<String>,
    wall_seconds: f64,
}

impl WorkloadRound {
    fn throughput(&self) -> f64 {
        let of = |figures: &kubestep_bench::measure::Figures| {
            figures.figure(THROUGHPUT)?.data.get("Average").copied()
        };
        self.done.measured.iter().filter_map(of).sum()
    }
}

/// The round with the median throughput, or the first error.
fn side(rounds: Vec<Result<WorkloadRound>>, config: Option<&PathBuf>) -> ConfiguredResult {
    let config = config.map(|path| path.display().to_string());
    let rounds: Result<Vec<WorkloadRound>> = rounds.into_iter().collect();
    let (result, gates, notices, wall_seconds) = match rounds {
        Err(error) => (Err(format!("{error:#}")), None, Vec::new(), 0.0),
        Ok(mut rounds) => {
            rounds.sort_by(|a, b| a.throughput().total_cmp(&b.throughput()));
            let WorkloadRound { done, gates, notices, wall_seconds } =
                rounds.remove((rounds.len() - 1) / 2);
            (Ok(done), gates, notices, wall_seconds)
        }
    };
    ConfiguredResult { config, result, gates, notices, wall_seconds }
}

/// Upstream's tests name their topic mostly after the folder.
fn topic_of(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The feature gates of a workload, as upstream sets them: where queueing hints are off, the last
/// version that allows that is emulated; otherwise batching is off unless the workload sets it.
/// Options of the command line take precedence.
fn gates(chosen: ChosenWorkload<'_>, options: &Scheduler) -> Result<(FeatureGates, Vec<String>)> {
    let mut wanted = chosen.case.gates(chosen.workload);
    let without_hints = wanted.get(HINTS) == Some(&false);
    let mut scheduler = options.clone();
    scheduler.feature_gates = None;
    if without_hints && scheduler.version.emulated_version.is_none() {
        let emulated: Emulated = WITHOUT_HINTS.parse()?;
        scheduler.version.emulated_version = Some(emulated);
    }
    let base = scheduler.choose(&Captured::default())?;
    if !without_hints && base.gates.adopted(&format!("{BATCHING}=false")).is_ok() {
        wanted.entry(BATCHING.to_owned()).or_insert(false);
    }
    let text: Vec<String> = wanted.iter().map(|(name, on)| format!("{name}={on}")).collect();
    let adopted = base.gates.adopted(&text.join(",")).context("featureGates of the workload")?;
    let (mut gates, ignored) = adopted;
    // Batching is set by upstream's tests, not by the workload.
    let ignored = ignored.iter().map(ToString::to_string).filter(|why| !why.contains(BATCHING));
    let notices = ignored.map(|why| format!("a feature gate is ignored: {why}")).collect();
    if let Some(text) = &options.feature_gates {
        gates = gates.parsed(text).context("--feature-gates")?;
    }
    Ok((gates, notices))
}
