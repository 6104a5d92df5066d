//! A recording reads back as written, even if its recorder was never ended.

use super::*;
use crate::feed::Notice;
use kubestep_api::{Condition, ConditionStatus, Kind};
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, pod};
use kubestep_source::Filter;
use kubestep_source::recording::ObjectChange;

const START: Time = Time(1_767_225_600_000_000);

fn at(seconds: i64) -> Time {
    Time(START.0 + seconds * 1_000_000)
}

fn events() -> Vec<FeedEvent> {
    let put = |object: Object| FeedEvent::Delta(Delta::Put(object));
    let web = || pod("web");
    let mut refused: Pod = web();
    refused.status.conditions.push(Condition {
        type_: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        message: "0/1 nodes are available".into(),
        ..Condition::default()
    });
    vec![
        put(web().into()),
        put(refused.into()),
        put(web().on("a").into()),
        FeedEvent::Notice(Notice { serious: true, text: "cut off".into() }),
        FeedEvent::Delta(Delta::Delete { kind: Kind::Pod, key: key("web") }),
    ]
}

fn recorded(out: impl Write, ends: bool) {
    let snapshot = ClusterSnapshot { taken_at: START, ..ClusterSnapshot::default() };
    let mut recorder = Recorder::new(out, &header(&snapshot, "lab", &[])).unwrap();
    let listed = [Object::from(node("a").offers("cpu", "1"))];
    assert_eq!(recorder.lists(listed.iter()).unwrap(), 1);
    for (second, event) in events().iter().enumerate() {
        recorder.take(at(second as i64 + 1), event).unwrap();
    }
    assert_eq!(recorder.counts, RecordingCounts { changes: 4, decisions: 2 });
    recorder.out().flush().unwrap();
    if ends {
        recorder.end(Some(at(9))).unwrap();
    } else {
        std::mem::forget(recorder);
    }
}

fn check(bytes: Vec<u8>, ends: bool) {
    let input = kubestep_source::read_text("r", bytes, &Filter::default()).unwrap();
    assert_eq!(input.objects[0].object, node("a").offers("cpu", "1").into());
    let recording = input.recording.unwrap();
    let changes: Vec<(Time, bool)> = recording
        .changes
        .iter()
        .map(|change| (change.at, matches!(change.what, ObjectChange::Put(_))))
        .collect();
    assert_eq!(changes, [(at(1), true), (at(2), true), (at(3), true), (at(5), false)]);
    assert_eq!(input.warnings.is_empty(), ends, "{:?}", input.warnings);
}

#[test]
fn what_was_recorded_is_read_back() {
    let mut bytes = Vec::new();
    recorded(&mut bytes, true);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let decisions: Vec<&str> = text.lines().filter(|line| line.contains("decision")).collect();
    assert_eq!(
        decisions,
        [
            r#"{"record":"decision","at":"2026-01-01T00:00:02Z","pod":"default/web","uid":"default-web","message":"0/1 nodes are available"}"#,
            r#"{"record":"decision","at":"2026-01-01T00:00:03Z","pod":"default/web","uid":"default-web","node":"a"}"#,
        ]
    );
    check(bytes, true);
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_had_flushed() {
    for name in ["r.jsonl", "r.jsonl.gz"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut output = RecordingOutput::create(&path, Links::Refuse).unwrap();
        output.publish().unwrap();
        recorded(output, false);
        check(std::fs::read(path).unwrap(), false);
    }
}

#[test]
fn a_file_is_packed_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin) in [("r.jsonl", b"{\"".as_slice()), ("r.jsonl.gz", &[0x1f, 0x8b])] {
        let path = folder.path().join(name);
        let mut output = RecordingOutput::create(&path, Links::Refuse).unwrap();
        output.write_all(b"{\"record\":\"end\"}\n").unwrap();
        output.finish().unwrap();
        assert!(std::fs::read(path).unwrap().starts_with(begin), "{name}");
    }
}
