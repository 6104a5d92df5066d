//! TaintToleration: the taint, and why each toleration of its key does not match.

use std::sync::Arc;

use serde::Serialize;

use super::{
    Cause, CauseText, NodeCondition, Outlook, RejectedCase, is_kept_by_controller,
    node_unschedulable,
};
use kubestep_api::intern::Symbol;
use kubestep_api::{Provisioning, Taint, TaintEffect, Toleration, TolerationOperator};
use kubestep_plugins::taint_toleration::blocking_taints;

/// A taint that the pod does not tolerate.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UntoleratedTaint {
    /// Key of the taint, often with a prefix.
    pub key: Symbol,
    /// The value, often empty.
    pub value: Symbol,
    /// `NoSchedule` or `NoExecute`; `PreferNoSchedule` rejects nothing.
    pub effect: TaintEffect,
    /// The pod's tolerations for this key or for all keys.
    pub tried: Vec<UnmatchedToleration>,
    /// Of a startup taint: who removes it, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_by: Option<String>,
}

/// A toleration that does not match the taint.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmatchedToleration {
    /// The toleration, in the notation of taints.
    pub toleration: String,
    /// Why it does not match.
    pub because: String,
}

impl UntoleratedTaint {
    /// The taint, in kubectl's notation.
    fn taint(&self) -> String {
        written(self.key, self.value, self.effect)
    }
}

impl CauseText for UntoleratedTaint {
    fn gist(&self) -> String {
        format!("taint {} is not tolerated", self.taint())
    }

    fn text(&self) -> String {
        let tried = self.tried.iter().map(|tried| {
            format!("; the toleration {} does not cover it: {}", tried.toleration, tried.because)
        });
        let removed_by = self.removed_by.as_ref().map(|who| format!("; {who}"));
        self.gist() + &tried.collect::<String>() + &removed_by.unwrap_or_default()
    }
}

/// `key=value:Effect`, without empty parts.
fn written(key: Symbol, value: Symbol, effect: TaintEffect) -> String {
    let equals = if value.is_empty() { "" } else { "=" };
    let colon = if effect.is_unset() { "" } else { ":" };
    format!("{key}{equals}{value}{colon}{effect}")
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let (Some(node), pod) = (&case.node.node, case.probe.pod()) else { return Vec::new() };
    let mut causes: Vec<Cause> = Vec::new();
    for taint in blocking_taints(node, pod, case.probe.cx().features) {
        let cause = match NodeCondition::behind(taint, node) {
            Some(condition) => condition.cause(),
            None if taint.key == node_unschedulable::TAINT => {
                node_unschedulable::cordoned(node).unwrap_or_else(|| untolerated(case, taint))
            }
            None => untolerated(case, taint),
        };
        // A condition may have one taint per effect.
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes
}

fn untolerated(case: &RejectedCase<'_>, taint: &Taint) -> Cause {
    let tolerations = &case.probe.pod().pod.spec.tolerations;
    let near = |toleration: &&Toleration| toleration.key.is_empty() || toleration.key == taint.key;
    let tried: Vec<UnmatchedToleration> =
        tolerations.iter().filter(near).map(|toleration| tried(toleration, taint)).collect();
    let missing = if tried.is_empty() { 1.0 } else { 0.75 };
    let Taint { key, value, effect, .. } = *taint;
    // A taint of the node controller without a condition is about to be removed.
    let outlook = if is_kept_by_controller(key) { Outlook::Cluster } else { Outlook::Manual };
    let removed_by = removed_by(key).or_else(|| of_pool(case, taint));
    Cause::new(UntoleratedTaint { key, value, effect, tried, removed_by }, missing, outlook)
}

/// Who removes a startup taint, which is there until a node is set up: cloud providers, karpenter, the
/// agents of CSI drivers and networks.
fn removed_by(key: Symbol) -> Option<String> {
    match key.as_str() {
        "node.cloudprovider.kubernetes.io/uninitialized" => {
            Some("cloud-controller-manager removes it once it has initialized the node".to_owned())
        }
        "karpenter.sh/unregistered" => {
            Some("Karpenter removes it once the node has registered".to_owned())
        }
        other => other
            .strip_suffix("/agent-not-ready")
            .map(|agent| format!("the agent of {agent} removes it once it runs on the node")),
    }
}

/// The same of a taint that a NodePool lists among its startup taints.
fn of_pool(case: &RejectedCase<'_>, taint: &Taint) -> Option<String> {
    let provisioning = case.memo.one(<Arc<Provisioning>>::default);
    let pool = provisioning.pool_of_startup_taint(case.node.node.as_deref()?, taint)?;
    Some(format!("a startup taint of NodePool {pool}: what sets the node up removes it"))
}

fn tried(toleration: &Toleration, taint: &Taint) -> UnmatchedToleration {
    let Toleration { key, operator, value, effect, .. } = *toleration;
    let because = if !effect.is_unset() && effect != taint.effect {
        format!("it is for {effect}")
    } else {
        match operator {
            TolerationOperator::Lt | TolerationOperator::Gt => {
                format!("{:?} is not {operator} {value}", taint.value.as_str())
            }
            TolerationOperator::Other(text) if !text.is_empty() => {
                format!("{text:?} is not an operator")
            }
            _ => format!("its value is {:?}", value.as_str()),
        }
    };
    let key = if key.is_empty() { Symbol::new("*") } else { key };
    UnmatchedToleration { toleration: written(key, value, effect), because }
}
