//! Too little of a resource: ask for less, evict somebody, or make the node larger.

use super::{Need, Remedies, delete};
use crate::api::{Quantity, QuantityFormat};
use crate::debug::edit::{Edit, NodeEdit, PodEdit};
use crate::debug::fix::size::requested_by_containers;
use crate::debug::why::cause::Shortage;
use crate::engine::pod::PodInfo;
use crate::intern::Symbol;

/// Amounts of memory are proposed in whole mebibytes.
const MEBI: i64 = 1 << 20;
/// Controllers put such a pod back at once.
const DAEMON_SET: &str = "DaemonSet";

pub(super) fn shortage(need: &Need<'_>, shortage: &Shortage) -> Remedies {
    let mut remedies: Remedies = Vec::new();
    remedies.extend(ask_for_less(need, shortage).map(|edit| vec![edit]));
    if shortage.needed <= shortage.allocatable {
        remedies.extend(evict_one(need, shortage).map(|pod| vec![delete(pod.key())]));
        remedies.extend(evict_several(need, shortage));
    }
    remedies.push(vec![larger_node(need, shortage)]);
    remedies
}

fn ask_for_less(need: &Need<'_>, shortage: &Shortage) -> Option<Edit> {
    let asked = requested_by_containers(need.pod).amount(shortage.resource);
    let left = round(shortage.resource, asked - shortage.short_by, false);
    (left > 0).then(|| {
        let resource = shortage.resource;
        let amount = quantity(resource, left);
        need.pod(PodEdit::Resize { container: None, resource, amount })
    })
}

fn larger_node(need: &Need<'_>, shortage: &Shortage) -> Edit {
    let resource = shortage.resource;
    let amount = round(resource, shortage.allocatable + shortage.short_by, true);
    Edit::Node(need.node.name, NodeEdit::Resize(resource, quantity(resource, amount)))
}

/// The least important pod that holds enough by itself; of equally important ones that which
/// holds least.
fn evict_one<'a>(need: &Need<'a>, shortage: &Shortage) -> Option<&'a PodInfo> {
    let enough = evictable(need).filter(|pod| held(pod, shortage) >= shortage.short_by);
    enough.min_by_key(|pod| (pod.priority(), held(pod, shortage)))
}

/// As few pods as possible that hold enough together, where one does not.
fn evict_several(need: &Need<'_>, shortage: &Shortage) -> Option<Vec<Edit>> {
    let mut pods: Vec<&PodInfo> = evictable(need).filter(|p| held(p, shortage) > 0).collect();
    pods.sort_by_key(|pod| std::cmp::Reverse(held(pod, shortage)));
    let (mut freed, mut chosen) = (0, Vec::new());
    for pod in pods {
        if freed >= shortage.short_by {
            break;
        }
        freed += held(pod, shortage);
        chosen.push(delete(pod.key()));
    }
    (freed >= shortage.short_by && chosen.len() > 1).then_some(chosen)
}

/// The pods on the node that would stay away: not those of a DaemonSet.
pub(super) fn evictable<'a>(need: &Need<'a>) -> impl Iterator<Item = &'a PodInfo> {
    let by_daemon_set =
        |pod: &PodInfo| pod.pod.metadata.owner_references.iter().any(|by| by.kind == DAEMON_SET);
    need.node.pods.iter().map(AsRef::as_ref).filter(move |pod| !by_daemon_set(pod))
}

/// What a pod holds of the resource.
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
