//! Tests of InterPodAffinity on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{InterPodAffinityArgs, build};
use kubestep_api::{Node, Object};
use kubestep_config::ProfileArgs;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{EventObjects, QueueingHint};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn node(name: &str, zone: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"host": name, "zone": zone}}})
}

/// Three nodes in two zones.
fn nodes() -> Vec<Value> {
    vec![node("a1", "a"), node("a2", "a"), node("b1", "b")]
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn required(kind: &str, terms: Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn preferred(kind: &str, weight: i32, term: Value) -> Value {
    let terms = json!([{"weight": weight, "podAffinityTerm": term}]);
    json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn pod_json(name: &str, app: &str, node: &str, mut spec: Value) -> Value {
    spec["nodeName"] = json!(node);
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}},
        "spec": spec,
    })
}

#[test]
fn affinity_needs_a_pod_in_the_domain() {
    let cluster = Cluster::of(nodes(), vec![pod_json("db", "db", "a1", json!({}))]);
    let near_db = required("podAffinity", json!([term("db", "zone")]));
    let pod = info_of(pod_json("web", "web", "", near_db));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), ["", "", AFFINITY]);
    let statuses = cluster.filter(&default_plugin(), &pod).unwrap();
    assert_eq!(statuses[2].code(), Code::UnschedulableAndUnresolvable);
}

#[test]
fn the_first_of_a_group_goes_anywhere_with_the_label() {
    let mut nodes = nodes();
    nodes.push(json!({"metadata": {"name": "bare"}}));
    let own =
        info_of(pod_json("w", "web", "", required("podAffinity", json!([term("web", "zone")]))));
    let cluster = Cluster::of(nodes, vec![]);
    assert_eq!(cluster.rejections(&default_plugin(), &own), ["", "", "", AFFINITY]);
    // A matching pod on a node without the label changes nothing: it is not counted.
    let other =
        info_of(pod_json("w", "x", "", required("podAffinity", json!([term("web", "zone")]))));
    assert_eq!(cluster.rejections(&default_plugin(), &other), [AFFINITY; 4]);
}

#[test]
fn one_pod_must_match_all_terms() {
    let pods =
        vec![pod_json("p1", "db", "a1", json!({})), pod_json("p2", "cache", "a2", json!({}))];
    let cluster = Cluster::of(nodes(), pods);
    let both = json!([term("db", "zone"), term("cache", "zone")]);
    let pod = info_of(pod_json("web", "web", "", required("podAffinity", both)));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), [AFFINITY; 3]);
}

#[test]
fn anti_affinity_works_both_ways() {
    let away = required("podAntiAffinity", json!([term("web", "host")]));
    let cluster = Cluster::of(nodes(), vec![pod_json("w1", "web", "a1", away.clone())]);
    let same = info_of(pod_json("w2", "web", "", away));
    assert_eq!(cluster.rejections(&default_plugin(), &same), [ANTI_AFFINITY, "", ""]);
    let plain = info_of(pod_json("w3", "web", "", json!({})));
    assert_eq!(cluster.rejections(&default_plugin(), &plain), [EXISTING, "", ""]);
    let other = info_of(pod_json("d", "db", "", json!({})));
    assert!(cluster.filter(&default_plugin(), &other).unwrap_err().is_skip());
}

#[test]
fn namespaces_are_selected_by_name_or_label() {
    let mut term = term("db", "zone");
    term["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let db = json!({
        "metadata": {"name": "db", "namespace": "other", "labels": {"app": "db"}},
        "spec": {"nodeName": "b1"},
    });
    let mut cluster = Cluster::of(nodes(), vec![db]);
    let pod = info_of(pod_json("w", "web", "", required("podAffinity", json!([term]))));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), [AFFINITY; 3]);
    let namespace = json!({"metadata": {"name": "other", "labels": {"team": "x"}}});
    cluster.objects.insert(Object::Namespace(Arc::new(decoded(namespace))));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), [AFFINITY, AFFINITY, ""]);
}

#[test]
fn a_selector_that_accepts_no_labels_selects_every_namespace() {
    // As upstream, the namespace selector is also evaluated against empty labels.
    let mut term = term("db", "zone");
    term["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]});
    let db = json!({
        "metadata": {"name": "db", "namespace": "other", "labels": {"app": "db"}},
        "spec": {"nodeName": "b1"},
    });
    let mut cluster = Cluster::of(nodes(), vec![db]);
    let namespace = json!({"metadata": {"name": "other", "labels": {"team": "x"}}});
    cluster.objects.insert(Object::Namespace(Arc::new(decoded(namespace))));
    let pod = info_of(pod_json("w", "web", "", required("podAffinity", json!([term]))));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), [AFFINITY, AFFINITY, ""]);
}

