//! A run as JSON, by `schema/run.v1.json`.

use serde_json::{Map, Value, json};

use super::RunReport;
use crate::report::new_nodes;
use crate::report::outcome::{Pending, ScheduledPod};
use crate::report::usage::{NodeUsage, Usage, exact};
use crate::report::{add_version, disruption};
use kubestep_api::intern::Symbol;
use kubestep_debug::capacity::Capacity;
use kubestep_debug::certainty;
use kubestep_debug::trace;
use kubestep_framework::record::CycleRecord;

/// The JSON of `run`, after `schema/run.v1.json`.
pub fn run(report: &RunReport) -> Value {
    let evicted = report.evicted.iter().map(|entry| {
        json!({
            "pod": entry.pod.to_string(),
            "node": entry.node,
            "by": entry.by.to_string(),
        })
    });
    let mut value = json!({
        "schema": "kubestep/run/v1",
        "cycles": report.cycles,
        "placed": report.placed.iter().map(placed).collect::<Vec<_>>(),
        "evicted": evicted.collect::<Vec<_>>(),
        "pending": report.pending.iter().map(pending).collect::<Vec<_>>(),
        "utilization": utilization(&report.before, &report.after),
        "nodes": nodes(&report.before, &report.after),
        "capacity": report.capacity.iter().map(capacity).collect::<Vec<_>>(),
        "notices": report.notices,
    });
    add_version(&mut value, report.gates);
    if let Some(uncertain) = report.uncertain {
        value["uncertainDecisions"] = uncertain.into();
    }
    if let Some(disruption) = &report.disruption {
        value["disruption"] = disruption::json(disruption);
    }
    if let Some(supply) = &report.new_nodes {
        value["newNodes"] = new_nodes::supply_value(supply);
    }
    value
}

/// A cycle of a run, for the `stream` format.
pub fn cycle(record: &CycleRecord) -> Value {
    json!({
        "schema": "kubestep/run-stream/v1",
        "event": "cycle",
        "cycle": record.cycle,
        "record": trace::json::summary(record),
    })
}

/// The result of a run, for the `stream` format.
pub fn end(report: &RunReport) -> Value {
    json!({"schema": "kubestep/run-stream/v1", "event": "end", "result": run(report)})
}

fn placed(entry: &ScheduledPod) -> Value {
    let mut value = json!({
        "pod": entry.pod.to_string(),
        "node": entry.node,
        "attempt": entry.attempt,
    });
    if let Some(how) = entry.tie_break {
        value["tieBreak"] = how.to_string().into();
    }
    if let Some(certainty) = &entry.certainty {
        value["certainty"] = certainty::value(certainty);
    }
    value
}

fn pending(entry: &Pending) -> Value {
    let mut value = json!({
        "pod": entry.pod.to_string(),
        "queue": entry.place.as_str(),
        "reason": entry.reason,
    });
    if let Some(certainty) = &entry.certainty {
        value["certainty"] = certainty::value(certainty);
    }
    value
}

/// The utilization over all nodes, by resource.
fn utilization(before: &Usage, after: &Usage) -> Value {
    let resources = after.resources(before).into_iter().map(|resource| {
        let (offered, requested) = after.total(resource);
        let show = |amount| exact(&resource, amount);
        let value = json!({
            "allocatable": show(offered),
            "requestedBefore": show(before.total(resource).1),
            "requestedAfter": show(requested),
        });
        (resource.to_string(), value)
    });
    Value::Object(resources.collect())
}

fn nodes(before: &Usage, after: &Usage) -> Value {
    let resources = after.resources(before);
    let amounts = |node: &NodeUsage, which: fn((i64, i64)) -> i64| -> Value {
        let amount = |resource: &Symbol| {
            let amount = which(node.amounts(*resource));
            (resource.to_string(), Value::from(exact(resource, amount)))
        };
        Value::Object(resources.iter().map(amount).collect::<Map<_, _>>())
    };
    let node = |node: &NodeUsage| {
        let earlier = before.nodes.iter().find(|other| other.name == node.name);
        json!({
            "name": node.name,
            "allocatable": amounts(node, |(offered, _)| offered),
            "requestedBefore": earlier.map(|node| amounts(node, |(_, requested)| requested)),
            "requestedAfter": amounts(node, |(_, requested)| requested),
        })
    };
    after.nodes.iter().map(node).collect()
}

fn capacity(entry: &Capacity) -> Value {
    let nodes: Map<String, Value> =
        entry.nodes.iter().map(|(node, pods)| (node.to_string(), (*pods).into())).collect();
    let stopped = entry.stopped.as_ref().map(|stop| {
        let plugins: Map<String, Value> =
            stop.plugins.iter().map(|(name, nodes)| (name.to_string(), (*nodes).into())).collect();
        json!({"message": stop.message, "plugins": plugins})
    });
    json!({"workload": entry.workload, "fit": entry.fit, "nodes": nodes, "stopped": stopped})
}
