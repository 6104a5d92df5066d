//! The losses as JSON, by `schema/survive.v1.json`.

use serde_json::{Value, json};

use super::{LostDomain, SurviveReport, UnplacedPod};
use crate::report::add_version;
use crate::report::disruption::{json as disruption, violation_json};
use crate::report::outcome::Pending;

/// The JSON of `survive`, after `schema/survive.v1.json`.
pub fn json(report: &SurviveReport) -> Value {
    let mut value = json!({
        "schema": "kubestep/survive/v1",
        "key": report.key.as_str(),
        "survives": report.survives(),
        "complete": report.is_complete(),
        "domains": report.domains.iter().map(domain).collect::<Vec<_>>(),
        "pendingBefore": report.pending_before.iter().map(pending).collect::<Vec<_>>(),
        "notices": report.notices,
    });
    add_version(&mut value, report.gates);
    value
}

fn domain(domain: &LostDomain) -> Value {
    json!({
        "value": domain.value,
        "nodes": domain.nodes,
        "cycles": domain.cycles,
        "complete": domain.cut.is_none(),
        "withoutNode": domain.unplaced.iter().map(unplaced).collect::<Vec<_>>(),
        "violatedBudgets": domain.disruption.violations.iter().map(violation_json).collect::<Vec<_>>(),
        "left": disruption(&domain.disruption)["left"],
    })
}

fn unplaced(unplaced: &UnplacedPod) -> Value {
    let mut value = pending(&unplaced.pending);
    if let Some(old) = &unplaced.replaces {
        value["replaces"] = json!({
            "pod": old.pod.to_string(),
            "node": old.node,
            "cause": old.cause.name(),
        });
    }
    value
}

fn pending(pending: &Pending) -> Value {
    json!({
        "pod": pending.pod.to_string(),
        "queue": pending.place.as_str(),
        "reason": pending.reason,
    })
}
