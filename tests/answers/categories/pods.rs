//! Ports and other pods.

use serde_json::{Value, json};

use super::categories;
use crate::cluster::{Case, HOSTNAME, ZONE};
use crate::random::Random;

categories! {
    port_taken, port_of_address, port_udp, ports_two, affinity_no_such_pod, affinity_value_typo,
    affinity_other_namespace, affinity_no_such_key, anti_affinity_own, anti_affinity_zone,
    anti_affinity_theirs, anti_affinity_theirs_zone, anti_affinity_namespaces,
    anti_affinity_namespace_selector, anti_affinity_two_terms,
}

/// Runs a pod on the node that uses a host port, and returns its key.
fn hold_port(case: &mut Case, at: usize, port: Value) -> String {
    let mut pod = case.running(at, 50, 32);
    pod["spec"]["containers"][0]["ports"] = json!([port]);
    let key = crate::cluster::key_of(&pod);
    case.add(pod);
    key
}

/// The port that the pod requests is used on each node as in `held`.
fn ports(r: &mut Random, wanted: Value, held: &[Value]) -> Case {
    let mut case = Case::new(r);
    let number = wanted["hostPort"].clone();
    case.pod["spec"]["containers"][0]["ports"] = json!([wanted]);
    for at in case.nodes() {
        for port in held {
            let holder = hold_port(&mut case, at, port.clone());
            let name = case.name(at);
            if port["hostPort"] == number {
                case.truth.node(&name, "portTaken", json!({"port": number, "holder": holder}));
            }
        }
    }
    case
}

fn host_port(number: usize) -> Value {
    json!({"containerPort": number, "hostPort": number, "protocol": "TCP"})
}

fn port_taken(r: &mut Random) -> Case {
    let number = 8000 + r.below(99);
    ports(r, host_port(number), &[host_port(number), host_port(number + 100)])
}

fn port_of_address(r: &mut Random) -> Case {
    let mut wanted = host_port(8443);
    wanted["hostIP"] = json!("127.0.0.1");
    ports(r, wanted, &[host_port(8443)])
}

fn port_udp(r: &mut Random) -> Case {
    let mut wanted = host_port(53);
    wanted["protocol"] = json!("UDP");
    let held = wanted.clone();
    ports(r, wanted, &[held])
}

