//! Extenders may drop candidates and change their victims.
//!
//! Upstream: `callExtenders` in `pkg/scheduler/framework/preemption/preemption.go` and
//! `ProcessPreemption` in `pkg/scheduler/extender.go`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::config::types::Extender;
use crate::engine::extender::{field, is_interested};
use crate::engine::framework::plugin::{CycleContext, PostFilterContext};
use crate::engine::host::{ExtenderCall, Host};
use crate::engine::pod::PodInfo;
use crate::engine::preemption::NodeVictims;
use crate::engine::preemption::dry_run::no_victims;

/// Asks the interested extenders in turn, each about what the one before left.
///
/// # Errors
/// The call failed or the answer makes no sense, and the extender may not be ignored.
pub fn restrict(
    cx: &mut PostFilterContext<'_>,
    cycle: &CycleContext<'_>,
    mut candidates: Vec<NodeVictims>,
) -> Result<Vec<NodeVictims>, String> {
    let extenders = cx.framework.extenders();
    for (at, extender) in extenders.iter().enumerate() {
        if extender.preempt_verb.is_empty() || !is_interested(extender, &cycle.pod.pod) {
            continue;
        }
        let mut left = match ask(at, extender, cx.host, cycle, &candidates) {
            Ok(left) => left,
            Err(_) if extender.ignorable => continue,
            Err(text) => return Err(text),
        };
        if extender.ignorable {
            left.retain(|candidate| !candidate.pods.is_empty());
        } else if let Some(empty) = left.iter().find(|candidate| candidate.pods.is_empty()) {
            return Err(no_victims(&empty.node).message());
        }
        candidates = left;
        if candidates.is_empty() {
            break;
        }
    }
    Ok(candidates)
}

fn ask(
    at: usize,
    extender: &Extender,
    host: &mut dyn Host,
    cycle: &CycleContext<'_>,
    candidates: &[NodeVictims],
) -> Result<Vec<NodeVictims>, String> {
    let body = request(extender, &cycle.pod.pod, candidates).map_err(|err| err.to_string())?;
    let verb = extender.preempt_verb.as_str().into();
    let answer = host.call_extender(ExtenderCall { extender: at, verb, body })?;
    let nodes = field(&answer, "NodeNameToMetaVictims").and_then(Value::as_object);
    let nodes = nodes.into_iter().flatten();
    nodes.map(|(node, victims)| resolve(extender, cycle, node, victims)).collect()
}

/// The request: UIDs are enough for an extender that knows the nodes.
fn request(
    extender: &Extender,
    pod: &crate::api::Pod,
    candidates: &[NodeVictims],
) -> serde_json::Result<Value> {
    let mut nodes = Map::new();
    for candidate in candidates {
        let victim = |pod: &Arc<PodInfo>| match extender.node_cache_capable {
            true => Ok(json!({"UID": pod.uid()})),
            false => serde_json::to_value(&*pod.pod),
        };
        let pods: Vec<Value> =
            candidate.pods.iter().map(victim).collect::<serde_json::Result<_>>()?;
        let victims = json!({"Pods": pods, "NumPDBViolations": candidate.pdb_violations});
        nodes.insert(candidate.node.to_string(), victims);
    }
    let (full, meta) = match extender.node_cache_capable {
        true => (Value::Null, Value::Object(nodes)),
        false => (Value::Object(nodes), Value::Null),
    };
    let pod = serde_json::to_value(pod)?;
    Ok(json!({"Pod": pod, "NodeNameToVictims": full, "NodeNameToMetaVictims": meta}))
}

/// The pods behind the UIDs of an answer.
fn resolve(
    extender: &Extender,
    cycle: &CycleContext<'_>,
    name: &str,
    victims: &Value,
) -> Result<NodeVictims, String> {
    let node = cycle.snapshot.by_name(name.into());
    let node = node.ok_or_else(|| format!("nodeinfo not found for node name {name:?}"))?;
    let find = |meta: &Value| {
        let uid = field(meta, "UID").and_then(Value::as_str).unwrap_or_default();
        let pod = node.pods.iter().find(|pod| pod.uid() == uid).cloned();
        // Upstream prints the whole entry of the answer, hence the braces.
        pod.ok_or_else(|| {
            format!(
                "extender: {} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, but the \
                 pod is not found on that node",
                extender.url_prefix
            )
        })
    };
    let pods = field(victims, "Pods").and_then(Value::as_array).into_iter().flatten();
    Ok(NodeVictims {
        node: node.name,
        pods: pods.map(find).collect::<Result<_, _>>()?,
        pdb_violations: field(victims, "NumPDBViolations").and_then(Value::as_i64).unwrap_or(0),
    })
}