#[test]
fn removing_and_adding_pods_changes_the_answer() {
    let near = required("podAffinity", json!([term("db", "zone")]));
    let db = pod_json("db", "db", "a1", required("podAntiAffinity", json!([term("web", "host")])));
    let cluster = Cluster::of(nodes(), vec![db.clone()]);
    let (plugin, web) = (default_plugin(), info_of(pod_json("web", "web", "", near)));
    let (cx, mut state) = (cluster.cx(&web), CycleState::default());
    assert!(plugin.pre_filter(&cx, &mut state).status.is_success());
    let rejections = |state: &CycleState| -> Vec<String> {
        cluster.snapshot.iter().map(|node| plugin.filter(&cx, state, node).message()).collect()
    };
    assert_eq!(rejections(&state), [EXISTING, "", AFFINITY]);
    let a1 = cluster.snapshot.by_name("a1".into()).unwrap();
    let mut without = state.clone();
    assert!(plugin.remove_pod(&cx, &mut without, &info_of(db.clone()), a1).is_success());
    // No pod matches any more, and the pod does not match its own term.
    assert_eq!(rejections(&without), [AFFINITY; 3]);
    let b1 = cluster.snapshot.by_name("b1".into()).unwrap();
    assert!(plugin.add_pod(&cx, &mut without, &info_of(db), b1).is_success());
    assert_eq!(rejections(&without), [AFFINITY, AFFINITY, EXISTING]);
    assert_eq!(rejections(&state), [EXISTING, "", AFFINITY]);
}

#[test]
fn preferred_terms_weigh_by_domain() {
    let pods =
        vec![pod_json("db", "db", "a1", json!({})), pod_json("noisy", "noisy", "a2", json!({}))];
    let cluster = Cluster::of(nodes(), pods);
    let mut spec = preferred("podAffinity", 10, term("db", "zone"));
    spec["affinity"]["podAntiAffinity"] =
        preferred("podAntiAffinity", 4, term("noisy", "host"))["affinity"]["podAntiAffinity"]
            .take();
    let pod = info_of(pod_json("web", "web", "", spec));
    assert_eq!(cluster.raw_scores(&default_plugin(), &pod), Ok(vec![10, 6, 0]));
    assert_eq!(cluster.scores(&default_plugin(), &pod), Ok(vec![100, 60, 0]));
}

#[test]
fn every_pod_of_a_domain_counts() {
    let pods = ["db-1", "db-2", "db-3"].map(|name| pod_json(name, "db", "a1", json!({})));
    let cluster = Cluster::of(nodes(), pods.into());
    let web = info_of(pod_json("web", "web", "", preferred("podAffinity", 10, term("db", "zone"))));
    assert_eq!(cluster.raw_scores(&default_plugin(), &web), Ok(vec![30, 30, 0]));
}

#[test]
fn placed_pods_attract_the_pods_they_want() {
    let near_web = required("podAffinity", json!([term("web", "zone")]));
    let likes_web = preferred("podAffinity", 7, term("web", "host"));
    let pods =
        vec![pod_json("hard", "db", "a1", near_web), pod_json("soft", "db", "b1", likes_web)];
    let cluster = Cluster::of(nodes(), pods);
    let web = info_of(pod_json("web", "web", "", json!({})));
    assert_eq!(cluster.raw_scores(&default_plugin(), &web), Ok(vec![1, 1, 7]));
    assert_eq!(cluster.scores(&default_plugin(), &web), Ok(vec![0, 0, 100]));
    let other = info_of(pod_json("x", "x", "", json!({})));
    assert!(cluster.scores(&default_plugin(), &other).unwrap_err().is_skip());

    let plugin = |args: InterPodAffinityArgs| plugin(build, &ProfileArgs::default().with(args));
    let mut args =
        InterPodAffinityArgs { hard_pod_affinity_weight: 0, ..InterPodAffinityArgs::default() };
    assert_eq!(cluster.raw_scores(&plugin(args), &web), Ok(vec![0, 0, 7]));
    args.ignore_preferred_terms_of_existing_pods = true;
    assert!(cluster.scores(&plugin(args), &web).unwrap_err().is_skip());
}

#[test]
fn normalizing_truncates() {
    let mut scores = [-5, 0, 1];
    super::score::normalize(&mut scores);
    assert_eq!(scores, [0, 83, 100]);
    let mut equal = [4, 4];
    super::score::normalize(&mut equal);
    assert_eq!(equal, [0, 0]);
}

