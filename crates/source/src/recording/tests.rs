//! Reading recordings that are complete, truncated anywhere, or invalid.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{Filter, ReadInput};
use kubestep_api::{Kind, Time};

const HEADER: &str = r#"{"schema":"kubestep/recording/v1","record":"header","kubestep":"0","serverVersion":"v1.36.2","context":"lab","listedAt":"2026-01-01T00:00:00Z","namespaces":[],"missing":[],"featureGates":"GangScheduling=true"}"#;
const LINES: [&str; 8] = [
    r#"{"record":"object","kind":"Node","object":{"metadata":{"name":"a","uid":"1"}}}"#,
    r#"{"record":"object","kind":"Pod","object":{"metadata":{"name":"ä","namespace":"x","uid":"2"}}}"#,
    r#"{"record":"listed","objects":2}"#,
    r#"{"record":"put","at":"2026-01-01T00:00:01Z","kind":"Node","object":{"metadata":{"name":"b","uid":"3"}}}"#,
    r#"{"record":"put","at":"2026-01-01T00:00:02Z","kind":"Pod","object":{"metadata":{"name":"ä","namespace":"x","uid":"2"},"spec":{"nodeName":"b"}}}"#,
    r#"{"record":"something","that":"is not known yet"}"#,
    r#"{"record":"delete","at":"2026-01-01T00:00:03Z","kind":"Node","name":"a"}"#,
    r#"{"record":"end","at":"2026-01-01T00:00:04Z","changes":3}"#,
];

fn text() -> String {
    let lines = std::iter::once(HEADER).chain(LINES);
    lines.map(|line| format!("{line}\n")).collect()
}

fn read(bytes: &[u8]) -> Result<ReadInput, String> {
    let read = crate::read_text("r.jsonl", bytes.to_vec(), &Filter::default());
    read.map_err(|error| error.to_string())
}

fn names(input: &ReadInput) -> Vec<String> {
    input.objects.iter().map(|loaded| loaded.object.key().to_string()).collect()
}

/// Compressed as the recorder does: every line can be decompressed without what follows.
fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    for line in text.split_inclusive('\n') {
        packed.write_all(line.as_bytes()).unwrap();
        packed.flush().unwrap();
    }
    packed.finish().unwrap()
}

#[test]
fn a_recording_is_its_lists_and_what_changed() {
    let mut input = read(text().as_bytes()).unwrap();
    assert_eq!(names(&input), ["Node a", "Pod x/ä"]);
    assert_eq!(input.captured.feature_gates.as_deref(), Some("GangScheduling=true"));
    assert_eq!(input.warnings, [""; 0]);
    let recording = input.recording.as_ref().unwrap();
    assert_eq!(recording.changes.len(), 3);
    assert_eq!(recording.ended_at.to_string(), "2026-01-01T00:00:04Z");
    input.wind(None);
    assert_eq!(names(&input), ["Pod x/ä", "Node b"]);
    assert_eq!(input.warnings, [crate::NOTHING_PENDING]);
}

#[test]
fn it_is_wound_to_any_time() {
    for (until, expected) in [
        ("0s", "Node a, Pod x/ä"),
        ("1s", "Node a, Pod x/ä, Node b"),
        ("2026-01-01T00:00:02.5Z", "Node a, Pod x/ä, Node b"),
        ("1m", "Pod x/ä, Node b"),
    ] {
        let mut input = read(text().as_bytes()).unwrap();
        let moment = input.recording.as_ref().unwrap().moment(until).unwrap();
        input.wind(Some(moment));
        assert_eq!(names(&input).join(", "), expected, "{until}");
    }
    let recording = read(text().as_bytes()).unwrap().recording.unwrap();
    assert!(
        recording.moment("soon").unwrap_err().to_string().contains("nor a span since the lists")
    );
    let before = recording.moment("2025-01-01T00:00:00Z").unwrap_err().to_string();
    assert!(before.contains("is before the recording begins"), "{before}");
    assert_eq!(recording.moment("1m30s"), Ok(Time(recording.listed_at.0 + 90_000_000)));
}

#[test]
fn an_object_that_was_made_again_is_another() {
    let recreated = LINES[4].replace("\"uid\":\"2\"", "\"uid\":\"9\"");
    let mut input = read(text().replace(LINES[4], &recreated).as_bytes()).unwrap();
    input.wind(None);
    assert_eq!(names(&input), ["Node b", "Pod x/ä"]);
}

