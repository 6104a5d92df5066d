//! HTTP extenders: the requests that they get, and the meaning of their answers.
//!
//! The engine does not call them itself; [`Host::call_extender`] does. Upstream:
//! `pkg/scheduler/extender.go` and `staging/src/k8s.io/kube-scheduler/extender/v1/types.go`.

pub(crate) mod decode;

use std::sync::Arc;
use std::task::{Poll, ready};

use serde_json::{Map, Value, json};

use crate::host::{ExtenderCall, Host, HostError};
use crate::node::{NodeId, NodeInfo};
use crate::pod::NamespacedName;
use crate::snapshot::Snapshot;
use crate::status::Status;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Node, Pod, Uid};
use kubestep_config::types::Extender;

/// The slot of a node that is not in the snapshot, but in an extender's answer.
pub const UNKNOWN_NODE: NodeId = NodeId(u32::MAX);

/// The result of an extender's filter call.
#[derive(Default, Debug)]
pub struct Filtered {
    /// The nodes that passed, in the extender's order.
    pub nodes: Vec<Arc<NodeInfo>>,
    /// The nodes that were rejected, with their statuses.
    pub rejected: Vec<(Name, Status)>,
}

/// Why a call of an extender failed, in upstream's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExtenderError {
    /// There is no answer.
    #[error(transparent)]
    Call(#[from] HostError),
    /// The request cannot be written, or the answer cannot be decoded.
    #[error("{0}")]
    Invalid(String),
    /// The answer is an error of the extender.
    #[error("{0}")]
    Answered(String),
    /// The answer names a node or a pod that does not exist, or no victims.
    #[error("{0}")]
    Mismatch(String),
}

/// The name of an extender where those of plugins are listed: its URL.
pub fn name(extender: &Extender) -> Symbol {
    Symbol::new(&format!("extender {}", extender.url_prefix))
}

/// Whether the extender handles `pod`: it has no managed resources, or a container names one of
/// them in its requests or limits.
pub fn is_interested(extender: &Extender, pod: &Pod) -> bool {
    let managed = |name: Symbol| extender.managed_resources.iter().any(|m| m.name == name);
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    extender.managed_resources.is_empty()
        || containers.into_iter().any(|container| {
            let resources = &container.resources;
            let lists = [&resources.requests, &resources.limits];
            lists.into_iter().flatten().any(|list| list.keys().any(managed))
        })
}

/// Calls an extender to filter `nodes` for the pod. Without a filter verb all nodes pass.
///
/// # Errors
/// The call failed, the answer contains an error, or it names a node that was not in the request.
pub fn filter(
    (index, extender): (usize, &Extender),
    pod: &Pod,
    nodes: &[Arc<NodeInfo>],
    host: &mut dyn Host,
) -> Result<Filtered, ExtenderError> {
    if extender.filter_verb.is_empty() {
        return Ok(Filtered { nodes: nodes.to_vec(), rejected: Vec::new() });
    }
    let body = node_args(extender, pod, nodes);
    let verb = Symbol::new(&extender.filter_verb);
    let answer = host.call_extender(ExtenderCall { extender: index, verb, body })?;
    decode::FILTER_RESULT.check(&answer)?;
    if let Some(text) = error_text(&answer) {
        return Err(ExtenderError::Answered(text));
    }
    let nodes = match (names_field(&answer), field(&answer, "Nodes")) {
        (Some(names), _) if extender.node_cache_capable => by_name(extender, &names, nodes)?,
        (_, Some(list)) => fresh_nodes(list, nodes)?,
        _ => Vec::new(),
    };
    Ok(Filtered { nodes, rejected: rejected(&answer) })
}

/// Scores of one extender by node name, as it answered them; 0 for all nodes where it only filters
///.
///
/// # Errors
/// The call failed or the answer cannot be decoded.
pub fn prioritize(
    (index, extender): (usize, &Extender),
    pod: &Pod,
    nodes: &[Arc<NodeInfo>],
    host: &mut dyn Host,
) -> Result<Vec<(Name, i64)>, ExtenderError> {
    if extender.prioritize_verb.is_empty() {
        return Ok(nodes.iter().map(|node| (node.name, 0)).collect());
    }
    let body = node_args(extender, pod, nodes);
    let verb = Symbol::new(&extender.prioritize_verb);
    let answer = host.call_extender(ExtenderCall { extender: index, verb, body })?;
    decode::PRIORITIES.check(&answer)?;
    let list = answer.as_array().cloned().unwrap_or_default();
    Ok(list
        .iter()
        .filter_map(|entry| {
            let host = field(entry, "Host")?.as_str()?;
            let score = field(entry, "Score").and_then(Value::as_i64).unwrap_or(0);
            Some((Name::new(host), score))
        })
        .collect())
}

/// Binds a pod through an extender.
///
/// # Errors
/// The call failed, or the answer contains an error.
pub fn bind(
    (index, extender): (usize, &Extender),
    pod: &Pod,
    node: Name,
    host: &mut dyn Host,
) -> Poll<Result<(), ExtenderError>> {
    let metadata = &pod.metadata;
    let body = json!({
        "PodName": metadata.name, "PodNamespace": metadata.namespace,
        "PodUID": metadata.uid, "Node": node,
    });
    let verb = Symbol::new(&extender.bind_verb);
    let answer = ready!(host.bind_by_extender(ExtenderCall { extender: index, verb, body }))?;
    decode::BINDING_RESULT.check(&answer)?;
    Poll::Ready(error_text(&answer).map_or(Ok(()), |text| Err(ExtenderError::Answered(text))))
}

