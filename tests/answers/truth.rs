//! What was planted in a cluster, and whether an explanation reports exactly that.

use serde_json::{Value, json};

use crate::change::What;
use crate::quantity;

/// A cause of a kind with these fields; it may have more.
#[derive(Clone, Debug)]
pub struct Cause {
    pub kind: &'static str,
    pub fields: Value,
}

/// What the explanation has to say, because the cause was planted.
#[derive(Clone, Default, Debug)]
pub struct Truth {
    /// The causes of each node by name. A node that is not listed has none.
    pub nodes: Vec<(String, Cause)>,
    /// Kinds of the blocking problems of the pod.
    pub problems: Vec<&'static str>,
    /// The expected PreFilter causes.
    pub ahead: Vec<Cause>,
    /// Names and words that some cause or problem must contain.
    pub named: Vec<String>,
    /// What at least one proposal must do, to any object.
    pub offered: Vec<What>,
    /// Whether the causes of single nodes are not checked, because PreFilter rejects all nodes.
    pub nodes_open: bool,
    /// Whether the kind of PreFilter's cause is not checked.
    pub ahead_open: bool,
}

impl Truth {
    pub fn node(&mut self, node: &str, kind: &'static str, fields: Value) {
        self.nodes.push((node.to_owned(), Cause { kind, fields }));
    }

    pub fn name(&mut self, word: impl Into<String>) {
        self.named.push(word.into());
    }

    /// Expects a shortage on a node; figures in the smallest units.
    pub fn short(&mut self, node: &str, resource: &str, figures: [i64; 3]) {
        let [allocatable, requested, needed] = figures;
        let free = allocatable - requested;
        self.node(
            node,
            "shortage",
            json!({"resource": resource, "allocatable": allocatable, "requested": requested,
                "free": free, "needed": needed, "shortBy": needed - free}),
        );
    }

    /// The faults of an explanation; empty if it is right.
    pub fn compare(&self, explained: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.nodes_open {
            self.compare_nodes(explained, &mut wrong);
        }
        if !self.ahead_open {
            let found = all(&explained["ahead"]).flat_map(|one| all(&one["causes"])).collect();
            match_up("PreFilter", &self.ahead, found, &mut wrong);
        }
        let is_blocking = |problem: &&Value| problem["blocking"] == true;
        let problems = all(&explained["problems"]).filter(is_blocking);
        let mut kinds: Vec<&str> =
            problems.filter_map(|problem| problem["kind"].as_str()).collect();
        kinds.dedup();
        if kinds != self.problems {
            wrong.push(format!("problems {kinds:?} instead of {:?}", self.problems));
        }
        let text = sentences(explained);
        let missing = self.named.iter().filter(|word| !text.contains(word.as_str()));
        wrong.extend(missing.map(|word| format!("{word:?} is not named")));
        wrong
    }

    fn compare_nodes(&self, explained: &Value, wrong: &mut Vec<String>) {
        for node in all(&explained["nodes"]) {
            let name = node["node"].as_str().unwrap_or_default();
            let planted = self.nodes.iter().filter(|(of, _)| of == name);
            let planted: Vec<Cause> = planted.map(|(_, cause)| cause.clone()).collect();
            let causes = all(&node["blockers"]).flat_map(|by| all(&by["causes"]));
            // A cause that two plugins report, such as a cordon, is one.
            let mut found: Vec<&Value> = Vec::new();
            causes.for_each(|cause| match found.contains(&cause) {
                true => {}
                false => found.push(cause),
            });
            match_up(name, &planted, found, wrong);
        }
    }
}

/// Removes each planted cause from those found; the rest on either side is wrong.
fn match_up(place: &str, planted: &[Cause], mut found: Vec<&Value>, wrong: &mut Vec<String>) {
    for cause in planted {
        let same = |found: &&Value| found["kind"] == cause.kind && contains(found, &cause.fields);
        match found.iter().position(same) {
            Some(at) => drop(found.remove(at)),
            None => wrong.push(format!("{place}: not found: {} {}", cause.kind, cause.fields)),
        }
    }
    wrong.extend(found.iter().map(|cause| format!("{place}: not planted: {cause}")));
}

/// Whether the document contains all fields of the pattern, at any depth. Lists are compared as a
/// whole, quantities by value.
pub fn contains(document: &Value, pattern: &Value) -> bool {
    let Value::Object(fields) = pattern else { return document == pattern };
    let amount = |text: &Value| quantity::parse(pattern["resource"].as_str()?, text.as_str()?);
    fields.iter().all(|(name, value)| {
        let found = &document[name.as_str()];
        contains(found, value) || amount(found).is_some_and(|found| *value == found)
    })
}

/// The elements of a list; empty if it is not a list.
pub fn all(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The text of all causes and problems.
fn sentences(explained: &Value) -> String {
    let nodes = all(&explained["nodes"]).flat_map(|node| all(&node["blockers"]));
    let causes = nodes.chain(all(&explained["ahead"])).map(|by| by["causes"].to_string());
    let mut text: String = causes.collect();
    text += &explained["problems"].to_string();
    text
}
