//! `kubestep record` with the stand-in: the file contains the state of the server at its end and at
//! every earlier time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use kubestep_source::{Filter, ReadInput};
use serde_json::{Value, json};

use crate::standin::StandIn;

fn start(server: &StandIn, output: &Path, options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(["record", "-o"])
        .arg(output)
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the complete part of the recording meets a condition.
fn wait(output: &Path, until: impl Fn(&ReadInput) -> bool) -> ReadInput {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(bytes) = std::fs::read(output)
            && let Ok(mut input) = kubestep_source::read_text("r", bytes, &Filter::default())
        {
            input.wind(None);
            if until(&input) {
                return input;
            }
        }
        assert!(Instant::now() < end, "{:?}", std::fs::read_to_string(output));
        sleep(Duration::from_millis(50));
    }
}

/// In the format of [`StandIn::contents`].
fn contents(input: &ReadInput) -> Vec<(String, String)> {
    let of = |loaded: &kubestep_source::Loaded| {
        let (kind, metadata) = (loaded.object.kind(), loaded.object.metadata());
        let key = format!("{} {}/{}", kind.plural(), metadata.namespace, metadata.name);
        (key, metadata.resource_version.to_string())
    };
    let mut all: Vec<_> = input.objects.iter().map(of).collect();
    all.sort();
    all
}

fn interrupt(mut child: Child) -> String {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    let mut reported = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut reported).unwrap();
    assert!(status.success(), "{reported}");
    reported
}

fn change(server: &Arc<StandIn>) {
    server.put(Kind::Node, "b", json!({}));
    server.put(Kind::Pod, "web", json!({"metadata": {"uid": "web"}}));
    server.put(Kind::Pod, "web", json!({"metadata": {"uid": "web"}, "spec": {"nodeName": "b"}}));
    server.delete(Kind::Node, "a");
}

#[test]
fn a_recording_is_what_the_server_had() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["r.jsonl", "r.jsonl.gz"] {
        let server = StandIn::start();
        server.put(Kind::Node, "a", json!({"spec": {"unschedulable": true}}));
        let output = folder.path().join(name);
        let child = start(&server, &output, &[]);
        wait(&output, |input| contents(input) == server.contents());
        change(&server);
        // The recording is still running: the file is flushed every second.
        let before = wait(&output, |input| contents(input) == server.contents());
        assert!(before.warnings.iter().any(|text| text.contains("is truncated")));
        let reported = interrupt(child);
        assert!(reported.contains("4 changes, 1 decision of the scheduler in"), "{reported}");
        let after = wait(&output, |input| contents(input) == server.contents());
        assert!(!after.warnings.iter().any(|text| text.contains("was cut off")));
        assert!(!server.requests().iter().any(|request| !request.starts_with("GET ")));
    }
}

#[test]
fn it_ends_by_itself_and_outages_are_in_it() {
    let (folder, server) = (tempfile::tempdir().unwrap(), StandIn::start());
    server.put(Kind::Node, "a", json!({}));
    let output = folder.path().join("r.jsonl");
    let mut child =
        start(&server, &output, &["--for", "4s", "--feature-gates", "GenericWorkload=true"]);
    wait(&output, |input| contents(input) == server.contents());
    server.misbehave(|faults| faults.down = true);
    sleep(Duration::from_millis(1500));
    server.misbehave(|faults| faults.down = false);
    assert!(child.wait().unwrap().success());
    let text = std::fs::read_to_string(&output).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["featureGates"], "GenericWorkload=true");
    assert_eq!(lines[0]["serverVersion"], "v1.36.2");
    assert_eq!(lines.last().unwrap()["record"], "end");
    let notices: Vec<&str> = lines
        .iter()
        .filter(|line| line["record"] == "notice")
        .filter_map(|n| n["text"].as_str())
        .collect();
    assert!(notices.iter().any(|text| text.contains("not followed")), "{notices:?}");
    assert!(!text.contains("managedFields"));
}

#[test]
fn by_other_names_it_says_nothing_of_the_old_ones() {
    let (folder, server) = (tempfile::tempdir().unwrap(), StandIn::start());
    server.put(Kind::Node, "paris", json!({"metadata": {"labels": {"team": "blue"}}}));
    let output = folder.path().join("r.jsonl");
    let child = start(&server, &output, &["--redact"]);
    wait(&output, |input| input.objects.len() == 1);
    server.put(Kind::Node, "rome", json!({}));
    server.put(Kind::Pod, "payroll", json!({"metadata": {"uid": "secret"}}));
    server.put(
        Kind::Pod,
        "payroll",
        json!({"metadata": {"uid": "secret"}, "spec": {"nodeName": "rome"}}),
    );
    server.delete(Kind::Node, "paris");
    let input = wait(&output, |input| {
        // The order of changes is only defined within a kind.
        input.recording.as_ref().is_some_and(|recording| recording.changes.len() == 4)
    });
    interrupt(child);
    let text = std::fs::read_to_string(&output).unwrap();
    for secret in ["paris", "rome", "payroll", "secret", "team", "blue", "lab"] {
        let found = text.contains(&format!("\"{secret}\""));
        assert!(!found, "{secret}: {text}");
    }
    // Objects that were created later are the same too.
    assert_eq!(input.objects.len(), 2, "{text}");
    let pod = text.lines().find(|line| line.contains("\"decision\"")).unwrap();
    let decision: Value = serde_json::from_str(pod).unwrap();
    let node = decision["node"].as_str().unwrap();
    assert!(text.lines().any(|line| line.contains("\"kind\":\"Node\"") && line.contains(node)));
}
