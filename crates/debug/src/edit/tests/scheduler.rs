//! Edits of the scheduler itself: configuration, manual decisions, faults.

use super::{NODES, bound, container, edit, fate, fates, world};
use crate::Session;
use crate::edit::Edit;
use kubestep_cluster::World;
use kubestep_framework::record::intervention::Intervention;
use kubestep_framework::record::{Outcome, QueueName};
use kubestep_framework::testing::key;

/// The cluster with a pod `p` of that spec, after the edits.
fn edited(spec: &str, others: &str, edits: &[&str]) -> World {
    let pod = format!("{{kind: Pod, metadata: {{name: p, labels: {{app: p}}}}, spec: {spec}}}");
    let mut world = world(&format!("{NODES}{others}\n---\n{pod}"));
    for text in edits {
        edit(text).apply(&mut world).unwrap();
    }
    world
}

fn plain() -> String {
    format!("{{{}}}", container(""))
}

fn error(world: &World, text: &str) -> String {
    edit(text).apply(&mut world.clone()).unwrap_err().to_string()
}

#[test]
fn weights_plugins_and_documents_change_decisions() {
    // The affinity prefers node b; the resources prefer a.
    let prefers_b = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
        [{weight: 1, preference: {matchExpressions: [{key: zone, operator: In, values: [y]}]}}]}}";
    let spec = format!("{{{}, {prefers_b}}}", container(""));
    let on_b = bound("q", "b", &container("resources: {requests: {cpu: 3, memory: 6Gi}}"));
    let of = |edits: &[&str]| fates(&spec, &on_b, edits);
    assert_eq!(of(&[]).0, "b");
    assert_eq!(of(&["disable NodeAffinity at Score"]).1, "a");
    assert_eq!(of(&["weight NodeResourcesFit=50"]).1, "a");
    let twice = ["weight NodeResourcesFit=50", "weight NodeResourcesFit=1"];
    assert_eq!(of(&twice).1, "b");
    let text = "config {apiVersion: kubescheduler.config.k8s.io/v1, kind: \
        KubeSchedulerConfiguration, profiles: [{plugins: {score: {disabled: [{name: NodeAffinity}]}}}]}";
    assert_eq!(of(&[text]).1, "a");
    assert_eq!(of(&[text, "enable NodeAffinity at Score"]).1, "b");
    let cordoned = ["cordon node a", "cordon node b"];
    let off = ["disable NodeUnschedulable", "disable TaintToleration"];
    assert_eq!(of(&[&cordoned[..], &off].concat()).1, "b");
    let other = "config {apiVersion: kubescheduler.config.k8s.io/v1, kind: \
        KubeSchedulerConfiguration, profiles: [{schedulerName: other}]}";
    assert_eq!(of(&[other]).1, "never tried");
    let served = format!("{{schedulerName: other, {}}}", container(""));
    assert_eq!(fates(&served, "", &[other]), ("never tried".into(), "a".into()));
}

#[test]
fn a_pod_that_waits_is_tried_again_under_the_new_configuration() {
    let mut world = edited(&plain(), "", &["cordon node a", "cordon node b"]);
    world.run(5);
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Unschedulable);
    for text in ["disable NodeUnschedulable", "disable TaintToleration"] {
        edit(text).apply(&mut world).unwrap();
    }
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Backoff);
    assert!(["a", "b"].contains(&fate(world).as_str()));
}

#[test]
fn gates_are_flipped() {
    let gt = "tolerations: [{key: level, operator: Gt, value: '3', effect: NoSchedule}]";
    let spec = format!("{{{}, {gt}}}", container(""));
    let taints = ["taint node a level=5:NoSchedule", "taint node b level=5:NoSchedule"];
    let flip = "feature TaintTolerationComparisonOperators=true";
    assert!(fates(&spec, "", &taints).1.contains("untolerated taint"));
    assert_eq!(fates(&spec, "", &[&taints[..], &[flip]].concat()).1, "a");
    let world = edited(&spec, "", &[flip]);
    assert!(error(&world, flip).contains("is already on"));
    for (text, part) in [
        ("feature Unknown=true", "Unknown"),
        ("feature GangScheduling=true", "GenericWorkload"),
        ("feature SchedulerQueueingHints=false", "SchedulerQueueingHints"),
    ] {
        assert!(error(&world, text).contains(part), "{text}: {}", error(&world, text));
    }
}

