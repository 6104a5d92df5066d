//! The answer to "why?" as text: first the verdict in one sentence, then the causes, on the nodes
//! that miss the least first, then what would help and when the pod is retried.
//!
//! One file per section; each returns lines. The short form groups nodes, the wide form lists every
//! one.

mod decisive;
mod head;
mod nodes;
mod nominated;
mod outline;
mod placement;
mod preemption;
mod queue;
mod spread;

pub use decisive::cause as decisive_cause;
pub use outline::outline;
pub use preemption::candidate_id;

use kubestep_api::Name;
use kubestep_debug::why::Why;
use kubestep_output::clean::clean;
use serde_json::{Value, json};

/// How much to include.
#[derive(Clone, Default, Debug)]
pub struct WhyDetail {
    /// Everything about every node.
    pub wide: bool,
    /// The node of `--node`, to which the answer is limited.
    pub node: Option<Name>,
    /// Explain why the pod is not on this node, compared with the selected one.
    pub why_not: Option<Name>,
    /// What the names of all nodes end with, which the columns of scores leave out.
    pub common_end: String,
    /// Where everything is listed that the short form leaves out: `-o wide`.
    pub rest: &'static str,
}

impl WhyDetail {
    /// Where what is left out is listed, with what follows: ` (-o wide lists them)`.
    fn hint(&self, what: &str) -> String {
        match self.rest {
            "" => String::new(),
            rest => format!(" ({rest}{what})"),
        }
    }
}

/// The result of a cycle for one node: all causes, or its scores with inputs and formulas, compared
/// with those of the selected node.
pub fn of_node(why: &Why, node: Name) -> Vec<String> {
    let mut lines = nodes::one(why, node);
    let scores = placement::versus(why, node, true);
    if !scores.is_empty() {
        lines.push(String::new());
    }
    lines.extend(scores);
    lines
}

/// The answer as text, with a trailing newline.
pub fn text(why: &Why, detail: &WhyDetail) -> String {
    let mut lines = head::lines(why);
    let sections = match (detail.node.or(detail.why_not), detail.why_not) {
        (Some(node), against) => {
            vec![nodes::one(why, node), placement::versus(why, node, against.is_some())]
        }
        (None, _) => vec![
            nodes::lines(why, detail),
            nominated::lines(why, detail.wide),
            spread::lines(why, detail.wide),
            placement::lines(why, detail),
            preemption::lines(why, detail.wide),
            queue::lines(why, detail),
        ],
    };
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        lines.push(String::new());
        lines.extend(section);
    }
    lines.iter().map(|line| clean(line).into_owned() + "\n").collect()
}

/// The first few names, and the number of the rest.
fn names<T: std::fmt::Display>(names: &[T], most: usize) -> String {
    let first: Vec<String> = names.iter().take(most).map(T::to_string).collect();
    match names.len().saturating_sub(most) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The version of the JSON document.
const SCHEMA: &str = "kubestep/explain/v1";

/// The whole answer as JSON, by `schema/explain.v1.json`.
pub fn value(why: &Why) -> Value {
    let mut value = serde_json::to_value(why).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("schema".to_owned(), json!(SCHEMA));
        fields.insert("schedulable".to_owned(), json!(why.is_schedulable()));
    }
    value
}
