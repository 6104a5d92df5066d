//! Tests of PodTopologySpread on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{DefaultConstraint, PodTopologySpreadArgs, build};
use kubestep_api::{Node, Object};
use kubestep_config::{FeatureGates, KubeVersion, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const SKEW: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn node(name: &str, zone: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {HOST: name, ZONE: zone}}})
}

fn nodes() -> Vec<Value> {
    vec![node("a1", "a"), node("a2", "a"), node("b1", "b")]
}

/// A pod of app `web` on a node.
fn placed(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "d", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": node},
    })
}

fn constraint(key: &str, max_skew: i32, action: &str) -> Value {
    json!({
        "maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"app": "web"}},
    })
}

fn hard(key: &str, max_skew: i32) -> Value {
    constraint(key, max_skew, "DoNotSchedule")
}

fn web(constraints: Value) -> Arc<PodInfo> {
    info_of(json!({
        "metadata": {"name": "new", "namespace": "d", "uid": "new", "labels": {"app": "web"}},
        "spec": {"topologySpreadConstraints": constraints},
    }))
}

#[test]
fn the_skew_is_kept() {
    let cluster = Cluster::of(nodes(), vec![placed("p1", "a1")]);
    let plugin = default_plugin();
    assert_eq!(cluster.rejections(&plugin, &web(json!([hard(ZONE, 1)]))), [SKEW, SKEW, ""]);
    assert_eq!(cluster.rejections(&plugin, &web(json!([hard(ZONE, 2)]))), ["", "", ""]);
    assert_eq!(cluster.rejections(&plugin, &web(json!([hard(HOST, 1)]))), [SKEW, "", ""]);
    let both = web(json!([hard(ZONE, 2), hard(HOST, 1)]));
    assert_eq!(cluster.rejections(&plugin, &both), [SKEW, "", ""]);
}

#[test]
fn a_node_without_the_label_is_rejected_for_good() {
    let mut nodes = nodes();
    nodes.push(json!({"metadata": {"name": "bare", "labels": {HOST: "bare"}}}));
    let cluster = Cluster::of(nodes, vec![]);
    let statuses = cluster.filter(&default_plugin(), &web(json!([hard(ZONE, 1)]))).unwrap();
    assert_eq!(statuses[3].message(), NO_LABEL);
    assert_eq!(statuses[3].code(), Code::UnschedulableAndUnresolvable);
    assert_eq!(statuses[0].code(), Code::Success);
}

#[test]
fn with_too_few_domains_the_least_count_is_zero() {
    let pods = vec![placed("p1", "a1"), placed("p2", "b1")];
    let cluster = Cluster::of(nodes(), pods);
    let with_min = |domains: i32| {
        let mut constraint = hard(ZONE, 1);
        constraint["minDomains"] = json!(domains);
        cluster.rejections(&default_plugin(), &web(json!([constraint])))
    };
    assert_eq!(with_min(2), ["", "", ""]);
    assert_eq!(with_min(3), [SKEW, SKEW, SKEW]);
}

#[test]
fn up_to_1_32_the_last_constraint_with_a_key_counts_for_all() {
    let mut cluster = Cluster::of(nodes(), vec![placed("p1", "a1")]);
    let (web_pods, mut no_pods) = (hard(ZONE, 1), hard(ZONE, 1));
    no_pods["labelSelector"]["matchLabels"] = json!({"app": "none"});
    let mut rejections = |minor, constraints| {
        cluster.features = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
        cluster.rejections(&default_plugin(), &web(constraints))
    };
    for (constraints, shared) in
        [(json!([no_pods, web_pods]), [SKEW, SKEW, ""]), (json!([web_pods, no_pods]), ["", "", ""])]
    {
        assert_eq!(rejections(32, constraints.clone()), shared);
        assert_eq!(rejections(33, constraints), [SKEW, SKEW, ""]);
    }
}

