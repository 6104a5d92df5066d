//! NodeUnschedulable: the node is cordoned.

use serde::Serialize;

use super::{Case, Cause, Outlook, Words};
use crate::api::Time;

/// The node is cordoned, and the pod does not tolerate that.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cordoned {
    /// Since when, if the taint that goes with it says so.
    pub since: Option<Time>,
}

impl Words for Cordoned {
    fn gist(&self) -> String {
        "cordoned".to_owned()
    }

    fn words(&self) -> String {
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        format!(
            "cordoned{since} (spec.unschedulable); the pod does not tolerate \
             node.kubernetes.io/unschedulable:NoSchedule"
        )
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let mut taints = node.spec.taints.iter();
    let taint = taints.find(|taint| taint.key == "node.kubernetes.io/unschedulable");
    let since = taint.and_then(|taint| taint.time_added);
    vec![Cause::new(Cordoned { since }, 1.0, Outlook::ByHand)]
}