fn ports_two(r: &mut Random) -> Case {
    let mut case = ports(r, host_port(9000), &[host_port(9000)]);
    let second = host_port(9001);
    case.pod["spec"]["containers"][0]["ports"].as_array_mut().unwrap().push(second.clone());
    for at in case.nodes() {
        let holder = hold_port(&mut case, at, second.clone());
        let name = case.name(at);
        case.truth.node(&name, "portTaken", json!({"port": 9001, "holder": holder}));
    }
    case
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn with(pod: &mut Value, list: &str, terms: Value) {
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
    pod["spec"]["affinity"][list] = required;
}

/// Runs a pod of this app and returns its key.
fn run_app(case: &mut Case, at: usize, app: &str, namespace: &str) -> String {
    let mut pod = case.running(at, 50, 32);
    pod["metadata"]["labels"]["app"] = json!(app);
    pod["metadata"]["namespace"] = json!(namespace);
    let key = crate::cluster::key_of(&pod);
    case.add(pod);
    key
}

/// The pod requires pods of an app in its domain, and there are none.
fn nothing_near(case: &mut Case, term: Value) {
    let key = term["topologyKey"].as_str().unwrap().to_owned();
    with(&mut case.pod, "podAffinity", json!([term]));
    for at in case.nodes() {
        let name = case.name(at);
        case.truth.node(&name, "noPodNear", json!({"term": {"topologyKey": key}}));
    }
}

fn affinity_no_such_pod(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    nothing_near(&mut case, term("database", HOSTNAME));
    case.truth.name("database");
    case
}

fn affinity_value_typo(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    run_app(&mut case, 0, "database", "default");
    nothing_near(&mut case, term("databse", ZONE));
    case.truth.name("database");
    case
}

fn affinity_other_namespace(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    run_app(&mut case, 1, "database", "shop");
    nothing_near(&mut case, term("database", HOSTNAME));
    case.truth.name("shop");
    case
}

/// The pods exist, but no node has the topology key.
fn affinity_no_such_key(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    run_app(&mut case, 0, "database", "default");
    nothing_near(&mut case, term("database", "example.com/room"));
    case.truth.name("example.com/room");
    case
}

/// Expects a pod that blocks the node.
fn blocked_by_pod(case: &mut Case, at: usize, whose: &str, pods: &[String]) {
    let name = case.name(at);
    let fields = json!({"whose": whose, "pods": {"count": pods.len()}});
    case.truth.node(&name, "blockedByPod", fields);
    pods.iter().for_each(|pod| case.truth.name(pod.as_str()));
}

fn anti_affinity_own(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    with(&mut case.pod, "podAntiAffinity", json!([term("cache", HOSTNAME)]));
    for at in case.nodes() {
        let pod = run_app(&mut case, at, "cache", "default");
        blocked_by_pod(&mut case, at, "own", &[pod]);
    }
    case
}

/// One pod in each zone blocks all nodes of the zone.
fn per_zone(case: &mut Case, whose: &str, run: impl Fn(&mut Case, usize) -> String) {
    let zones: Vec<String> = case.rooms.iter().map(|room| room.zone.clone()).collect();
    let first = |zone: &String| zones.iter().position(|other| other == zone).unwrap();
    let mut keys = vec![String::new(); zones.len()];
    for at in case.nodes().filter(|at| first(&zones[*at]) == *at) {
        keys[at] = run(case, at);
    }
    for at in case.nodes() {
        let key = keys[first(&zones[at])].clone();
        blocked_by_pod(case, at, whose, &[key]);
    }
}

fn anti_affinity_zone(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    with(&mut case.pod, "podAntiAffinity", json!([term("cache", ZONE)]));
    per_zone(&mut case, "own", |case, at| run_app(case, at, "cache", "default"));
    case
}

/// Runs a pod with anti-affinity to `web`.
fn run_lonely(case: &mut Case, at: usize, key: &str) -> String {
    let mut pod = case.running(at, 50, 32);
    with(&mut pod, "podAntiAffinity", json!([term("web", key)]));
    let name = crate::cluster::key_of(&pod);
    case.add(pod);
    name
}

fn anti_affinity_theirs(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    for at in case.nodes() {
        let pod = run_lonely(&mut case, at, HOSTNAME);
        blocked_by_pod(&mut case, at, "theirs", &[pod]);
    }
    case
}

fn anti_affinity_theirs_zone(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    per_zone(&mut case, "theirs", |case, at| run_lonely(case, at, ZONE));
    case
}

fn anti_affinity_namespaces(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let mut term = term("cache", HOSTNAME);
    term["namespaces"] = json!(["shop"]);
    with(&mut case.pod, "podAntiAffinity", json!([term]));
    for at in case.nodes() {
        run_app(&mut case, at, "cache", "lab");
        let pod = run_app(&mut case, at, "cache", "shop");
        blocked_by_pod(&mut case, at, "own", &[pod]);
    }
    case
}

fn anti_affinity_namespace_selector(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    for (name, team) in [("shop", "a"), ("lab", "b")] {
        case.add(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": team}}}));
    }
    let mut term = term("cache", HOSTNAME);
    term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    with(&mut case.pod, "podAntiAffinity", json!([term]));
    for at in case.nodes() {
        run_app(&mut case, at, "cache", "lab");
        let pod = run_app(&mut case, at, "cache", "shop");
        blocked_by_pod(&mut case, at, "own", &[pod]);
    }
    case
}

fn anti_affinity_two_terms(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let terms = json!([term("cache", HOSTNAME), term("queue", HOSTNAME)]);
    with(&mut case.pod, "podAntiAffinity", terms);
    for at in case.nodes() {
        for app in ["cache", "queue"] {
            let pod = run_app(&mut case, at, app, "default");
            blocked_by_pod(&mut case, at, "own", &[pod]);
        }
    }
    case
}