#[test]
fn policies_say_which_nodes_count() {
    let mut nodes = nodes();
    nodes[2]["spec"] = json!({"taints": [{"key": "k", "effect": "NoSchedule"}]});
    let cluster = Cluster::of(nodes, vec![placed("p1", "a1")]);
    let mut honored = hard(ZONE, 1);
    honored["nodeTaintsPolicy"] = json!("Honor");
    // No node in zone b is counted, so zone a is the only domain and its count 1 the minimum.
    let plugin = default_plugin();
    assert_eq!(cluster.rejections(&plugin, &web(json!([honored]))), ["", "", ""]);
    assert_eq!(cluster.rejections(&plugin, &web(json!([hard(ZONE, 1)]))), [SKEW, SKEW, ""]);
    let selecting = |policy: &str| {
        let mut constraint = hard(ZONE, 1);
        constraint["nodeAffinityPolicy"] = json!(policy);
        let mut pod = (*web(json!([constraint])).pod).clone();
        pod.spec.node_selector = Some([(ZONE, "a")].into());
        cluster.rejections(&plugin, &Arc::new(PodInfo::new(Arc::new(pod))))
    };
    assert_eq!(selecting("Honor"), ["", "", ""]);
    assert_eq!(selecting("Ignore"), [SKEW, SKEW, ""]);
}

#[test]
fn terminating_pods_and_other_namespaces_do_not_count() {
    let mut leaving = placed("p1", "a1");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut in_other_namespace = placed("p2", "a1");
    in_other_namespace["metadata"]["namespace"] = json!("other");
    let cluster = Cluster::of(nodes(), vec![leaving, in_other_namespace]);
    let pod = web(json!([hard(ZONE, 1)]));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), ["", "", ""]);
}

#[test]
fn a_selector_of_everything_counts_only_the_pod_itself() {
    let cluster = Cluster::of(nodes(), vec![placed("p1", "a1"), placed("p2", "a1")]);
    let mut all = hard(ZONE, 1);
    all["labelSelector"] = json!({});
    assert_eq!(cluster.rejections(&default_plugin(), &web(json!([all.clone()]))), ["", "", ""]);
    all["maxSkew"] = json!(0);
    assert_eq!(cluster.rejections(&default_plugin(), &web(json!([all]))), [SKEW; 3]);
}

#[test]
fn match_label_keys_narrow_the_selector() {
    let cluster = Cluster::of(nodes(), vec![placed("p1", "a1")]);
    let mut constraint = hard(ZONE, 1);
    constraint["matchLabelKeys"] = json!(["version", "absent"]);
    let mut pod = (*web(json!([constraint])).pod).clone();
    pod.metadata.labels.insert("version".into(), "2".into());
    let pod = Arc::new(PodInfo::new(Arc::new(pod)));
    assert_eq!(cluster.rejections(&default_plugin(), &pod), ["", "", ""]);
}

#[test]
fn removing_a_pod_changes_its_domain() {
    let cluster = Cluster::of(nodes(), vec![placed("p1", "a1")]);
    let (plugin, new) = (default_plugin(), web(json!([hard(ZONE, 1)])));
    let (cx, mut state) = (cluster.cx(&new), CycleState::default());
    assert!(plugin.pre_filter(&cx, &mut state).status.is_success());
    let rejections = |state: &CycleState| -> Vec<String> {
        cluster.snapshot.iter().map(|node| plugin.filter(&cx, state, node).message()).collect()
    };
    let a1 = cluster.snapshot.by_name("a1".into()).unwrap();
    let b1 = cluster.snapshot.by_name("b1".into()).unwrap();
    let mut copy = state.clone();
    assert!(plugin.remove_pod(&cx, &mut copy, &info_of(placed("p1", "a1")), a1).is_success());
    assert_eq!(rejections(&copy), ["", "", ""]);
    assert!(plugin.add_pod(&cx, &mut copy, &info_of(placed("p2", "b1")), b1).is_success());
    assert_eq!(rejections(&copy), ["", "", SKEW]);
    assert_eq!(rejections(&state), [SKEW, SKEW, ""]);
}

#[test]
fn pods_without_hard_constraints_are_not_filtered() {
    let cluster = Cluster::of(nodes(), vec![]);
    let soft = web(json!([constraint(ZONE, 1, "ScheduleAnyway")]));
    assert!(cluster.filter(&default_plugin(), &soft).unwrap_err().is_skip());
    let mut bad = hard(ZONE, 1);
    bad["labelSelector"] = json!({"matchExpressions": [{"key": "k", "operator": "In"}]});
    let rejected = cluster.filter(&default_plugin(), &web(json!([bad]))).unwrap_err();
    let prefix = "get constraints from pod: obtaining pod's hard topology spread constraints: ";
    assert_eq!(rejected.code(), Code::Error);
    assert!(rejected.message().starts_with(prefix), "{rejected}");
}

