//! The embedded scheduler with a stand-in for an API server that loses, rejects and repeats
//! requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use serde_json::{Value, json};

use crate::control_plane::free_port;
use crate::running::{Running, get, until};
use crate::standin::{StandIn, State, is_served};

const LEASE: &str = "/apis/coordination.k8s.io/v1/leases";

fn cluster(server: &StandIn, nodes: usize, pods: usize) {
    for at in 0..nodes {
        let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
        let status = json!({"allocatable": room, "capacity": room});
        server.put(Kind::Node, &format!("node-{at}"), json!({"status": status}));
    }
    for at in 0..pods {
        server.put(Kind::Pod, &format!("pod-{at}"), pod(at));
    }
}

fn pod(at: usize) -> Value {
    let resources = json!({"requests": {"cpu": "1"}});
    json!({
        "metadata": {"uid": format!("uid-{at}")},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": resources}],
        },
    })
}

fn pods(state: &State) -> Vec<Value> {
    let pods = state.objects.get("/api/v1/pods");
    pods.map(|pods| pods.values().cloned().collect()).unwrap_or_default()
}

/// The node of each pod that has one.
fn nodes_of(server: &StandIn) -> Vec<String> {
    let of = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    server.look(|state| pods(state).iter().filter_map(of).collect())
}

/// Pods by node, without those whose binding was applied but got no response: the scheduler forgets
/// such a pod, as kube-scheduler does, and may give its room away before the watch shows it.
fn surely_bound(server: &StandIn) -> BTreeMap<String, usize> {
    let mut pods_of = BTreeMap::new();
    server.look(|state| {
        for pod in pods(state) {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let binding = format!("/pods/{name}/binding");
            let is_unsure = state.unanswered.iter().any(|path| path.ends_with(&binding));
            if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|_| !is_unsure) {
                *pods_of.entry(node.to_owned()).or_default() += 1;
            }
        }
    });
    pods_of
}

/// How often a pod got a node in the server's log: the changes from none to one.
fn times_bound(server: &StandIn, name: &str) -> usize {
    server.look(|state| {
        let of_pod = state.log.iter().filter(|(.., pod)| pod["metadata"]["name"] == name);
        let nodes: Vec<_> = of_pod.map(|(.., pod)| pod["spec"]["nodeName"].clone()).collect();
        nodes.windows(2).filter(|pair| pair[0].is_null() && !pair[1].is_null()).count()
    })
}

fn lease(server: &StandIn) -> Value {
    let found = server.look(|state| {
        let leases = state.objects.get(LEASE)?;
        leases.values().next().cloned()
    });
    found.unwrap_or_default()
}

#[test]
fn whatever_becomes_of_writes_and_watches_every_pod_is_bound_once() {
    // The backoff of pods is not under test.
    let config = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                podMaxBackoffSeconds: 1\n";
    std::fs::write(config.path(), text).unwrap();
    for seed in 1..=3 {
        let server = StandIn::start();
        cluster(&server, 12, 40);
        server.misbehave(|faults| {
            faults.seed = Some(seed);
            faults.writes = Some(seed);
        });
        let line = format!(
            "--yes-write --kube-api-qps=-1 --secure-port 0 --v 2 --config {}",
            config.path().display()
        );
        let mut scheduler = Running::start_on(&server.kubeconfig(), &line);
        until("all pods are bound", || nodes_of(&server).len() == 40);
        for (node, pods) in surely_bound(&server) {
            assert!(pods <= 4, "seed {seed}: {node} has {pods} pods");
        }
        for at in 0..40 {
            assert_eq!(times_bound(&server, &format!("pod-{at}")), 1, "seed {seed}: pod-{at}");
        }
        assert_eq!(scheduler.stop(), Some(0), "seed {seed}: {}", scheduler.output());
    }
}

/// A guest that only accepts the nodes whose names begin with the letter in its configuration.
#[test]
fn a_guest_decides_where_pods_are_bound() {
    let folder = tempfile::tempdir().unwrap();
    let guest = include_str!("../../docs/src/examples/wasm/own-nodes.wat");
    let path = folder.path().join("own-nodes.wasm");
    std::fs::write(&path, wat::parse_str(guest).unwrap()).unwrap();
    let text = include_str!("../../docs/src/examples/wasm/scheduler.yaml");
    let text = text.replace("own-nodes.wasm", &path.display().to_string());
    let config = folder.path().join("scheduler.yaml");
    std::fs::write(&config, text.replace("guestConfig: a", "guestConfig: o")).unwrap();
    let server = StandIn::start();
    cluster(&server, 3, 3);
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
    server.put(Kind::Node, "own", json!({"status": {"allocatable": room, "capacity": room}}));
    let line = format!("--yes-write --leader-elect=false --config {}", config.display());
    let mut scheduler = Running::start_on(&server.kubeconfig(), &line);
    until("all pods are bound", || nodes_of(&server).len() == 3);
    assert_eq!(nodes_of(&server), ["own"; 3]);
    assert_eq!(scheduler.stop(), Some(0), "{}", scheduler.output());
}

