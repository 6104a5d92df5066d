//! Clusters that are not reachable: one clear error, and its own exit code.

use std::net::TcpListener;

use crate::harness::Call;

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: \"http://127.0.0.1:PORT\"}}]
users: [{name: me, user: {}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
";

/// A port on which no process listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn nobody_answers() {
    let port = free_port().to_string();
    let call = Call::new().file("config", &KUBECONFIG.replace("PORT", &port));
    for line in ["run", "capture -o c.json"] {
        let said = call.run(&format!("{line} --kubeconfig config"));
        assert_eq!((said.stdout.as_str(), said.code), ("", Some(4)), "{}", said.stderr);
        let told = said.stderr.replace(&port, "PORT");
        assert!(told.starts_with("kubestep: http://127.0.0.1:PORT: Connection refused"), "{told}");
        assert!(told.contains("\n  help: does \"kubectl get nodes\" work?"), "{told}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used() {
    let call = Call::new().file("config", KUBECONFIG);
    call.says("errors/context", "run --kubeconfig config --context attic");
    Call::new().says("errors/kubeconfig", "run --kubeconfig nowhere");
    call.says("errors/namespaces", "run --kubeconfig config -A -n shop");
}