#[test]
fn soft_constraints_prefer_emptier_domains() {
    let pods = vec![placed("p1", "a1"), placed("p2", "a1"), placed("p3", "b1")];
    let cluster = Cluster::of(nodes(), pods);
    let zones = web(json!([constraint(ZONE, 1, "ScheduleAnyway")]));
    // Two zones have weight ln 4: 2 · 1.386 = 2.77 → 3 and 1.386 → 1.
    assert_eq!(cluster.raw_scores(&default_plugin(), &zones), Ok(vec![3, 3, 1]));
    assert_eq!(cluster.scores(&default_plugin(), &zones), Ok(vec![33, 33, 100]));
    let hosts = web(json!([constraint(HOST, 2, "ScheduleAnyway")]));
    // Three hosts have weight ln 5 = 1.609, and maxSkew − 1 is added.
    assert_eq!(cluster.raw_scores(&default_plugin(), &hosts), Ok(vec![4, 1, 3]));
    assert_eq!(cluster.scores(&default_plugin(), &hosts), Ok(vec![25, 100, 50]));
}

#[test]
fn nodes_without_a_key_score_nothing() {
    let mut nodes = nodes();
    nodes.push(json!({"metadata": {"name": "bare", "labels": {HOST: "bare"}}}));
    let cluster = Cluster::of(nodes, vec![]);
    let zones = web(json!([constraint(ZONE, 1, "ScheduleAnyway")]));
    assert_eq!(cluster.scores(&default_plugin(), &zones), Ok(vec![100, 100, 100, 0]));
}

#[test]
fn system_defaults_spread_the_pods_of_a_service() {
    let mut nodes = nodes();
    nodes.push(json!({"metadata": {"name": "bare", "labels": {HOST: "bare"}}}));
    let mut cluster = Cluster::of(nodes, vec![placed("p1", "a1")]);
    let plain = web(json!([]));
    assert!(cluster.scores(&default_plugin(), &plain).unwrap_err().is_skip());
    let service = json!({
        "metadata": {"name": "s", "namespace": "d"}, "spec": {"selector": {"app": "web"}},
    });
    cluster.objects.insert(Object::Service(Arc::new(decoded(service))));
    // Four hosts have weight ln 6 = 1.79, three zones (a, b, none) ln 5 = 1.61; the constants are 2
    // and 4. The node without labels gets no score for its zone.
    assert_eq!(cluster.raw_scores(&default_plugin(), &plain), Ok(vec![9, 8, 6, 2]));
    assert_eq!(cluster.scores(&default_plugin(), &plain), Ok(vec![22, 33, 55, 100]));
}