#[test]
fn while_the_cluster_cannot_be_followed_nothing_is_written() {
    let server = StandIn::start();
    cluster(&server, 2, 2);
    let scheduler =
        Running::start_on(&server.kubeconfig(), "--yes-write --leader-elect=false --v 2");
    until("both are bound", || nodes_of(&server).len() == 2);
    server.misbehave(|faults| faults.down = true);
    scheduler.wait_for("not followed");
    server.put(Kind::Pod, "late", pod(9));
    let before = server.requests().iter().filter(|line| line.contains("/binding")).count();
    server.misbehave(|faults| faults.down = false);
    scheduler.wait_for("all watches work again");
    until("the late pod is bound", || nodes_of(&server).len() == 3);
    let after = server.requests().iter().filter(|line| line.contains("/binding")).count();
    assert_eq!(after, before + 1);
}

/// The writes whose line contains that text.
fn written(server: &StandIn, part: &str) -> usize {
    let requests = server.requests();
    requests.iter().filter(|line| !line.starts_with("GET ") && line.contains(part)).count()
}

#[test]
fn pods_that_share_a_claim_are_bound_with_one_reservation_each() {
    let server = StandIn::start();
    share_a_claim(&server, "v1", json!({"exactly": {"deviceClassName": "gpu"}}), "");
}

/// The server has resource claims in one older API version only.
#[test]
fn claims_are_written_in_the_version_that_the_server_has() {
    let server = StandIn::start();
    server.misbehave(|faults| {
        faults.version = Some("v1.33.5");
        faults.served = Some(|path| is_served(path) && !path.starts_with("/apis/resource.k8s.io"));
    });
    let gates = "--feature-gates DynamicResourceAllocation=true";
    share_a_claim(&server, "v1beta1", json!({"deviceClassName": "gpu"}), gates);
    let claims = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims/";
    assert_eq!(written(&server, "resourceclaims/"), written(&server, claims));
}

fn share_a_claim(server: &StandIn, version: &str, mut request: Value, options: &str) {
    cluster(server, 1, 0);
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let slice = json!({
        "driver": "d.example.com", "nodeName": "node-0", "pool": pool,
        "devices": [{"name": "a", "basic": {}}],
    });
    server.put_in(Kind::DeviceClass, version, "gpu", json!({"spec": {}}));
    server.put_in(Kind::ResourceSlice, version, "s", json!({"spec": slice}));
    request["name"] = "r".into();
    let claim = json!({"metadata": {"uid": "c"}, "spec": {"devices": {"requests": [request]}}});
    server.put_in(Kind::ResourceClaim, version, "shared", claim);
    for at in 0..4 {
        let mut user = pod(at);
        user["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": "shared"}]);
        server.put(Kind::Pod, &format!("pod-{at}"), user);
    }
    let line = format!("--yes-write --leader-elect=false {options}");
    let _scheduler = Running::start_on(&server.kubeconfig(), line.trim_end());
    until("all are bound", || nodes_of(server).len() == 4);
    assert_eq!(written(server, "resourceclaims/shared"), 5, "{:?}", server.requests());
}

