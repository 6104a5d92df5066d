//! The report on an upgrade as JSON, by `schema/upgrade.v1.json`.

use serde_json::{Map, Value, json};

use super::{RejectedInput, UpgradeReport};
use crate::report::diff::{end, of};
use crate::report::versions;
use kubestep_config::versions::VersionChange;
use kubestep_debug::upgrade::{CausingChanges, OutcomeDifference, PodEffect, Upgrade};

/// The JSON of `upgrade`, after `schema/upgrade.v1.json`.
pub fn document(report: &UpgradeReport) -> Value {
    json!({
        "schema": "kubestep/upgrade/v1",
        "from": report.releases.a,
        "to": report.releases.b,
        "differs": !report.is_empty(),
        "complete": !report.cut.any(),
        "rejected": report.rejected.iter().map(rejected).collect::<Vec<_>>(),
        "pods": report.upgrade.as_ref().map(pods),
        "notCompared": report.listed.iter().map(|one| versions::switch(*one)).collect::<Vec<_>>(),
    })
}

fn rejected(rejected: &RejectedInput) -> Value {
    json!({
        "kind": rejected.kind.as_str(),
        "subject": rejected.subject,
        "reason": rejected.reason,
    })
}

fn pods(upgrade: &Upgrade) -> Value {
    let count = |effect: PodEffect| (effect.as_str().to_owned(), upgrade.count(effect).into());
    let mut summary: Map<String, Value> = PodEffect::ALL.map(count).into_iter().collect();
    summary.insert("same".into(), upgrade.same.len().into());
    summary.insert("otherReasons".into(), upgrade.other_reasons.into());
    let causes = upgrade.by_cause().into_iter().map(|(cause, pods)| group(cause, &pods));
    json!({
        "summary": summary,
        "causes": causes.collect::<Vec<_>>(),
        "changes": upgrade.changes.len(),
        "drawn": upgrade.drawn,
        "runs": upgrade.runs,
    })
}

fn group(cause: &CausingChanges, pods: &[&OutcomeDifference]) -> Value {
    json!({
        "changes": cause.changes.iter().map(|one| change(*one)).collect::<Vec<_>>(),
        "smallest": cause.smallest,
        "pods": pods.iter().map(|one| pod(one)).collect::<Vec<_>>(),
    })
}

fn change(change: VersionChange) -> Value {
    match change {
        VersionChange::Switch(switch) => {
            let mut value = versions::switch(switch);
            value["kind"] = "change".into();
            value
        }
        VersionChange::Gate(gate) => {
            json!({"kind": "featureGate", "name": gate.name(), "about": gate.effect()})
        }
    }
}

fn pod(pod: &OutcomeDifference) -> Value {
    json!({
        "pod": pod.pod.to_string(),
        "effect": pod.effect.as_str(),
        "end": of(&pod.end, end),
        "message": of(&pod.message, Clone::clone),
        "attempts": of(&pod.attempts, |count| *count),
    })
}
