//! Large JSON gives the same result as small JSON, wherever the text is split.

use std::io::Read;

use proptest::prelude::*;

use crate::reader::TextReader;
use crate::{Filter, LIMITS, MemoryLimits, Progress, ReadInput, Reading, SourceError};

/// Returns a few bytes per read.
struct Slow<'a> {
    rest: &'a [u8],
    step: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.step.min(self.rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

fn read(text: &str, limits: MemoryLimits, step: usize) -> Result<ReadInput, Box<SourceError>> {
    // Else the fields of large JSON are not checked.
    let filter = Filter { strict: true, ..Filter::default() };
    let progress = Progress::default();
    let mut reading = Reading::new(&filter, &progress, limits);
    let slow = Slow { rest: text.as_bytes(), step };
    reading.file(TextReader::new("in.json".into(), slow, &progress)?)?;
    reading.finish()
}

/// Reads the text as a whole and in small chunks.
fn both_ways(text: &str, chunk: usize, step: usize) -> [Result<ReadInput, Box<SourceError>>; 2] {
    let whole = read(text, LIMITS, usize::MAX);
    [whole, read(text, MemoryLimits { whole: 600, chunk, ..LIMITS }, step)]
}

/// The error without its snippet, which may be cut in a chunk.
fn printed(error: SourceError) -> SourceError {
    SourceError { snippet: None, ..error }
}

/// Among several errors another one may be found first: in chunks it is the first in the text.
fn agree(text: &str, chunk: usize, step: usize) {
    match both_ways(text, chunk, step) {
        [Ok(whole), Ok(cut)] => assert_eq!(whole, cut, "{text}"),
        [Err(whole), Err(cut)] => {
            assert!(cut.line <= whole.line || whole.line == 0, "{text}\n{whole}\n{cut}");
        }
        [whole, cut] => panic!("{text}\nas a whole: {whole:?}\nin chunks: {cut:?}"),
    }
}

fn pod(name: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}", "annotations": {{"a": "}},{{\"apiVersion\"é"}}}}, "spec": {{"containers": [{{"name": "c"}}, {{"name": "d"}}]}}}}"#
    )
}

/// Formatted as kubectl does.
fn pretty(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

fn pods(count: usize) -> Vec<String> {
    (0..count).map(|at| pod(&format!("p{at}"))).collect()
}

fn shapes() -> Vec<String> {
    let items = pods(9).join(",\n");
    let headless = pods(7).join(",").replace(r#""apiVersion": "v1", "kind": "Pod", "#, "");
    let list =
        format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{items}], "metadata": {{}}}}"#);
    let typed = format!(r#"{{"kind": "PodList", "apiVersion": "v1", "items": [{headless}]}}"#);
    let late = format!(r#"{{"apiVersion": "v1", "items": [{headless}], "kind": "PodList"}}"#);
    let unread = format!(r#"{{"kind": "EventList", "apiVersion": "v1", "items": [{headless}]}}"#);
    let nodes = r#"{"metadata": {"name": "n1"}}, null, {"metadata": {"name": "n2"}}"#;
    let export = format!(
        r#"{{"pods": [{headless}], "pvs": null, "nodes": [{nodes}], "pvcs": [], "schedulerConfig": {{"percentageOfNodesToScore": 50}}, "more": [{nodes}]}}"#
    );
    let mixed = format!(
        r#"[{}, {{"kind": "ConfigMap", "apiVersion": "v1", "data": {{}}}}, {{"metadata": {{"name": "n"}}, "kind": "Node", "apiVersion": "v1"}}]"#,
        pod("a")
    );
    let stream =
        format!("{}\n{typed}\n{}", pods(5).join("\n"), pods(9).join("\n").replace("\"p", "\"q"));
    let pretty_list = pretty(&list);
    vec![
        list,
        pretty_list,
        pretty(&typed),
        typed,
        late,
        unread,
        pretty(&export),
        export,
        mixed,
        stream,
        "{}".into(),
        "[]".into(),
        r#"{"kind": "List", "apiVersion": "v1", "items": []}"#.into(),
        r#"{"items": null, "kind": "List", "apiVersion": "v1"} "#.into(),
    ]
}

#[test]
fn all_shapes_come_out_alike() {
    for text in shapes() {
        for (chunk, step) in [(1, 1), (20, 7), (200, 64), (300, 10_000), (5_000, 1_000)] {
            agree(&text, chunk, step);
        }
    }
}

#[test]
fn a_file_that_was_cut_off_is_an_error_at_its_end() {
    let pretty_list = &shapes()[1];
    for length in (0..pretty_list.len()).rev().step_by(13).filter(|at| *at > 1) {
        if let Some(text) = pretty_list.get(..length) {
            let [whole, cut] = both_ways(text, 300, 1_000).map(Result::unwrap_err);
            assert_eq!(printed(*whole), printed(*cut), "{text}");
        }
    }
    let cut = &pretty_list[..pretty_list.len() / 2];
    let [_, error] = both_ways(cut, 300, 100);
    let error = error.unwrap_err();
    assert_eq!(error.line, cut.lines().count());
    assert_eq!(error.help, "the text ends too early: is the file truncated?");
}

#[test]
fn errors_name_line_object_and_field_wherever_the_chunk_begins() {
    let wrong = pod("bad").replace(r#""name": "d""#, r#""name": 5"#);
    let items = [pods(20), vec![wrong], pods(20)].concat();
    let list = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{}]}}"#, items.join(","));
    for text in [list.clone(), pretty(&list)] {
        let [whole, cut] = both_ways(&text, 400, 1_000).map(Result::unwrap_err);
        assert_eq!((&*cut.object, &*cut.path), ("Pod bad", "spec.containers[1].name"));
        assert_eq!(whole.to_string().lines().last(), cut.to_string().lines().last());
        assert_eq!(printed(*whole), printed(*cut));
    }
}

