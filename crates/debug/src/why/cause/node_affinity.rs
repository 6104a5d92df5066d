//! NodeAffinity: the expression, the node's value, and whether any node could meet it.

use serde::Serialize;

use super::node_terms::{NodeTerms, Unmet};
use super::{Case, Cause, Outlook, Words};
use kubestep_plugins::node_affinity::{NodeAffinityArgs, required_terms};

/// The node does not match what the pod, or its profile, requires.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AffinityMismatch {
    /// The source of the requirement.
    pub of: AffinityOf,
    /// The unmet expressions of the term that the node misses least. Empty if there is no term, in
    /// which case no node matches.
    pub unmet: Vec<Unmet>,
    /// The index of that term, from 0; `None` if there is only one.
    pub term: Option<usize>,
    /// The number of terms; one must match.
    pub terms: usize,
}

/// The source of a node requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AffinityOf {
    /// The pod's `nodeSelector`.
    NodeSelector,
    /// The pod's required node affinity.
    NodeAffinity,
    /// The affinity that the profile adds to every pod.
    AddedAffinity,
}

impl AffinityOf {
    fn as_str(self) -> &'static str {
        match self {
            AffinityOf::NodeSelector => "node selector",
            AffinityOf::NodeAffinity => "node affinity",
            AffinityOf::AddedAffinity => "addedAffinity of the profile",
        }
    }
}

impl AffinityMismatch {
    fn with(&self, each: impl Fn(&Unmet) -> String) -> String {
        let of = self.of.as_str();
        if self.unmet.is_empty() {
            return format!("{of} has no term that could match");
        }
        let unmet: Vec<String> = self.unmet.iter().map(each).collect();
        let nearest = match self.term {
            Some(term) => format!(" (nearest of {} terms: {})", self.terms, term + 1),
            None => String::new(),
        };
        format!("{of} {}{nearest}", unmet.join("; "))
    }
}

impl Words for AffinityMismatch {
    fn gist(&self) -> String {
        self.with(Unmet::gist)
    }

    fn words(&self) -> String {
        self.with(Unmet::words)
    }
}

/// All node requirements of a pod.
struct Asked(Vec<(AffinityOf, NodeTerms)>);

impl Asked {
    fn of(case: &Case<'_>) -> Asked {
        let (snapshot, memo) = (case.probe.snapshot(), case.memo);
        let pod = &case.probe.pod().pod;
        let mut asked = Vec::new();
        if let Some(labels) = &pod.spec.node_selector {
            let terms = NodeTerms::of_labels(labels, snapshot, memo);
            asked.push((AffinityOf::NodeSelector, terms));
        }
        let args: NodeAffinityArgs = case.probe.args().of();
        let added = args
            .added_affinity
            .as_ref()
            .and_then(|added| added.required_during_scheduling_ignored_during_execution.as_ref());
        let selectors =
            [(AffinityOf::NodeAffinity, required_terms(pod)), (AffinityOf::AddedAffinity, added)];
        for (of, selector) in selectors {
            let Some(selector) = selector else { continue };
            asked.push((of, NodeTerms::of_selector(selector, true, snapshot, memo)));
        }
        Asked(asked)
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let asked = case.memo.one(|| Asked::of(case));
    let cause = |(of, terms): &(AffinityOf, NodeTerms)| {
        let (term, unmet) = terms.unmet(node);
        if unmet.is_empty() && terms.len() > 0 {
            return None;
        }
        let missing = unmet.len().max(1) as f64;
        let (len, term) = (terms.len(), (terms.len() > 1).then_some(term));
        let mismatch = AffinityMismatch { of: *of, unmet, term, terms: len };
        Some(Cause::new(mismatch, missing, Outlook::Mismatch))
    };
    asked.0.iter().filter_map(cause).collect()
}