/// The pod, its UID and the node of a bind call (`ExtenderBindingArgs`); `None` for any other call.
pub fn binding_in(call: &ExtenderCall) -> Option<(NamespacedName, Uid, Name)> {
    let text = |name| field(&call.body, name)?.as_str();
    let namespace = Symbol::new(text("PodNamespace")?);
    let pod = NamespacedName::new(namespace, Name::new(text("PodName")?));
    Some((pod, text("PodUID")?.into(), text("Node")?.into()))
}

/// `ExtenderArgs`: node names for an extender with `nodeCacheCapable`, otherwise complete nodes.
fn node_args(extender: &Extender, pod: &Pod, nodes: &[Arc<NodeInfo>]) -> Value {
    let mut args = Map::new();
    args.insert("Pod".into(), serde_json::to_value(pod).unwrap_or_default());
    let (names, whole) = match extender.node_cache_capable {
        true => {
            (nodes.iter().map(|node| Value::from(node.name.text().as_str())).collect(), Value::Null)
        }
        false => {
            let items: Vec<Value> = nodes
                .iter()
                .filter_map(|node| serde_json::to_value(node.node.as_deref()?).ok())
                .collect();
            (Value::Null, json!({ "metadata": {}, "items": items }))
        }
    };
    args.insert("Nodes".into(), whole);
    args.insert("NodeNames".into(), names);
    Value::Object(args)
}

/// A field by its Go name, case-insensitive: upstream's types have no JSON tags.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let (_, found) = value.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    (!found.is_null()).then_some(found)
}

/// The error text in an extender's answer.
pub fn error_text(answer: &Value) -> Option<String> {
    field(answer, "Error")?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn names_field(answer: &Value) -> Option<Vec<Name>> {
    let names = field(answer, "NodeNames")?.as_array()?;
    Some(names.iter().map(|name| Name::new(name.as_str().unwrap_or_default())).collect())
}

fn by_name(
    extender: &Extender,
    names: &[Name],
    nodes: &[Arc<NodeInfo>],
) -> Result<Vec<Arc<NodeInfo>>, ExtenderError> {
    let find = |name: &Name| {
        nodes.iter().find(|node| node.name == *name).cloned().ok_or_else(|| {
            let url = &extender.url_prefix;
            ExtenderError::Mismatch(format!(
                "extender {url:?} claims a filtered node {:?} which is not found in the input node list",
                name.text()
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Complete nodes are decoded into new node infos without pods, as upstream.
fn fresh_nodes(list: &Value, asked: &[Arc<NodeInfo>]) -> Result<Vec<Arc<NodeInfo>>, ExtenderError> {
    let items = field(list, "items").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut nodes = Vec::new();
    for item in items {
        let node: Node =
            serde_json::from_value(item).map_err(|err| ExtenderError::Invalid(err.to_string()))?;
        let slot = asked.iter().find(|info| info.name == node.metadata.name).map(|info| info.id);
        let slot = slot.unwrap_or(UNKNOWN_NODE);
        nodes.push(Arc::new(NodeInfo::of_object(slot, Arc::new(node))));
    }
    Ok(nodes)
}

/// The rejected nodes. A node in both lists counts as unresolvable.
fn rejected(answer: &Value) -> Vec<(Name, Status)> {
    let map =
        |name: &str| field(answer, name).and_then(Value::as_object).cloned().unwrap_or_default();
    let (unresolvable, failed) = (map("FailedAndUnresolvableNodes"), map("FailedNodes"));
    let mut rejected = Vec::new();
    for (node, message) in &unresolvable {
        rejected.push((Name::new(node), Status::unresolvable(message.as_str().unwrap_or(""))));
    }
    for (node, message) in failed.iter().filter(|(node, _)| !unresolvable.contains_key(*node)) {
        rejected.push((Name::new(node), Status::unschedulable(message.as_str().unwrap_or(""))));
    }
    rejected
}

/// The infos of `ids` in `snapshot`.
pub fn infos(snapshot: &Snapshot, ids: &[NodeId]) -> Vec<Arc<NodeInfo>> {
    ids.iter().filter_map(|id| snapshot.get(*id).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodBuilder, pod};
    use kubestep_config::types::ExtenderManagedResource;

    #[test]
    fn interest_follows_managed_resources() {
        let mut extender = Extender::default();
        assert!(is_interested(&extender, &pod("any")));
        extender.managed_resources =
            vec![ExtenderManagedResource { name: "example.com/fpga".into(), ..Default::default() }];
        assert!(!is_interested(&extender, &pod("a").requests("cpu", "1")));
        assert!(is_interested(&extender, &pod("a").requests("example.com/fpga", "0")));
        let limits = json!({"limits": {"example.com/fpga": "1"}});
        let init = json!({"initContainers": [{"name": "i", "resources": limits}]});
        assert!(is_interested(&extender, &pod("a").spec(init)));
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        let answer = json!({"nodenames": ["n1"], "Error": ""});
        assert_eq!(field(&answer, "NodeNames"), Some(&json!(["n1"])));
        assert_eq!(field(&answer, "FailedNodes"), None);
    }
}
