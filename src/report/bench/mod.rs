//! The results of `kubestep bench`. One type, and one file per output format.

pub mod json;
pub mod junit;
pub mod text;

use kubestep_bench::measure::{Figures, ThresholdCheck};
use kubestep_bench::run::WorkloadResult;
use kubestep_bench::suite::{Suite, TestCase, Workload};
use kubestep_config::FeatureGates;

/// The results of workloads.
#[derive(Clone, Debug, Default)]
pub struct BenchReport<'a> {
    /// The workloads, in the order they were run.
    pub workloads: Vec<WorkloadOutcome<'a>>,
    /// Whether each of them was run with two configurations.
    pub compares: bool,
}

/// A workload of a suite.
#[derive(Clone, Copy, Debug)]
pub struct ChosenWorkload<'a> {
    pub suite: &'a Suite,
    pub case: &'a TestCase,
    pub workload: &'a Workload,
}

/// A workload that was run.
#[derive(Clone, Debug)]
pub struct WorkloadOutcome<'a> {
    pub chosen: ChosenWorkload<'a>,
    /// The result with each configuration.
    pub sides: Vec<ConfiguredResult>,
}

/// The result with one configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredResult {
    /// The file with the configuration; `None`: that of the workload.
    pub config: Option<String>,
    /// What was measured, or why the workload could not be run.
    pub result: Result<WorkloadResult, String>,
    /// The version and the feature gates that decided, unless it could not be run.
    pub gates: Option<FeatureGates>,
    /// Notices, one sentence each.
    pub notices: Vec<String>,
    /// How long the workload took in real time, with making its objects, in seconds.
    pub wall_seconds: f64,
}

impl ChosenWorkload<'_> {
    /// Test case and workload: `SchedulingBasic/5000Nodes`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.case.name, self.workload.name)
    }

    /// Path of the file with the test case.
    pub fn file(&self) -> String {
        self.suite.file.display().to_string()
    }

    /// Its labels, separated by commas.
    pub fn labels(&self) -> String {
        self.case.labels(self.workload).collect::<Vec<_>>().join(",")
    }
}

impl ConfiguredResult {
    /// The figures of its measurements; none if the workload failed.
    pub fn measured(&self) -> &[Figures] {
        self.result.as_ref().map(|done| done.measured.as_slice()).unwrap_or_default()
    }

    /// The thresholds that are not met.
    pub fn missed(&self) -> impl Iterator<Item = &ThresholdCheck> {
        let checks = self.measured().iter().filter_map(|figures| figures.threshold.as_ref());
        checks.filter(|check| !check.is_met())
    }
}

/// How a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadVerdict {
    /// All thresholds are met.
    Passed,
    /// Some threshold is not met.
    Missed,
    /// It could not be run.
    Broken,
}

impl WorkloadOutcome<'_> {
    /// How it ended, the worse of both configurations.
    pub fn verdict(&self) -> WorkloadVerdict {
        if self.sides.iter().any(|side| side.result.is_err()) {
            WorkloadVerdict::Broken
        } else if self.sides.iter().any(|side| side.missed().next().is_some()) {
            WorkloadVerdict::Missed
        } else {
            WorkloadVerdict::Passed
        }
    }
}

impl BenchReport<'_> {
    /// The numbers of workloads that passed, missed a threshold, and could not be run.
    pub fn counts(&self) -> [usize; 3] {
        let count = |verdict| self.workloads.iter().filter(|it| it.verdict() == verdict).count();
        [WorkloadVerdict::Passed, WorkloadVerdict::Missed, WorkloadVerdict::Broken].map(count)
    }
}

/// `expected SchedulingThroughput Average above 270, measured 123`.
pub fn describe_missed(check: &ThresholdCheck) -> String {
    let side = if check.selector.expect_lower { "below" } else { "above" };
    let measured = match check.value {
        Some(value) => format!("measured {}", text::number(value)),
        None => "not measured".to_owned(),
    };
    let (name, bucket) = (&check.selector.name, &check.selector.data_bucket);
    format!("expected {name} {bucket} {side} {}, {measured}", text::number(check.limit))
}
