//! Runs the operations of a workload on a target.

mod background;
mod creating;
mod nodes;
mod pods;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeMap;
use std::path::Path;

use crate::BenchError;
use crate::SECOND;
use crate::manifest::{self, ReadFile, Templates};
use crate::measure::Figures;
use crate::suite::operation::{self, StartCollectingMetrics};
use crate::suite::{Operation, TestCase, Workload};
use crate::target::{BenchTarget, PodFilter};
use background::Task;

/// The result of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadResult {
    /// The figures of each measurement, in order.
    pub measured: Vec<Figures>,
    /// Parameters that no operation uses.
    pub unused: Vec<String>,
    /// How long the workload took on the target's clock, in seconds.
    pub seconds: f64,
}

/// A workload that runs.
struct WorkloadRun<'a> {
    target: &'a mut dyn BenchTarget,
    templates: Templates<'a>,
    case: &'a TestCase,
    /// The number of pods that barriers wait for, by namespace that exists.
    namespaces: BTreeMap<String, usize>,
    /// Operations that go on in the background.
    tasks: Vec<Task>,
    /// The name of the measurement that is under way.
    measuring: Option<String>,
    measured: Vec<Figures>,
}

/// Runs a workload of the suite in `folder`. Thresholds are those of the `topic`.
///
/// # Errors
/// An operation cannot be done, or pods are not scheduled in time.
pub fn run(
    folder: &Path,
    (case, workload): (&TestCase, &Workload),
    topic: &str,
    read: ReadFile<'_>,
    target: &mut dyn BenchTarget,
) -> Result<WorkloadResult, BenchError> {
    let operations = case.operations(workload)?;
    let mut run = WorkloadRun {
        target,
        templates: Templates::new(folder, read),
        case,
        // It exists in every cluster.
        namespaces: [("default".to_owned(), 0)].into(),
        tasks: Vec::new(),
        measuring: None,
        measured: Vec::new(),
    };
    for (at, operation) in operations.iter().enumerate() {
        let done = run.operation(at, operation);
        done.map_err(|error| error.within(&format!("operation {at}, {}", operation.opcode())))?;
    }
    let (mut measured, now) = (run.measured, run.target.now());
    let (selector, limit) = (case.selector(workload), workload.threshold.of(topic));
    measured.iter_mut().for_each(|figures| figures.check(&selector, limit));
    Ok(WorkloadResult {
        measured,
        unused: workload.params.unused(),
        seconds: now as f64 / SECOND as f64,
    })
}

impl WorkloadRun<'_> {
    fn operation(&mut self, at: usize, operation: &Operation) -> Result<(), BenchError> {
        match operation {
            Operation::AllocResourceClaims(claims) => {
                self.target.allocate_claims(&claims.namespace)
            }
            Operation::Barrier(barrier) => self.barrier(barrier),
            Operation::Churn(churn) => self.churn(at, churn),
            Operation::CreateAny(any) => self.create_any(any),
            Operation::CreateNamespaces(namespaces) => self.create_namespaces(namespaces),
            Operation::CreateNodes(nodes) => self.create_nodes(at, nodes),
            Operation::CreatePods(pods) => self.create_pods(at, pods),
            // Sets were unrolled before.
            Operation::CreatePodSets(_) => Ok(()),
            Operation::CreateResourceClaims(claims) => self.create_claims(claims),
            Operation::CreateResourceDriver(driver) => self.create_driver(driver),
            Operation::DeletePods(pods) => self.delete_pods(pods),
            Operation::Sleep(sleep) => {
                let nanos = operation::micros(&sleep.duration)?.unsigned_abs() * 1000;
                self.pass(self.target.now() + nanos)
            }
            Operation::StartCollectingMetrics(start) => self.start(start),
            Operation::StopCollectingMetrics(_) => self.stop(),
            Operation::UpdateAny(any) => self.update_any(any),
        }
    }

    fn start(&mut self, start: &StartCollectingMetrics) -> Result<(), BenchError> {
        let pods = PodFilter {
            namespaces: start.namespaces.clone(),
            labels: start.label_selector.clone(),
        };
        self.begin(&start.name, pods)
    }

    /// `startCollectingMetrics`: begins a measurement; there is only one at a time.
    fn begin(&mut self, name: &str, pods: PodFilter) -> Result<(), BenchError> {
        if self.measuring.is_some() {
            return Err("another measurement is under way".to_owned().into());
        }
        self.measuring = Some(name.to_owned());
        self.target.begin(pods);
        Ok(())
    }

    /// `stopCollectingMetrics`: ends the measurement and keeps its figures.
    fn stop(&mut self) -> Result<(), BenchError> {
        let Some(name) = self.measuring.take() else {
            return Err("startCollectingMetrics is missing before it".to_owned().into());
        };
        self.measured.push(Figures::new(&name, &self.target.end()));
        Ok(())
    }

    /// Creates a namespace, unless it is known to exist.
    fn require_namespace(&mut self, name: &str) -> Result<(), BenchError> {
        if !name.is_empty() && !self.namespaces.contains_key(name) {
            self.target.create(vec![manifest::namespace(name)])?;
            self.namespaces.insert(name.to_owned(), 0);
        }
        Ok(())
    }
}
