//! What the DaemonSet controller does in a rollout. Nodes take their turns by name, upstream's in
//! random order.
//!
//! Upstream: `rollingUpdate` in `pkg/controller/daemon/update.go`, `podsShouldBeOnNode` and
//! `getUnscheduledPodsWithoutNode` in `daemon_controller.go`.

use std::collections::BTreeMap;

use super::{Member, Rollout, RolloutAction};
use crate::api_server::ApiServer;
use crate::disruption::key_of;
use crate::workload::DaemonFit;
use kubestep_api::{Name, Time};

/// The pods of a node, the oldest first.
#[derive(Clone, Default)]
struct OnNode<'a> {
    old: Vec<&'a Member>,
    new: Vec<&'a Member>,
    fit: DaemonFit,
}

type DaemonNodes<'a> = BTreeMap<Name, OnNode<'a>>;

/// The limits of a DaemonSet's strategy; see [`super::Strategy::Nodes`]. `None`: old pods stay.
pub(super) type NodeLimits = Option<(usize, usize)>;

/// Creates missing pods and deletes those that do not belong on their nodes; then replaces old ones
/// within the limits of surge and unavailable pods.
pub(super) fn next(
    rollout: &Rollout,
    api: &ApiServer,
    limits: NodeLimits,
    now: Time,
) -> Vec<RolloutAction> {
    let nodes = on_nodes(rollout, api);
    let surges = limits.is_some_and(|(surge, _)| surge > 0);
    let managed = nodes.iter().flat_map(|(node, on)| on.manage(*node, surges));
    let managed: Vec<RolloutAction> = managed.chain(without_node(rollout, api)).collect();
    let available = |member: &Member| rollout.is_available(member, now);
    match limits {
        Some((0, unavailable)) if managed.is_empty() => {
            delete_first(&nodes, unavailable, available)
        }
        Some((surge, _)) if managed.is_empty() => create_first(&nodes, surge, available),
        _ => managed,
    }
}

/// Deletes the pending pods of deleted nodes.
fn without_node<'a>(
    rollout: &'a Rollout,
    api: &'a ApiServer,
) -> impl Iterator<Item = RolloutAction> + 'a {
    let is_gone = |member: &&Member| {
        member.pod.spec.node_name.is_empty()
            && !member.slot.is_empty()
            && api.node(member.slot).is_none()
    };
    rollout.members.values().filter(is_gone).map(delete)
}

fn on_nodes<'a>(rollout: &'a Rollout, api: &ApiServer) -> DaemonNodes<'a> {
    let mut nodes = DaemonNodes::new();
    for name in rollout.blueprints.keys() {
        let Some(node) = api.node(*name) else { continue };
        let fit = rollout.daemon.as_ref().map(|pod| DaemonFit::of(pod, node));
        nodes.insert(*name, OnNode { fit: fit.unwrap_or_default(), ..OnNode::default() });
    }
    let mut members: Vec<&Member> = rollout.members.values().collect();
    members.sort_by_key(|member| age(member));
    for member in members {
        let Some(on) = nodes.get_mut(&member.slot) else { continue };
        let side = if member.updated { &mut on.new } else { &mut on.old };
        side.push(member);
    }
    nodes
}

/// The order in which pods of a node are kept: those that are bound, then the oldest.
fn age(member: &Member) -> (bool, Option<Time>, Name) {
    let metadata = &member.pod.metadata;
    (member.pod.spec.node_name.is_empty(), metadata.creation_timestamp, metadata.name)
}

impl OnNode<'_> {
    /// Creates the pod that is missing, or deletes those that do not belong on the node. With surge
    /// an old and a new pod may be there.
    fn manage(&self, node: Name, surges: bool) -> Vec<RolloutAction> {
        let mut all: Vec<&Member> = self.old.iter().chain(&self.new).copied().collect();
        all.sort_by_key(|member| age(member));
        match all.as_slice() {
            [] if self.fit.creates => vec![RolloutAction::Create(node)],
            all if !self.fit.keeps => all.iter().map(|member| delete(member)).collect(),
            _ if surges => {
                let more = self.old.iter().skip(1).chain(self.new.iter().skip(1));
                more.map(|member| delete(member)).collect()
            }
            all => all.iter().skip(1).map(|member| delete(member)).collect(),
        }
    }

    /// The old and the new pod.
    fn pair(&self) -> (Option<&Member>, Option<&Member>) {
        (self.old.first().copied(), self.new.first().copied())
    }
}

/// Without surge: deletes old pods that are unavailable, and others up to the limit.
fn delete_first(
    nodes: &DaemonNodes<'_>,
    most: usize,
    available: impl Fn(&Member) -> bool,
) -> Vec<RolloutAction> {
    let (mut deleted, mut candidates, mut unavailable) = (Vec::new(), Vec::new(), 0);
    for on in nodes.values() {
        match on.pair() {
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
    nodes: &DaemonNodes<'_>,
    most: usize,
    available: impl Fn(&Member) -> bool,
) -> Vec<RolloutAction> {
    let (mut actions, mut candidates, mut unsuited) = (Vec::new(), Vec::new(), Vec::new());
    let mut surging = 0;
    for (node, on) in nodes {
        match on.pair() {
            (None, _) => {}
            (Some(old), Some(new)) if !available(old) || available(new) => {
                actions.push(delete(old));
            }
            (Some(_), Some(_)) => surging += 1,
            (Some(old), None) if !available(old) && on.fit.creates => {
                actions.push(RolloutAction::Create(*node));
            }
            (Some(old), None) if !available(old) => actions.push(delete(old)),
            (Some(old), None) if !on.fit.creates => unsuited.push(delete(old)),
            (Some(_), None) => candidates.push(RolloutAction::Create(*node)),
        }
    }
    let is_available = |on: &&OnNode<'_>| {
        let (old, new) = on.pair();
        old.or(new).is_some_and(&available)
    };
    let running = nodes.values().filter(is_available).count();
    let wanted = nodes.values().filter(|on| on.fit.creates).count();
    unsuited.truncate(running.saturating_sub(wanted));
    candidates.truncate(most.saturating_sub(surging));
    actions.extend(unsuited.into_iter().chain(candidates));
    actions
}

fn delete(member: &Member) -> RolloutAction {
    RolloutAction::Delete(key_of(&member.pod))
}
