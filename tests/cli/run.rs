//! `kubestep run` with its files: timings and traces.

use serde_json::Value;

use crate::harness::Call;
use crate::schema;

const CLUSTER: &str = include_str!("../../fixtures/preemption-budget/cluster.yaml");

fn call() -> Call {
    Call::new().bytes("cluster.yaml", CLUSTER.as_bytes())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_times_are_one_json_object() {
    let said = call().run("run -f cluster.yaml --timings");
    assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
    let timings: Value = serde_json::from_str(&said.stdout).unwrap();
    let counts = ["nodes", "pods", "cycles", "scheduled", "unschedulable"];
    let counts: Vec<_> = counts.iter().map(|name| timings[name].as_u64()).collect();
    assert_eq!(counts, [2, 2, 2, 1, 1].map(Some), "{timings}");
    let (load, cycles) =
        (timings["load_s"].as_f64().unwrap(), timings["cycle_s"].as_f64().unwrap());
    assert!(load > 0.0 && cycles > 0.0 && cycles < 60.0, "{timings}");
    // Parsing a number may lose its last bit.
    let rate = timings["cycles_per_s"].as_f64().unwrap();
    assert!((rate * cycles - 2.0).abs() < 1e-9, "{timings}");
    assert!(timings["peak_rss_bytes"].is_u64(), "{timings}");
}

#[test]
fn the_trace_has_a_line_a_cycle() {
    let call = call();
    let said = call.run("run -f cluster.yaml --trace trace.jsonl");
    assert_eq!(said.stdout, call.run("run -f cluster.yaml").stdout);
    let lines = lines(&call.written("trace.jsonl"));
    let tries: Vec<_> = lines.iter().map(|line| line["attempt"].as_u64()).collect();
    assert_eq!(tries, [Some(1), Some(2)], "{lines:?}");
}

#[test]
fn the_trace_in_full_and_in_short() {
    call().says_with("trace-summary", "run -f cluster.yaml --trace trace.jsonl", "trace.jsonl");
    let line = "run -f cluster.yaml --trace trace.jsonl --trace-detail full";
    call().says_with("trace-full", line, "trace.jsonl");
}

#[test]
fn cycles_can_be_limited() {
    call().says("max-cycles", "run -f cluster.yaml --max-cycles 1");
    call().says("no-cycles", "run -f cluster.yaml --max-cycles 0");
}

#[test]
fn breakpoints_stop_the_run_and_say_where() {
    let call = call().bytes("saved.yaml", b"breakpoints:\n- break: on:scheduled log\n");
    call.says("break", "run -f cluster.yaml --break on:preemption --breakpoints saved.yaml");
    let said = call.run("run -f cluster.yaml --break Filtre");
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("did you mean \"Filter\"?"), "{}", said.stderr);
    let said = call.run("run -f cluster.yaml --break on:error");
    assert_eq!(said.stdout, call.run("run -f cluster.yaml").stdout);
}

/// Two similar nodes and a pod.
const TIE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
";

#[test]
fn a_tie_is_broken_as_reported() {
    let call = Call::new().bytes("cluster.yaml", TIE.as_bytes());
    let node = |how| call.run(&format!("run -f cluster.yaml --tie-break {how}")).pods().to_owned();
    let rest = "1 placed, 0 pending, 1 scheduling cycle";
    assert_eq!(node("upstream"), format!("default/web  on node-0\n{rest}"));
    assert_eq!(call.run("run -f cluster.yaml").pods(), node("upstream"));
    let reported = |node, how| format!("default/web  on {node} (tie broken by {how})\n{rest}");
    assert_eq!(node("first"), reported("node-0", "first"));
    assert_eq!(node("seed:1"), reported("node-1", "seed:1"));
    assert_eq!(node("seed:2"), reported("node-0", "seed:2"));
    let line = "run -f cluster.yaml --tie-break chance";
    Call::new().bytes("cluster.yaml", TIE.as_bytes()).says("errors/tie-break", line);
}

