//! What a plugin reports about its rejections, for explanations and the search for fixes.

use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{ObjectKey, Quantity, Time};

/// Why a plugin rejects a pod, in more detail than its reasons.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// A short text, the same for all nodes that are rejected for the same reason.
    pub gist: String,
    /// The text in full, with the amounts or names of this node.
    pub words: String,
    /// How much is missing: from near 0 for a small amount to 1 for a whole requirement.
    pub missing: f64,
    /// What the pod could request instead, each a way by itself. The search for fixes tries it.
    pub lower_requests: Vec<Vec<LowerRequest>>,
}

impl Explanation {
    /// An explanation of a whole requirement that is missing.
    pub fn new(gist: &str, words: String) -> Explanation {
        Explanation { gist: gist.to_owned(), words, missing: 1.0, lower_requests: Vec::new() }
    }
}

/// An amount that a pod would get of a resource of which it requests more.
#[derive(Clone, PartialEq, Debug)]
pub struct LowerRequest {
    /// The container; `None` for the pod as a whole.
    pub container: Option<Symbol>,
    /// The resource, by name.
    pub resource: Symbol,
    /// The request that would fit.
    pub amount: Quantity,
}

/// Pods that a plugin places together or not at all.
#[derive(Clone, PartialEq, Debug)]
pub struct JointPods {
    /// The object that says so.
    pub group: ObjectKey,
    /// The path of its field that says how many of them need a node.
    pub size_field: &'static str,
    /// The number in that field.
    pub needed: usize,
    /// How many have a node, or wait at Permit with one.
    pub placed: usize,
    /// The pods that have no node yet.
    pub pending: Vec<NamespacedName>,
    /// Until when the plugin rejects all of them.
    pub rejected_until: Option<Time>,
}
