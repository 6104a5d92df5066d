//! Taints and cordons: tolerate them, or remove them from the node.

use super::{Need, Remedies};
use crate::edit::{Edit, NodeEdit, PodEdit};
use crate::why::cause::{UntoleratedTaint, is_kept_by_controller};
use kubestep_api::intern::Symbol;
use kubestep_api::{TaintEffect, Toleration, TolerationOperator};

pub(super) fn taint(need: &Need<'_>, taint: &UntoleratedTaint) -> Remedies {
    let untaint = NodeEdit::Untaint(taint.key, Some(taint.effect));
    let untaint = vec![Edit::Node(need.node.name, untaint)];
    if is_kept_by_controller(taint.key) {
        return vec![untaint];
    }
    let operator = match taint.value.is_empty() {
        true => TolerationOperator::Exists,
        false => TolerationOperator::Equal,
    };
    vec![vec![tolerate(need, taint.key, operator, taint.value, taint.effect)], untaint]
}

/// No toleration: a cordoned node is usually about to be drained.
pub(super) fn cordoned(need: &Need<'_>) -> Remedies {
    vec![vec![Edit::Node(need.node.name, NodeEdit::Uncordon)]]
}

fn tolerate(
    need: &Need<'_>,
    key: Symbol,
    operator: TolerationOperator,
    value: Symbol,
    effect: TaintEffect,
) -> Edit {
    let toleration = Toleration { key, operator, value, effect, ..Toleration::default() };
    need.pod(PodEdit::Tolerate(toleration))
}
