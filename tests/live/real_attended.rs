//! The debugger on the embedded scheduler in place of kube-scheduler, with a real API server: see
//! [`crate::control_plane`].

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::objects::{create, get, get_pod, node, pod};
use crate::running::until;
use crate::terminal::{Terminal, kubestep};

fn attend(plane: &ControlPlane, more: &[&str]) -> Terminal {
    let kubeconfig = plane.kubeconfig("scheduler");
    let line = ["schedule", "--tui", "--kubeconfig", kubeconfig.to_str().unwrap()];
    Terminal::start(kubestep(&[&line[..], more].concat()), 140, 40)
}

/// The program's writes of pods, with subresources: `pods/binding a 201`.
fn writes(plane: &ControlPlane) -> Vec<String> {
    let own = plane.audited().into_iter().filter(|it| it.agent.starts_with("kubestep/"));
    let writes = own.filter(|it| !["get", "list", "watch"].contains(&it.verb.as_str()));
    let on_pods = writes.filter(|it| it.resource.starts_with("pods"));
    on_pods.map(|it| format!("{} {} {} {}", it.verb, it.resource, it.name, it.code)).collect()
}

fn condition(pod: &Value) -> Value {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "PodScheduled");
    found.unwrap_or_default()
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_pod_is_allowed_and_one_rejected_by_hand() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4"), pod("good", "1"), pod("bad", "1")]);
    let mut terminal = attend(&plane, &[]);
    terminal.wait_for("Write to lab? Type its name to allow it:");
    terminal.send("lab\r");
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send(":hold *\r");
    terminal.wait_for("2 pending pods match");
    terminal.send("c7");
    terminal.wait_for("default/good");
    terminal.wait_for("default/bad");
    // The same as in kube-scheduler while a pod waits.
    let nominated = |name: &str| get_pod(&plane, name)["status"]["nominatedNodeName"] == "node-0";
    until("both are nominated", || nominated("good") && nominated("bad"));
    terminal.send("/good\rA");
    until("the allowed one is bound", || get_pod(&plane, "good")["spec"]["nodeName"] == "node-0");
    terminal.send("\x1b");
    terminal.wait_for("default/bad");
    terminal.send("xnot today\r");
    until("the condition", || condition(&get_pod(&plane, "bad"))["status"] == "False");
    let bad = get_pod(&plane, "bad");
    assert_eq!(bad["spec"]["nodeName"], Value::Null);
    // The message of a pod rejected at Permit counts only the selected node.
    let reported = condition(&bad);
    assert_eq!(reported["reason"], "Unschedulable");
    assert_eq!(reported["message"], "0/1 nodes are available: 1 not today.");
    let events = || get(&plane, "/apis/events.k8s.io/v1/namespaces/default/events");
    let has = |name: &str, reason: &str| {
        let events = events()["items"].as_array().unwrap().clone();
        events.iter().any(|it| it["regarding"]["name"] == name && it["reason"] == reason)
    };
    until("the events", || has("good", "Scheduled") && has("bad", "FailedScheduling"));
    assert!(!has("bad", "Scheduled") && !has("good", "FailedScheduling"));
    let mut written = writes(&plane);
    written.sort();
    let expected = [
        "create pods/binding good 201",
        "patch pods/status bad 200",
        "patch pods/status bad 200",
        "patch pods/status good 200",
    ];
    assert_eq!(written, expected, "two nominations, a binding and a condition");
    terminal.wait_for("What rejecting did");
    terminal.send("q");
    terminal.wait("no window", |screen| !screen.contents().contains("What rejecting did"));
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";
    assert_eq!(get(&plane, path)["spec"]["holderIdentity"], "");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_held_cycle_and_a_branch_write_nothing_and_a_dry_run_changes_nothing() {
    let mut plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4"), pod("web", "1")]);
    let lease = "--leader-elect=false";
    let mut terminal = attend(&plane, &["--yes-write", lease]);
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send("s");
    terminal.wait_for("cycle 1 of default/web is held: bind default/web to node-0");
    terminal.send(":fork\r");
    terminal.wait_for("WHAT-IF: nothing is written");
    create(&plane, vec![pod("late", "1")]);
    terminal.send(":what-if add 1 node like node-0\rc");
    terminal.send(":branch original\r");
    terminal.wait_for("HELD: ");
    assert!(writes(&plane).is_empty(), "{:?}", writes(&plane));
    plane.restart();
    // Before the server has loaded its roles it rejects everything, which is retried a minute
    // later.
    until("all is followed again", || terminal.text().contains("HELD: "));
    terminal.send("}");
    until("it is bound", || get_pod(&plane, "web")["spec"]["nodeName"] == "node-0");
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send("n");
    until("the late one, too", || get_pod(&plane, "late")["spec"]["nodeName"] == "node-0");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    let bound = writes(&plane).into_iter().filter(|line| line.contains("/binding"));
    assert_eq!(bound.count(), 2);
    create(&plane, vec![pod("tried", "1")]);
    let mut terminal = attend(&plane, &["--dry-run"]);
    terminal.wait_for("LIVE SCHEDULING (dry run): paused");
    terminal.send("n");
    terminal.wait_for("decided and sent: bind default/tried to node-0");
    until("it is tried", || writes(&plane).iter().any(|line| line.contains("/binding tried 201")));
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(get_pod(&plane, "tried")["spec"]["nodeName"], json!(null));
}
