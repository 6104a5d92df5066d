//! The smallest changes that would make a pod fit, as text and as JSON.

use serde_json::{Value, json};

use crate::debug::edit::Edit;
use crate::debug::fix::{Fix, Fixes};
use crate::output::clean::clean;

/// The changes as text, the smallest first, with a line break at the end.
pub fn text(fixes: &Fixes) -> String {
    lines(fixes).iter().map(|(_, line)| clean(line).into_owned() + "\n").collect()
}

/// The lines of that text, each with the change it is about, as they are.
pub fn lines(fixes: &Fixes) -> Vec<(Option<usize>, String)> {
    let heading = match (fixes.none_needed, fixes.found.len()) {
        (true, _) => "It needs no change: it has its node, or gets one.".to_owned(),
        (_, 0) => {
            format!("No change was found that makes it fit ({} tried).", fixes.tried)
        }
        _ => "Any of these changes makes it fit; each was tried:".to_owned(),
    };
    let mut lines = vec![(None, heading)];
    for (at, fix) in fixes.found.iter().enumerate() {
        lines.extend(one(at + 1, fix).into_iter().map(|line| (Some(at), line)));
    }
    lines
}

fn one(number: usize, fix: &Fix) -> Vec<String> {
    let edits: Vec<String> = fix.edits.iter().map(Edit::to_string).collect();
    let held = if fix.waits { ", and a plugin holds it there" } else { "" };
    let mut lines = vec![
        format!("  {number}. {}", edits.join(", and ")),
        format!("     it gets {}{held}", fix.node),
    ];
    let mut add = |text: String| lines.push(format!("     {text}"));
    if !fix.evicted.is_empty() {
        let evicted: Vec<String> = fix.evicted.iter().map(ToString::to_string).collect();
        add(format!("evicted for it: {}", evicted.join(", ")));
    }
    if fix.contended {
        add("pods ahead in the queue take the place first, unless it is brought forward".into());
    }
    if fix.alike > 0 {
        let (changes, work) = match fix.alike {
            1 => ("change", "works"),
            _ => ("changes", "work"),
        };
        add(format!("{} similar {changes} also {work}", fix.alike));
    }
    fix.notes.iter().for_each(|note| add(note.clone()));
    lines
}

/// The changes as JSON: `fixes` of `schema/explain.v1.json`.
pub fn value(fixes: &Fixes) -> Value {
    let mut value = serde_json::to_value(fixes).unwrap_or_default();
    let words = |fix: &Fix| fix.edits.iter().map(Edit::to_string).collect::<Vec<_>>();
    if let Some(Value::Array(found)) = value.get_mut("found") {
        for (found, fix) in found.iter_mut().zip(&fixes.found) {
            if let Value::Object(fields) = found {
                fields.insert("words".to_owned(), json!(words(fix)));
            }
        }
    }
    value
}