#[test]
fn listed_defaults_use_the_owners_selector() {
    let defaulting_type = "List".into();
    let mut args = PodTopologySpreadArgs { defaulting_type, ..PodTopologySpreadArgs::default() };
    let plugin =
        |args: &PodTopologySpreadArgs| plugin(build, &ProfileArgs::default().with(args.clone()));
    let mut cluster = Cluster::of(nodes(), vec![placed("p1", "a1")]);
    let mut owned = (*web(json!([])).pod).clone();
    owned.metadata.owner_references = vec![decoded(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": true,
    }))]
    .into();
    let owned = Arc::new(PodInfo::new(Arc::new(owned)));
    assert!(plugin(&args).sign(&cluster.queue(), &owned).is_ok());
    args.default_constraints = vec![DefaultConstraint {
        max_skew: 1,
        topology_key: ZONE.into(),
        when_unsatisfiable: "DoNotSchedule".into(),
        ..Default::default()
    }];
    assert!(cluster.filter(&plugin(&args), &owned).unwrap_err().is_skip());
    let set = json!({
        "metadata": {"name": "rs", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    cluster.objects.insert(Object::ReplicaSet(Arc::new(decoded(set))));
    assert_eq!(cluster.rejections(&plugin(&args), &owned), [SKEW, SKEW, ""]);
    let rejected = plugin(&args).sign(&cluster.queue(), &owned).unwrap_err();
    assert_eq!(rejected, "pods with default topology constraints are not signable");
}

#[test]
fn hints_on_pods() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let new = web(json!([hard(ZONE, 1)]));
    let hint = |old: Option<Value>, next: Option<Value>| {
        let as_object = |json: Value| Object::Pod(info_of(json).pod.clone());
        cluster.hint(&plugin, &new, old.map(as_object), next.map(as_object))
    };
    let labelled = |app: &str, node: &str| {
        let mut json = placed("other", node);
        json["metadata"]["labels"]["app"] = json!(app);
        Some(json)
    };
    assert_eq!(hint(None, labelled("web", "n")), QueueingHint::Queue);
    assert_eq!(hint(None, labelled("web", "")), QueueingHint::Skip);
    assert_eq!(hint(labelled("db", "n"), None), QueueingHint::Skip);
    assert_eq!(hint(labelled("web", "n"), None), QueueingHint::Queue);
    assert_eq!(hint(labelled("web", "n"), labelled("db", "n")), QueueingHint::Queue);
    assert_eq!(hint(labelled("web", "n"), labelled("web", "n")), QueueingHint::Skip);
    let mut in_other_namespace = labelled("web", "n");
    in_other_namespace.as_mut().unwrap()["metadata"]["namespace"] = json!("other");
    assert_eq!(hint(None, in_other_namespace), QueueingHint::Skip);
}

#[test]
fn a_new_toleration_helps_only_where_taints_are_honored() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let hint = |policy: &str| {
        let mut constraint = hard(ZONE, 1);
        constraint["nodeTaintsPolicy"] = json!(policy);
        let old = web(json!([constraint]));
        let mut new = (*old.pod).clone();
        new.spec.tolerations = vec![decoded(json!({"key": "k", "operator": "Exists"}))].into();
        let new = Some(Object::Pod(Arc::new(new)));
        cluster.hint(&plugin, &old, Some(Object::Pod(old.pod.clone())), new)
    };
    assert_eq!([hint("Honor"), hint("Ignore")], [QueueingHint::Queue, QueueingHint::Skip]);
}

#[test]
fn up_to_1_31_hints_look_at_the_topology_alone() {
    let features = FeatureGates::of(KubeVersion::OLDEST);
    let (cluster, plugin) = (Cluster { features, ..Cluster::default() }, default_plugin());
    let new = web(json!([hard(ZONE, 1)]));
    let node: Node = decoded(json!({"metadata": {"name": "n", "labels": {ZONE: "a"}}}));
    let same = Some(Object::Node(Arc::new(node)));
    assert_eq!(cluster.hint(&plugin, &new, same.clone(), same), QueueingHint::Queue);
    let mut relabelled = (*new.pod).clone();
    relabelled.metadata.labels = decoded(json!({"app": "db"}));
    let objects = [new.pod.clone(), Arc::new(relabelled)].map(|pod| Some(Object::Pod(pod)));
    let [old, relabelled] = objects;
    assert_eq!(cluster.hint(&plugin, &new, old.clone(), relabelled.clone()), QueueingHint::Skip);
    assert_eq!(Cluster::default().hint(&plugin, &new, old, relabelled), QueueingHint::Queue);
}

#[test]
fn hints_on_nodes() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let new = web(json!([hard(ZONE, 1)]));
    let node = |labels: Value, taints: Value| {
        let node: Node = decoded(json!({
            "metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints},
        }));
        Some(Object::Node(Arc::new(node)))
    };
    let hint = |old: &Option<Object>, next: &Option<Object>| {
        cluster.hint(&plugin, &new, old.clone(), next.clone())
    };
    let (bare, a) = (node(json!({}), json!([])), node(json!({ZONE: "a"}), json!([])));
    let b = node(json!({ZONE: "b"}), json!([]));
    let tainted = node(json!({ZONE: "a"}), json!([{"key": "k", "effect": "NoSchedule"}]));
    assert_eq!([hint(&None, &a), hint(&None, &bare)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([hint(&a, &None), hint(&bare, &None)], [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!([hint(&a, &b), hint(&a, &bare)], [QueueingHint::Queue, QueueingHint::Queue]);
    assert_eq!([hint(&a, &a), hint(&a, &tainted)], [QueueingHint::Skip, QueueingHint::Queue]);
    assert_eq!(hint(&bare, &bare), QueueingHint::Skip);
}
