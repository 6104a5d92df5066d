//! Options that no other test needs, each in a call of its own.

use crate::harness::Call;

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
";

/// No process listens on port 1.
const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: \"http://127.0.0.1:1\"}}]
users: [{name: me, user: {}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
";

fn says(name: &str, line: &str) {
    Call::new().says(&format!("options/{name}"), line);
}

#[test]
fn what_is_the_default_can_be_said() {
    says("run-text", "run --demo cordoned -o text --until-idle -A");
    says("explain-text", "explain job --demo cordoned -o text");
    says("diff-text", "diff --demo cordoned -o text --edit \"uncordon node node-0\"");
    says("config-text", "config -o text");
    says("plugins-text", "plugins QueueSort PrioritySort -o text");
    says("plugins-one-text", "plugins PrioritySort -o text");
    says("render-text", "render --demo cordoned --size 60x15 -o txt");
    let call = Call::new().bytes("themes/mine.yaml", b"inherit: dark\n");
    call.says_where("options/info-text", "info -o text");
}

#[test]
fn a_part_of_the_nodes_is_looked_at() {
    says("percentage", "run --demo tour --percentage-of-nodes-to-score 50");
}

#[test]
fn pods_are_held_at_permit() {
    says("hold", "run --demo tainted --hold train");
    says("hold-wrong", "run --demo tainted --hold \"web for ever\"");
    says("hold-until", "run --demo tour --hold \"web-* for 5m\"");
}

#[test]
fn ties_are_broken_by_a_seed() {
    says("tie-break", "run --demo tour --tie-break seed:7");
}

#[test]
fn the_trace_in_short() {
    let line = "run --demo cordoned --trace trace.jsonl --trace-detail summary";
    Call::new().says_with("options/trace-detail", line, "trace.jsonl");
}

#[test]
fn pictures_have_colours_when_wanted() {
    for when in ["auto", "always", "never"] {
        let line = format!("render --demo cordoned --size 60x15 -o ansi --color {when}");
        says(&format!("render-color-{when}"), &line);
    }
    for format in ["svg", "html"] {
        says(
            &format!("render-{format}"),
            &format!("render --demo cordoned --size 60x15 -o {format}"),
        );
    }
}

#[test]
fn a_story_needs_a_terminal() {
    says("demo-story", "demo cordoned --history-memory 64");
}

#[test]
fn every_command_refuses_what_it_does_not_know() {
    says("rbac-unknown", "rbac --nmae x");
    Call::new().says("rbac", "rbac --name viewer");
    says("rbac-schedule", "rbac --schedule");
    says("info-unknown", "info -o toml");
    says("capture-nowhere", "capture -o cluster.json --kubeconfig nowhere");
    says("capture-no-file", "capture");
    says("schedule-nowhere", "schedule --dry-run --leader-elect=false --kubeconfig nowhere");
    Call::new().file("n.yaml", NODE).says("options/explain-no-pod", "explain -f n.yaml");
    says("explain-which-pod", "explain --demo tour");
}

/// The flags in a cluster's kube-scheduler manifest are accepted, or rejected with a reason.
#[test]
fn the_flags_of_kube_scheduler() {
    let port = "--cert-dir certs --tls-min-version VersionTLS12 \
                --tls-cipher-suites TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    let who = "--authentication-kubeconfig nowhere --authorization-kubeconfig nowhere \
               --authentication-token-webhook-cache-ttl 10s \
               --authorization-always-allow-paths /healthz \
               --authorization-webhook-cache-authorized-ttl 10s \
               --authorization-webhook-cache-unauthorized-ttl 10s";
    let rest = "--dry-run --kubeconfig nowhere --master https://127.0.0.1:1 \
                --pod-max-in-unschedulable-pods-duration 5m";
    says("schedule-flags", &format!("schedule {rest} {port} {who}"));
    says("schedule-refused-flag", "schedule --client-ca-file ca.crt");
    let line = "schedule --write-config-to scheduler.yaml";
    Call::new().says_with("options/schedule-config", line, "scheduler.yaml");
}

/// Common first attempts of users work, or the error says what to do.
#[test]
fn first_tries_are_understood_or_reported_what_to_do() {
    says("explain-the-pending-pod", "explain --demo cordoned");
    says("explain-as-kubectl", "explain pod/job --demo cordoned --node node-0");
    says("plugins-of-a-point", "plugins score");
    says("plugins-typo", "plugins NodeResourceFit");
    let call = Call::new().bytes("cluster.yaml", NODE.as_bytes()).bytes("folder/x.yaml", b"");
    call.says("options/file-without-f", "run cluster.yaml");
    call.says("options/file-as-command", "cluster.yaml");
    call.says("options/config-folder", "config folder");
    call.says("options/pod-folder", "run -f cluster.yaml --pod folder");
    let call = call.bytes("binary", &[0xff, 0x00, 0x9f]);
    call.says("options/config-binary", "config binary");
    call.says("options/pod-binary", "run -f cluster.yaml --pod binary");
    call.says("options/input-binary", "run -f binary");
}

#[test]
fn a_cluster_that_does_not_answer_has_a_code_of_its_own() {
    for line in ["run", "explain web", "render", "capture -o c.json"] {
        let name = line.split(' ').next().unwrap();
        let call = Call::new().bytes("config", KUBECONFIG.as_bytes());
        let line = format!("{line} --kubeconfig config --context lab -A");
        call.says(&format!("options/unreachable-{name}"), &line);
    }
}

#[test]
fn a_scheduler_takes_kube_schedulers_flags() {
    let call = || Call::new().bytes("config", KUBECONFIG.as_bytes());
    let election = "--leader-elect=true --leader-elect-lease-duration 20s \
        --leader-elect-renew-deadline 15s --leader-elect-retry-period 3s \
        --leader-elect-resource-lock leases --leader-elect-resource-name own \
        --leader-elect-resource-namespace default";
    let client = "--kube-api-qps 100 --kube-api-burst 200";
    let ports = "--bind-address 127.0.0.1 --secure-port 10259 --tls-cert-file c.pem \
        --tls-private-key-file k.pem --http-port 10251";
    let flags = format!("{client} {election} {ports}");
    let line = format!("schedule --kubeconfig config --yes-write --v 2 {flags}");
    call().says("options/schedule-certificate", &line);
    call().says("options/schedule-dry-run", "schedule --kubeconfig nowhere --dry-run");
    call().says("options/schedule-both", "schedule --yes-write --dry-run");
}
