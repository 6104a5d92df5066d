//! The workloads as JSON, by `schema/bench.v1.json`.

use serde_json::{Value, json};

use super::{BenchReport, ConfiguredResult, WorkloadOutcome, WorkloadVerdict};
use crate::report::add_version;
use kubestep_bench::measure::{Figure, Figures, ThresholdCheck};

/// The JSON of `bench`, after `schema/bench.v1.json`.
pub fn json(report: &BenchReport<'_>) -> Value {
    let [passed, missed, broken] = report.counts();
    json!({
        "schema": "kubestep/bench/v1",
        "passed": passed,
        "missed": missed,
        "errors": broken,
        "workloads": report.workloads.iter().map(workload).collect::<Vec<_>>(),
    })
}

fn workload(outcome: &WorkloadOutcome<'_>) -> Value {
    let chosen = outcome.chosen;
    let verdict = match outcome.verdict() {
        WorkloadVerdict::Passed => "passed",
        WorkloadVerdict::Missed => "missed",
        WorkloadVerdict::Broken => "error",
    };
    json!({
        "file": chosen.file(),
        "case": chosen.case.name,
        "workload": chosen.workload.name,
        "labels": chosen.case.labels(chosen.workload).collect::<Vec<_>>(),
        "result": verdict,
        "runs": outcome.sides.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(side: &ConfiguredResult) -> Value {
    let mut value = json!({
        "config": side.config,
        "error": side.result.as_ref().err(),
        "notices": side.notices,
        "wallSeconds": side.wall_seconds,
        "measurements": side.measured().iter().map(measurement).collect::<Vec<_>>(),
    });
    if let Some(gates) = side.gates {
        add_version(&mut value, gates);
        value["featureGates"] = gates.to_string().into();
    }
    value
}

fn measurement(figures: &Figures) -> Value {
    json!({
        "name": figures.name,
        "scheduled": figures.scheduled,
        "seconds": figures.seconds,
        "busySeconds": figures.busy_seconds,
        "sampleSeconds": figures.interval_seconds,
        "threshold": figures.threshold.as_ref().map(threshold),
        "figures": figures.figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

fn threshold(check: &ThresholdCheck) -> Value {
    json!({
        "metric": check.selector.name,
        "labels": check.selector.labels,
        "bucket": check.selector.data_bucket,
        "expectLower": check.selector.expect_lower,
        "limit": check.limit,
        "value": check.value,
        "met": check.is_met(),
    })
}

fn figure(figure: &Figure) -> Value {
    json!({
        "metric": figure.metric,
        "labels": figure.labels,
        "unit": figure.unit,
        "data": figure.data,
    })
}
