//! Shadow mode with a real API server, as a user who may write: the audit log shows that nothing is
//! written.

use crate::control_plane::ControlPlane;
use crate::objects::{create, node, pending, pod};
use crate::terminal::{Terminal, kubestep};

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_the_screen_of_a_shadow_makes_not_one_write() {
    let plane = ControlPlane::start();
    let pods = (0..6).map(|at| pod(&format!("pod-{at}"), "1"));
    let nodes = [node("node-a", "2"), node("node-b", "2")];
    create(&plane, nodes.into_iter().chain(pods).collect());
    let kubeconfig = plane.kubeconfig("scheduler");
    let line = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut terminal = Terminal::start(kubestep(&line), 120, 30);
    terminal.wait_for("LIVE (shadow)");
    // Four fit in the simulation; two are rejected.
    terminal.send("2");
    terminal.wait_for("unschedulable 2");
    create(&plane, vec![node("node-c", "8")]);
    terminal.send("5");
    terminal.wait_for("node-c");
    // Freezes and continues; then the local state is compared with the server's.
    terminal.send("Z");
    terminal.wait_for("LIVE (frozen)");
    terminal.send("Z");
    terminal.wait_for("LIVE (shadow)");
    terminal.send("K");
    terminal.signal("TERM");
    assert_eq!(terminal.exit_code(), 143);
    let log = plane.audited();
    let requests: Vec<_> = log.iter().filter(|it| it.agent.starts_with("kubestep/")).collect();
    assert!(requests.len() > 20, "{} requests", requests.len());
    let is_read = |verb: &str| ["get", "list", "watch"].contains(&verb);
    let writes: Vec<_> = requests.into_iter().filter(|it| !is_read(&it.verb)).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(pending(&plane), 6, "it decided, and nothing came of it");
}
