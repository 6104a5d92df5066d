//! Whether a node can have all volumes of a pod, and which (VB-010…017).

use std::sync::Arc;

use crate::api::selector::{Operator, Requirement};
use crate::api::{
    CsiNode, CsiStorageCapacity, Labels, Node, PersistentVolume, PersistentVolumeClaim,
    StorageClass, TopologySelectorTerm,
};
use crate::engine::go_sort;
use crate::engine::objects::Objects;
use crate::engine::pod::NamespacedName;
use crate::engine::status::{Code, Status};
use crate::engine::volumes;
use crate::intern::Symbol;

use super::capacity;
use super::claims::Claims;
use super::matching::{best, requested};

/// On a claim: the node that its volume is to be made for.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The provisioner of classes whose volumes are made by hand.
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
    pub bindings: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    /// Volumes to be made.
    pub provisions: Vec<Provision>,
}

/// The refusals for every combination of reasons, built once (VB-016).
pub struct Refusals([Status; 16]);

impl Default for Refusals {
    fn default() -> Refusals {
        const REASONS: [&str; 4] = [
            "node(s) didn't match PersistentVolume's node affinity",
            "node(s) didn't find available persistent volumes to bind",
            "node(s) did not have enough free storage",
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        ];
        Refusals(std::array::from_fn(|set| {
            let given = REASONS.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let reasons = given.map(|(_, reason)| Symbol::new(reason)).collect();
            match set {
                0 => Status::SUCCESS,
                _ => Status::with_reasons(Code::UnschedulableAndUnresolvable, reasons),
            }
        }))
    }
}

/// What speaks against a node.
#[derive(Clone, Copy, Default)]
pub(super) struct Verdict {
    node_conflict: bool,
    bind_conflict: bool,
    pub no_space: bool,
    no_volume: bool,
}

impl Refusals {
    fn of(&self, verdict: Verdict) -> Status {
        let bits =
            [verdict.node_conflict, verdict.bind_conflict, verdict.no_space, verdict.no_volume];
        let set = bits.iter().enumerate().map(|(at, bit)| usize::from(*bit) << at).sum::<usize>();
        self.0[set].clone()
    }
}

/// The volumes that the pod gets on the node, or the refusal or error.
pub fn find(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    refusals: &Refusals,
) -> Result<PodVolumes, Status> {
    let mut verdict = Verdict::default();
    let volumes = check_bound(claims, node, objects, &mut verdict)
        .and_then(|()| find_delayed(claims, node, objects, &mut verdict))
        .map_err(|text| Status::error(&text))?;
    match refusals.of(verdict) {
        Status::SUCCESS => Ok(volumes),
        refusal => Err(refusal),
    }
}

/// The first bound claim that does not fit ends it (VB-010).
fn check_bound(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    verdict: &mut Verdict,
) -> Result<(), String> {
    let csi_node = objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, node.metadata.name));
    let csi_node: Option<&CsiNode> = csi_node.map(|csi_node| csi_node.as_ref());
    for volume in &claims.bound {
        match volume {
            None => verdict.no_volume = true,
            Some(volume) if volume.reaches_migrated(node, csi_node)? => continue,
            Some(_) => verdict.node_conflict = true,
        }
        break;
    }
    Ok(())
}

/// VB-011…013
fn find_delayed(
    claims: &Claims,
    node: &Node,
    objects: &Objects,
    verdict: &mut Verdict,
) -> Result<PodVolumes, String> {
    let mut volumes = PodVolumes::default();
    let (mut to_match, mut to_provision) = (Vec::new(), Vec::new());
    for claim in &claims.delayed {
        match claim.metadata.annotations.get_str(SELECTED_NODE) {
            None => to_match.push(claim),
            Some(selected) if *selected == node.metadata.name => to_provision.push(claim),
            Some(_) => {
                verdict.bind_conflict = true;
                return Ok(volumes);
            }
        }
    }
    // The smallest claim chooses first.
    go_sort::sort(&mut to_match, |a, b| {
        let size = |claim: &PersistentVolumeClaim| requested(claim).cloned().unwrap_or_default();
        size(a) < size(b)
    });
    let mut chosen = Vec::new();
    for claim in to_match {
        let of_class = claims.candidates.get(&volumes::class_of(claim));
        let of_class = of_class.map_or(&[][..], |candidates| candidates);
        match best(claim, of_class, node, &chosen)? {
            None => to_provision.push(claim),
            Some(volume) => {
                chosen.push(volume.metadata.name);
                volumes.bindings.push((volume.clone(), claim.clone()));
            }
        }
    }
    for claim in to_provision {
        match provision(claim, node, objects, verdict)? {
            Some(provision) => volumes.provisions.push(provision),
            None => break,
        }
    }
    Ok(volumes)
}

/// Whether the claim's volume can be made for the node (VB-014); `None` if not, with the
/// reason in the verdict.
pub(super) fn provision(
    claim: &Arc<PersistentVolumeClaim>,
    node: &Node,
    objects: &Objects,
    verdict: &mut Verdict,
) -> Result<Option<Provision>, String> {
    let name = volumes::class_of(claim);
    if name.is_empty() {
        let metadata = &claim.metadata;
        return Err(format!("no class for claim \"{}/{}\"", metadata.namespace, metadata.name));
    }
    let class = objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    let class = class.ok_or_else(|| format!("failed to find storage class \"{name}\""))?;
    if is_made_by_hand(class) || !is_allowed(&class.allowed_topologies, &node.metadata.labels) {
        verdict.bind_conflict = true;
        return Ok(None);
    }
    match capacity::find(claim, class, node, objects) {
        Some(capacity) => Ok(Some(Provision { claim: claim.clone(), capacity })),
        None => {
            verdict.no_space = true;
            Ok(None)
        }
    }
}

/// Whether somebody has to make the class's volumes.
pub(super) fn is_made_by_hand(class: &StorageClass) -> bool {
    class.provisioner.is_empty() || class.provisioner == NO_PROVISIONER
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
