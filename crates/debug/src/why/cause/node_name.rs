//! NodeName: the pod names another node in `spec.nodeName`.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::Name;

/// The pod names another node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherNode {
    /// The node in `spec.nodeName`.
    pub wanted: Name,
    /// Whether that node exists.
    pub exists: bool,
}

impl CauseText for OtherNode {
    fn gist(&self) -> String {
        let exists = if self.exists { "" } else { ", which does not exist" };
        format!("spec.nodeName is {}{exists}", self.wanted)
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let wanted = case.probe.pod().pod.spec.node_name;
    let exists = case.probe.snapshot().by_name(wanted).is_some();
    vec![Cause::new(OtherNode { wanted, exists }, 1.0, Outlook::Mismatch)]
}
