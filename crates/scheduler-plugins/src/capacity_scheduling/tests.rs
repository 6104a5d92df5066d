//! Elastic quotas: which pods they reject, and which pods one preempts.

use serde_json::{Value, json};

use super::*;
use crate::testing::{object, places, world};
use kubestep_cluster::World;
use kubestep_framework::testing::{NodeBuilder, PodBuilder, node, pod};

fn quota(namespace: &str, spec: Value) -> Object {
    object(json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": namespace}, "spec": spec,
    }))
}

/// A quota of memory.
fn memory(namespace: &str, min: i64, max: i64) -> Object {
    let amount = |amount: i64| json!({"memory": amount.to_string()});
    quota(namespace, json!({"min": amount(min), "max": amount(max)}))
}

/// A cluster with one node of this memory.
fn cluster(size: &str, quotas: impl IntoIterator<Item = Object>) -> World {
    let profile = "plugins: {multiPoint: {enabled: [{name: CapacityScheduling}]}, \
                   postFilter: {enabled: [{name: CapacityScheduling}], disabled: [{name: '*'}]}}";
    let mut world = world(profile);
    quotas.into_iter().for_each(|quota| world.create(quota));
    world.create(node("n").offers("memory", size).offers("cpu", "99").into());
    world
}

fn sized(name: &str, memory: i64) -> Pod {
    pod(name).requests("memory", &memory.to_string())
}

/// What PreFilter says of a pod, without its first words.
fn judged(world: &mut World, pod: Pod) -> String {
    world.create(pod.into());
    let record = world.step().unwrap();
    let reason = |reason: &str| reason.split_once("because ").map(|(_, reason)| reason.to_owned());
    record.pre_filter.iter().find_map(|answer| reason(&answer.status.message())).unwrap_or_default()
}

#[test]
fn quotas_limit_their_namespaces() {
    let mut world = cluster("9000", [memory("ns1", 1000, 2000)]);
    world.create(sized("ns1/used", 300).on("n").into());
    assert_eq!(judged(&mut world, sized("ns1/fits", 500)), "");
    let max = "ElasticQuota ns1 is more than Max";
    assert_eq!(judged(&mut world, sized("ns1/large", 1800)), max);
    assert_eq!(judged(&mut world, sized("other/large", 1800)), "");
    // All together may not use more than the sum of what they are guaranteed.
    let mut world = cluster("9000", [memory("ns1", 1000, 2000), memory("ns2", 1000, 2000)]);
    world.create(sized("ns1/used", 1800).on("n").into());
    world.create(sized("ns2/used", 200).on("n").into());
    let min = "total ElasticQuota used is more than min";
    assert_eq!(judged(&mut world, sized("ns2/p", 500)), min);
    assert_eq!(judged(&mut world, sized("ns2/none", 0)), "");
}

#[test]
fn a_max_that_lacks_memory_allows_none() {
    let mut world = cluster(
        "9000",
        [quota("ns", json!({"max": {"cpu": "4"}, "min": {"cpu": "4", "memory": "9000"}}))],
    );
    assert_eq!(judged(&mut world, sized("ns/p", 1)), "ElasticQuota ns is more than Max");
    let min = json!({"min": {"cpu": "4", "memory": "9000", "example.com/gpu": "1"}});
    let mut world = cluster("9000", [quota("ns", min)]);
    assert_eq!(judged(&mut world, sized("ns/p", 1).requests("example.com/gpu", "1")), "");
}

#[test]
fn what_is_bound_is_used_until_it_is_deleted() {
    let mut world = cluster("9000", [memory("ns", 1000, 1000)]);
    assert_eq!(judged(&mut world, sized("ns/a", 600)), "");
    let max = "ElasticQuota ns is more than Max";
    assert_eq!(judged(&mut world, sized("ns/b", 600)), max);
    let key = kubestep_framework::testing::key("ns/a");
    assert!(world.delete(kubestep_framework::api::Kind::Pod, key));
    world.advance(20_000_000);
    world.run(1);
    assert_eq!(places(&world, &["ns/b"]), ["n"]);
}

#[test]
fn pods_from_before_their_quota_do_not_count() {
    let mut world = cluster("9000", []);
    world.create(sized("ns/old", 900).on("n").into());
    world.create(memory("ns", 1000, 1000));
    assert_eq!(judged(&mut world, sized("ns/new", 600)), "");
    world.update(memory("ns", 500, 500));
    assert_eq!(judged(&mut world, sized("ns/more", 1)), "ElasticQuota ns is more than Max");
}