#[test]
fn what_is_no_list_and_too_large_is_rejected() {
    let text =
        format!(r#"{{"items": [{}], "kind": "Pod", "apiVersion": "v1"}}"#, pods(3).join(","));
    let error = read(&text, MemoryLimits { whole: 100, chunk: 100, ..LIMITS }, 100).unwrap_err();
    assert_eq!(error.message, "is larger than any object of a cluster, and not a list");
}

#[test]
fn one_object_that_is_too_large_is_rejected() {
    let large = pod("large").replace("\"c\"", &format!("\"{}\"", "c".repeat(9_000)));
    let items = [pods(3), vec![large]].concat().join(",");
    let list = format!(r#"{{"kind": "List", "apiVersion": "v1", "items": [{items}]}}"#);
    let limits = |object| MemoryLimits { whole: 600, chunk: 300, object };
    let error = read(&list, limits(1_000), 100).unwrap_err();
    assert!(error.message.starts_with("has an object of more than"), "{error}");
    assert!(read(&list, limits(40_000), 100).is_ok());
}

#[test]
fn what_is_no_list_of_objects_is_an_error_and_no_more() {
    let many = " ".repeat(700);
    for text in [
        "[",
        "[\"a\"]",
        "[\"a\", 1]",
        "[é",
        "[1 2]",
        "[{}, ]",
        "{\"items\": [",
        "{\"items\": [\"a\"",
    ] {
        for text in [format!("{text}{many}"), format!("[{many}], {text}")] {
            let [whole, cut] = both_ways(&text, 20, 50);
            assert!(whole.is_err() && cut.is_err(), "{text}");
        }
    }
}

proptest! {
    /// A modified text is accepted or rejected like when it is read as a whole.
    #[test]
    fn changed_texts_come_out_alike(
        shape in 0..14usize, from in 0..10_000usize, cut in 0..30usize,
        put in "[a-z:{}\\[\\]\",0 \n]{0,6}", chunk in 1..400usize, step in 1..2_000usize,
    ) {
        let text = &shapes()[shape];
        let from = from % text.len();
        let to = (from + cut).min(text.len());
        if let (Some(before), Some(after)) = (text.get(..from), text.get(to..)) {
            agree(&format!("{before}{put}{after}"), chunk, step);
        }
    }
}
