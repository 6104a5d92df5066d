//! Spread constraints that a placement would violate. The counts are balanced so that the figures
//! of each domain are known.

use serde_json::{Value, json};

use super::categories;
use crate::cluster::{Case, HOSTNAME, ZONE};
use crate::random::Random;

categories! {
    spread_hostname, spread_zone, spread_of_profile, spread_min_domains, spread_missing_key,
    spread_taints_counted, spread_taints_honored, spread_two, spread_match_label_keys,
}

/// A constraint on pods of the app.
fn constraint(key: &str, skew: i64) -> Value {
    json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}})
}

fn spread_over(case: &mut Case, constraints: &[Value]) {
    case.pod["spec"]["topologySpreadConstraints"] = json!(constraints);
}

/// Runs that many pods of the app on the node.
fn run_web(case: &mut Case, at: usize, count: i64) {
    for _ in 0..count {
        let mut pod = case.running(at, 20, 16);
        pod["metadata"]["labels"]["app"] = json!("web");
        case.add(pod);
    }
}

/// The figures of a domain: its matching pods, the minimum over all domains, `maxSkew`.
fn uneven(case: &mut Case, at: usize, key: &str, [count, least, skew]: [i64; 3]) {
    let (name, zone) = (case.name(at), case.rooms[at].zone.clone());
    let domain = if key == ZONE { zone } else { name.clone() };
    let figures = json!({"domain": domain, "count": count, "own": 1, "least": least,
        "skew": count + 1 - least, "maxSkew": skew});
    case.truth.node(&name, "spread", json!({"topologyKey": key, "skew": figures}));
}

/// The only node that would balance the domains is full.
fn full(r: &mut Random, case: &mut Case, at: usize) {
    case.leave_cpu(at, 20, r);
    super::resources::cpu_is_short(case, at, 400);
}

fn spread_hostname(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let skew = 1 + r.below(2) as i64;
    case.ask("cpu", "400m");
    spread_over(&mut case, &[constraint(HOSTNAME, skew)]);
    full(r, &mut case, 0);
    for at in 1..case.rooms.len() {
        let count = skew + r.below(2) as i64;
        run_web(&mut case, at, count);
        uneven(&mut case, at, HOSTNAME, [count, 0, skew]);
    }
    case
}

/// The nodes of one zone are full, and the other zones have one pod too many.
fn zones(r: &mut Random, case: &mut Case) {
    case.ask("cpu", "400m");
    let empty = case.rooms[0].zone.clone();
    let zones: Vec<String> = case.rooms.iter().map(|room| room.zone.clone()).collect();
    for at in case.nodes() {
        let first = zones.iter().position(|zone| *zone == zones[at]).unwrap();
        match zones[at] == empty {
            true => full(r, case, at),
            false => {
                run_web(case, at, i64::from(first == at));
                uneven(case, at, ZONE, [1, 0, 1]);
            }
        }
    }
}

fn spread_zone(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    spread_over(&mut case, &[constraint(ZONE, 1)]);
    zones(r, &mut case);
    case
}

/// The pod has no constraint of its own; a service selects it.
fn spread_of_profile(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.config = Some(format!(
        "profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: DoNotSchedule}}"
    ));
    case.add(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}));
    zones(r, &mut case);
    case.truth.name("profile");
    case
}

fn spread_min_domains(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let mut wanted = constraint(HOSTNAME, 1);
    wanted["minDomains"] = json!(case.rooms.len() + 1 + r.below(3));
    spread_over(&mut case, &[wanted]);
    for at in case.nodes() {
        run_web(&mut case, at, 1);
        uneven(&mut case, at, HOSTNAME, [1, 0, 1]);
    }
    case
}

fn spread_missing_key(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    spread_over(&mut case, &[constraint("example.com/rack-row", 1)]);
    for at in case.nodes() {
        let name = case.name(at);
        let fields = json!({"topologyKey": "example.com/rack-row", "skew": null});
        case.truth.node(&name, "spread", fields);
    }
    case
}

/// A tainted node forms a domain without pods, unless the constraint honors taints.
fn beside_tainted(r: &mut Random, policy: &str, least: i64) -> Case {
    let mut case = Case::new(r);
    let mut wanted = constraint(HOSTNAME, 1);
    wanted["nodeTaintsPolicy"] = json!(policy);
    spread_over(&mut case, &[wanted]);
    super::nodes::tainted(&mut case, 0, "dedicated", "payments", "NoSchedule");
    for at in 1..case.rooms.len() {
        run_web(&mut case, at, 1);
        if least == 0 {
            uneven(&mut case, at, HOSTNAME, [1, 0, 1]);
        }
    }
    case
}

fn spread_taints_counted(r: &mut Random) -> Case {
    beside_tainted(r, "Ignore", 0)
}

/// The other nodes are balanced, but have too little CPU.
fn spread_taints_honored(r: &mut Random) -> Case {
    let mut case = beside_tainted(r, "Honor", 1);
    case.ask("cpu", "400m");
    for at in 1..case.rooms.len() {
        full(r, &mut case, at);
    }
    case
}

fn spread_two(r: &mut Random) -> Case {
    let nodes = 4 + r.below(6);
    let mut case = Case::sized(r, nodes);
    spread_over(&mut case, &[constraint(ZONE, 1), constraint(HOSTNAME, 1)]);
    case.ask("cpu", "400m");
    full(r, &mut case, 0);
    for at in 1..nodes {
        run_web(&mut case, at, 1);
        uneven(&mut case, at, HOSTNAME, [1, 0, 1]);
    }
    let zone = |at: usize| case.rooms[at].zone.clone();
    let count = |of: &str| (1..nodes).filter(|at| zone(*at) == of).count() as i64;
    let counts: Vec<i64> = (0..nodes).map(|at| count(&zone(at))).collect();
    let least = *counts.iter().min().unwrap();
    for (at, count) in counts.into_iter().enumerate() {
        if count + 1 - least > 1 {
            uneven(&mut case, at, ZONE, [count, least, 1]);
        }
    }
    case
}

/// Only pods of the same revision count.
fn spread_match_label_keys(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let mut wanted = constraint(HOSTNAME, 1);
    wanted["matchLabelKeys"] = json!(["revision"]);
    spread_over(&mut case, &[wanted]);
    case.ask("cpu", "400m");
    case.pod["metadata"]["labels"]["revision"] = json!("2");
    run_web(&mut case, 0, 1);
    full(r, &mut case, 0);
    for at in 1..case.rooms.len() {
        run_web(&mut case, at, 1);
        let mut pod = case.running(at, 20, 16);
        pod["metadata"]["labels"] = json!({"app": "web", "revision": "2"});
        case.add(pod);
        uneven(&mut case, at, HOSTNAME, [1, 0, 1]);
    }
    case
}