fn pod_event(old: Option<Value>, new: Option<Value>) -> (Option<Object>, Option<Object>) {
    let object = |json: Value| Object::Pod(info_of(json).pod.clone());
    (old.map(object), new.map(object))
}

#[test]
fn hints_on_pods() {
    let mut spec = required("podAffinity", json!([term("db", "zone")]));
    spec["affinity"]["podAntiAffinity"] =
        required("podAntiAffinity", json!([term("noisy", "zone")]))["affinity"]["podAntiAffinity"]
            .take();
    let web = info_of(pod_json("web", "web", "", spec));
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let hint = |old: Option<Value>, new: Option<Value>| {
        let (old, new) = pod_event(old, new);
        cluster.hint(&plugin, &web, old, new)
    };
    let other = |app: &str, node: &str| Some(pod_json("other", app, node, json!({})));
    assert_eq!(hint(None, other("db", "n")), QueueingHint::Queue);
    assert_eq!(hint(None, other("db", "")), QueueingHint::Skip);
    assert_eq!(hint(None, other("x", "n")), QueueingHint::Skip);
    assert_eq!(hint(other("x", "n"), other("db", "n")), QueueingHint::Queue);
    assert_eq!(hint(other("db", "n"), other("x", "n")), QueueingHint::Skip);
    assert_eq!(hint(other("noisy", "n"), other("x", "n")), QueueingHint::Queue);
    assert_eq!(hint(other("noisy", "n"), None), QueueingHint::Queue);
    assert_eq!(hint(other("db", "n"), None), QueueingHint::Skip);
    let away = required("podAntiAffinity", json!([term("web", "zone")]));
    assert_eq!(hint(Some(pod_json("other", "x", "n", away)), None), QueueingHint::Queue);
    let own = Some(pod_json("web", "web", "", json!({})));
    assert_eq!(hint(own.clone(), own), QueueingHint::Queue);
}

/// isSchedulableAfterPodChange parses the required terms only.
#[test]
fn a_preferred_term_that_cannot_be_parsed_does_not_disturb_hints() {
    let bad = json!({"topologyKey": "zone",
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}});
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let hint = |spec: Value| {
        let waiting = info_of(pod_json("w", "web", "", spec));
        let (old, new) = pod_event(None, Some(pod_json("o", "x", "n", json!({}))));
        let objects = EventObjects { old, new };
        cluster.try_hint(&*plugin, &waiting, &objects)
    };
    assert_eq!(hint(preferred("podAffinity", 1, bad.clone())), Ok(QueueingHint::Skip));
    assert!(hint(required("podAffinity", json!([bad]))).is_err());
}

#[test]
fn hints_on_nodes() {
    let near =
        info_of(pod_json("w", "web", "", required("podAffinity", json!([term("db", "zone")]))));
    let far =
        info_of(pod_json("w", "web", "", required("podAntiAffinity", json!([term("d", "zone")]))));
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let labelled = |labels: Value| {
        let node: Node = decoded(json!({"metadata": {"name": "n", "labels": labels}}));
        Some(Object::Node(Arc::new(node)))
    };
    let (none, a, b) =
        (labelled(json!({})), labelled(json!({"zone": "a"})), labelled(json!({"zone": "b"})));
    let near = |old: &Option<Object>, new: &Option<Object>| {
        cluster.hint(&plugin, &near, old.clone(), new.clone())
    };
    let far = |old: &Option<Object>, new: &Option<Object>| {
        cluster.hint(&plugin, &far, old.clone(), new.clone())
    };
    assert_eq!([near(&None, &a), near(&None, &none)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([near(&none, &a), near(&a, &none)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([near(&a, &b), near(&a, &a)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([far(&None, &none), far(&none, &a)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([far(&a, &none), far(&a, &b)], [QueueingHint::Queue, QueueingHint::Queue]);
}

#[test]
fn only_pods_without_affinity_are_signed() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let plain = info_of(pod_json("w", "web", "", json!({})));
    let signed = plugin.sign(&cluster.queue(), &plain).unwrap();
    assert_eq!(signed, [("v1.Pod.Labels", r#"{"app":"web"}"#.to_owned())]);
    let empty = info_of(pod_json("w", "web", "", json!({"affinity": {"podAffinity": {}}})));
    let rejected = plugin.sign(&cluster.queue(), &empty).unwrap_err();
    assert_eq!(rejected, "pods with InterPodAffinity are not signable");
}
