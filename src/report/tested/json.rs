//! Test results as JSON, by `schema/test.v1.json`.

use serde_json::{Value, json};

use super::{Outcome, TestReport, Tested};

/// The whole report.
pub fn json(report: &TestReport) -> Value {
    let [passed, failed, broken] = report.counts();
    json!({
        "schema": "kubestep/test/v1",
        "passed": passed,
        "failed": failed,
        "errors": broken,
        "tests": report.tests.iter().map(test).collect::<Vec<_>>(),
    })
}

fn test(test: &Tested) -> Value {
    let (result, failures, error) = match &test.outcome {
        Outcome::Passed => ("passed", &[][..], None),
        Outcome::Failed(failures) => ("failed", &failures[..], None),
        Outcome::Broken(problem) => ("error", &[][..], Some(problem)),
    };
    json!({
        "name": test.name,
        "file": test.file,
        "result": result,
        "failures": failures,
        "error": error,
        "notices": test.notices,
    })
}
