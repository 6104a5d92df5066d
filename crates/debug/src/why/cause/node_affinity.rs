//! NodeAffinity: the expression, the node's value, and whether any node could meet it.

use std::sync::Arc;

use serde::Serialize;

use super::node_terms::{NodeTerms, UnmetExpression};
use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::selector::{Selector, UnmetPart};
use kubestep_api::{Node, NodeSelector};
use kubestep_plugins::node_affinity::{Mismatch, NodeAffinityArgs, Requirements, required_terms};

/// The node does not match what the pod, or its profile, requires.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AffinityMismatch {
    /// The source of the requirement.
    pub of: AffinityOf,
    /// The unmet expressions of the term that the node misses least. Empty if there is no term, in
    /// which case no node matches.
    pub unmet: Vec<UnmetExpression>,
    /// The index of that term, from 0; `None` if there is only one.
    pub term: Option<usize>,
    /// The number of terms; one must match.
    pub terms: usize,
}

/// The source of a node requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AffinityOf {
    /// The pod's `spec.nodeSelector`.
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
    fn with(&self, each: impl Fn(&UnmetExpression) -> String) -> String {
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

impl CauseText for AffinityMismatch {
    fn gist(&self) -> String {
        self.with(|unmet| match unmet.hint {
            Some(_) => unmet.gist(),
            None => format!("{} is not met", unmet.gist()),
        })
    }

    fn text(&self) -> String {
        self.with(UnmetExpression::text)
    }

    fn unmet(&self) -> &[UnmetExpression] {
        &self.unmet
    }
}

/// What the pod and its profile require of a node, with the texts.
struct Required {
    requirements: Arc<Requirements>,
    selector: NodeTerms,
    affinity: NodeTerms,
    added: NodeTerms,
}

impl Required {
    fn of(case: &RejectedCase<'_>) -> Required {
        let (snapshot, memo) = (case.probe.snapshot(), case.memo);
        let pod = &case.probe.pod().pod;
        let args = case.probe.args().read::<NodeAffinityArgs>();
        let terms = |selector: Option<&NodeSelector>| {
            let terms = |selector| NodeTerms::of_selector(selector, true, snapshot, memo);
            selector.map(terms).unwrap_or_default()
        };
        let labels = pod.spec.node_selector.as_ref().map(Selector::from_labels).unwrap_or_default();
        Required {
            requirements: Requirements::of_cycle(case.state, pod, &args),
            selector: NodeTerms::of_labels(&labels, snapshot, memo),
            affinity: terms(required_terms(pod)),
            added: terms(args.required()),
        }
    }

    fn explain(&self, mismatch: Mismatch<'_>, node: &Node) -> AffinityMismatch {
        let (labels, name) = (&node.metadata.labels, node.metadata.name);
        let (of, terms, (term, unmet)) = match mismatch {
            Mismatch::Added(matcher) => {
                let nearest = self.added.nearest(node, matcher.unmet(labels, name));
                (AffinityOf::AddedAffinity, &self.added, nearest)
            }
            Mismatch::Selector(selector) => {
                let unmet = selector.unmet(labels).map(UnmetPart::Expression);
                let nearest = self.selector.nearest(node, std::iter::once((0, unmet)));
                (AffinityOf::NodeSelector, &self.selector, nearest)
            }
            Mismatch::Affinity(matcher) => {
                let nearest = self.affinity.nearest(node, matcher.unmet(labels, name));
                (AffinityOf::NodeAffinity, &self.affinity, nearest)
            }
        };
        let term = (terms.len() > 1).then_some(term);
        AffinityMismatch { of, unmet, term, terms: terms.len() }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let required = case.memo.one(|| Required::of(case));
    let cause = |mismatch| {
        let mismatch = required.explain(mismatch, node);
        let missing = mismatch.unmet.len().max(1) as f64;
        Cause::new(mismatch, missing, Outlook::Mismatch)
    };
    required.requirements.mismatches(node).map(cause).collect()
}
