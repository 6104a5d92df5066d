//! Finds volumes for all claims of a pod on a node.

use std::sync::Arc;

use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{Operator, Requirement};
use kubestep_api::{
    CsiNode, CsiStorageCapacity, Labels, Name, Node, PersistentVolumeClaim, StorageClass,
    TopologySelectorTerm,
};
use kubestep_framework::error::PluginError;
use kubestep_framework::go_sort;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

use super::capacity;
use super::claims::{BoundClaim, Claims};
use super::matching::{Unfit, VolumeMatch, best, requested};
use super::reason::{ClaimReason, ClaimWalk, key};

/// On a claim: the node for which its volume is provisioned.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The provisioner of classes whose volumes an administrator creates.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A claim whose volume will be provisioned.
#[derive(Clone, PartialEq, Debug)]
pub struct Provision {
    /// The claim that has no volume.
    pub claim: Arc<PersistentVolumeClaim>,
    /// The capacity object that covers the volume, if the driver reports capacity.
    pub capacity: Option<Arc<CsiStorageCapacity>>,
}

/// The volumes for a pod on a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodVolumes {
    /// Existing volumes to bind, with their claims.
    pub bindings: Vec<VolumeMatch>,
    /// The claims whose volumes a provisioner has to create.
    pub provisions: Vec<Provision>,
}

/// Finds the volumes for the pod on the node, and reports the claims that fail to `walk`.
///
/// # Errors
/// Upstream's message, such as for a missing storage class.
pub fn find(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut ClaimWalk<'_>,
) -> Result<PodVolumes, PluginError> {
    check_bound(claims, node, objects, walk)?;
    walk.start_unbound_claims();
    find_delayed(claims, node, objects, walk)
}

/// Checks the volumes of bound claims: they must exist, and their node affinity must match. Filter
/// stops at the first claim that fails.
fn check_bound(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut ClaimWalk<'_>,
) -> Result<(), PluginError> {
    let csi_node = objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, node.metadata.name));
    let csi_node: Option<&CsiNode> = csi_node.map(|csi_node| csi_node.as_ref());
    for BoundClaim { claim, name, volume } in &claims.bound {
        let reason = match volume {
            None => ClaimReason::VolumeMissing(*name),
            Some(volume) if volume.reaches_migrated(node, csi_node)? => continue,
            Some(_) => ClaimReason::OutOfReach(*name),
        };
        if walk.reject(*claim, reason, Vec::new()).is_break() {
            break;
        }
    }
    Ok(())
}

/// A claim to be provisioned, with the volumes that did not match it.
type Unmatched<'a> = (&'a Arc<PersistentVolumeClaim>, Vec<(Name, Unfit)>);

/// Finds volumes for claims that bind when the node is known. A claim annotated with the node
/// goes straight to provisioning, one annotated with another node fails. For the others an
/// existing volume is preferred.
fn find_delayed(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    walk: &mut ClaimWalk<'_>,
) -> Result<PodVolumes, PluginError> {
    let mut volumes = PodVolumes::default();
    let (mut to_match, mut to_provision) = (Vec::new(), Vec::new());
    for claim in &claims.delayed {
        match claim.metadata.annotations.get_str(SELECTED_NODE) {
            None => to_match.push(claim),
            Some(selected) if node.metadata.name == **selected => {
                to_provision.push((claim, Vec::new()));
            }
            Some(selected) => {
                if walk
                    .reject(key(claim), ClaimReason::OtherNode(Name::new(selected)), Vec::new())
                    .is_break()
                {
                    return Ok(volumes);
                }
            }
        }
    }
    to_provision.extend(bind_existing(claims, to_match, node, &mut volumes, walk.collects())?);
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

/// Binds each claim to its best existing volume, the smallest claim first. Returns the claims
/// without a match; if `collects`, with the volumes that did not match them.
fn bind_existing<'a>(
    claims: &Claims,
    mut to_match: Vec<&'a Arc<PersistentVolumeClaim>>,
    node: &Node,
    volumes: &mut PodVolumes,
    collects: bool,
) -> Result<Vec<Unmatched<'a>>, PluginError> {
    go_sort::sort(&mut to_match, |a, b| {
        let size = |claim: &PersistentVolumeClaim| requested(claim).cloned().unwrap_or_default();
        size(a) < size(b)
    });
    let mut unmatched = Vec::new();
    for claim in to_match {
        let of_class = claims.candidates.get(&volumes::class_of(claim));
        let of_class = of_class.map_or(&[][..], |candidates| candidates);
        let mut passed_over = Vec::new();
        let note = |volume: Name, why: Unfit| {
            if collects {
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

/// How the claim's volume is provisioned for the node, or why it cannot be.
fn provision(
    claim: &Arc<PersistentVolumeClaim>,
    node: &Node,
    objects: &Objects,
) -> Result<Result<Provision, ClaimReason>, PluginError> {
    let name = volumes::class_of(claim);
    if name.is_empty() {
        let metadata = &claim.metadata;
        return Err(
            format!("no class for claim \"{}/{}\"", metadata.namespace, metadata.name).into()
        );
    }
    let class = objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    let class = class.ok_or_else(|| format!("failed to find storage class \"{name}\""))?;
    if !provisions(class) {
        return Ok(Err(ClaimReason::NoProvisioner(name)));
    }
    if !is_allowed(&class.allowed_topologies, &node.metadata.labels) {
        return Ok(Err(ClaimReason::TopologyNotAllowed(name)));
    }
    let capacity = capacity::find(claim, class, node, objects);
    let provision = capacity.map(|capacity| Provision { claim: claim.clone(), capacity });
    Ok(provision.ok_or(ClaimReason::NoSpace(name)))
}

/// Whether volumes of the class are provisioned dynamically.
pub fn provisions(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER
}

/// Terms are ORed, the expressions of a term ANDed; an empty term allows no node, no terms allow
/// all. A term with an invalid label key or value allows no node.
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