#[test]
fn extenders_are_called_only_when_wanted() {
    // No process listens on port 1.
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  extenders:\n- {urlPrefix: \"http://127.0.0.1:1/x/\", filterVerb: filter}\n";
    let call = Call::new().bytes("cluster.yaml", TIE.as_bytes()).file("scheduler.yaml", config);
    let line = "run -f cluster.yaml --config scheduler.yaml --max-cycles 1";
    call.says("extenders-not-called", line);
    call.says("extenders-called", &format!("{line} --call-extenders"));
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    use std::process::{Command, Stdio};

    let program = assert_cmd::cargo::cargo_bin("kubestep");
    let mut child = Command::new(program)
        .args(["demo", "--list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn an_outcome_in_every_format() {
    for format in ["json", "yaml", "csv", "stream", "junit"] {
        let line = format!("run --demo preemption-budget -o {format}");
        Call::new().says(&format!("formats/{format}"), &line);
    }
    Call::new().says("formats/unknown", "run --demo tour -o xml");
    Call::new().says("formats/notices", "run --demo tour -n nowhere -o json");
    Call::new().says("formats/timings", "run --demo tour --timings -o json");
}

/// A node whose name would clear the screen if it were printed unescaped.
#[test]
fn nothing_from_a_cluster_controls_the_terminal() {
    let node = "{\"kind\": \"Node\", \"metadata\": {\"name\": \"\\u001b[2J\"}, \"status\": \
                {\"allocatable\": {\"cpu\": \"1\", \"pods\": \"5\"}}}";
    let pod = "{\"kind\": \"Pod\", \"metadata\": {\"name\": \"web\"}, \"spec\": {}}";
    let call = Call::new().file("cluster.json", &format!("{node}\n{pod}\n"));
    for format in ["text", "json", "csv", "junit"] {
        let said = call.run(&format!("run -f cluster.json -o {format}"));
        assert!(!said.stdout.contains('\u{1b}') && !said.stdout.is_empty(), "{format}");
    }
}

/// The disruptions of the story of zones, and the loss of each zone, in every format.
#[test]
fn drains_and_losses_say_which_pods_find_no_place() {
    let call = Call::new();
    call.says("disrupt/drain", "run --demo zone-loss --edit \"drain node a-0\"");
    call.says("disrupt/drain-json", "run --demo zone-loss --edit \"drain zone=zone-a\" -o json");
    call.says("disrupt/lose", "run --demo zone-loss --edit \"lose zone=zone-a\"");
    for format in ["text", "json", "yaml", "junit", "csv"] {
        let line = format!("run --demo zone-loss --survive zone -o {format}");
        call.says(&format!("disrupt/survive-{format}"), &line);
    }
    call.says("disrupt/survive-unknown", "run --demo zone-loss --survive rack");
    call.says("disrupt/drain-refused", "run --demo tour --edit \"drain node b-0\"");
    call.says(
        "disrupt/drain-forced",
        "run --demo preemption-budget --edit \"drain node node-0 force\"",
    );
}

/// What the limit of cycles leaves open is not known: the loss of a zone, and all of them.
#[test]
fn losses_that_the_limit_of_cycles_ends_are_not_known() {
    let call = Call::new();
    for format in ["text", "json", "junit"] {
        let line = format!("run --demo zone-loss --survive zone --max-cycles 1 -o {format}");
        call.says(&format!("disrupt/survive-cut-{format}"), &line);
    }
    for format in ["text", "junit"] {
        let line = format!("run --demo tour --survive zone --max-cycles 1 -o {format}");
        call.says(&format!("disrupt/survive-not-begun-{format}"), &line);
    }
}

/// A name with a line break does not begin a line of its own.
#[test]
fn names_with_line_breaks_stay_in_their_lines() {
    let node = |name: &str| {
        format!(
            "---\n{{kind: Node, apiVersion: v1, metadata: {{name: \"{name}\\nforged\", labels: \
            {{zone: \"{name}\\nforged\"}}}}, spec: {{taints: [{{key: \"k\\nforged\", effect: \
            NoSchedule}}]}}, status: {{allocatable: {{cpu: 4, pods: 9}}}}}}\n"
        )
    };
    let pod = "---\n{kind: Pod, apiVersion: v1, metadata: {name: \"web\\nforged\", namespace: \"x\\nforged\"}, \
        spec: {containers: [{name: c}]}}\n";
    let placed = pod.replace("name: \"web", "name: \"db").replace(
        "containers",
        "nodeName: \"a\\nforged\", tolerations: [{operator: Exists}], containers",
    );
    let call = Call::new().file("c.yaml", &[node("a"), node("b"), pod.into(), placed].concat());
    for line in [
        "run -f c.yaml",
        "run -f c.yaml --survive zone",
        "run -f c.yaml --edit \"lose zone=a\\nforged\"",
        "run -f c.yaml --new-node",
        "explain -f c.yaml --fix --new-node",
        "upgrade -f c.yaml --from 1.33",
        "diff -f c.yaml --kube-version-b 1.33",
    ] {
        let said = call.run(line);
        let text = said.stdout + &said.stderr;
        let forged = text.lines().find(|line| line.trim_start().starts_with("forged"));
        assert_eq!(forged, None, "{line}:\n{text}");
        assert!(text.contains("forged"), "{line}: {text}");
    }
}

/// Rollouts of each kind, in every format, with and without room; and those that cannot begin.
#[test]
fn rollouts_say_where_they_get_stuck() {
    let call = Call::new();
    let run =
        |edit: &str, more: &str| format!("run --demo rollout --edit \"rollout {edit}\"{more}");
    call.says("disrupt/rollout", &run("deployment web", ""));
    call.says("disrupt/rollout-stuck", &run("deployment web image=web:2 cpu=1500m", ""));
    call.says("disrupt/rollout-stuck-json", &run("deploy web main cpu=1500m", " -o json"));
    call.says("disrupt/rollout-stuck-junit", &run("deployment web cpu=1500m", " -o junit"));
    call.says("disrupt/rollout-partition", &run("statefulset default/db", ""));
    call.says("disrupt/rollout-daemons", &run("ds log", ""));
    for (edit, error) in [
        ("deployment other", "no pods of Deployment default/other are in the input"),
        ("deployment web side cpu=1", "it has no container side"),
        ("job web", "\"job\" is not deployment, statefulset or daemonset"),
        ("deployment web cpu", "write rollout WORKLOAD NAME"),
    ] {
        let said = call.run(&run(edit, ""));
        assert!(said.code == Some(2) && said.stderr.contains(error), "{edit}: {}", said.stderr);
    }
}

/// A bundle has the workloads themselves, so a rollout in it is as in its origin; a redacted one has
/// not.
#[test]
fn rollouts_in_a_bundle_have_the_strategy_of_the_workload() {
    let call = Call::new();
    call.run("bundle --demo rollout -o bug.jsonl");
    schema::check_lines("kubestep/recording/v1", &call.written("bug.jsonl"));
    for edit in ["deployment web cpu=1500m", "statefulset db", "daemonset log"] {
        let of = |input: &str| call.run(&format!("run {input} --edit \"rollout {edit}\""));
        let (story, bundle) = (of("--demo rollout"), of("-f bug.jsonl"));
        assert_eq!(story.stdout, bundle.stdout);
        assert!(!bundle.stderr.contains("strategy is the default"), "{}", bundle.stderr);
    }
    call.run("bundle --demo rollout --redact -o other.jsonl");
    assert!(!call.written("other.jsonl").contains("\"auxiliary\""));
}

/// A drain that a budget blocks for good ends with exit code 1, also if every pod has a node.
#[test]
fn a_drain_that_cannot_be_completed_is_a_failure() {
    let cluster = "
{kind: Node, apiVersion: v1, metadata: {name: a}, status: {allocatable: {cpu: '4', pods: '10'}}}
---
{kind: Node, apiVersion: v1, metadata: {name: b}, status: {allocatable: {cpu: '4', pods: '10'}}}
---
kind: Pod
apiVersion: v1
metadata:
  name: web-0
  labels: {app: web}
  ownerReferences: [{kind: ReplicaSet, name: web, apiVersion: apps/v1, uid: u, controller: true}]
spec: {nodeName: a, containers: [{name: c, image: x}]}
---
kind: PodDisruptionBudget
apiVersion: policy/v1
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";
    let call = Call::new().bytes("cluster.yaml", cluster.as_bytes());
    let said = call.run("run -f cluster.yaml --edit \"drain node a\"");
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stdout.contains("node a is not drained: 0 pods evicted"), "{}", said.stdout);
    let said = call.run("run -f cluster.yaml --edit \"drain node a\" -o junit");
    assert_eq!(said.code, Some(1));
    for part in [
        "tests=\"1\" failures=\"1\"",
        "<testcase classname=\"drain\" name=\"a\">",
        "budget default/web needs 1 healthy pod and has 1",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let said = call.run("run -f cluster.yaml --edit \"lose node a\"");
    assert_eq!(said.code, Some(0), "{}", said.stdout);
}

#[test]
fn what_cannot_fit_into_memory_is_said_before_it_starts() {
    let memory = |mebibytes| [("KUBESTEP_MEMORY", mebibytes)];
    let call = Call::new();
    let said = call.run_with("run --demo tour", &memory("0"));
    assert_eq!((said.stdout.as_str(), said.code), ("", Some(2)));
    assert!(said.stderr.contains("scheduling cycles take at least 0 MiB"), "{}", said.stderr);
    assert!(said.stderr.contains("and 0 MiB of memory are available"), "{}", said.stderr);
    assert_eq!(call.run_with("run --demo tour", &memory("512")).code, Some(1));
    for line in [
        "diff --demo tour --edit \"cordon node a-0\"",
        "explain train --demo tour",
        "report --demo tour -o page.html",
        "upgrade --demo upgrade --from 1.33",
    ] {
        let said = call.run_with(line, &memory("0"));
        assert_eq!((said.stdout.as_str(), said.code), ("", Some(2)), "{line}");
        assert!(said.stderr.contains("0 MiB of memory are available"), "{line}: {}", said.stderr);
    }
    // This takes long enough to be ended while it is read; if not, then before the first cycle.
    let node = |number| {
        format!(r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"n-{number}"}}}}"#)
    };
    let nodes: Vec<String> = (0..40_000).map(node).collect();
    let list = format!(r#"{{"kind":"List","apiVersion":"v1","items":[{}]}}"#, nodes.join(","));
    let said = Call::new().file("nodes.json", &list).run_with("run -f nodes.json", &memory("0"));
    assert_eq!((said.stdout.as_str(), said.code), ("", Some(2)), "{}", said.stderr);
    assert!(said.stderr.contains("and 0 MiB of memory are available"), "{}", said.stderr);
}
