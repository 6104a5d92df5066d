//! NodeDeclaredFeatures: the features that the pod needs and the node does not declare.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_plugins::node_declared_features::undeclared;

/// Features that the pod needs and the node does not declare.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndeclaredFeatures {
    /// Names as in `status.declaredFeatures` of nodes.
    pub features: Vec<Symbol>,
}

impl CauseText for UndeclaredFeatures {
    fn gist(&self) -> String {
        let features: Vec<&str> = self.features.iter().map(|name| name.as_str()).collect();
        format!("the node's kubelet does not declare {}", features.join(", "))
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let gates = case.probe.cx().features;
    let features = undeclared(&case.probe.pod().pod.spec, case.node, gates);
    if features.is_empty() {
        return Vec::new();
    }
    let missing = features.len() as f64;
    let features = features.into_iter().map(Symbol::new).collect();
    vec![Cause::new(UndeclaredFeatures { features }, missing, Outlook::Mismatch)]
}
