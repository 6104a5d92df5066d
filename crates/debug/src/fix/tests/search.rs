//! The order in which the search tries plans, and in which pods get what a change frees.

use super::*;
use crate::edit::tests::{edit, world_with};
use kubestep_config::FeatureGates;

/// A node with a pod whose anti-affinity excludes `web`.
fn crowded(number: usize) -> String {
    let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                 [{labelSelector: {matchLabels: {app: web}}, topologyKey: \
                 kubernetes.io/hostname}]}},";
    let (name, node_name) = (format!("web-{number}"), format!("node-{number}"));
    let pod = bound(&name, &node_name, &format!("{apart} {}", container("")));
    node(&node_name, "", "") + &pod.replace(&format!("app: {name}"), "app: web")
}

#[test]
fn similar_changes_are_counted_once_each() {
    let cluster: String = (0..3).map(crowded).collect();
    let fixes = found(&settled(&(cluster + &web("1", ""))));
    let delete = fixes.found.iter().find(|fix| edits(fix).contains("delete")).unwrap();
    let mut all = vec![delete.edits.clone()];
    all.extend(delete.similar.clone());
    all.sort_by_key(|edits| edits[0].to_string());
    let expected = [0, 1, 2].map(|at| vec![edit(&format!("delete pod web-{at}"))]);
    assert_eq!(all, expected);
}

/// If a priority is known to be enough, neither a higher one nor other edits are tried with it.
#[test]
fn one_priority_is_enough() {
    let full = |number: usize| {
        let (name, node_name) = (format!("busy-{number}"), format!("node-{number}"));
        let spec = format!("priority: {number}, {}", container("resources: {requests: {cpu: 3}}"));
        node(&node_name, &format!("n: '{number}'"), "") + &bound(&name, &node_name, &spec)
    };
    let cluster: String = (0..20).map(full).collect();
    let fixes = found(&settled(&(cluster + &web("2", ""))));
    let by_priority: Vec<&Fix> =
        fixes.found.iter().filter(|fix| edits(fix).contains("priority")).collect();
    assert_eq!(by_priority.len(), 1);
    assert!(edits(by_priority[0]).starts_with("put priorityclass priority-1 "));
    assert!(by_priority[0].similar.is_empty());
}

/// A workload that gets a tenth of what it asks for hardly works as intended.
#[test]
fn a_request_lowered_by_more_than_half_comes_after_a_node() {
    let filled = |cpu: &str| {
        let spec = container(&format!("resources: {{requests: {{cpu: {cpu}}}}}"));
        node("a", "", "") + &bound("busy", "a", &spec) + &web("2", "")
    };
    let position = |cpu: &str, part: &str| {
        let proposed = proposed(&filled(cpu));
        let found = proposed.iter().position(|edits| edits.contains(part));
        found.unwrap_or_else(|| panic!("{part}: {proposed:?}"))
    };
    assert!(position("3800m", "resize pod") > position("3800m", "add 1 node"));
    assert!(position("2500m", "resize pod") < position("2500m", "add 1 node"));
    assert!(position("3800m", "resize node") > position("3800m", "resize pod"));
}

#[test]
fn a_search_that_stops_early_counts_what_is_left() {
    let world = settled(&(crowded(0) + &crowded(1) + &web("1", "")));
    let search = |most| {
        let limits = SearchLimits::of_fixes(most);
        fixes(&world, &world, key("web"), limits, &mut |_, _| true)
    };
    let (few, all) = (search(1), search(100));
    assert!(few.found.len() == 1 && few.more && few.untried > 0, "{few:?}");
    assert!(all.found.len() > 1 && !all.more && all.untried == 0, "{all:?}");
}

/// Pods of 2 CPUs created before `web`, on a node that fits two of them.
fn queue_of(pods: usize) -> String {
    let pod = |number: usize| {
        let name = format!("name: p-{number}, labels: {{app: p}}");
        web("2", "").replace("name: web, labels: {app: web}", &name)
    };
    node("a", "", "") + &(0..pods).map(pod).collect::<String>() + &web("2", "")
}

#[test]
fn pods_ahead_in_the_queue_are_named() {
    let start = world(&queue_of(19));
    let mut now = start.clone();
    now.run(100);
    let fixes = fixes(&now, &start, key("web"), SearchLimits::default(), &mut |_, _| true);
    let add = fixes.found.iter().find(|fix| edits(fix) == "add 1 node like a").unwrap();
    assert!(add.contended);
    // The same as `kubestep run --edit`.
    let mut run = start.clone();
    add.edits[0].apply(&mut run).unwrap();
    run.run(1_000);
    let has_node = |world: &World, name: &str| {
        !world.api().objects().pod(key(name)).unwrap().spec.node_name.is_empty()
    };
    let names = (0..19).map(|number| format!("p-{number}"));
    let new = names.filter(|name| has_node(&run, name) && !has_node(&now, name));
    let mut new: Vec<_> = new.map(|name| key(&name)).collect();
    new.sort_unstable();
    assert_eq!((add.taken_by.clone(), new.len()), (new, 2));
    let few = world(&queue_of(0).replace("cpu: 4", "cpu: 1"));
    let alone = found(&few);
    assert!(alone.found.iter().all(|fix| !fix.contended && fix.taken_by.is_empty()), "{alone:?}");
}

