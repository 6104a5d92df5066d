//! What a cycle records of extenders and of the dry run of preemption.

use super::*;
use kubestep_framework::node::NodeId;
use kubestep_framework::status::Code;

/// An extender that filters and scores.
const EXTENDER: &str = "extenders:\n- {urlPrefix: \"http://e\", filterVerb: filter, \
                        prioritizeVerb: prioritize, weight: 5, nodeCacheCapable: true}\n";

/// The node of a name, as a cycle numbers it.
fn id(record: &CycleRecord, name: &str) -> NodeId {
    (0..8).map(NodeId).find(|node| record.nodes.name(*node) == name).unwrap()
}

#[test]
fn an_extender_has_its_own_scores_and_rejections() {
    let mut bench = Bench::new(EXTENDER, &[]);
    ["n1", "n2", "n3", "n4"].into_iter().for_each(|name| bench.add(node(name)));
    bench.add(pod("p"));
    let left = json!({"NodeNames": ["n1", "n2", "n3"], "FailedNodes": {"n4": "no licence"}});
    let scores = json!([{"Host": "n1", "Score": 9}, {"Host": "n2", "Score": 1}]);
    bench.host.extender_answers = vec![Ok(left), Ok(scores)];
    let record = bench.step();
    let extender = Symbol::new("extender http://e");
    assert_eq!(record.filter.extenders, [extender]);
    let rejected = record.filter.by_extender(id(&record, "n4")).unwrap();
    assert_eq!((rejected.message(), rejected.plugin()), ("no licence".into(), extender));
    assert_eq!(record.filter.by_extender(id(&record, "n1")), None);
    let [column] = &record.score.extenders[..] else { panic!("{:?}", record.score.extenders) };
    assert_eq!((column.extender, column.weight), (extender, 5));
    let at = |name| record.feasible.iter().position(|node| *node == id(&record, name)).unwrap();
    let of = |name| (column.scores[at(name)], column.weighted(at(name)));
    assert_eq!(of("n1"), (Some(9), Some(450)));
    assert_eq!(of("n2"), (Some(1), Some(50)));
    assert_eq!(of("n3"), (None, None));
    for (at, total) in record.score.totals.iter().enumerate() {
        let parts = record.score.columns().filter_map(|column| column.weighted(at));
        assert_eq!(parts.sum::<i64>(), total);
    }
}

#[test]
fn the_dry_run_of_every_node_is_recorded() {
    let mut bench = Bench::new("", &[]);
    for name in ["low", "high", "cordoned"] {
        let mut node = node(name).offers("cpu", "1");
        node.spec.unschedulable = name == "cordoned";
        bench.add(node);
    }
    let holds_all = |name: &str, node: &str, priority: i32| {
        pod(name).requests("cpu", "1").on(node).priority(priority)
    };
    bench.add(holds_all("victim", "low", 1));
    bench.add(holds_all("equal", "high", 10));
    bench.add(pod("p").requests("cpu", "1").priority(10));
    let record = bench.step();
    let candidates: Vec<Name> = record.candidates.iter().map(|found| found.node).collect();
    assert_eq!(candidates, ["low"].map(Name::new));
    let statuses = record.dry_run.as_ref().unwrap();
    let none = statuses.own(id(&record, "high")).unwrap();
    assert_eq!(none.code(), Code::UnschedulableAndUnresolvable);
    assert_eq!(none.message(), "No preemption victims found for incoming pod");
    let cordoned = statuses.own(id(&record, "cordoned"));
    assert!(cordoned.is_none(), "it is not tried: {cordoned:?}");
}

#[test]
fn totals_of_large_weights_are_exact() {
    let profile = "profiles:\n- schedulerName: default-scheduler\n  plugins: {multiPoint: {enabled: \
                   [{name: NodeResourcesFit, weight: 2000000000}]}}\n";
    let mut bench = Bench::new(profile, &[]);
    for (name, cpu) in [("n1", "2"), ("n2", "3")] {
        bench.add(node(name).offers("cpu", cpu));
    }
    for pod_name in ["p1", "p2", "p3"] {
        bench.add(pod(pod_name).requests("cpu", "100m"));
        let record = bench.step();
        assert!(record.score.totals.iter().all(|total| total > i64::from(i32::MAX)));
        for (at, total) in record.score.totals.iter().enumerate() {
            let parts = record.score.columns().filter_map(|column| column.weighted(at));
            assert_eq!(parts.sum::<i64>(), total);
        }
    }
}
