//! `kubestep bench`: runs the workloads of scheduler_perf's `performance-config.yaml` files.

mod against;
mod find;
mod running;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::format;
use crate::cli::options::UnknownPluginPolicy;
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use crate::report::bench::{self, BenchReport};
use kubestep_bench::suite::LabelFilter;

/// Run workloads of scheduler_perf, kube-scheduler's benchmark, and report pods per second
///
/// Each workload of a performance-config.yaml runs in a cluster in memory on the embedded
/// scheduler, with nothing in between: no API server, network or kubelet; or with --against in a
/// real cluster. Exit codes: 0 all thresholds are met, 1 some are not, 2 some workloads could not be
/// run.
#[derive(Args, Debug)]
pub(super) struct Bench {
    /// Files as performance-config.yaml, and folders that are searched for it
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Run the workloads that have this label, or do not have it: "performance,-short"; "" for all
    #[arg(long, value_name = "LABELS", default_value = kubestep_bench::suite::DEFAULT_LABELS)]
    label: String,
    /// Run only workloads of this name, CASE/WORKLOAD with * as wildcard; may be repeated
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// List the workloads instead of running them
    #[arg(long)]
    list: bool,
    /// The topic whose thresholds count where a workload has several; the name of the file's folder
    /// by default
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    /// The configuration of the scheduler for all workloads, instead of their own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run each workload with this configuration too, in turns, and compare
    #[arg(long, value_name = "FILE", help_heading = "Side b")]
    config_b: Option<PathBuf>,
    /// Run each workload this often and report the round with the median throughput
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Also print how long each plugin took
    #[arg(long)]
    plugins: bool,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    /// Run in the cluster of this kubeconfig instead, with the scheduler that runs there: creates
    /// nodes, pods and whatever else a workload says, and deletes it again. For test clusters
    #[arg(long, value_name = "KUBECONFIG", help_heading = "Real cluster")]
    #[arg(conflicts_with_all = ["config", "config_b", "plugins"])]
    against: Option<PathBuf>,
    /// The kubeconfig's context
    #[arg(long = "context", value_name = "NAME", requires = "against")]
    #[arg(help_heading = "Real cluster")]
    against_context: Option<String>,
    /// Create and delete objects in that cluster without asking
    #[arg(long, requires = "against", help_heading = "Real cluster")]
    yes_create_objects: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: BenchFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum BenchFormat {
    /// For people
    #[default]
    Text,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
    /// JUnit XML: each workload is a test, and a threshold that is not met is a failure
    Junit,
}

impl Subcommand for Bench {
    const NAME: &'static str = "bench";

    fn run(&self) -> Result<Exit> {
        let suites = find::suites(&self.paths)?;
        let chosen = find::choose(&suites, &LabelFilter::new(&self.label), &self.filter)?;
        if self.list {
            kubestep_output::print(&bench::text::list(&chosen))?;
            return Ok(Exit::Fine);
        }
        let Some(real) = self.real_cluster(chosen.len())? else { return Ok(Exit::Fine) };
        let report = self.measure(&chosen, real.as_ref())?;
        self.show(&report)?;
        Ok(match report.counts() {
            [_, 0, 0] => Exit::Fine,
            [_, _, 0] => Exit::Unschedulable,
            _ => Exit::Usage,
        })
    }
}

impl Bench {
    fn show(&self, report: &BenchReport) -> Result<()> {
        if self.plugins && self.output != BenchFormat::Text {
            bail!("--plugins is for text: the other formats always have the times of plugins");
        }
        kubestep_output::print(&match self.output {
            BenchFormat::Text => bench::text::text(report, self.plugins),
            BenchFormat::Json => format::json(&bench::json::json(report)),
            BenchFormat::Yaml => format::yaml(&bench::json::json(report)),
            BenchFormat::Junit => bench::junit::junit(report),
        })?;
        Ok(())
    }
}