/// Deleting a pod does not requeue one that its anti-affinity rejected: only the flush does.
#[test]
fn what_only_the_flush_requeues_is_marked() {
    let world = settled(&(crowded(0) + &web("1", "")));
    let fixes = found(&world).found;
    let waits = |fix: &&Fix| {
        let mut world = world.clone();
        fix.edits.iter().for_each(|edit| drop(edit.apply(&mut world).unwrap()));
        world.run(100);
        world.api().objects().pod(key("web")).unwrap().spec.node_name.is_empty()
    };
    let late: Vec<String> = fixes.iter().filter(|fix| fix.flush_only).map(edits).collect();
    let waiting: Vec<String> = fixes.iter().filter(waits).map(edits).collect();
    assert!(!late.is_empty() && late.len() < fixes.len(), "{fixes:?}");
    assert_eq!(late, waiting);
}

/// `nodes` nodes, and a gang of three pods that request 5 CPUs each; `train-9` was created last.
fn gang(nodes: usize, others: &str) -> World {
    let node = |number| node(&format!("n{number}"), "", "").replace("cpu: 4", "cpu: 8");
    let pod = |name: &str| {
        format!(
            "---\n{{kind: Pod, metadata: {{name: {name}}}, spec: {{schedulingGroup: \
             {{podGroupName: train}}, {}}}}}\n",
            container("resources: {requests: {cpu: 5}}")
        )
    };
    let group = "---\n{kind: PodGroup, apiVersion: scheduling.k8s.io/v1alpha2, metadata: {name: \
                 train}, spec: {schedulingPolicy: {gang: {minCount: 3}}}}\n";
    let nodes: String = (0..nodes).map(node).collect();
    let pods: String = ["train-0", "train-1", "train-9"].map(pod).concat();
    let gates = FeatureGates::parse("GenericWorkload=true,GangScheduling=true").unwrap();
    world_with(&(nodes + others + group + &pods), gates)
}

#[test]
fn a_fix_with_another_node_in_a_run_from_the_start_names_both() {
    let larger = "---\n{kind: Node, metadata: {name: larger}, status: {allocatable: {cpu: 4500m, \
                  memory: 8Gi, pods: 110}}}\n";
    let filled = bound("filler", "larger", &container("resources: {requests: {cpu: 1}}"));
    let first = "---\n{kind: Pod, metadata: {name: first}, spec: {priority: 9, containers: [{name: c, \
                 resources: {requests: {cpu: 1}}}]}}\n";
    let start = world(&[larger, &node("n2", "", ""), &filled, first, &web("4", "")].concat());
    let mut now = start.clone();
    now.run(100);
    let found = fixes(&now, &start, key("web"), SearchLimits::default(), &mut |_, _| true).found;
    let emptied = found.iter().find(|fix| edits(fix) == "delete pod default/filler");
    let emptied = emptied.unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(emptied.node, "n2");
    let note = "in a run from the start (run --edit); attempted now, it gets larger";
    assert_eq!(emptied.notes, [note]);
}

fn proposed_for_gang(start: World) -> Vec<String> {
    let mut now = start.clone();
    now.run(100);
    let pod = key("train-9");
    let fixes = fixes(&now, &start, pod, SearchLimits::default(), &mut |_, _| true);
    assert!(fixes.found.iter().all(|fix| !fix.contended), "{fixes:?}");
    fixes.found.iter().map(edits).collect()
}

/// With a smaller gang, the two pods created first get the nodes.
#[test]
fn a_smaller_gang_is_no_fix_for_the_pod_that_it_leaves_out() {
    let proposed = proposed_for_gang(gang(2, ""));
    assert!(proposed.iter().any(|edits| edits.starts_with("add 1 node like")), "{proposed:?}");
    assert!(!proposed.iter().any(|edits| edits.contains("minCount")), "{proposed:?}");
}

#[test]
fn room_for_another_pod_of_the_gang_is_found() {
    let blocker = bound("blocker", "n2", &container("resources: {requests: {cpu: 5}}"));
    let proposed = proposed_for_gang(gang(3, &blocker));
    assert!(proposed.contains(&"delete pod default/blocker".to_owned()), "{proposed:?}");
}

/// One of the three stays pending, and which one depends on the order of a map: no fix for the
/// first either.
#[test]
fn a_smaller_gang_is_no_fix_where_chance_decides_who_is_left_out() {
    for pod in ["train-0", "train-1", "train-9"] {
        let start = gang(2, "");
        let mut now = start.clone();
        now.run(100);
        let fixes = fixes(&now, &start, key(pod), SearchLimits::default(), &mut |_, _| true);
        let proposed: Vec<String> = fixes.found.iter().map(edits).collect();
        assert!(!proposed.iter().any(|edits| edits.contains("minCount")), "{proposed:?}");
    }
}

/// Each node fits one pod. The pod fits on every node by itself, but must fit beside another.
#[test]
fn a_pod_of_a_gang_asks_for_less_to_fit_beside_the_others() {
    let proposed = proposed_for_gang(gang(2, ""));
    assert_eq!(proposed[0], "resize pod default/train-9 cpu=3", "{proposed:?}");
}