#[test]
fn blank_lines_count_as_lines_and_nothing_else() {
    let blank = text().replacen('\n', &"\n".repeat(1_000), 1);
    assert_eq!(names(&read(blank.as_bytes()).unwrap()), names(&read(text().as_bytes()).unwrap()));
    let error = read(format!("{blank}{{\n").as_bytes()).unwrap_err();
    assert!(error.contains(&format!(":{}:", blank.lines().count() + 1)), "{error}");
}

/// Truncated after any byte, it is read up to the last complete line, with a warning.
#[test]
fn whatever_is_cut_off_is_read_up_to_its_last_whole_record() {
    let text = text();
    for length in 0..text.len() {
        let (cut, lines) = (&text.as_bytes()[..length], text[..floor(&text, length)].matches('\n'));
        let whole = lines.count() + usize::from(text.as_bytes()[length] == b'\n');
        check(cut, whole, &format!("{length} bytes"));
    }
}

#[test]
fn also_where_it_is_packed() {
    let text = text();
    let packed = packed(&text);
    let mut best = 0;
    for length in 24..packed.len() {
        let Ok(input) = read(&packed[..length]) else { continue };
        let recording = input.recording.unwrap_or_default();
        let found = input.objects.len() + recording.changes.len();
        assert!(
            found >= best,
            "{length} of {} bytes give {found}, fewer give {best}",
            packed.len()
        );
        best = found;
        let warned =
            input.warnings.iter().any(|warning| warning.contains("is truncated: its last"));
        // gzip's trailer may be missing after a complete recording.
        assert!(warned || found == 5, "{length}: {:?}", input.warnings);
    }
    assert_eq!(best, 5);
}

fn check(cut: &[u8], whole: usize, about: &str) {
    match read(cut) {
        // The beginning is too short to recognize the format.
        Err(_) if whole == 0 => {}
        Ok(input) if whole == 0 => assert_eq!(input.recording, None, "{about}"),
        Err(error) => panic!("{about}: {error}"),
        Ok(input) => {
            let recording = input.recording.unwrap();
            let found = input.objects.len() + recording.changes.len();
            let expected = [0, 1, 2, 2, 3, 4, 4, 5, 5][whole - 1];
            assert_eq!(found, expected, "{about}");
            let warned = input.warnings.first().is_some_and(|warning| {
                warning.contains(&format!("its last complete record is line {whole}"))
            });
            assert_eq!(warned, whole < 9, "{about}: {:?}", input.warnings);
        }
    }
}

fn floor(text: &str, length: usize) -> usize {
    (0..=length).rev().find(|at| text.is_char_boundary(*at)).unwrap()
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let broken = |at: usize, line: &str| read(text().replace(LINES[at], line).as_bytes());
    let error = broken(3, r#"{"record":"put","kind":"#).unwrap_err();
    assert!(error.contains("r.jsonl:5"), "{error}");
    let error = broken(
        3,
        r#"{"record":"put","at":"2026-01-01T00:00:01Z","kind":"Node","object":{"spec":{"taints":5}}}"#,
    );
    let error = error.unwrap_err();
    assert!(error.contains("Node: spec.taints") && error.contains("r.jsonl:5"), "{error}");
    let error = broken(6, r#"{"record":"delete","kind":"Node","name":"a"}"#).unwrap_err();
    assert!(error.contains("a delete record has no object or no time"), "{error}");
    let error = read(text().replace("recording/v1", "recording/v9").as_bytes()).unwrap_err();
    assert!(error.contains("kubestep/recording/v9"), "{error}");
    let error = read(format!("{}{}", text(), text()).as_bytes()).unwrap_err();
    assert!(error.contains("contains a second recording"), "{error}");
}

#[test]
fn a_filter_concerns_what_changed_later_too() {
    let filter = Filter { namespaces: vec!["y".into()], ..Filter::default() };
    let read = crate::read_text("r.jsonl", text().into_bytes(), &filter).unwrap();
    let kept = read.recording.unwrap().changes;
    assert!(!kept.iter().any(|change| matches!(
        &change.what,
        super::ObjectChange::Put(object) if object.kind() == Kind::Pod
    )));
    assert_eq!(kept.len(), 2);
}
