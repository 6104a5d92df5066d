//! Extenders in preemption: they may drop candidates and change their victims.
//!
//! Upstream: `callExtenders` in `pkg/scheduler/framework/preemption/preemption.go` and
//! `ProcessPreemption` in `pkg/scheduler/extender.go`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::extender::decode::PREEMPTION_RESULT;
use crate::extender::{ExtenderError, field, is_interested};
use crate::host::{ExtenderCall, Host};
use crate::plugin::{CycleContext, PostFilterContext};
use crate::pod::PodInfo;
use crate::preemption::NodeVictims;
use crate::preemption::dry_run::no_victims;
use kubestep_config::types::Extender;

/// Calls the interested extenders in turn, each with the candidates that the previous one left.
///
/// # Errors
/// The call failed or the answer is invalid, and the extender is not ignorable.
pub fn restrict(
    cx: &mut PostFilterContext<'_>,
    cycle: &CycleContext<'_>,
    mut candidates: Vec<Arc<NodeVictims>>,
) -> Result<Vec<Arc<NodeVictims>>, ExtenderError> {
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
            return Err(ExtenderError::Mismatch(no_victims(&empty.node.text()).message()));
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
    candidates: &[Arc<NodeVictims>],
) -> Result<Vec<Arc<NodeVictims>>, ExtenderError> {
    let body = request(extender, &cycle.pod.pod, candidates)
        .map_err(|err| ExtenderError::Invalid(err.to_string()))?;
    let verb = extender.preempt_verb.as_str().into();
    let answer = host.call_extender(ExtenderCall { extender: at, verb, body })?;
    PREEMPTION_RESULT.check(&answer)?;
    let nodes = field(&answer, "NodeNameToMetaVictims").and_then(Value::as_object);
    let nodes = nodes.into_iter().flatten();
    nodes.map(|(node, victims)| resolve(extender, cycle, node, victims).map(Arc::new)).collect()
}

