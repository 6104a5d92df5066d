//! The smallest changes that would make a pod fit, as text and as JSON.

use serde_json::{Value, json};

use kubestep_api::words::count;
use kubestep_debug::edit::{Edit, NodeEdit};
use kubestep_debug::fix::{Fix, Fixes};
use kubestep_framework::pod::NamespacedName;
use kubestep_output::clean::clean;

/// Names that are listed; the rest is counted.
const NAMED: usize = 3;
/// Printed if no plugin's queueing hint reacts to the events of a change.
const FLUSH_ONLY: &str = "takes effect in 5 minutes: no event requeues the pod, only the flush of \
                          unschedulable pods does";

/// The changes as text, smallest first, with a trailing newline.
pub fn text(fixes: &Fixes) -> String {
    let on = more(fixes)
        .map(|more| format!("{more}; --max-fixes {} continues the search.", more_fixes(fixes)));
    let lines = lines(fixes).into_iter().map(|(_, line)| line).chain(on);
    lines.map(|line| clean(&line).into_owned() + "\n").collect()
}

/// That changes are left to be tried, if a limit ended the search.
pub fn more(fixes: &Fixes) -> Option<String> {
    let untried = fixes.untried;
    let verb = if untried == 1 { "was" } else { "were" };
    (untried > 0).then(|| format!("{} {verb} not tried", count(untried, "other change")))
}

/// How many changes a search that goes on asks for.
pub fn more_fixes(fixes: &Fixes) -> usize {
    fixes.asked.saturating_mul(2)
}

/// The lines of the text, each with the index of its change.
pub fn lines(fixes: &Fixes) -> Vec<(Option<usize>, String)> {
    let heading = match (fixes.none_needed, fixes.found.len(), fixes.tried) {
        (true, ..) => match &fixes.held {
            Some(held) => format!("No change was searched for: {held}."),
            None => "No change is needed: the pod has a node or gets one.".to_owned(),
        },
        (_, 0, 0) => "No change is known that could make it fit.".to_owned(),
        (_, 0, tried) => format!("No change was found that makes it fit ({tried} tried)."),
        _ => "Any of these changes makes it fit; each was tried:".to_owned(),
    };
    let mut lines = vec![(None, heading)];
    lines.extend(fixes.unchangeable.iter().map(|text| (None, format!("  {text}"))));
    for (at, fix) in fixes.found.iter().enumerate() {
        lines.extend(one(at + 1, fix, fixes).into_iter().map(|line| (Some(at), line)));
    }
    lines
}

fn one(number: usize, fix: &Fix, all: &Fixes) -> Vec<String> {
    let edits: Vec<String> = fix.edits.iter().map(|edit| all.edit_text(edit)).collect();
    let held = if fix.waits { ", and a plugin holds it there" } else { "" };
    let mut lines = vec![
        format!("  {number}. {}", edits.join(", and ")),
        format!("     it gets {}{held}", fix.node),
    ];
    let mut add = |text: String| lines.push(format!("     {text}"));
    if !fix.evicted.is_empty() {
        let evicted: Vec<String> = fix.evicted.iter().map(ToString::to_string).collect();
        add(format!("preempts: {}", evicted.join(", ")));
    }
    if let Some(similar) = similar(fix, all) {
        add(similar);
    }
    if fix.contended {
        add(contended(fix));
    }
    if fix.flush_only {
        add(FLUSH_ONLY.to_owned());
    }
    fix.notes.iter().for_each(|note| add(note.clone()));
    lines
}

/// Similar changes that also work, by what differs: `also works: cache-1, cache-2 and 3 more`.
fn similar(fix: &Fix, all: &Fixes) -> Option<String> {
    let names: Vec<String> =
        fix.similar.iter().map(|edits| difference(edits, &fix.edits, all)).collect();
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    (!first.is_empty()).then(|| format!("also works: {}{more}", first.join(", ")))
}

/// The edits that `main` does not have, by the names of their objects.
fn difference(edits: &[Edit], main: &[Edit], all: &Fixes) -> String {
    let new = edits.iter().filter(|edit| !main.contains(edit));
    let name = |edit: &Edit| match edit {
        Edit::Delete(key) => NamespacedName::new(key.namespace, key.name).to_string(),
        Edit::Node(_, NodeEdit::Resize(..)) => all.edit_text(edit),
        Edit::Node(node, _) => node.to_string(),
        Edit::AddNodes { count: 1, like } => format!("like {like}"),
        edit => all.edit_text(edit),
    };
    new.map(name).collect::<Vec<String>>().join(" and ")
}

/// Why the pod would stay pending.
fn contended(fix: &Fix) -> String {
    let pods: Vec<String> = fix.taken_by.iter().take(NAMED).map(ToString::to_string).collect();
    match (fix.taken_by.len(), fix.taken_by.len().saturating_sub(NAMED)) {
        (0, _) => "in queue order it stays pending".to_owned(),
        (1, _) => format!("{}, ahead in the queue, gets a node first", pods.join(", ")),
        (_, 0) => format!("{}, ahead in the queue, get nodes first", pods.join(", ")),
        (_, more) => {
            format!("{} and {more} more, ahead in the queue, get nodes first", pods.join(", "))
        }
    }
}

/// The changes as JSON: `fixes` of `schema/explain.v1.json`.
pub fn value(fixes: &Fixes) -> Value {
    let mut value = serde_json::to_value(fixes).unwrap_or_default();
    let words = |fix: &Fix| fix.edits.iter().map(Edit::to_string).collect::<Vec<_>>();
    if let Some(Value::Array(found)) = value.get_mut("found") {
        for (found, fix) in found.iter_mut().zip(&fixes.found) {
            if let Value::Object(fields) = found {
                fields.insert("words".to_owned(), json!(words(fix)));
                fields.insert("alike".to_owned(), json!(fix.similar.len()));
            }
        }
    }
    value
}
