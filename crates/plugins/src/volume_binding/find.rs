//! Whether a node can have all volumes of a pod, and which (VB-010…017).

use std::sync::Arc;

use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{Operator, Requirement};
use kubestep_api::{
    CsiNode, CsiStorageCapacity, Labels, Node, PersistentVolumeClaim, StorageClass,
    TopologySelectorTerm,
};
use kubestep_framework::go_sort;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

use super::capacity;
use super::claims::{BoundClaim, Claims};
use super::matching::{Binding, Unfit, best, requested};
use super::reason::{Reason, Walk, key};

/// On a claim: the node that its volume is to be made for.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The provisioner of classes with static provisioning.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A claim whose volume is to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct Provision {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// The free storage that will hold it, where the driver reports it.
    pub capacity: Option<Arc<CsiStorageCapacity>>,
}

/// What a pod gets on a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodVolumes {
    /// Volumes that exist, with their claims.
    pub bindings: Vec<Binding>,
    /// Volumes to be made.
    pub provisions: Vec<Provision>,
}

/// The volumes that the pod gets on the node. Claims that fail are reported to `walk`.
///
/// # Errors
/// An object is not as it should be, in upstream's words.
pub fn find(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut Walk<'_>,
) -> Result<PodVolumes, String> {
    check_bound(claims, node, objects, walk)?;
    walk.go_on();
    find_delayed(claims, node, objects, walk)
}

/// VB-010
fn check_bound(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut Walk<'_>,
) -> Result<(), String> {
    let csi_node = objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, node.metadata.name));
    let csi_node: Option<&CsiNode> = csi_node.map(|csi_node| csi_node.as_ref());
    for BoundClaim { claim, name, volume } in &claims.bound {
        let reason = match volume {
            None => Reason::VolumeMissing(*name),
            Some(volume) if volume.reaches_migrated(node, csi_node)? => continue,
            Some(_) => Reason::OutOfReach(*name),
        };
        if walk.reject(*claim, reason, Vec::new()).is_break() {
            break;
        }
    }
    Ok(())
}

/// A claim without a volume, with the volumes that were passed over for it.
type Unmatched<'a> = (&'a Arc<PersistentVolumeClaim>, Vec<(Symbol, Unfit)>);

/// VB-011…013
fn find_delayed(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut Walk<'_>,
) -> Result<PodVolumes, String> {
    let mut volumes = PodVolumes::default();
    let (mut to_match, mut to_provision) = (Vec::new(), Vec::new());
    for claim in &claims.delayed {
        match claim.metadata.annotations.get_str(SELECTED_NODE) {
            None => to_match.push(claim),
            Some(selected) if *selected == node.metadata.name => {
                to_provision.push((claim, Vec::new()));
            }
            Some(selected) => {
                if walk.reject(key(claim), Reason::OtherNode(*selected), Vec::new()).is_break() {
                    return Ok(volumes);
                }
            }
        }
    }
    to_provision.extend(bind_existing(claims, to_match, node, &mut volumes, walk.is_heard())?);
    for (claim, passed_over) in to_provision {
        match provision(claim, node, objects)? {
            Ok(provision) => volumes.provisions.push(provision),
            Err(reason) => {
                if walk.reject(key(claim), reason, passed_over).is_break() {
                    break;
                }
            }
        }
    }
    Ok(volumes)
}

/// Gives each claim the existing volume that suits it best, the smallest claim first. Returns
/// those that none suits; `heard`: with the volumes that were passed over.
fn bind_existing<'a>(
    claims: &Claims,
    mut to_match: Vec<&'a Arc<PersistentVolumeClaim>>,
    node: &Node,
    volumes: &mut PodVolumes,
    heard: bool,
) -> Result<Vec<Unmatched<'a>>, String> {
    go_sort::sort(&mut to_match, |a, b| {
        let size = |claim: &PersistentVolumeClaim| requested(claim).cloned().unwrap_or_default();
        size(a) < size(b)
    });
    let mut unmatched = Vec::new();
    for claim in to_match {
        let of_class = claims.candidates.get(&volumes::class_of(claim));
        let of_class = of_class.map_or(&[][..], |candidates| candidates);
        let mut passed_over = Vec::new();
        let note = |volume: Symbol, why: Unfit| {
            if heard {
                passed_over.push((volume, why));
            }
        };
        match best(claim, of_class, node, &volumes.bindings, note)? {
            None => unmatched.push((claim, passed_over)),
            Some(volume) => volumes.bindings.push((volume.clone(), claim.clone())),
        }
    }
    Ok(unmatched)
}

/// What provisions the claim's volume for the node, or why nothing does (VB-014).
fn provision(
    claim: &Arc<PersistentVolumeClaim>,
    node: &Node,
    objects: &Objects,
) -> Result<Result<Provision, Reason>, String> {
    let name = volumes::class_of(claim);
    if name.is_empty() {
        let metadata = &claim.metadata;
        return Err(format!("no class for claim \"{}/{}\"", metadata.namespace, metadata.name));
    }
    let class = objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    let class = class.ok_or_else(|| format!("failed to find storage class \"{name}\""))?;
    if !provisions(class) {
        return Ok(Err(Reason::NoProvisioner(name)));
    }
    if !is_allowed(&class.allowed_topologies, &node.metadata.labels) {
        return Ok(Err(Reason::TopologyNotAllowed(name)));
    }
    let capacity = capacity::find(claim, class, node, objects);
    let provision = capacity.map(|capacity| Provision { claim: claim.clone(), capacity });
    Ok(provision.ok_or(Reason::NoSpace(name)))
}

/// Whether volumes of the class are provisioned; else an administrator creates them.
pub fn provisions(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER
}

/// Terms are ORed, expressions of a term ANDed; an empty term allows nothing, no term all. Nor
/// does a term with a key or value that no label can have.
fn is_allowed(terms: &[TopologySelectorTerm], labels: &Labels) -> bool {
    let allows = |term: &TopologySelectorTerm| {
        let expressions = term.match_label_expressions.iter();
        let required = expressions.map(|expression| {
            Requirement::new(expression.key, Operator::In, expression.values.clone(), "")
        });
        let required: Result<Vec<_>, _> = required.collect();
        let all = |all: Vec<Requirement>| all.iter().all(|one| one.matches(labels));
        !term.match_label_expressions.is_empty() && required.is_ok_and(all)
    };
    terms.is_empty() || terms.iter().any(allows)
}