/// Three pods of 50 on a node of 150, with these priorities, and which of them a fourth of
/// namespace `ns1` preempts.
fn preempted(priorities: [i32; 3], quotas: impl IntoIterator<Item = Object>) -> Vec<String> {
    let mut world = cluster("150", quotas);
    let names = ["ns1/a", "ns2/b", "ns2/c"];
    for (name, priority) in names.iter().zip(priorities) {
        world.create(sized(name, 50).priority(priority).on("n").started(1).into());
    }
    world.create(sized("ns1/p", 50).priority(1000).into());
    world.run(1);
    let places = places(&world, &names);
    let deleted = names.iter().zip(places).filter(|(_, place)| place == "deleted");
    deleted.map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn victims_come_from_the_own_namespace_or_from_borrowers() {
    // Its own min is used up: a less important pod of its own.
    let own = || [memory("ns1", 50, 200), memory("ns2", 200, 200)];
    assert_eq!(preempted([100, 100, 100], own()), ["ns1/a"]);
    // Its min was borrowed by the other namespace: just enough of it, the least important first,
    // even if it is as important as the pod.
    let borrowed = || [memory("ns1", 150, 200), memory("ns2", 50, 200)];
    assert_eq!(preempted([100, 1000, 100], borrowed()), ["ns2/c"]);
    assert_eq!(preempted([100, 1000, 1000], borrowed()).len(), 1);
    // Without quotas, one pod of lower priority, whatever its namespace.
    assert_eq!(preempted([1000, 100, 1000], []), ["ns2/b"]);
}

/// Why the last cycle's pod may preempt which pods: the rule, and the facts of each candidate.
fn reasons(priority: i32, quotas: impl IntoIterator<Item = Object>) -> (String, Vec<String>) {
    let mut world = cluster("150", quotas);
    for (name, started) in [("ns1/a", 3), ("ns2/b", 1), ("ns2/c", 2)] {
        world.create(sized(name, 50).priority(100).on("n").started(started).into());
    }
    world.create(sized("ns1/p", 50).priority(priority).into());
    let record = world.step().unwrap();
    let reasons = record.candidates.iter().flat_map(|candidate| candidate.reasons.clone());
    (record.victim_rule.as_deref().unwrap_or_default().to_owned(), reasons.collect())
}

#[test]
fn the_choice_of_victims_is_explained_by_its_facts() {
    let (rule, facts) = reasons(1, [memory("ns1", 150, 200), memory("ns2", 50, 200)]);
    assert_eq!(
        rule,
        "namespace ns1 stays within the min of its elastic quota (memory: 50 used + 50 requested of \
         150), so the pod may preempt pods, of any priority, of namespaces that are over theirs"
    );
    assert_eq!(
        facts,
        [
            "namespace ns2 is over its min: memory: 100 used > 50, 50 over",
            "may be preempted on n: ns2/c",
            "not ns2/b: without the pods above, its namespace is within min"
        ]
    );
    let (rule, facts) = reasons(1000, [memory("ns1", 50, 200), memory("ns2", 200, 200)]);
    assert_eq!(
        rule,
        "namespace ns1 would be over the min of its elastic quota (memory: 50 used + 50 requested > \
         50, 50 over), so the pod may preempt pods of lower priority in the same namespace"
    );
    assert_eq!(facts, ["may be preempted on n: ns1/a"]);
    // No pod may be preempted, but the rule is known.
    let (rule, facts) = reasons(1, [memory("ns1", 50, 200), memory("ns2", 200, 200)]);
    assert!(rule.starts_with("namespace ns1 would be over the min") && facts.is_empty());
    let (rule, facts) = reasons(1000, []);
    assert!(rule.starts_with("namespace ns1 has no elastic quota"), "{rule}");
    assert_eq!(facts, ["may be preempted on n: ns1/a, ns2/c, ns2/b"]);
}

#[test]
fn each_excess_is_explained() {
    let amounts = json!({"min": {"cpu": "10"}, "max": {"cpu": "14", "memory": "8Gi"}});
    let mut quotas = Quotas([("ns".into(), Quota::new(&spec(amounts)))].into());
    quotas.add(&pod("ns/a").requests("cpu", "12"));
    let request = requested(&pod("ns/b").requests("cpu", "4").requests("memory", "1Gi"));
    let words = |excess: Vec<Excess>| excess.iter().map(Excess::describe).collect::<Vec<_>>();
    let over = words(quotas.of("ns".into()).unwrap().over_max(&request));
    assert_eq!(over, ["cpu: 12 used + 4 requested > 14, 2 over"]);
    let over = words(quotas.over_total_min(&request));
    assert_eq!(
        over,
        ["cpu: 12 used + 4 requested > 10, 6 over", "memory: 0 used + 1Gi requested > 0, 1Gi over"]
    );
}

fn spec(json: Value) -> quota::ElasticQuotaSpec {
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_request_is_the_sum_or_the_largest_init_container() {
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let pod = pod("p").spec(json!({
        "containers": [container("2"), container("1")],
        "initContainers": [container("2"), container("4")],
        "overhead": {"cpu": "500m"},
    }));
    assert_eq!(requested(&pod).milli_cpu, 4500);
}
