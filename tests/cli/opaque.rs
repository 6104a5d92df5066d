//! Plugins that kubestep does not have, from the command line.

use kubestep_source::fixtures;
use serde_json::Value;

use crate::harness::Call;

fn story() -> Call {
    let story = fixtures::find("opaque-plugin").unwrap();
    Call::new().bytes("cluster.yaml", story.cluster.as_bytes())
}

fn json(call: &Call, line: &str) -> Value {
    serde_json::from_str(&call.run(line).stdout).unwrap()
}

#[test]
fn every_decision_says_how_certain_it_is() {
    let story = story();
    story.says("opaque/run", "run -f cluster.yaml");
    story.says("opaque/run-csv", "run -f cluster.yaml -o csv");
    story.says("opaque/run-junit", "run -f cluster.yaml -o junit");
    story.says("opaque/json", "explain cache -f cluster.yaml -o json");
    story.says("opaque/diff", "diff --filename cluster.yaml --edit \"cordon node node-1\"");
    let run = json(&story, "run -f cluster.yaml -o json");
    let certain = |list: &str, pod: &str| {
        let entries = run[list].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["pod"] == format!("default/{pod}"));
        entry.unwrap()["certainty"]["certain"].as_bool().unwrap()
    };
    assert!(!certain("placed", "web"), "RackPower can reject its node");
    assert!(certain("pending", "report"), "no node has so many CPUs");
    assert!(certain("placed", "cache"), "it leads by more than TargetLoadPacking can give");
    assert!(!certain("placed", "worker"), "its lead is small");
    assert_eq!(run["uncertainDecisions"], 2);
}

#[test]
fn formats_agree() {
    let story = story();
    let explained = json(&story, "explain worker -f cluster.yaml -o json");
    let stream = story.run("run -f cluster.yaml -o stream").stdout;
    let cycles = stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut cycles = cycles.filter(|cycle| cycle["record"]["pod"] == "default/worker");
    let certainty = &cycles.next().unwrap()["record"]["certainty"];
    assert_eq!(certainty["conditions"], explained["certainty"]["conditions"]);
    assert_eq!(certainty["lead"], explained["certainty"]["lead"]);
    assert_eq!(explained["certainty"]["earlierUncertain"], 1, "web was uncertain");
    story.run("run -f cluster.yaml --trace trace.jsonl --trace-detail full");
    let trace = story.written("trace.jsonl");
    assert!(trace.contains("\"certainty\":{\"certain\":true"), "{trace}");
    let text = story.run("explain worker -f cluster.yaml").stdout;
    let condition = certainty["conditions"][0]["text"].as_str().unwrap();
    assert!(text.contains(condition), "{text}");
    let page = story.run("report -f cluster.yaml -o -").stdout;
    assert!(page.contains("Uncertain. The decision stands"), "the page says so");
}

/// Of a cluster that is not asked: the configuration is read first.
const KUBECONFIG: &str = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, \
                          context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: \
                          'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}";

#[test]
fn an_unknown_plugin_is_rejected_where_that_is_wanted() {
    let story = story();
    for line in [
        "run -f cluster.yaml --unknown-plugins reject",
        "schedule --config config.yaml --kubeconfig kube.yaml",
    ] {
        let config = fixtures::find("opaque-plugin").unwrap().cluster;
        let config = config.split("\n---\n").next().unwrap();
        let story = Call::new()
            .bytes("cluster.yaml", fixtures::find("opaque-plugin").unwrap().cluster.as_bytes())
            .file("config.yaml", config)
            .file("kube.yaml", KUBECONFIG);
        let said = story.run(line);
        assert_eq!(said.code, Some(2), "{line}: {}", said.stderr);
        assert!(said.stderr.contains("\"RackPower\" does not exist"), "{line}: {}", said.stderr);
    }
    let said = story.run("run -f cluster.yaml");
    let notices = said.stderr.matches("is opaque").count();
    assert_eq!((said.code, notices), (Some(1), 2), "{}", said.stderr);
}

#[test]
fn a_configuration_keeps_the_plugin_with_its_arguments() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  profiles:\n- plugins:\n    multiPoint:\n      enabled:\n      - {name: RackGroups, \
                  weight: 3}\n      disabled:\n      - {name: PrioritySort}\n  pluginConfig:\n  - \
                  name: RackGroups\n    args: {permitWaitingTimeSeconds: 10, kinds: [a, b]}\n";
    let call = Call::new().file("config.yaml", config);
    call.says("opaque/config", "config config.yaml");
    call.says("opaque/config-json", "config config.yaml --unknown-plugins opaque -o json");
    call.says("opaque/config-refused", "config config.yaml --unknown-plugins reject");
    let document = call.run("config config.yaml -o document").stdout;
    assert!(document.contains("permitWaitingTimeSeconds: 10"), "{document}");
}

#[test]
fn what_the_plugin_must_have_said_is_learned() {
    let story = story().file(
        "events.yaml",
        "kind: List\nitems:\n- kind: Event\n  reason: FailedScheduling\n  note: '0/4 nodes are \
         available: 1 Insufficient cpu, 2 rack is over its power limit.'\n  regarding: {name: web, \
         namespace: default}\n",
    );
    story.says("opaque/learned", "explain web -f cluster.yaml");
    story.says("opaque/learned-events", "explain web -f cluster.yaml --reported events.yaml");
    let learned = |line: &str| json(&story, line)["heard"]["learned"].clone();
    let heard = learned("explain web -f cluster.yaml -o json");
    assert_eq!((&heard["atLeast"], &heard["atMost"]), (&3.into(), &3.into()));
    assert_eq!(heard["contradictions"], serde_json::json!([]));
    let heard = learned("explain web -f cluster.yaml -o json --reported events.yaml");
    assert_eq!(
        heard["contradictions"][0],
        "3 nodes must have been rejected by opaque plugins, but 2 rejections are left"
    );
}