#[test]
fn nothing_changes_where_a_configuration_is_rejected() {
    let world = edited(&plain(), "", &[]);
    let same = |world: &World, before: &World| {
        world.config() == before.config()
            && world.scheduler().frameworks().len() == before.scheduler().frameworks().len()
    };
    for (text, part) in [
        ("weight NodeAfinity=2", "did you mean \"NodeAffinity\"?"),
        ("weight NodeName=2", "it does not score"),
        ("disable PrioritySort", "queueSort"),
        ("enable NodeAffinity", "already enabled"),
        ("disable NodeAffinity in batch", "no such profile"),
        ("config {kind: Pod}", "apiVersion is missing"),
        ("config {", "line"),
    ] {
        let mut changed = world.clone();
        let reported = edit(text).apply(&mut changed).unwrap_err().to_string();
        assert!(reported.contains(part), "{text}: {reported}");
        assert!(same(&changed, &world), "{text}");
    }
}

/// The first cycle of pod `p`: its node, and whether the interventions decided.
fn first_cycle(mut world: World) -> (Option<String>, Vec<(String, bool)>, String) {
    let record = world.step().unwrap();
    let interventions = record.interventions.iter();
    let interventions = interventions.map(|one| (one.to_string(), one.decided(&record))).collect();
    (record.node.map(|node| node.to_string()), interventions, record.message.clone())
}

#[test]
fn a_person_decides_on_nodes_for_one_cycle() {
    let after = |spec: &str, edits: &[&str]| first_cycle(edited(spec, "", edits));
    let interventions = |text: &str, decided| vec![(text.to_owned(), decided)];
    let (node, reported, _) = after(&plain(), &["choose node b for pod p"]);
    assert_eq!((node, reported), (Some("b".into()), interventions("node b chosen manually", true)));
    // Not among the nodes with the best score.
    let (node, reported, _) = after(&plain(), &["choose node b for pod p", "cordon node b"]);
    assert_eq!(
        (node, reported),
        (Some("a".into()), interventions("node b chosen manually", false))
    );
    let (node, reported, _) = after(&plain(), &["veto node a for pod p"]);
    assert_eq!((node, reported), (Some("b".into()), interventions("node a vetoed manually", true)));
    let huge = format!("{{{}}}", container("resources: {requests: {cpu: 50}}"));
    let (node, reported, _) = after(&huge, &["force node b for pod p"]);
    assert_eq!((node, reported), (Some("b".into()), interventions("node b forced manually", true)));
    let both = ["veto node a for pod p", "veto node b for pod p"];
    let (node, _, message) = after(&plain(), &both);
    assert_eq!(node, None);
    assert!(message.starts_with("0/2 nodes are available: 2 node(s) vetoed manually"), "{message}");
}

#[test]
fn a_veto_lasts_one_cycle() {
    let mut world = edited(&plain(), "", &["veto node a for pod p", "veto node b for pod p"]);
    assert_eq!(world.step().unwrap().outcome, Outcome::Unschedulable);
    assert_eq!(fate(world), "a");
    let world = edited(&plain(), "", &["veto node a for pod p", "heal"]);
    assert_eq!(fate(world.clone()), "a");
    assert!(error(&world, "heal").contains("nothing to undo"));
    for (text, part) in [
        ("veto node c for pod p", "there is no Node c"),
        ("force node a for pod x", "there is no Pod default/x"),
        ("activate pod p", "is already in the active queue"),
    ] {
        assert!(error(&world, text).contains(part), "{text}");
    }
    let mut done = world;
    done.run(1);
    assert!(error(&done, "veto node a for pod p").contains("is already on a"));
}