/// The request: only the victims' UIDs for an extender with `nodeCacheCapable`, otherwise complete
/// pods.
fn request(
    extender: &Extender,
    pod: &kubestep_api::Pod,
    candidates: &[Arc<NodeVictims>],
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

/// The pods with the UIDs in an answer, which must be on the node.
fn resolve(
    extender: &Extender,
    cycle: &CycleContext<'_>,
    name: &str,
    victims: &Value,
) -> Result<NodeVictims, ExtenderError> {
    let node = cycle.snapshot.by_name(name.into());
    let node = node.ok_or_else(|| {
        ExtenderError::Mismatch(format!("nodeinfo not found for node name {name:?}"))
    })?;
    let find = |meta: &Value| {
        let uid = field(meta, "UID").and_then(Value::as_str).unwrap_or_default();
        let pod = node.pods.iter().find(|pod| pod.uid() == uid).cloned();
        // Upstream prints the whole entry of the answer, which explains the braces.
        pod.ok_or_else(|| {
            ExtenderError::Mismatch(format!(
                "extender: {} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, but the \
                 pod is not found on that node",
                extender.url_prefix
            ))
        })
    };
    let pods = field(victims, "Pods").and_then(Value::as_array).into_iter().flatten();
    Ok(NodeVictims {
        node: node.name,
        pods: pods.map(find).collect::<Result<_, _>>()?,
        pdb_violations: field(victims, "NumPDBViolations").and_then(Value::as_i64).unwrap_or(0),
        // The extender may have chosen other victims, for reasons of its own.
        reasons: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostError;
    use crate::registry::Registry;
    use crate::status::node_statuses::NodeStatuses;
    use crate::testing::{Asked, Cluster, FakeHost, PodBuilder, framework_of, info, node, pod};

    fn extender(url: &str, ignorable: bool) -> Extender {
        Extender {
            url_prefix: url.into(),
            preempt_verb: "preempt".into(),
            node_cache_capable: true,
            ignorable,
            ..Extender::default()
        }
    }

    /// Calls `extenders` with the victims a (on n1) and b (on n2). Returns the remaining candidates
    /// as `node: victims (violations)`, and the requests.
    fn ask(
        extenders: Vec<Extender>,
        answers: Vec<Result<Value, HostError>>,
    ) -> (Result<Vec<String>, String>, Vec<ExtenderCall>) {
        let victims = [pod("a").on("n1"), pod("b").on("n2"), pod("c").on("n2")];
        let cluster = Cluster::new([node("n1"), node("n2")], victims);
        let preemptor = info(pod("p").priority(9));
        let cycle = cluster.cx(&preemptor);
        let candidate = |node: &str, pdb_violations| NodeVictims {
            node: node.into(),
            pods: cluster.node(node).pods.iter().take(1).cloned().collect(),
            pdb_violations,
            reasons: Vec::new(),
        };
        let mut host = FakeHost { extender_answers: answers, ..FakeHost::default() };
        let mut cx = PostFilterContext {
            cycle,
            framework: &framework_of(&Registry::default()).with_extenders(extenders.into()),
            statuses: &NodeStatuses::default(),
            host: &mut host,
            kept: None,
        };
        let candidates = vec![candidate("n1", 0), candidate("n2", 2)];
        let left = restrict(&mut cx, &cycle, candidates.into_iter().map(Arc::new).collect());
        let text = |candidate: Arc<NodeVictims>| {
            let names: Vec<_> = candidate.pods.iter().map(|pod| pod.key().name.text()).collect();
            format!("{}: {} ({})", candidate.node, names.join(" "), candidate.pdb_violations)
        };
        let calls = host.asked.into_iter().filter_map(|asked| match asked {
            Asked::Extender(call) => Some(call),
            _ => None,
        });
        let left = left.map(|left| left.into_iter().map(text).collect());
        (left.map_err(|err| err.to_string()), calls.collect())
    }

    fn answer(nodes: Value) -> Result<Value, HostError> {
        Ok(json!({"NodeNameToMetaVictims": nodes}))
    }

    fn victims(uids: &[&str], violations: i64) -> Value {
        let pods: Vec<Value> = uids.iter().map(|uid| json!({"UID": uid})).collect();
        json!({"Pods": pods, "NumPDBViolations": violations})
    }

    #[test]
    fn each_extender_sees_what_the_one_before_left() {
        let uninterested = Extender { preempt_verb: String::new(), ..extender("none", false) };
        let extenders = vec![uninterested, extender("one", false), extender("two", false)];
        let first = answer(json!({"n2": victims(&["default-c", "default-b"], 1)}));
        let second = answer(json!({"n2": victims(&["default-c"], 0)}));
        let (left, calls) = ask(extenders, vec![first, second]);
        assert_eq!(left, Ok(vec!["n2: c (0)".into()]));
        assert_eq!(calls.iter().map(|call| call.extender).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(calls[0].verb, "preempt");
        assert_eq!(
            calls[0].body["NodeNameToMetaVictims"],
            json!({"n1": victims(&["default-a"], 0), "n2": victims(&["default-b"], 2)})
        );
        assert_eq!(calls[0].body["NodeNameToVictims"], Value::Null);
        assert_eq!(calls[0].body["Pod"]["metadata"]["name"], "p");
        assert_eq!(
            calls[1].body["NodeNameToMetaVictims"],
            json!({"n2": victims(&["default-c", "default-b"], 1)})
        );
    }

    #[test]
    fn an_extender_without_a_node_cache_gets_whole_pods() {
        let one = Extender { node_cache_capable: false, ..extender("one", false) };
        let (left, calls) = ask(vec![one], vec![answer(Value::Null)]);
        assert_eq!(left, Ok(Vec::new()));
        let body = &calls[0].body;
        assert_eq!(body["NodeNameToVictims"]["n1"]["Pods"][0]["spec"]["nodeName"], "n1");
        assert_eq!(body["NodeNameToMetaVictims"], Value::Null);
    }

    #[test]
    fn errors_end_the_search_unless_the_extender_is_ignorable() {
        let all = vec!["n1: a (0)".to_owned(), "n2: b (2)".to_owned()];
        let failing = |ignorable| {
            ask(vec![extender("one", ignorable)], vec![Err(HostError::Failed("down".to_owned()))]).0
        };
        assert_eq!(failing(false), Err("down".into()));
        assert_eq!(failing(true), Ok(all.clone()));
        let no_victims =
            || answer(json!({"n1": victims(&[], 0), "n2": victims(&["default-c"], 0)}));
        let empty = |ignorable| ask(vec![extender("one", ignorable)], vec![no_victims()]).0;
        assert_eq!(empty(false), Err("expected at least one victim pod on node \"n1\"".into()));
        assert_eq!(empty(true), Ok(vec!["n2: c (0)".into()]));
    }

    #[test]
    fn answers_about_unknown_nodes_and_pods_are_errors() {
        let text = |nodes| ask(vec![extender("http://x/", false)], vec![answer(nodes)]).0;
        assert_eq!(
            text(json!({"n9": victims(&["default-a"], 0)})),
            Err("nodeinfo not found for node name \"n9\"".into())
        );
        assert_eq!(
            text(json!({"n2": victims(&["default-a"], 0)})),
            Err("extender: http://x/ claims to preempt pod (UID: &{default-a}) on node: n2, but \
                 the pod is not found on that node"
                .into())
        );
    }

    #[test]
    fn nothing_left_ends_the_search() {
        let extenders = vec![extender("one", false), extender("two", false)];
        let (left, calls) = ask(extenders, vec![answer(json!({}))]);
        assert_eq!((left, calls.len()), (Ok(Vec::new()), 1));
    }
}
