//! A stand-in for the volume controller and the provisioners of a real cluster: what the
//! scheduler decides about volumes is carried out at once.
//!
//! A volume that was given a claim becomes bound to it. A claim that was given a node gets a
//! volume `pvc-NAMESPACE-NAME`, bound to it and to be reached from that node only.

use std::sync::Arc;

use crate::api::{
    CsiPersistentVolumeSource, Kind, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm, Object, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimPhase, PersistentVolumePhase, VolumeNodeAffinity,
};
use crate::engine::pod::NamespacedName;
use crate::engine::volumes;
use crate::intern::Symbol;

use super::api_server::ApiServer;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Carries out what the scheduler has just written.
pub(super) fn react(api: &mut ApiServer, written: &Object) {
    match written {
        Object::PersistentVolume(volume) => bind(api, volume),
        Object::PersistentVolumeClaim(claim) => provision(api, claim),
        _ => {}
    }
}

/// Binds a volume to the claim that it names, if that is still unbound.
fn bind(api: &mut ApiServer, volume: &Arc<PersistentVolume>) {
    let Some(reference) = &volume.spec.claim_ref else { return };
    let key = NamespacedName::new(reference.namespace, reference.name);
    let Some(Object::PersistentVolumeClaim(claim)) = api.get(Kind::PersistentVolumeClaim, key)
    else {
        return;
    };
    if claim.metadata.uid != reference.uid || !claim.spec.volume_name.is_empty() {
        return;
    }
    let mut volume = (**volume).clone();
    volume.status.phase = PersistentVolumePhase::Bound;
    api.put(bound_claim(&claim, &volume).into());
    api.put(volume.into());
}

/// The claim once it has the volume.
fn bound_claim(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolumeClaim {
    let mut claim = claim.clone();
    claim.spec.volume_name = volume.metadata.name;
    claim.status.phase = PersistentVolumeClaimPhase::Bound;
    claim.status.access_modes = volume.spec.access_modes.clone();
    claim.status.capacity = volume.spec.capacity.clone();
    for annotation in [BIND_COMPLETED, BOUND_BY_CONTROLLER] {
        claim.metadata.annotations.insert(annotation.into(), "yes".into());
    }
    claim
}

/// Makes a volume for a claim whose node is chosen.
fn provision(api: &mut ApiServer, claim: &PersistentVolumeClaim) {
    let Some(node) = claim.metadata.annotations.get_str(SELECTED_NODE).copied() else { return };
    if !claim.spec.volume_name.is_empty() {
        return;
    }
    let class = NamespacedName::new(Symbol::EMPTY, volumes::class_of(claim));
    let class = api.objects().storage_classes.get(&class);
    let provisioner = class.map(|class| class.provisioner).unwrap_or_default();
    let host = api.node(node).and_then(|node| node.metadata.labels.get_str(HOSTNAME).copied());
    let volume = new_volume(claim, provisioner, host.unwrap_or(node));
    api.put(bound_claim(claim, &volume).into());
    api.put(volume.into());
}

fn new_volume(
    claim: &PersistentVolumeClaim,
    provisioner: Symbol,
    host: Symbol,
) -> PersistentVolume {
    let mut volume = PersistentVolume::default();
    let (from, spec) = (&claim.metadata, &mut volume.spec);
    let name = Symbol::from(format!("pvc-{}-{}", from.namespace, from.name));
    spec.capacity = claim.spec.resources.requests.clone();
    spec.access_modes = claim.spec.access_modes.clone();
    spec.volume_mode = claim.spec.volume_mode;
    spec.storage_class_name = volumes::class_of(claim);
    spec.persistent_volume_reclaim_policy = "Delete".into();
    spec.node_affinity = Some(only_on(host));
    spec.claim_ref = Some(ObjectReference {
        api_version: "v1".into(),
        kind: "PersistentVolumeClaim".into(),
        namespace: from.namespace,
        name: from.name,
        uid: from.uid,
        ..ObjectReference::default()
    });
    spec.csi = Some(CsiPersistentVolumeSource {
        driver: provisioner,
        volume_handle: name,
        read_only: false,
    });
    volume.metadata.name = name;
    volume.metadata.uid = name;
    volume.metadata.annotations.insert(PROVISIONED_BY.into(), provisioner);
    volume.status.phase = PersistentVolumePhase::Bound;
    volume
}

fn only_on(host: Symbol) -> VolumeNodeAffinity {
    let expression = NodeSelectorRequirement {
        key: HOSTNAME.into(),
        operator: NodeSelectorOperator::In,
        values: vec![host],
    };
    let term = NodeSelectorTerm { match_expressions: vec![expression], match_fields: Vec::new() };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}
