//! Insufficient resources: request less, evict pods, or make the node larger.

use super::{Obstacle, Remedies, delete};
use crate::edit;
use crate::edit::{Edit, NodeEdit, PodEdit, owner};
use crate::why::cause::{PluginCause, Shortage};
use kubestep_api::intern::Symbol;
use kubestep_api::{Pod, Quantity, QuantityFormat};
use kubestep_framework::plugin::LowerRequest;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::requests::is_sidecar;
use kubestep_framework::pod_groups::pod_group_of;
use std::sync::Arc;

/// Amounts of memory are proposed in whole mebibytes.
const MEBI: i64 = 1 << 20;

pub(super) fn shortage(need: &Obstacle<'_>, shortage: &Shortage) -> Remedies {
    let mut remedies: Remedies = Vec::new();
    remedies.extend(ask_for_less(need, shortage));
    if shortage.needed <= shortage.allocatable {
        remedies.extend(evict_one(need, shortage).map(|pod| vec![delete(pod.key())]));
        remedies.extend(evict(&holders(need), &[shortage]).filter(|pods| pods.len() > 1));
    }
    remedies.push(vec![larger_node(need, shortage)]);
    remedies
}

/// The requests that the plugin that rejects the node would take.
pub(super) fn of_plugin(need: &Obstacle<'_>, cause: &PluginCause) -> Remedies {
    let edit = |lower: &LowerRequest| {
        let LowerRequest { container, resource, amount } = lower.clone();
        // A pod with one container is named without it.
        let container = container.filter(|_| need.pod.spec.containers.len() > 1);
        need.pod(PodEdit::Resize { container, resource, amount })
    };
    cause.lower_requests.iter().map(|way| way.iter().map(edit).collect()).collect()
}

/// Lowers the requests that determine what the pod needs to what is free.
fn ask_for_less(need: &Obstacle<'_>, shortage: &Shortage) -> Option<Vec<Edit>> {
    let resource = shortage.resource;
    if resource == "pods" || !need.pod.status.node_allocatable_resource_claim_statuses.is_empty() {
        return None;
    }
    let less = |container: Option<Symbol>, amount: i64| {
        let amount = round(resource, amount, false);
        let edit = |amount| PodEdit::Resize { container, resource, amount };
        (amount > 0).then(|| need.pod(edit(quantity(resource, amount))))
    };
    let left = shortage.free - shortage.overhead;
    if shortage.init_container.is_none() || running(need.pod, resource) > left {
        return less(None, left).map(|edit| vec![edit]);
    }
    let mut sidecars = 0;
    let mut edits = Vec::new();
    for one in &need.pod.spec.init_containers {
        let asks = edit::asks(one, resource);
        match is_sidecar(one) {
            true => sidecars += asks,
            false if sidecars + asks > left => edits.push(less(Some(one.name), left - sidecars)?),
            false => {}
        }
    }
    (!edits.is_empty()).then_some(edits)
}

/// The sum of the requests of containers and sidecars.
fn running(pod: &Pod, resource: Symbol) -> i64 {
    let sidecars = pod.spec.init_containers.iter().filter(|one| is_sidecar(one));
    pod.spec.containers.iter().chain(sidecars).map(|one| edit::asks(one, resource)).sum()
}

fn larger_node(need: &Obstacle<'_>, shortage: &Shortage) -> Edit {
    let resource = shortage.resource;
    let amount = round(resource, shortage.allocatable + shortage.short_by, true);
    Edit::Node(need.node.name, NodeEdit::Resize(resource, quantity(resource, amount)))
}

/// The lowest-priority pod that frees enough by itself; at equal priority the one that requests the
/// least.
fn evict_one(need: &Obstacle<'_>, shortage: &Shortage) -> Option<Arc<PodInfo>> {
    let holders = holders(need).into_iter();
    let enough = holders.filter(|pod| held(pod, shortage) >= shortage.short_by);
    enough.min_by_key(|pod| (pod.priority(), held(pod, shortage)))
}

