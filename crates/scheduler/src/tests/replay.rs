//! Recorded cycles, repeated without their matrices, leave the same scheduler behind.

use super::*;
use crate::what_if::ReplayHint;

/// Nodes of two sizes, and pods with anti-affinity, of which every fourth fits nowhere.
fn cluster() -> Bench {
    let mut bench = Bench::new("", &[]);
    for at in 0..6 {
        let cpu = if at % 2 == 0 { "4" } else { "8" };
        let named = node(&format!("n{at}")).label("kubernetes.io/hostname", &format!("n{at}"));
        bench.add(named.offers("cpu", cpu));
    }
    for at in 0..24 {
        let cpu = if at % 4 == 3 { "20" } else { "1" };
        let spread = json!([{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]);
        let spec =
            if at % 2 == 0 { json!({"topologySpreadConstraints": spread}) } else { json!({}) };
        bench.add(pod(&format!("p{at}")).requests("cpu", cpu).label("app", "a").spec(spec));
    }
    bench
}

/// What is visible of a cycle.
fn seen(bench: &mut Bench, record: &CycleRecord) -> String {
    let CycleRecord { pod, node, outcome, message, start_index, .. } = record;
    let asked = std::mem::take(&mut bench.host.asked);
    let next = bench.scheduler.algorithm.next_start_node_index;
    format!("{pod} {node:?} {outcome:?} {message} {start_index} {next} {asked:?}")
}

#[test]
fn hints_done_again_lead_to_the_same() {
    let (mut first, mut again) = (cluster(), cluster());
    let mut known = 0;
    for _ in 0..20 {
        let record = first.step();
        let Some(hint) = ReplayHint::of(&record) else {
            let whole = again.step();
            assert_eq!(seen(&mut again, &whole), seen(&mut first, &record));
            continue;
        };
        known += 1;
        let Bench { scheduler, host } = &mut again;
        let short = hint.schedule_one(scheduler, Time(0), host).unwrap();
        assert!(record.is_whole() && !short.is_whole() && short.filter.plugins.is_empty());
        assert_eq!(seen(&mut again, &short), seen(&mut first, &record));
        assert_eq!(again.scheduler.cluster.shared, first.scheduler.cluster.shared);
    }
    assert_eq!(known, 15);
    let [first, again] = [first, again].map(|mut bench| bench.step());
    assert_eq!((first.feasible, first.score), (again.feasible, again.score));
}

#[test]
fn what_is_known_wrongly_is_found_out() {
    let (mut first, mut again) = (cluster(), cluster());
    let record = first.step();
    let full = CycleRecord { node: Some("gone".into()), ..record.clone() };
    let other = CycleRecord { uid: "other".into(), ..record.clone() };
    for wrong in [full, other] {
        let mut bench = cluster();
        let hint = ReplayHint::of(&wrong).unwrap();
        let Bench { scheduler, host } = &mut bench;
        let whole = hint.schedule_one(scheduler, Time(0), host).unwrap();
        assert!(whole.is_whole());
        assert_eq!(whole.node, record.node);
    }
    let whole = again.step();
    assert_eq!(seen(&mut again, &whole), seen(&mut first, &record));
}

#[test]
fn only_cycles_that_searched_by_themselves_and_bound_are_known() {
    let bound = CycleRecord {
        node: Some("n".into()),
        outcome: Outcome::Scheduled,
        ..CycleRecord::default()
    };
    assert!(ReplayHint::of(&bound).is_some());
    for other in [
        CycleRecord { outcome: Outcome::Waiting, ..bound.clone() },
        CycleRecord { outcome: Outcome::SchedulerError, ..bound.clone() },
        CycleRecord { nominated_first: Some("n".into()), ..bound.clone() },
        CycleRecord { node_hint: Some("n".into()), ..bound.clone() },
        CycleRecord { node: None, ..bound.clone() },
    ] {
        assert!(ReplayHint::of(&other).is_none(), "{other:?}");
    }
}
