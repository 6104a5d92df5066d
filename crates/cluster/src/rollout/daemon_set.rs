//! What the DaemonSet controller does in a rollout. Nodes take their turns by name, upstream's in
//! random order.
//!
//! Upstream: `rollingUpdate` in `pkg/controller/daemon/update.go`, `podsShouldBeOnNode` and
//! `getUnscheduledPodsWithoutNode` in `daemon_controller.go`.

use std::collections::BTreeMap;

use super::{Action, Member, Rollout};
use crate::api_server::ApiServer;
use crate::workload::suits_daemon;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;

/// The pods of a node.
#[derive(Clone, Copy, Default)]
struct OnNode<'a> {
    old: Option<&'a Member>,
    new: Option<&'a Member>,
    /// Whether the controller creates pods there.
    suits: bool,
}

/// Creates missing pods and replaces old ones within the limits.
pub(super) fn next(
    rollout: &Rollout,
    api: &ApiServer,
    surge: usize,
    unavailable: usize,
    now: Time,
) -> Vec<Action> {
    let lost = without_node(rollout, api);
    if !lost.is_empty() {
        return lost;
    }
    let nodes = on_nodes(rollout, api);
    let is_missing = |on: &OnNode<'_>| on.old.is_none() && on.new.is_none() && on.suits;
    let missing = nodes.iter().filter(|(_, on)| is_missing(on));
    let missing: Vec<Action> = missing.map(|(node, _)| Action::Create(*node)).collect();
    let available = |member: &Member| rollout.is_available(member, now);
    match (missing.is_empty(), surge) {
        (false, _) => missing,
        (true, 0) => delete_first(&nodes, unavailable, available),
        (true, surge) => create_first(&nodes, surge, available),
    }
}

/// Deletes the pending pods of nodes that are gone.
fn without_node(rollout: &Rollout, api: &ApiServer) -> Vec<Action> {
    let is_gone = |member: &&Member| {
        member.pod.spec.node_name.is_empty()
            && !member.slot.is_empty()
            && api.node(member.slot).is_none()
    };
    rollout.members.values().filter(is_gone).map(delete).collect()
}

fn on_nodes<'a>(rollout: &'a Rollout, api: &ApiServer) -> BTreeMap<Symbol, OnNode<'a>> {
    let mut nodes = BTreeMap::new();
    for (name, blueprint) in &rollout.blueprints {
        let Some(node) = api.node(*name) else { continue };
        let suits = suits_daemon(&blueprint.pod, node);
        nodes.insert(*name, OnNode { suits, ..OnNode::default() });
    }
    for member in rollout.members.values() {
        let Some(on) = nodes.get_mut(&member.slot) else { continue };
        let side = if member.updated { &mut on.new } else { &mut on.old };
        *side = Some(member);
    }
    nodes
}

/// Without surge: deletes old pods that are unavailable, and others up to the limit.
fn delete_first(
    nodes: &BTreeMap<Symbol, OnNode<'_>>,
    most: usize,
    available: impl Fn(&Member) -> bool,
) -> Vec<Action> {
    let (mut deleted, mut candidates, mut unavailable) = (Vec::new(), Vec::new(), 0);
    for on in nodes.values() {
        match (on.old, on.new) {
            (None, None) => {}
            (Some(_), Some(_)) => unavailable += 1,
            (None, Some(new)) => unavailable += usize::from(!available(new)),
            (Some(old), None) if available(old) => candidates.push(delete(old)),
            (Some(old), None) => {
                deleted.push(delete(old));
                unavailable += 1;
            }
        }
    }
    candidates.truncate(most.saturating_sub(unavailable));
    deleted.append(&mut candidates);
    deleted
}

/// With surge: creates new pods beside old ones, and deletes an old one when its successor is
/// available.
fn create_first(
    nodes: &BTreeMap<Symbol, OnNode<'_>>,
    most: usize,
    available: impl Fn(&Member) -> bool,
) -> Vec<Action> {
    let (mut actions, mut candidates, mut unsuited) = (Vec::new(), Vec::new(), Vec::new());
    let mut surging = 0;
    for (node, on) in nodes {
        match (on.old, on.new) {
            (None, _) => {}
            (Some(old), Some(new)) if !available(old) || available(new) => {
                actions.push(delete(old));
            }
            (Some(_), Some(_)) => surging += 1,
            (Some(old), None) if !available(old) && on.suits => {
                actions.push(Action::Create(*node));
            }
            (Some(old), None) if !available(old) => actions.push(delete(old)),
            (Some(old), None) if !on.suits => unsuited.push(delete(old)),
            (Some(_), None) => candidates.push(Action::Create(*node)),
        }
    }
    let is_available = |on: &&OnNode<'_>| on.old.or(on.new).is_some_and(&available);
    let running = nodes.values().filter(is_available).count();
    let wanted = nodes.values().filter(|on| on.suits).count();
    unsuited.truncate(running.saturating_sub(wanted));
    candidates.truncate(most.saturating_sub(surging));
    actions.extend(unsuited.into_iter().chain(candidates));
    actions
}

fn delete(member: &Member) -> Action {
    Action::Delete(crate::disruption::key_of(&member.pod))
}