/// As few pods as possible that free enough of all resources that are short.
pub(in crate::fix) fn evict(
    holders: &[Arc<PodInfo>],
    shortages: &[&Shortage],
) -> Option<Vec<Edit>> {
    let freed = |pods: &[&Arc<PodInfo>], short: &Shortage| -> i64 {
        pods.iter().map(|pod| held(pod, short)).fold(0, i64::saturating_add)
    };
    let lifted = |pods: &[&Arc<PodInfo>]| -> f64 {
        let part = |short: &&Shortage| {
            let by = short.short_by.max(1);
            freed(pods, short).clamp(0, by) as f64 / by as f64
        };
        shortages.iter().map(part).sum()
    };
    let all = shortages.len() as f64;
    let mut chosen: Vec<&Arc<PodInfo>> = Vec::new();
    while lifted(&chosen) < all {
        let with = |pod| lifted(&[chosen.as_slice(), &[pod]].concat());
        let others = holders.iter().filter(|pod| !chosen.iter().any(|one| Arc::ptr_eq(one, pod)));
        // At equal amounts the lowest priority, then the smallest request.
        let all_of = |pod| shortages.iter().map(|short| held(pod, short)).sum::<i64>();
        let best = others.max_by(|a, b| {
            let harm = (b.priority(), all_of(b)).cmp(&(a.priority(), all_of(a)));
            with(a).total_cmp(&with(b)).then(harm)
        })?;
        if with(best) <= lifted(&chosen) {
            return None;
        }
        chosen.push(best);
    }
    // A pod that was selected early may not be needed any more.
    for at in (0..chosen.len()).rev() {
        let mut fewer = chosen.clone();
        fewer.remove(at);
        if lifted(&fewer) >= all {
            chosen = fewer;
        }
    }
    Some(chosen.into_iter().map(|pod| delete(pod.key())).collect())
}

/// The pods whose resources would be freed: those on the node, and nominated pods whose reservation
/// counts.
pub(in crate::fix) fn holders(need: &Obstacle<'_>) -> Vec<Arc<PodInfo>> {
    let own = need.pod.spec.priority.unwrap_or(0);
    let nominated = need.nominated.iter();
    let counts = nominated.filter(|pod| pod.priority() >= own && pod.key() != need.key);
    evictable(need).cloned().chain(counts.cloned()).collect()
}

/// The pods that would leave the node if they were deleted, except those of the pod's own group.
pub(super) fn evictable<'a>(need: &Obstacle<'a>) -> impl Iterator<Item = &'a Arc<PodInfo>> {
    let group = pod_group_of(need.pod);
    let leaves = move |pod: &&Arc<PodInfo>| {
        let is_needed = group.is_some() && pod_group_of(&pod.pod) == group;
        !is_needed && !owner::is_of_node(&pod.pod) && !pod.pod.is_terminating()
    };
    need.node.pods.iter().filter(leaves)
}

/// What a pod requests of the resource.
fn held(pod: &PodInfo, shortage: &Shortage) -> i64 {
    match shortage.resource.as_str() {
        "pods" => 1,
        _ => pod.resource.resource.amount(shortage.resource),
    }
}

fn is_in_bytes(resource: &str) -> bool {
    resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-")
}

fn round(resource: Symbol, amount: i64, up: bool) -> i64 {
    match (is_in_bytes(&resource), up) {
        (false, _) => amount,
        (true, false) => amount.div_euclid(MEBI) * MEBI,
        (true, true) => (amount + MEBI - 1).div_euclid(MEBI) * MEBI,
    }
}

fn quantity(resource: Symbol, amount: i64) -> Quantity {
    match resource.as_str() {
        "cpu" => Quantity::new_milli(amount, QuantityFormat::DecimalSi),
        name if is_in_bytes(name) => Quantity::new(amount, QuantityFormat::BinarySi),
        _ => Quantity::new(amount, QuantityFormat::DecimalSi),
    }
}
