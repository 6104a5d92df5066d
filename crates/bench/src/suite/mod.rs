//! Reads `performance-config.yaml`: test cases, each with operations and with workloads, which are
//! sets of parameters for them.

mod labels;
pub mod operation;
mod parameters;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::BenchError;
use kubestep_api::decode::yaml_error;
use kubestep_api::yaml;
pub use labels::{DEFAULT as DEFAULT_LABELS, LabelFilter};
pub use operation::Operation;
pub use parameters::Parameters;

/// The name of the files that folders are searched for.
pub const FILE_NAME: &str = "performance-config.yaml";

/// A `performance-config.yaml` file of scheduler_perf.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// The file; paths in it are relative to its folder.
    pub file: PathBuf,
    /// The test cases in the order of the file.
    pub cases: Vec<TestCase>,
}

/// Operations, and the workloads that run them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TestCase {
    /// The first part of a workload's full name.
    pub name: String,
    /// Feature gates that are set.
    pub feature_gates: BTreeMap<String, bool>,
    /// Metrics that are collected; as upstream's default if unset.
    pub metrics_collector_config: Option<MetricsCollectorConfig>,
    /// What every workload does.
    pub workload_template: Vec<Operation>,
    /// The sets of parameters with which the operations are run.
    pub workloads: Vec<Workload>,
    /// The configuration of the scheduler.
    pub scheduler_config_path: Option<String>,
    /// The file of pods without a file of their own.
    pub default_pod_template_path: Option<String>,
    /// Labels of all workloads.
    pub labels: Vec<String>,
    /// The figure that the thresholds of its workloads are for.
    pub default_threshold_metric_selector: Option<MetricSelector>,
}

/// The metrics that are reported.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsCollectorConfig {
    /// By the metric's name, the values of its labels; none: all together.
    #[serde(alias = "Metrics")]
    pub metrics: BTreeMap<String, Option<Vec<LabelValues>>>,
}

/// A label of a metric with the values that are reported.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LabelValues {
    /// Name of the label.
    #[serde(alias = "Label")]
    pub label: String,
    /// The values of the label that are reported.
    #[serde(alias = "Values")]
    pub values: Vec<String>,
}

/// A set of parameters for the operations of a test case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Workload {
    /// The second part of its full name.
    pub name: String,
    /// What the `$` fields of operations refer to.
    pub params: Parameters,
    /// Labels by which workloads are chosen.
    pub labels: Vec<String>,
    /// The value that has to be reached.
    pub threshold: Threshold,
    /// The figure that the threshold is for.
    pub threshold_metric_selector: Option<MetricSelector>,
    /// Feature gates, which take precedence over those of the test case.
    pub feature_gates: BTreeMap<String, bool>,
}

/// The value that a figure has to reach, for all topics or by topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threshold {
    all: f64,
    by_topic: BTreeMap<String, f64>,
}

impl Threshold {
    /// The value for a topic; `None` if there is none.
    pub fn of(&self, topic: &str) -> Option<f64> {
        let value = self.by_topic.get(topic).copied().unwrap_or(self.all);
        (value != 0.0).then_some(value)
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Threshold, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let threshold = match &value {
            Value::Number(number) => {
                Some(Threshold { all: number.as_f64().unwrap_or(0.0), ..Threshold::default() })
            }
            _ => {
                let by_topic = serde_json::from_value(value).ok();
                by_topic.map(|by_topic| Threshold { all: 0.0, by_topic })
            }
        };
        let is_valid =
            |it: &Threshold| it.by_topic.values().chain([&it.all]).all(|value| *value >= 0.0);
        threshold.filter(is_valid).ok_or_else(|| {
            serde::de::Error::custom("a threshold is a number of 0 or more, or one for each topic")
        })
    }
}

