//! Taints and cordons: tolerate them, or take them from the node.

use super::{Need, Remedies};
use crate::api::{TaintEffect, Toleration, TolerationOperator};
use crate::debug::edit::{Edit, NodeEdit, PodEdit};
use crate::debug::why::cause::UntoleratedTaint;
use crate::intern::Symbol;

/// The taint of nodes that are out of service (`v1.TaintNodeUnschedulable`).
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub(super) fn taint(need: &Need<'_>, taint: &UntoleratedTaint) -> Remedies {
    let operator = match taint.value.is_empty() {
        true => TolerationOperator::Exists,
        false => TolerationOperator::Equal,
    };
    let untaint = NodeEdit::Untaint(taint.key, Some(taint.effect));
    vec![
        vec![tolerate(need, taint.key, operator, taint.value, taint.effect)],
        vec![Edit::Node(need.node.name, untaint)],
    ]
}

pub(super) fn cordoned(need: &Need<'_>) -> Remedies {
    let (key, effect) = (Symbol::new(UNSCHEDULABLE), TaintEffect::NoSchedule);
    vec![
        vec![Edit::Node(need.node.name, NodeEdit::Uncordon)],
        vec![tolerate(need, key, TolerationOperator::Exists, Symbol::EMPTY, effect)],
    ]
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
