//! Taints that the node controller adds for a condition of the node. The condition is the cause:
//! the taint is added again as long as the condition lasts.
//!
//! Upstream: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.

use serde::Serialize;

use super::{Cause, CauseText, Outlook};
use kubestep_api::intern::Symbol;
use kubestep_api::meta::find_condition;
use kubestep_api::{Node, Taint, Time};

/// The taint's key, the condition, the condition's status, and its meaning.
const CONDITIONS: [(&str, &str, &str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "Ready", "False", "node not ready"),
    (
        "node.kubernetes.io/unreachable",
        "Ready",
        "Unknown",
        "node unreachable: its kubelet does not report",
    ),
    ("node.kubernetes.io/memory-pressure", "MemoryPressure", "True", "node under memory pressure"),
    ("node.kubernetes.io/disk-pressure", "DiskPressure", "True", "node under disk pressure"),
    ("node.kubernetes.io/pid-pressure", "PIDPressure", "True", "node under PID pressure"),
    (
        "node.kubernetes.io/network-unavailable",
        "NetworkUnavailable",
        "True",
        "node network unavailable",
    ),
];

/// A condition of the node that keeps pods off it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    /// The condition's type: `Ready`, `MemoryPressure`, …
    pub condition: Symbol,
    /// The status that keeps pods off.
    pub status: Symbol,
    /// The condition's reason; empty if the node only has the taint.
    pub reason: Symbol,
    /// When it started, if the condition has a transition time.
    pub since: Option<Time>,
    /// The key of the condition's taint.
    pub taint: Symbol,
    #[serde(skip)]
    meaning: &'static str,
}

impl NodeCondition {
    /// The condition that a taint stands for. `None` for other taints, and for one whose condition
    /// has ended: the node controller is about to remove that.
    pub(super) fn behind(taint: &Taint, node: &Node) -> Option<NodeCondition> {
        let (_, condition, status, meaning) =
            CONDITIONS.into_iter().find(|(key, ..)| taint.key == *key)?;
        let (condition, status) = (Symbol::new(condition), Symbol::new(status));
        let reported = find_condition(&node.status.conditions, condition);
        if reported.is_some_and(|reported| reported.status.as_str() != status.as_str()) {
            return None;
        }
        Some(NodeCondition {
            condition,
            status,
            reason: reported.map(|reported| reported.reason).unwrap_or_default(),
            since: reported.and_then(|reported| reported.last_transition_time),
            taint: taint.key,
            meaning,
        })
    }

    pub(super) fn cause(self) -> Cause {
        Cause::new(self, 1.0, Outlook::Cluster)
    }
}

/// Whether the node controller adds and removes taints with that key.
pub(crate) fn is_kept_by_controller(key: Symbol) -> bool {
    key == super::node_unschedulable::TAINT || CONDITIONS.iter().any(|(taint, ..)| key == *taint)
}

impl CauseText for NodeCondition {
    fn gist(&self) -> String {
        format!("{} ({}={})", self.meaning, self.condition, self.status)
    }

    fn text(&self) -> String {
        let reason = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(", {reason}"),
        };
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        format!("{} ({}={}{reason}{since})", self.meaning, self.condition, self.status)
    }
}
