//! Formats are recognized by their content, and patches are applied.

use serde_json::{Value, json};

use super::*;
use crate::{Filter, STDIN, read_text};

fn format(text: &str) -> Option<&'static str> {
    candidates(text).first().map(|format| format.name)
}

#[test]
fn formats_are_recognized_by_what_is_in_a_file() {
    let line = r#"{"time":"2026-01-01T00:00:00Z","event":"Add","resource":{}}"#;
    assert_eq!(format(line), Some(simulator::FORMAT.name));
    assert_eq!(format("{ \"EndTimestamp\": \"\"}"), Some(autoscaler::FORMAT.name));
    assert_eq!(format("\n{\n  \"rawObjects\": {}}"), Some(kai::FORMAT.name));
    assert_eq!(format("{\"version\":2,\"events\":[]}"), Some(simkube::FORMAT.name));
    assert_eq!(format("t: $(time-offset-nanosecond 5)"), Some(kwok::FORMAT.name));
    for ours in ["{\"kind\": \"List\"}", "{\"pods\": []}", "[]", "", "kind: Pod\nmetadata: {}\n"] {
        assert_eq!(format(ours), None, "{ours}");
    }
}

/// A file that only begins like a foreign format is read as ordinary input.
#[test]
fn what_only_looks_like_a_foreign_file_is_read_as_it_is() {
    for text in [
        r#"{"events": 5, "kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}"#,
        r#"{"config": {}, "nodes": [{"metadata": {"name": "n"}}]}"#,
        r#"{"event": "", "resource": 1, "nodes": [{"metadata": {"name": "n"}}]}"#,
        r#"{"Error": "", "nodes": [{"metadata": {"name": "n"}}]}"#,
    ] {
        let input = read_text(STDIN, text.into(), &Filter::default()).unwrap();
        assert_eq!((input.objects.len(), input.foreign.len()), (1, 0), "{text}");
    }
}

#[test]
fn every_kind_is_held_by_a_format_or_lacking_in_it() {
    // A catalogue holds no objects, so it does not lack any.
    for format in FORMATS.iter().filter(|format| !format.holds.is_empty()) {
        let about = format.about("f", Vec::new());
        assert_eq!(about.lacks.len() + format.holds.len(), Kind::all().count(), "{}", format.name);
    }
}

fn patched(mut value: Value, patch: Value) -> Value {
    patch::apply(&mut value, patch);
    value
}

#[test]
fn patches_merge_mappings_and_named_lists() {
    let pod = json!({
        "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]},
        "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}], "tolerations": [1]},
    });
    let patch = json!({
        "metadata": {
            "labels": {"a": null, "c": "3"},
            "finalizers": ["z", "x"],
            "$deleteFromPrimitiveList/finalizers": ["y"],
        },
        "spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
            "containers": [
                {"name": "a", "$patch": "delete"}, {"name": "b", "image": "j"}, {"name": "c"},
                {"name": "d", "$patch": "delete"},
            ],
            "tolerations": [2, 3],
        },
    });
    let expected = json!({
        "metadata": {"labels": {"b": "2", "c": "3"}, "finalizers": ["x", "z"]},
        "spec": {"containers": [{"name": "b", "image": "j"}, {"name": "c"}], "tolerations": [2, 3]},
    });
    assert_eq!(patched(pod, patch), expected);
}

#[test]
fn patches_replace_and_retain() {
    let spec = || json!({"s": {"a": 1, "b": 2}, "volumes": [{"name": "v", "emptyDir": {}}]});
    let replaced = patched(spec(), json!({"s": {"$patch": "replace", "c": 3}}));
    assert_eq!(replaced["s"], json!({"c": 3}));
    let retained = json!({"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {}},
    ]});
    assert_eq!(patched(spec(), retained)["volumes"], json!([{"name": "v", "hostPath": {}}]));
    let whole = json!({"volumes": [{"name": "w"}, {"$patch": "replace"}]});
    assert_eq!(patched(spec(), whole)["volumes"][0], json!({"name": "w"}));
    assert_eq!(patched(json!(1), json!({"a": {"b": 1}})), json!({"a": {"b": 1}}));
    assert_eq!(patched(json!({"l": 1}), json!({"l": [{"x": 1}]})), json!({"l": [{"x": 1}]}));
}