#[test]
fn pods_are_moved_by_hand() {
    for (text, place) in
        [("activate pod p", QueueName::Active), ("requeue pod p", QueueName::Backoff)]
    {
        let mut world = edited(&plain(), "", &["cordon node a", "cordon node b"]);
        world.run(5);
        edit(text).apply(&mut world).unwrap();
        assert_eq!(world.scheduler().queue().queue_of(key("p")), place, "{text}");
    }
    let gated = edited(&format!("{{{}, schedulingGates: [{{name: g}}]}}", container("")), "", &[]);
    for text in ["activate pod p", "requeue pod p"] {
        assert!(error(&gated, text).contains("is held by SchedulingGates"), "{text}");
    }
    let foreign = edited(&format!("{{{}, schedulerName: x}}", container("")), "", &[]);
    assert!(error(&foreign, "requeue pod p").contains("is in no queue"));
}

#[test]
fn plugins_fail_where_they_are_made_to() {
    for (plugin, point, message) in [
        ("NodeAffinity", "PreFilter", "running PreFilter plugin \"NodeAffinity\": "),
        ("NodeName", "Filter", "running \"NodeName\" filter plugin: "),
        ("NodeAffinity", "PreScore", "running PreScore plugin \"NodeAffinity\": "),
        ("ImageLocality", "Score", "plugin \"ImageLocality\" failed with: "),
        ("VolumeBinding", "Reserve", "running Reserve plugin \"VolumeBinding\": "),
        ("VolumeBinding", "PreBind", "running PreBind plugin \"VolumeBinding\": "),
        ("DefaultBinder", "Bind", "running Bind plugin \"DefaultBinder\": "),
    ] {
        let text = format!("fail plugin {plugin} at {point}");
        for (ending, again) in [("", Some("a")), (" for pod p", Some("a")), (" always", None)] {
            let mut world = edited(&plain(), "", &[&format!("{text}{ending}")]);
            let record = world.step().unwrap();
            assert_eq!(record.outcome, Outcome::SchedulerError, "{text}");
            let expected = format!("{message}injected fault");
            assert!(record.message.ends_with(&expected), "{}", record.message);
            assert!(record.interventions[0].decided(&record), "{text}");
            let end = fate(world);
            match again {
                Some(node) => assert_eq!(end, node, "{text}{ending}"),
                None => assert!(end.ends_with(&expected), "{text}{ending}: {end}"),
            }
        }
    }
    let huge = format!("{{{}}}", container("resources: {requests: {cpu: 50}}"));
    let text = "fail plugin DefaultPreemption at PostFilter";
    let (_, reported, message) = first_cycle(edited(&huge, "", &[text]));
    assert_eq!(reported, [("DefaultPreemption made to fail at PostFilter".to_owned(), true)]);
    assert!(message.contains("injected fault"), "{message}");
    // The cycle does not reach that extension point.
    let (_, reported, _) = first_cycle(edited(&plain(), "", &[text]));
    assert!(!reported[0].1);
    let world = edited(&plain(), "", &[]);
    let wrong = error(&world, "fail plugin NodeNmae at Filter");
    assert_eq!(wrong, "no plugin NodeNmae runs at Filter, did you mean \"NodeName\"?");
}

#[test]
fn bindings_fail_and_nodes_break_down() {
    let mut world = edited(&plain(), "", &["fail bind for pod p"]);
    let record = world.step().unwrap();
    assert_eq!(record.outcome, Outcome::SchedulerError);
    assert!(record.message.contains("injected fault: pod default/p cannot be bound"));
    assert_eq!(fate(world), "a");
    let world = edited(&plain(), "", &["fail bind always"]);
    assert!(fate(world.clone()).contains("injected fault"));
    let mut healed = world;
    edit("heal").apply(&mut healed).unwrap();
    assert_eq!(fate(healed), "a");
    let mut world = edited(&plain(), &bound("q", "a", &container("")), &[]);
    let notes = edit("lose node a").apply(&mut world).unwrap().notes;
    assert_eq!(notes, ["1 pod deleted with it"]);
    assert!(world.api().objects().pod(key("q")).is_none());
    assert_eq!(fate(world), "b");
}

