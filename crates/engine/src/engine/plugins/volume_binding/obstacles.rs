//! Why a node cannot have the pod's volumes, claim by claim, for people: what Filter says in one
//! of four sentences, with the volume, the class or the size behind it.

use std::sync::Arc;

use super::candidate::Candidate;
use super::claims::is_bound;
use super::find::{SELECTED_NODE, Verdict, provision};
use super::matching::{Unfit, best, requested, unfit};
use super::{BindingState, capacity};
use crate::api::{Node, PersistentVolume, PersistentVolumeClaim, Quantity, TopologySelectorTerm};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::pod::NamespacedName;
use crate::engine::volumes;
use crate::intern::Symbol;

/// What of a claim speaks against a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Obstacle {
    /// The claim is bound to a volume that is not there.
    VolumeGone(Symbol),
    /// The claim's volume cannot be reached from the node.
    OutOfReach(Arc<PersistentVolume>),
    /// The volume is being made for another node.
    MadeElsewhere(Symbol),
    /// No volume of the class suits, and none can be made: the volumes with what is wrong.
    NoVolume {
        /// The class.
        class: Symbol,
        /// Its volumes.
        volumes: Vec<(Symbol, Unfit)>,
    },
    /// The class makes volumes elsewhere only.
    TopologyNotAllowed {
        /// The class.
        class: Symbol,
        /// Where it makes them.
        allowed: Vec<TopologySelectorTerm>,
    },
    /// Too little storage is free within the node's reach.
    NoSpace {
        /// The class.
        class: Symbol,
        /// What the claim asks for.
        wanted: Quantity,
        /// The largest volume that could be made.
        largest: Option<Quantity>,
    },
}

/// Every obstacle on a node, with its claim.
pub fn obstacles(
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &Node,
) -> Vec<(NamespacedName, Obstacle)> {
    let state = state.read::<BindingState>();
    let Some(claims) = state.and_then(|state| state.claims.as_ref()) else { return Vec::new() };
    let mut found = bound(cx, node);
    let mut chosen = Vec::new();
    for claim in &claims.delayed {
        let class = volumes::class_of(claim);
        let candidates = claims.candidates.get(&class).map_or(&[][..], |volumes| volumes);
        let obstacle = match claim.metadata.annotations.get_str(SELECTED_NODE) {
            Some(selected) if *selected != node.metadata.name => {
                Some(Obstacle::MadeElsewhere(*selected))
            }
            Some(_) => cannot_be_made(cx, claim, node, candidates),
            None => match best(claim, candidates, node, &chosen) {
                Ok(Some(volume)) => {
                    chosen.push(volume.metadata.name);
                    None
                }
                _ => cannot_be_made(cx, claim, node, candidates),
            },
        };
        let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
        found.extend(obstacle.map(|obstacle| (key, obstacle)));
    }
    found
}

/// The claims that have their volumes.
fn bound(cx: &CycleContext<'_>, node: &Node) -> Vec<(NamespacedName, Obstacle)> {
    let assumed = &cx.shared.volumes;
    let csi_node = NamespacedName::new(Symbol::EMPTY, node.metadata.name);
    let csi_node = cx.objects.csi_nodes.get(&csi_node).map(|csi_node| csi_node.as_ref());
    let obstacle = |key: NamespacedName| {
        let claim = assumed.claims.get(cx.objects, key).filter(|claim| is_bound(claim))?;
        let name = claim.spec.volume_name;
        let Some(volume) = assumed.volume(cx.objects, name) else {
            return Some((key, Obstacle::VolumeGone(name)));
        };
        let reached = Candidate::new(volume).reaches_migrated(node, csi_node);
        (reached == Ok(false)).then(|| (key, Obstacle::OutOfReach(volume.clone())))
    };
    volumes::claims(&cx.pod.pod).filter_map(|claim| obstacle(claim.key)).collect()
}

/// Why the volume of a claim cannot be made for the node; `None` if it can.
fn cannot_be_made(
    cx: &CycleContext<'_>,
    claim: &Arc<PersistentVolumeClaim>,
    node: &Node,
    candidates: &[Candidate],
) -> Option<Obstacle> {
    let mut verdict = Verdict::default();
    if provision(claim, node, cx.objects, &mut verdict).ok()?.is_some() {
        return None;
    }
    let name = volumes::class_of(claim);
    let class = cx.objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name))?;
    if verdict.no_space {
        return Some(Obstacle::NoSpace {
            class: name,
            wanted: requested(claim).cloned().unwrap_or_default(),
            largest: capacity::largest(class, node, cx.objects),
        });
    }
    if super::find::is_made_by_hand(class) {
        let unfit = |candidate: &Candidate| {
            Some((candidate.volume.metadata.name, unfit(claim, candidate, node)?))
        };
        let volumes = candidates.iter().filter_map(unfit).collect();
        return Some(Obstacle::NoVolume { class: name, volumes });
    }
    let allowed = class.allowed_topologies.clone();
    Some(Obstacle::TopologyNotAllowed { class: name, allowed })
}
