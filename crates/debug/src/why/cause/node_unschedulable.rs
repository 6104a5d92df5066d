//! NodeUnschedulable: the node is cordoned.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::{Node, TaintEffect, Time};

/// The taint that the node controller adds to cordoned nodes (`v1.TaintNodeUnschedulable`).
pub(super) const TAINT: &str = "node.kubernetes.io/unschedulable";

/// The node is cordoned, and the pod does not tolerate that.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cordoned {
    /// When it was cordoned, if its taint has a time.
    pub since: Option<Time>,
}

impl CauseText for Cordoned {
    fn gist(&self) -> String {
        "cordoned".to_owned()
    }

    fn text(&self) -> String {
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        format!("cordoned{since} (spec.unschedulable)")
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    case.node.node.iter().filter_map(|node| cordoned(node)).collect()
}

/// The cause that the node is cordoned: one cause, though both the field and the taint keep pods
/// off.
pub(super) fn cordoned(node: &Node) -> Option<Cause> {
    let mut taints = node.spec.taints.iter();
    let taint = taints.find(|taint| taint.key == TAINT && taint.effect == TaintEffect::NoSchedule);
    let since = taint.and_then(|taint| taint.time_added);
    let cause = || Cause::new(Cordoned { since }, 1.0, Outlook::Manual);
    node.spec.unschedulable.then(cause)
}