#[test]
fn a_victim_is_deleted_though_bindings_hang() {
    let server = StandIn::start();
    cluster(&server, 64, 0);
    let filling = |name: &str, priority: i32| {
        let mut all = pod(0);
        all["metadata"]["uid"] = name.into();
        all["spec"]["priority"] = priority.into();
        all["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4".into();
        server.put(Kind::Pod, name, all);
    };
    server.misbehave(|faults| {
        faults.held = Some(|path| path.ends_with("/binding") && !path.contains("urgent"));
    });
    // As many as are sent concurrently: when all hang, no node is free for the urgent pod.
    (0..64).for_each(|at| filling(&format!("victim-{at}"), 0));
    let _scheduler = Running::start_on(
        &server.kubeconfig(),
        "--yes-write --leader-elect=false --kube-api-qps=-1",
    );
    until("all bindings hang", || written(&server, "/binding") == 64);
    filling("urgent", 100);
    until("a victim is deleted", || written(&server, "DELETE /api/v1/namespaces") == 1);
    assert_eq!(nodes_of(&server), [""; 0], "no binding was answered yet");
    server.misbehave(|faults| faults.held = None);
    until("it has its node", || times_bound(&server, "urgent") == 1);
}

#[test]
fn the_lease_is_taken_renewed_and_given_back() {
    let server = StandIn::start();
    cluster(&server, 1, 0);
    let times = "--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s \
                 --leader-elect-retry-period 1s";
    let mut scheduler = Running::start_on(&server.kubeconfig(), &format!("--yes-write {times}"));
    scheduler.wait_for_the_lease();
    let first = lease(&server);
    let holder = first["spec"]["holderIdentity"].as_str();
    assert!(holder.is_some_and(|name| !name.is_empty()), "{first}");
    until("it is renewed", || lease(&server)["spec"]["renewTime"] != first["spec"]["renewTime"]);
    assert_eq!(lease(&server)["spec"]["acquireTime"], first["spec"]["acquireTime"]);
    assert_eq!(scheduler.stop(), Some(0), "{}", scheduler.output());
    assert_eq!(lease(&server)["spec"]["holderIdentity"], "");
}

#[test]
fn a_lost_lease_ends_it() {
    let server = StandIn::start();
    cluster(&server, 1, 0);
    let times = "--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s \
                 --leader-elect-retry-period 1s";
    let mut scheduler = Running::start_on(&server.kubeconfig(), &format!("--yes-write {times}"));
    scheduler.wait_for_the_lease();
    let other = json!({"holderIdentity": "another", "leaseDurationSeconds": 3600});
    server.put_at(LEASE, "kube-system/kube-scheduler", json!({"spec": other}));
    assert_eq!(scheduler.end(), Some(5), "{}", scheduler.output());
    server.put(Kind::Pod, "late", pod(0));
    assert!(nodes_of(&server).is_empty());
}

#[test]
fn a_lease_that_others_change_is_kept_with_three_requests_each_time() {
    let server = StandIn::start();
    cluster(&server, 1, 0);
    let port = free_port();
    let line = format!(
        "--yes-write --secure-port 0 --http-port {port} --leader-elect-lease-duration 4s \
         --leader-elect-renew-deadline 3s --leader-elect-retry-period 1s"
    );
    let mut scheduler = Running::start_on(&server.kubeconfig(), &line);
    scheduler.wait_for_the_lease();
    let asked = || server.requests().iter().filter(|line| line.contains("/leases")).count();
    let (before, began) = (asked(), Instant::now());
    // Longer than the deadline.
    for at in 0..50 {
        let touched = json!({"annotations": {"touched": at.to_string()}});
        server.put_at(LEASE, "kube-system/kube-scheduler", json!({"metadata": touched}));
        std::thread::sleep(Duration::from_millis(100));
    }
    // A renewal that is rejected, a read, and a renewal that is accepted.
    let renewals = began.elapsed().as_secs() as usize + 1;
    let requests = asked() - before;
    assert!(requests <= 3 * renewals, "{requests} requests for {renewals} renewals");
    let slow = "leader_election_slowpath_total{name=\"kube-scheduler\"}";
    assert!(get(port, "/metrics").contains(slow));
    server.put(Kind::Pod, "pod-0", pod(0));
    until("it still schedules", || nodes_of(&server).len() == 1);
    assert_eq!(scheduler.stop(), Some(0), "{}", scheduler.output());
}

#[test]
fn a_lease_is_renewed_with_one_request() {
    let server = StandIn::start();
    cluster(&server, 1, 0);
    let times = "--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s \
                 --leader-elect-retry-period 1s";
    let scheduler = Running::start_on(&server.kubeconfig(), &format!("--yes-write {times}"));
    scheduler.wait_for_the_lease();
    until("it is renewed", || written(&server, "PUT /apis/coordination") >= 3);
    let requests = server.requests();
    let is_read =
        |line: &&String| line.starts_with("GET ") && line.ends_with("/leases/kube-scheduler");
    let reads = requests.iter().filter(is_read);
    assert_eq!(reads.count(), 1, "before it was created");
}

#[test]
fn events_that_conflict_are_not_repeated_at_once_and_delay_nothing() {
    let server = StandIn::start();
    cluster(&server, 1, 0);
    server.misbehave(|faults| faults.conflicts = Some(|path| path.contains("/events")));
    for at in 0..3 {
        let mut large = pod(at);
        large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100".into();
        server.put(Kind::Pod, &format!("large-{at}"), large);
    }
    server.put(Kind::Pod, "small", pod(9));
    let _scheduler = Running::start_on(&server.kubeconfig(), "--yes-write --leader-elect=false");
    until("the small pod is bound", || nodes_of(&server).len() == 1);
    until("events were sent", || written(&server, "/events") >= 4);
    std::thread::sleep(Duration::from_secs(2));
    // One for each pod; the binding may have led to one more attempt of each large pod.
    let events = written(&server, "/events");
    assert!(events <= 7, "{events} requests about events");
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it() {
    let server = StandIn::start();
    cluster(&server, 1, 1);
    server.misbehave(|faults| {
        faults.unavailable = Some(|path| path.ends_with("/binding"));
    });
    let _scheduler = Running::start_on(&server.kubeconfig(), "--yes-write --leader-elect=false");
    until("a binding is sent", || written(&server, "/binding") >= 1);
    std::thread::sleep(Duration::from_millis(2_500));
    let bindings = written(&server, "/binding");
    assert!((2..=4).contains(&bindings), "{bindings} bindings with Retry-After: 1");
    server.misbehave(|faults| faults.unavailable = None);
    until("it is bound", || nodes_of(&server).len() == 1);
    assert_eq!(times_bound(&server, "pod-0"), 1);
}

#[test]
fn it_waits_for_an_api_server_that_is_not_there_yet() {
    let server = StandIn::start();
    cluster(&server, 1, 1);
    server.misbehave(|faults| faults.down = true);
    let port = free_port();
    let line = format!("--yes-write --leader-elect=false --secure-port 0 --http-port {port}");
    let mut scheduler = Running::start_on(&server.kubeconfig(), &line);
    scheduler.wait_for("waiting for the API server: http://127.0.0.1:");
    assert!(get(port, "/healthz").ends_with("\r\n\r\nok"));
    let ready = get(port, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 500"), "{ready}");
    assert!(ready.contains("[-]sched-handler-sync failed: reason withheld\n"), "{ready}");
    let reason = "internal server error: handlers are not fully synchronized\n";
    assert!(get(port, "/readyz/sched-handler-sync").ends_with(reason));
    server.misbehave(|faults| faults.down = false);
    scheduler.wait_for("the API server answers");
    until("the pod is bound", || nodes_of(&server).len() == 1);
    until("it is ready", || get(port, "/readyz").starts_with("HTTP/1.1 200"));
    let attempts =
        "scheduler_batch_attempts_total{profile=\"default-scheduler\",result=\"no_hint\"}";
    assert!(get(port, "/metrics").contains(attempts));
    assert_eq!(scheduler.stop(), Some(0));
}

#[test]
fn while_it_waits_for_the_api_server_it_can_be_ended() {
    let server = StandIn::start();
    server.misbehave(|faults| faults.down = true);
    let mut scheduler = Running::start_on(&server.kubeconfig(), "--yes-write --secure-port 0");
    scheduler.wait_for("waiting for the API server");
    assert_eq!(scheduler.stop(), Some(0));
}

#[test]
fn credentials_that_are_not_accepted_are_an_error_at_once() {
    let server = StandIn::start();
    server.misbehave(|faults| faults.token = Some("another".into()));
    let mut scheduler = Running::start_on(&server.kubeconfig(), "--yes-write --secure-port 0");
    assert_eq!(scheduler.end(), Some(4));
    let reported = scheduler.output();
    assert!(reported.contains("the credentials are not accepted"), "{reported}");
    assert!(!reported.contains("waiting"), "{reported}");
}

#[test]
fn a_signal_between_the_lists_and_the_first_cycle_ends_it() {
    let server = StandIn::start();
    // So many that building the cluster from the lists takes a while.
    let pods = 5000;
    cluster(&server, 500, pods);
    let mut scheduler =
        Running::start_on(&server.kubeconfig(), "--yes-write --leader-elect=false --v 2");
    let pages = pods / 500;
    let asked = |server: &StandIn| {
        server.requests().iter().filter(|line| *line == "GET /api/v1/pods").count()
    };
    until("pods are watched", || asked(&server) > pages);
    scheduler.terminate();
    until("it ends", || scheduler.has_ended());
    assert_eq!(scheduler.end(), Some(0), "{}", scheduler.output());
}
