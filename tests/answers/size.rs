//! The size of a change, by a rule independent of the program's: every change in place counts two,
//! a pod that is evicted, created again as the field is immutable, or selected by others because of
//! its labels, three, a corrected typo one, a node that is added six, a request that is lowered by
//! more than half seven, and a node that is made larger eight. Other amounts do not matter.

use serde_json::Value;

use crate::apply::position;
use crate::change::{Change, What};
use crate::measure::requested;
use crate::quantity;
use crate::truth::all;

const CORRECTED: u32 = 1;
const CHANGED: u32 = 2;
/// A pod that is evicted or created again.
pub const REPLACED: u32 = 3;
const NODE: u32 = 6;
const DRASTIC: u32 = 7;
const LARGER_NODE: u32 = 8;
/// Two names that differ in at most this many letters count as a name and its typo.
const LETTERS: usize = 2;

/// The size of changes that evict that many pods.
pub fn of(documents: &[Value], changes: &[Change], evicted: usize) -> u32 {
    let changes: u32 = changes.iter().map(|change| of_one(documents, change)).sum();
    changes + REPLACED * evicted as u32
}

fn of_one(documents: &[Value], change: &Change) -> u32 {
    match &change.what {
        What::Copy(count) => NODE * *count as u32,
        // Capacity and allocatable are set together.
        What::Set(path, _) if path.starts_with("/status/capacity/") => 0,
        What::Set(path, _) if path.starts_with("/status/allocatable/") => LARGER_NODE,
        _ if is_drastic(documents, change) => DRASTIC,
        What::Set(_, Some(_)) if is_typo(documents, change) => CORRECTED,
        What::Set(path, None) => each(change) * expressions(old(documents, change, path)),
        _ => each(change),
    }
}

/// Whether the change lowers a request by more than half.
fn is_drastic(documents: &[Value], change: &Change) -> bool {
    let pod = position(documents, &change.target).map(|at| &documents[at]);
    let amounts = match &change.what {
        What::Total(resource, new) => {
            let old = pod.and_then(|pod| requested(pod, resource));
            Some((old, quantity::parse(resource, new)))
        }
        What::Set(path, Some(Value::String(new))) if path.contains("/resources/requests/") => {
            let resource = path.rsplit('/').next().unwrap_or_default();
            let old = old(documents, change, path).and_then(Value::as_str);
            let old = old.and_then(|old| quantity::parse(resource, old));
            Some((old, quantity::parse(resource, new)))
        }
        _ => None,
    };
    matches!(amounts, Some((Some(old), Some(new))) if new * 2 < old)
}

/// The size of a change of one field.
fn each(change: &Change) -> u32 {
    let in_place = |path: &str| {
        let fields =
            ["/metadata/annotations/", "/container/", "/spec/schedulingGates", "/spec/tolerations"];
        fields.iter().any(|field| path.starts_with(field)) || path.contains("/resources/")
    };
    let is_in_place = match &change.what {
        What::Delete => false,
        _ if change.target.kind != "pod" => true,
        What::Set(path, _) | What::Append(path, _) | What::Remove(path, _) => in_place(path),
        What::Total(..) => true,
        What::Put(_) | What::Copy(_) | What::Unport(_) => false,
    };
    if is_in_place { CHANGED } else { REPLACED }
}

/// The number of expressions in a term that is removed as a whole; 1 for anything else.
fn expressions(removed: Option<&Value>) -> u32 {
    let count = |list: &str| removed.map_or(0, |term| all(&term[list]).count());
    (count("matchExpressions") + count("matchFields")).max(1) as u32
}

fn old<'a>(documents: &'a [Value], change: &Change, path: &str) -> Option<&'a Value> {
    documents[position(documents, &change.target)?].pointer(path)
}

/// Whether a change replaces a name that does not exist by a similar one that does.
pub fn is_typo(documents: &[Value], change: &Change) -> bool {
    let What::Set(path, Some(new)) = &change.what else { return false };
    let written = old(documents, change, path).and_then(only_text);
    let both = written.zip(only_text(new));
    both.is_some_and(|(old, new)| is_near(old, new) && !is_known(documents, old))
}

/// A text, or the only element of a list.
fn only_text(value: &Value) -> Option<&str> {
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only.as_str(),
        _ => value.as_str(),
    }
}

/// Whether an object has the name, or a label with the value.
fn is_known(documents: &[Value], text: &str) -> bool {
    let has = |object: &Value| {
        let labels = object["metadata"]["labels"].as_object();
        let is_value = labels.into_iter().flatten().any(|(_, value)| value == text);
        object["metadata"]["name"] == text || is_value
    };
    documents.iter().any(has)
}

fn is_near(a: &str, b: &str) -> bool {
    let is_amount = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    !is_amount(a) && a.len() > LETTERS && strsim::levenshtein(a, b) <= LETTERS
}

#[test]
fn typos_are_near_and_other_words_are_not() {
    assert!(is_near("sdd", "ssd") && is_near("data-chekout", "data-checkout"));
    assert!(!is_near("web", "batch") && !is_near("1500m", "1400m"));
}
