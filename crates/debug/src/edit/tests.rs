//! Every kind of edit, and the scheduling decision that it changes.

mod scheduler;

use crate::Session;
use crate::edit::{Edit, FORMS};
use kubestep_api::Kind;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::testing::key;
use kubestep_source::Filter;

/// Two nodes of 4 CPUs, `a` in zone x and `b` in zone y.
pub(in crate) const NODES: &str = "
{kind: Node, apiVersion: v1, metadata: {name: a, labels: {zone: x, kubernetes.io/hostname: a}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{kind: Node, apiVersion: v1, metadata: {name: b, labels: {zone: y, kubernetes.io/hostname: b}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
";

pub(crate) fn world(text: &str) -> World {
    world_with(text, FeatureGates::default())
}

pub(crate) fn world_with(text: &str, features: FeatureGates) -> World {
    let registry = kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    let read = kubestep_source::read_text("test", text.into(), &Filter::default()).unwrap();
    let warnings =
        kubestep_cluster::load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    assert_eq!(warnings, [""; 0]);
    world
}

pub(crate) fn edit(text: &str) -> Edit {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The node of pod `p`, or why it has none.
fn fate(world: World) -> String {
    let mut session = Session::new(world);
    for _ in 0..3 {
        session.run_until_idle(20, |_| false);
        session.advance(60_000_000);
    }
    let pod = session.world().api().objects().pod(key("p")).unwrap();
    match pod.spec.node_name.text().as_str() {
        "" => match session.history().cycles_of(key("p")).last() {
            Some(record) => record.message.clone(),
            None => "never tried".into(),
        },
        node => node.into(),
    }
}

/// The fate of a pod `p` with that spec among `others`, without and with the edits.
fn fates(spec: &str, others: &str, edits: &[&str]) -> (String, String) {
    let pod = format!("{{kind: Pod, metadata: {{name: p, labels: {{app: p}}}}, spec: {spec}}}");
    let original = world(&format!("{NODES}{others}\n---\n{pod}"));
    let mut changed = original.clone();
    for text in edits {
        edit(text).apply(&mut changed).unwrap();
    }
    (fate(original), fate(changed))
}

pub(crate) fn container(more: &str) -> String {
    format!("containers: [{{name: c, image: i, {more}}}]")
}

pub(crate) fn bound(name: &str, node: &str, more: &str) -> String {
    format!(
        "---\n{{kind: Pod, metadata: {{name: {name}, labels: {{app: {name}}}}}, status: {{phase: \
         Running}}, spec: {{nodeName: {node}, {more}}}}}\n"
    )
}

#[track_caller]
fn assert_changes(spec: &str, others: &str, edits: &[&str], before: &str, after: &str) {
    let (was, is) = fates(spec, others, edits);
    assert!(was.contains(before), "before: {was}");
    assert!(is.contains(after), "after {edits:?}: {is}");
    assert_ne!(was, is, "{edits:?} changes nothing");
}

#[test]
fn nodes_leave_and_enter_service() {
    let on_a = format!("{{{}, nodeSelector: {{zone: x}}}}", container(""));
    assert_changes(&on_a, "", &["cordon node a"], "a", "1 node(s) were unschedulable");
    let back = ["cordon node a", "uncordon node a", "cordon node b"];
    let (was, is) = fates(&on_a, "", &back);
    assert_eq!((was.as_str(), is.as_str()), ("a", "a"));
    assert_changes(&on_a, "", &["delete node a"], "a", "0/1 nodes are available");
    let taint = "taint node a dedicated=gpu:NoSchedule";
    assert_changes(&on_a, "", &[taint], "a", "1 node(s) had untolerated taint(s)");
    let (was, is) = fates(&on_a, "", &[taint, "untaint node a dedicated"]);
    assert_eq!((was.as_str(), is.as_str()), ("a", "a"));
    assert_changes(&on_a, "", &["label node a zone=z"], "a", "didn't match");
    assert_changes(&on_a, "", &["unlabel node a zone"], "a", "didn't match");
    assert_changes(&on_a, "", &["label no b zone=x", "cordon node a"], "a", "b");
}

#[test]
fn nodes_and_pods_change_in_size_and_number() {
    let large = format!("{{{}}}", container("resources: {requests: {cpu: 6}}"));
    let short = "2 Insufficient cpu";
    assert_changes(&large, "", &["resize node b cpu=8"], short, "b");
    assert_changes(&large, "", &["resize pod p cpu=500m"], short, "a");
    assert_changes(&large, "", &["resize pod p c cpu=2"], short, "a");
    let larger = ["resize node b cpu=8", "add 2 nodes like b", "cordon node b"];
    assert_changes(&large, "", &larger, short, "b-copy-1");
    let port = format!("{{{}}}", container("ports: [{hostPort: 80, containerPort: 80}]"));
    let both = bound("q", "a", &container("ports: [{hostPort: 80}]"))
        + &bound("r", "b", &container("ports: [{hostPort: 80}]"));
    let taken = "2 node(s) didn't have free ports";
    assert_changes(&port, &both, &["unport pod p 80"], taken, "a");
    assert_changes(&port, &both, &["delete pod r"], taken, "b");
    let none = format!("{{{}}}", container(""));
    assert_changes(&none, &both, &["port pod p 80/tcp"], "a", taken);
}

#[test]
fn pods_tolerate_select_and_spread() {
    let none = format!("{{{}}}", container(""));
    let tainted = ["taint node a x=1:NoSchedule", "taint node b x=1:NoExecute"];
    let tolerated = |text| [tainted[0], tainted[1], text];
    let rejected = "2 node(s) had untolerated taint(s)";
    assert_changes(&none, "", &tainted, "a", rejected);
    for (text, node) in [
        ("tolerate pod p x=1:NoSchedule", "a"),
        ("tolerate pod p x:NoExecute", "b"),
        ("tolerate pod p all:NoExecute", "b"),
        ("tolerate pod p {key: x, operator: Equal, value: '1', effect: NoExecute}", "b"),
    ] {
        let (_, is) = fates(&none, "", &tolerated(text));
        assert_eq!(is, node, "{text}");
    }
    let tolerant = format!("{{{}, tolerations: [{{operator: Exists}}]}}", container(""));
    assert_changes(
        &tolerant,
        "",
        &[&tainted[..], &["untolerate pod p all"]].concat(),
        "a",
        rejected,
    );
    assert_changes(&none, "", &["select pod p zone=y"], "a", "b");
    let in_z = format!("{{{}, nodeSelector: {{zone: z}}}}", container(""));
    assert_changes(&in_z, "", &["unselect pod p zone"], "didn't match", "a");
    let spread = "spread pod p {maxSkew: 1, topologyKey: zone, labelSelector: {matchLabels: \
                  {app: p}}}";
    let other = bound("q", "a", &container(""));
    let large = bound("r", "b", &container("resources: {requests: {cpu: 3}}"));
    assert_changes(&none, &(other.clone() + &large), &["label pod q app=p", spread], "a", "b");
    let constraint = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, \
                      labelSelector: {matchLabels: {app: p}}}";
    let spreading = format!("{{{}, topologySpreadConstraints: [{constraint}]}}", container(""));
    let edits = ["label pod q app=p", "cordon node b", "unspread pod p zone"];
    assert_changes(&spreading, &other, &edits, "b", "a");
    assert_changes(&spreading, &other, &edits[..2], "b", "didn't match pod topology spread");
}

#[test]
fn affinity_is_set_and_relaxed() {
    let none = format!("{{{}}}", container(""));
    let required = "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, \
                    labelSelector: {matchLabels: {app: q}}}]}";
    let other = bound("q", "b", &container(""));
    let near = format!("affinity pod p {{podAffinity: {required}}}");
    assert_changes(
        &none,
        &bound("q", "a", &container("")),
        &["delete pod q", &near],
        "b",
        "didn't match pod affinity",
    );
    let away = format!("{{{}, affinity: {{podAntiAffinity: {required}}}}}", container(""));
    let full = ["cordon node a", "relax pod p podAntiAffinity.required[0]"];
    assert_changes(&away, &other, &full[..1], "a", "anti-affinity");
    assert_changes(&away, &other, &full, "a", "b");
    assert_changes(&away, &other, &["cordon node a", "affinity pod p none"], "a", "b");
    assert_changes(&away, &other, &["cordon node a", "unlabel pod q app"], "a", "b");
}

#[test]
fn gates_priorities_and_fields_are_set() {
    let none = format!("{{{}}}", container(""));
    assert_changes(&none, "", &["gate pod p wait"], "a", "never tried");
    let gated = format!("{{{}, schedulingGates: [{{name: wait}}]}}", container(""));
    assert_changes(&gated, "", &["ungate pod p wait"], "never tried", "a");
    let large = format!("{{{}}}", container("resources: {requests: {cpu: 3}}"));
    let full = ["a", "b"].map(|node| {
        bound(&format!("on-{node}"), node, &container("resources: {requests: {cpu: 3}}"))
    });
    assert_changes(&large, &full.concat(), &["priority pod p 5"], "2 Insufficient cpu", "b");
    assert_changes(&none, "", &["set pod p spec.schedulerName=other"], "a", "never tried");
    assert_changes(&none, "", &["set pod p spec.nodeSelector['zone']=y"], "a", "b");
    let gated_by_set = "unset pod p spec.schedulingGates[0]";
    assert_changes(&gated, "", &[gated_by_set], "never tried", "a");
    let put = "put {kind: Node, metadata: {name: c}, status: {allocatable: {cpu: 16, pods: 5}}}";
    let huge = format!("{{{}}}", container("resources: {requests: {cpu: 9}}"));
    assert_changes(&huge, "", &[put], "2 Insufficient cpu", "c");
}

/// Pod `p`, pending, requests one CPU; pod `q` runs on node `a`.
fn two_pods() -> World {
    let pending = container("resources: {requests: {cpu: 1}}");
    let pending = format!("{{kind: Pod, metadata: {{name: p}}, spec: {{{pending}}}}}\n");
    world(&(NODES.to_owned() + &pending + &bound("q", "a", &container(""))))
}

#[test]
fn a_pod_is_changed_in_place_where_a_cluster_allows_it() {
    for (text, field) in [
        ("tolerate pod p x:NoSchedule", None),
        ("label pod p app=x", None),
        ("resize pod p cpu=2", None),
        ("resize pod p example.com/gpu=1", Some("spec.containers")),
        // The pod would become BestEffort.
        ("resize pod p cpu=0", Some("spec.containers")),
        ("gate pod p wait", Some("spec.schedulingGates")),
        ("priority pod p 7", Some("spec.priority")),
        ("select pod p zone=y", Some("spec.nodeSelector")),
    ] {
        let mut world = two_pods();
        let uid = |world: &World| world.api().objects().pod(key("p")).unwrap().metadata.uid;
        let before = uid(&world);
        let notes = edit(text).apply(&mut world).unwrap().notes;
        assert_eq!(uid(&world) != before, field.is_some(), "{text}");
        let expected =
            field.map(|field| format!("pod default/p is recreated: {field} is immutable"));
        assert_eq!(notes, Vec::from_iter(expected), "{text}");
    }
}

#[test]
fn a_running_pod_that_is_made_again_is_pending() {
    let mut world = two_pods();
    let notes = edit("select pod q zone=y").apply(&mut world).unwrap().notes;
    assert!(notes[0].ends_with("it ran on a and is pending now"), "{notes:?}");
    world.run(9);
    assert_eq!(world.api().objects().pod(key("q")).unwrap().spec.node_name, "b");
    // A resize does not move it.
    assert_eq!(edit("resize pod p memory=1Gi").apply(&mut world).unwrap().notes, [""; 0]);
}

#[test]
fn a_resize_keeps_the_qos_class() {
    for (limit, then) in [("2", "1"), ("3", "3"), ("2", "4")] {
        let resources = format!("resources: {{requests: {{cpu: 2}}, limits: {{cpu: {limit}}}}}");
        let pod =
            format!("{{kind: Pod, metadata: {{name: p}}, spec: {{{}}}}}", container(&resources));
        let mut world = world(&pod);
        let amount = if then == "4" { "4" } else { "1" };
        edit(&format!("resize pod p cpu={amount}")).apply(&mut world).unwrap();
        let pod = world.api().objects().pod(key("p")).unwrap();
        let limits = pod.spec.containers[0].resources.limits.as_ref().unwrap();
        assert_eq!(limits.get("cpu".into()).unwrap().to_string(), then, "limit {limit}");
    }
}

#[test]
fn shares_of_containers_stay() {
    let text = "{kind: Pod, metadata: {name: p}, spec: {initContainers: [{name: i, resources: \
        {requests: {cpu: 9}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}], \
        containers: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 2500m}}}, {name: b}, \
        {name: c, resources: {requests: {cpu: 1}}}]}}";
    let mut world = world(text);
    edit("resize pod p cpu=6").apply(&mut world).unwrap();
    let pod = world.api().objects().pod(key("p")).unwrap().clone();
    let requests = |containers: &[kubestep_api::Container]| {
        let of = |one: &kubestep_api::Container| {
            one.resources.request("cpu".into()).map(ToString::to_string).unwrap_or_default()
        };
        containers.iter().map(of).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(requests(&pod.spec.containers), "3  1500m");
    assert_eq!(requests(&pod.spec.init_containers), "6 1500m");
    let limit = pod.spec.containers[0].resources.limit("cpu".into()).unwrap();
    assert_eq!(limit.to_string(), "3");
}

#[test]
fn nothing_changes_where_an_edit_fails() {
    for (text, part) in [
        ("cordon node c", "there is no Node c"),
        ("cordon node default", "there is no Node default"),
        ("uncordon node a", "node a is not cordoned"),
        ("untaint node a x", "node a has no such taint: x"),
        ("unlabel node a x", "node a has no label x"),
        ("add 0 nodes like a", "0 nodes cannot be added"),
        ("label pod pp app=x", "there is no Pod default/pp, did you mean \"p\"?"),
        ("untolerate pod p x", "it has no toleration like that"),
        ("unselect pod p x", "it has no node selector for x"),
        (
            "relax pod p nodeAffinity.required[0]",
            "it has no affinity term nodeAffinity.required[0]",
        ),
        ("unspread pod p zone", "it has no spread constraint on zone"),
        ("unport pod p 80", "it has no host port 80/TCP"),
        ("ungate pod p x", "it has no scheduling gate x"),
        ("resize pod p z cpu=1", "it has no container z"),
        ("resize pod p cpu=-1", "a request cannot be negative"),
        ("resize pod p cpu=1", "nothing changes"),
        ("priority pod p 0", "nothing changes"),
        ("delete pod z", "there is no Pod default/z"),
        ("set pod p spec.priority=high", "spec.priority: invalid type"),
        ("set pod p spec.unknown=1", "no scheduler reads it"),
        ("set pod p metadata.name=q", "cannot be changed"),
        ("unset pod p spec.affinity", "is not set"),
        (
            "put {kind: Pod, metadata: {name: x}, spec: {priorityClassName: none}}",
            "no PriorityClass",
        ),
    ] {
        let mut world = two_pods();
        let before = world.clone();
        let error = edit(text).apply(&mut world).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert_eq!(objects(&world), objects(&before), "{text}");
    }
}

/// All objects of a cluster as text.
pub(crate) fn objects(world: &World) -> String {
    let mut lines: Vec<String> = Vec::new();
    for kind in Kind::all() {
        let keys = world.api().objects().keys(kind);
        let found = keys.into_iter().filter_map(|key| world.api().get(kind, key));
        lines.extend(found.map(|object| format!("{kind} {}", object.to_json().unwrap())));
    }
    lines.extend(world.api().nodes().map(|node| serde_json::to_string(&**node).unwrap()));
    lines.sort();
    lines.join("\n")
}

#[test]
fn words_are_read_as_they_are_written() {
    for text in [
        "cordon node a",
        "uncordon node a",
        "taint node a k=v:NoSchedule",
        "taint node a k:NoExecute",
        "untaint node a k",
        "untaint node a k:PreferNoSchedule",
        "label node a k=v",
        "label pod shop/p k=v",
        "unlabel pod default/p k",
        "resize node a cpu=16",
        "resize pod default/p memory=1Gi",
        "resize pod default/p main cpu=500m",
        "add 1 node like a",
        "add 3 nodes like a",
        "add 3 nodes of group/a",
        "tolerate pod default/p all",
        "tolerate pod default/p k:NoSchedule",
        "tolerate pod default/p k=v:NoExecute",
        "tolerate pod default/p k>5",
        "untolerate pod default/p k<5:NoSchedule",
        "tolerate pod default/p {\"operator\":\"Exists\",\"tolerationSeconds\":30}",
        "select pod default/p k=v",
        "unselect pod default/p k",
        "affinity pod default/p none",
        "affinity pod default/p {\"nodeAffinity\":{}}",
        "relax pod default/p nodeAffinity.required[0][1]",
        "spread pod default/p {\"maxSkew\":1,\"topologyKey\":\"z\",\"whenUnsatisfiable\":\"DoNotSchedule\"}",
        "unspread pod default/p z",
        "port pod default/p 80/TCP",
        "unport pod default/p 53/UDP@10.0.0.1",
        "gate pod default/p g",
        "ungate pod default/p g",
        "priority pod default/p -5",
        "delete pod default/p",
        "delete storageclass fast",
        "set pod default/p spec.nodeSelector['a=b']={\"x\":1}",
        "unset node a metadata.labels.zone",
    ] {
        let read = edit(text);
        assert_eq!(read.to_string(), text);
        assert_eq!(read.line(), text);
    }
    let put =
        edit("put {kind: DeviceClass, apiVersion: resource.k8s.io/v1, metadata: {name: gpu}}");
    assert_eq!(put.to_string(), "edited deviceclass gpu");
    assert_eq!(edit(&put.line()), put);
    let class = edit("put priorityclass high with value 7");
    assert_eq!(class.to_string(), "put priorityclass high with value 7");
    assert_eq!(edit(&class.line()).to_string(), class.to_string());
}

#[test]
fn every_proposal_can_be_typed_as_it_is_printed() {
    let mut proposed = 0;
    for story in kubestep_source::fixtures::STORIES {
        let start = world(story.cluster);
        let mut world = start.clone();
        world.run(20);
        let pending = |pod: &&std::sync::Arc<kubestep_api::Pod>| pod.spec.node_name.is_empty();
        let objects = world.api().objects();
        let pods: Vec<_> = objects.pods.values().filter(pending).take(3).collect();
        for pod in pods {
            let pod = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
            let limits = crate::fix::SearchLimits { trials: 40, ..Default::default() };
            let fixes = crate::fix::fixes(&world, &start, pod, limits, &mut |_, _| true);
            for fix in fixes.found {
                let words: Vec<String> = fix.edits.iter().map(Edit::to_string).collect();
                let line = words.join(", and ");
                let read = Edit::read_line(&line, |_| Err("a file is read"));
                assert_eq!(read.as_ref(), Ok(&fix.edits), "{line}");
                proposed += 1;
            }
        }
    }
    assert!(proposed > 20, "{proposed}");
}

/// As kubectl takes them. What names a kind is no name.
#[test]
fn nodes_are_named_without_their_kind_where_only_nodes_can_be_meant() {
    let cases = [
        ("cordon a", "cordon node a"),
        ("uncordon a", "uncordon node a"),
        ("lose a", "lose node a"),
        ("drain a force", "drain node a force"),
        ("drain node force", "drain node force"),
    ];
    for (text, same) in cases {
        assert_eq!(text.parse::<Edit>(), same.parse::<Edit>(), "{text}");
        assert!(text.parse::<Edit>().is_ok(), "{text}");
    }
    for text in ["lose pod", "cordon a force", "label a x=y"] {
        assert!(text.parse::<Edit>().is_err(), "{text}");
    }
}

#[test]
fn words_that_make_no_edit_are_explained() {
    for (text, part) in [
        ("", "\"\" is not an edit"),
        ("cordn node a", "did you mean \"cordon\"?"),
        ("cordon", "the kind is missing; write cordon node NAME"),
        ("cordon node", "the name is missing"),
        ("cordon pod a", "this edit is for nodes; write cordon node NAME"),
        ("gate node a x", "this edit is for pods"),
        ("cordon service a", "not a Service"),
        ("cordon node a b", "unexpected \"b\""),
        ("cordon thing a", "is not a kind of object"),
        ("taint node a k=v", "names no effect"),
        ("taint node a k:Never", "\"Never\" is not a taint effect"),
        ("label node a k", "has no equals sign"),
        ("label node a =v", "nothing before the equals sign"),
        ("resize node a cpu=much", "write an amount such as 500m"),
        ("priority pod p 1.5", "\"1.5\" is not a whole number"),
        ("port pod p 0", "is not a port from 1 to 65535"),
        ("port pod p 80/HTTP", "is not a protocol"),
        ("relax pod p affinity", "is not a term of an affinity"),
        ("spread pod p {maxSkew: x}", "maxSkew: invalid type"),
        ("add nodes like a", "\"nodes\" is not a number of nodes"),
        ("add 2 pods like a", "only nodes can be added"),
        ("put {kind: ConfigMap, apiVersion: v1}", "no object that a scheduler reads"),
        ("put {kind: Pod, metadata: {name: [x]}}", "metadata.name"),
        ("put {kind: Pod}", "Pod: has no name"),
        ("put {kind: Pod", "put: "),
    ] {
        let error = text.parse::<Edit>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn every_form_is_read() {
    let examples = |usage: &str| {
        usage
            .replace("KIND", "pod")
            .replace("KEY=VALUE[,…]", "app=web,tier=a")
            .replace("WORKLOAD", "deployment")
            .replace("[=VALUE]:EFFECT", ":NoSchedule")
            .replace("[=VALUE][:EFFECT]|all", "")
            .replace("[:EFFECT]", "")
            .replace("[CONTAINER] ", "")
            .replace("[image=IMAGE] [RESOURCE=AMOUNT]", "image=b")
            .replace("AMOUNT", "1")
            .replace("TERM", "podAffinity.required[0]")
            .replace("PORT[/PROTOCOL][@IP]", "80")
            .replace("with value NUMBER", "with value 1")
            .replace(" NUMBER", " 1")
            .replace("VERSION", "1.31")
            .replace("add N", "add 2")
            .replace("put YAML", "put {kind: Node, metadata: {name: a}}")
            .replace("YAML|none", "none")
            .replace("PATH=YAML", "a=1")
            .replace("pod NAME YAML", "pod NAME {maxSkew: 1}")
            .replace("=BOOL", "=true")
            .replace("=NUMBER", "=1")
            .replace("[at POINT] ", "")
            .replace("at POINT", "at Filter")
            .replace("[for pod NAME] ", "")
            .replace("[always]", "always")
            .replace("[force]", "force")
            .replace("[in PROFILE]", "in batch")
            .replace("SELECTOR [for TIME]", "app=web for 5m")
            .replace("[SELECTOR]", "shop/web-*")
    };
    for form in FORMS {
        edit(&examples(form.usage));
    }
}