#[test]
fn extenders_go_down() {
    let config = "config {apiVersion: kubescheduler.config.k8s.io/v1, kind: \
        KubeSchedulerConfiguration, extenders: [{urlPrefix: 'http://one', filterVerb: f}]}";
    let mut world = edited(&plain(), "", &[config]);
    world.api_mut().set_extenders(std::sync::Arc::new(|call, _| {
        Ok(serde_json::json!({"Nodes": call.body["Nodes"]}))
    }));
    assert_eq!(fate(world.clone()), "a");
    edit("fail extender http://one").apply(&mut world).unwrap();
    assert_eq!(fate(world.clone()), "injected fault: extender 0 is down");
    assert!(error(&world, "fail extender two").contains("there is http://one"));
    // Another configuration has other extenders.
    let notes = edit(&config.replace("one", "two")).apply(&mut world).unwrap().notes;
    assert_eq!(notes, ["the new extenders are not called and count as unreachable"]);
}

#[test]
fn words_are_read_as_they_are_written() {
    for text in [
        "weight ImageLocality=5",
        "weight ImageLocality=5 in batch",
        "disable NodeName",
        "disable NodeName at Filter",
        "enable NodeName at Filter in batch",
        "feature GangScheduling=true",
        "choose node a for pod default/p",
        "force node a for pod shop/p",
        "veto node a for pod default/p",
        "activate pod default/p",
        "requeue pod default/p",
        "fail bind",
        "fail bind for pod default/p always",
        "fail plugin NodeName at Filter",
        "fail plugin NodeName at Filter for pod default/p",
        "fail extender http://one always",
        "heal",
        "lose node a",
        "lose zone=x",
        "drain node a",
        "drain zone=x force",
    ] {
        assert_eq!(edit(text).to_string(), text);
        assert_eq!(edit(text).line(), text);
    }
    assert_eq!(edit("config {a: b}").to_string(), "config");
    assert_eq!(edit("config {a: b}").line(), "config {a: b}");
    for (text, part) in [
        ("weight ImageLocality", "has no equals sign"),
        ("weight ImageLocality=x", "\"x\" is not a weight"),
        ("disable NodeName at Somewhere", "is not an extension point"),
        ("feature A=maybe", "neither true nor false"),
        ("choose node a", "the word for is missing"),
        ("choose pod a for pod b", "this is for nodes"),
        ("activate node a", "this is for pods"),
        ("fail everything", "not \"everything\""),
        ("fail plugin A at QueueSort", "no fault can be injected at QueueSort"),
        ("heal now", "unexpected \"now\""),
    ] {
        let reported = text.parse::<Edit>().unwrap_err().to_string();
        assert!(reported.contains(part), "{text}: {reported}");
    }
}

#[test]
fn an_edit_is_an_input_of_a_session_and_goes_with_its_state() {
    let mut session = Session::new(edited(&plain(), "", &[]));
    session.apply(crate::Input::Change(std::sync::Arc::new(edit("cordon node a")))).unwrap();
    session.run_until_idle(5, |_| false);
    let node = session.record().unwrap().node;
    assert_eq!(node, Some("b".into()));
    let word = session.timeline().steps().get(1).unwrap().input.as_ref().unwrap().describe();
    assert_eq!(word, "cordon node a");
    session.previous_cycle();
    session.previous_cycle();
    let before = session.fork();
    assert_eq!(fate(before.world().clone()), if before.step() == 0 { "a" } else { "b" });
}

#[test]
fn interventions_have_words() {
    let fail = Intervention::Fail(kubestep_config::ExtensionPoint::Score, "ImageLocality".into());
    assert_eq!(fail.to_string(), "ImageLocality made to fail at Score");
}