/// The figure that a threshold is for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MetricSelector {
    /// Name of the metric.
    pub name: String,
    /// Labels that the figure must have.
    pub labels: BTreeMap<String, String>,
    /// `Average`, `Perc50` and so on.
    pub data_bucket: String,
    /// The threshold is a maximum instead of a minimum.
    pub expect_lower: bool,
}

/// The metric of the pods scheduled in a second.
pub const THROUGHPUT: &str = "SchedulingThroughput";

impl Default for MetricSelector {
    fn default() -> MetricSelector {
        MetricSelector {
            name: THROUGHPUT.into(),
            labels: BTreeMap::new(),
            data_bucket: "Average".into(),
            expect_lower: false,
        }
    }
}

impl Suite {
    /// Reads the text of `file`.
    ///
    /// # Errors
    /// It is not YAML, or a field, opcode or name in it is wrong.
    pub fn parse(file: &Path, text: &str) -> Result<Suite, BenchError> {
        let cases: Vec<TestCase> = yaml::from_str(text).map_err(|error| {
            let error = yaml_error(&error);
            let line = error.position.map_or(0, |(line, _)| line);
            BenchError::at(file, line, without_path(&error.message))
        })?;
        let suite = Suite { file: file.to_owned(), cases };
        suite.check().map_err(|why| BenchError::at(file, 0, why))?;
        Ok(suite)
    }

    /// The folder that paths in the file are relative to.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    fn check(&self) -> Result<(), String> {
        if self.cases.is_empty() {
            return Err("there is no test case".into());
        }
        unique(self.cases.iter().map(|case| &case.name), "test case")?;
        self.cases.iter().try_for_each(TestCase::check)
    }
}

/// The decoder's message without the path of the field, which the line makes superfluous.
fn without_path(message: &str) -> &str {
    match message.split_once(": ") {
        Some((path, rest)) if path.starts_with(['.', '[']) => rest,
        _ => message,
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a String>, of: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("there are two {of}s {name:?}"));
        }
    }
    Ok(())
}

impl TestCase {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if self.workloads.is_empty() {
            return Err(format!("{name}: there is no workload"));
        }
        if !self.workload_template.iter().any(Operation::measures) {
            return Err(format!("{name}: no operation collects metrics"));
        }
        let names = self.workloads.iter().map(|workload| &workload.name);
        unique(names, "workload").map_err(|why| format!("{name}: {why}"))
    }

    /// The labels of a workload: its own and those of the test case.
    pub fn labels<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a str> + Clone {
        self.labels.iter().chain(&workload.labels).map(String::as_str)
    }

    /// The feature gates of a workload.
    pub fn gates(&self, workload: &Workload) -> BTreeMap<String, bool> {
        let mut gates = self.feature_gates.clone();
        gates.extend(workload.feature_gates.clone());
        gates
    }

    /// The figure that the threshold of a workload is for.
    pub fn selector(&self, workload: &Workload) -> MetricSelector {
        let own = workload.threshold_metric_selector.as_ref();
        own.or(self.default_threshold_metric_selector.as_ref()).cloned().unwrap_or_default()
    }

    /// The operations of a workload, with its parameters: each set of pods is one operation.
    ///
    /// # Errors
    /// An operation names a parameter that is missing or of another type.
    pub fn operations(&self, workload: &Workload) -> Result<Vec<Operation>, BenchError> {
        let mut all = Vec::new();
        for (at, operation) in self.workload_template.iter().enumerate() {
            let mut operation = operation.clone();
            let resolved = operation.resolve(&workload.params);
            resolved.map_err(|why| format!("operation {at}, {}: {why}", operation.opcode()))?;
            match operation {
                Operation::CreatePodSets(sets) => all.extend((0..sets.count).map(|number| {
                    let namespace = Some(format!("{}-{number}", sets.namespace_prefix));
                    let mut pods = sets.create_pods_op.clone();
                    pods.namespace = namespace;
                    Operation::CreatePods(pods)
                })),
                operation => all.push(operation),
            }
        }
        Ok(all)
    }
}
