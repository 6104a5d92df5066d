//! Tests of the notation of cycles and states.

use std::sync::Arc;

use super::*;
use kubestep_api::Name;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::{
    ExtenderColumn, FilterColumn, FilterRecord, NodeNames, ScoreColumn, ScoreRecord, VerdictTable,
};

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("shop".into(), name.into())
}

fn list<T: for<'a> From<&'a str>>(names: &[&str]) -> Vec<T> {
    names.iter().map(|name| T::from(name)).collect()
}

/// Three nodes; `b` is rejected for two reasons, the evaluation of `c` breaks.
fn filtered() -> CycleRecord {
    let mut verdicts = VerdictTable::default();
    let reasons = list(&["Too many pods", "Insufficient cpu"]);
    let fit = Status::with_reasons(Code::Unschedulable, reasons).by("NodeResourcesFit".into());
    let rejected = verdicts.id_of(&fit);
    let broken = "running \"DynamicResources\" filter plugin: no such key";
    let broken = verdicts.id_of(&Status::error(broken).by("DynamicResources".into()));
    let column = |plugin: &str, values: &[VerdictId]| FilterColumn {
        plugin: plugin.into(),
        verdicts: Column::from_values(values),
    };
    let pass = VerdictId::PASS;
    CycleRecord {
        pod: key("web"),
        attempt: 2,
        nodes: Arc::new(NodeNames {
            order: vec![NodeId(2), NodeId(0), NodeId(1)],
            names: list(&["a", "b", "c"]),
        }),
        verdicts: Arc::new(verdicts),
        filter: FilterRecord {
            plugins: vec![
                column("NodeResourcesFit", &[pass, rejected, pass]),
                column("DynamicResources", &[pass, broken, broken]),
            ]
            .into(),
            verdicts: Column::from_values(&[pass, rejected, broken]),
            evaluated: [NodeId(0), NodeId(1), NodeId(2)].into(),
            extenders: Vec::new(),
            extender: Vec::new(),
        },
        ..CycleRecord::default()
    }
}

#[test]
fn filters_show_the_official_verdict_and_all_others() {
    let mut record = filtered();
    record.outcome = Outcome::SchedulerError;
    record.message = "it broke".to_owned();
    let fit = json!({"code": "Unschedulable", "reasons": ["Insufficient cpu", "Too many pods"]});
    let broken = json!({"code": "Error", "reasons": ["no such key"]});
    let mut verdict = fit.clone();
    verdict["plugin"] = json!("NodeResourcesFit");
    let expected = json!({
        "pod": "shop/web",
        "attempt": 2,
        "filter": {"b": verdict},
        "filterAll": {"b": {"NodeResourcesFit": fit, "DynamicResources": broken}},
        "result": "SchedulerError",
        "message": "it broke",
    });
    assert_eq!(cycle(&record), expected);
}

#[test]
fn scores_run_along_the_feasible_nodes() {
    let mut record = filtered();
    record.filter = FilterRecord::default();
    record.feasible = [NodeId(2), NodeId(0)].into();
    record.evaluated_nodes = 3;
    record.outcome = Outcome::Scheduled;
    record.node = Some("c".into());
    record.score = ScoreRecord {
        pre_score: vec![PluginStatus::new("NodeAffinity".into(), Status::skip())].into(),
        plugins: vec![ScoreColumn {
            plugin: "TaintToleration".into(),
            weight: 3,
            raw: vec![0, 2].into(),
            normalized: vec![100, 0].into(),
        }]
        .into(),
        extenders: vec![ExtenderColumn {
            extender: "extender http://e".into(),
            weight: 1,
            scores: vec![Some(0), None],
        }],
        totals: vec![300, 0].into(),
        ..ScoreRecord::default()
    };
    let expected = json!({
        "pod": "shop/web",
        "attempt": 2,
        "feasible": ["c", "a"],
        "preScore": [{"plugin": "NodeAffinity", "code": "Skip"}],
        "scores": {"a": {"TaintToleration": [2, 0, 0]}, "c": {"TaintToleration": [0, 100, 300]}},
        "extenderScores": {"c": 0},
        "totals": {"a": 0, "c": 300},
        "result": "Scheduled",
        "node": "c",
        "evaluated": 3,
    });
    assert_eq!(cycle(&record), expected);
}

#[test]
fn answers_carry_nodes_and_nominations_candidates_and_placements_too() {
    let mut pre_filter = PluginStatus::new("NodeAffinity".into(), Status::SUCCESS);
    pre_filter.nodes = Some(list(&["b", "a"]));
    let mut post_filter = PluginStatus::new("DefaultPreemption".into(), Status::SUCCESS);
    post_filter.nominated = Some("b".into());
    let candidate = |node: &str, victims: &[&str]| Candidate {
        node: node.into(),
        victims: victims.iter().map(|name| key(name)).collect(),
        pdb_violations: 1,
        reasons: Vec::new(),
    };
    let placement = |name: &str, placed, total: Option<i64>| PlacementRecord {
        name: name.into(),
        nodes: 2,
        placed,
        status: total.map_or_else(|| Status::unschedulable("full"), |_| Status::SUCCESS),
        total,
    };
    let record = CycleRecord {
        pod: key("web"),
        pre_filter: vec![pre_filter].into(),
        post_filter: vec![post_filter],
        candidates: vec![candidate("b", &["z", "y"]), candidate("a", &["x"])],
        placements: vec![placement("r1", 1, None), placement("r2", 2, Some(150))],
        placement: Some(1),
        nominated_node: Some("b".into()),
        node: Some("b".into()),
        ..CycleRecord::default()
    };
    let expected = json!({
        "pod": "shop/web",
        "attempt": 0,
        "preFilter": [{"plugin": "NodeAffinity", "code": "Success", "nodes": ["a", "b"]}],
        "postFilter": [{"plugin": "DefaultPreemption", "code": "Success", "nominated": "b"}],
        "candidates": [
            {"node": "a", "victims": ["shop/x"], "pdbViolations": 1},
            {"node": "b", "victims": ["shop/z", "shop/y"], "pdbViolations": 1},
        ],
        "placements": [
            {"name": "r1", "nodes": 2, "placed": 1, "message": "full"},
            {"name": "r2", "nodes": 2, "placed": 2, "total": 150},
        ],
        "placement": "r2",
        "result": "Unschedulable",
        "nominatedNode": "b",
    });
    assert_eq!(cycle(&record), expected);
}

#[test]
fn states_are_sorted_and_leave_out_what_is_empty() {
    let pod = |name: &str, gated, attempts| PodState {
        pod: key(name),
        plugins: if gated { list(&["SchedulingGates"]) } else { Vec::new() },
        pending: Vec::new(),
        gated,
        attempts,
    };
    let whole = PodStates {
        active: vec![pod("b", false, 1), pod("a", false, 0)],
        unschedulable: vec![pod("c", true, 0)],
        placed: [(key("run"), Name::new("node-1"))].into(),
        deleted: vec![key("z"), key("y")],
        ..PodStates::default()
    };
    let expected = json!({
        "active": [{"pod": "shop/a"}, {"pod": "shop/b", "attempts": 1}],
        "unschedulable": [{"pod": "shop/c", "plugins": ["SchedulingGates"], "gated": true}],
        "placed": {"shop/run": "node-1"},
        "deleted": ["shop/y", "shop/z"],
    });
    assert_eq!(state(&whole), expected);
}
