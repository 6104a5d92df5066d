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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::host::Host;

    fn claim(annotations: Value) -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "d", "uid": "1", "annotations": annotations},
            "spec": {
                "storageClassName": "k", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "5Gi"}},
            },
        }))
        .unwrap()
    }

    fn volume(uid: &str) -> PersistentVolume {
        let reference = json!({"namespace": "d", "name": "c", "uid": uid});
        let json = json!({"metadata": {"name": "v"}, "spec": {"claimRef": reference}});
        serde_json::from_value(json).unwrap()
    }

    fn now(api: &ApiServer) -> (Arc<PersistentVolumeClaim>, PersistentVolumePhase) {
        let objects = api.objects();
        let claim = objects.persistent_volume_claims.values().next().unwrap().clone();
        let name = NamespacedName::new(Symbol::EMPTY, claim.spec.volume_name);
        let volume = objects.persistent_volumes.get(&name);
        (claim, volume.map(|volume| volume.status.phase).unwrap_or_default())
    }

    #[test]
    fn a_volume_with_a_claim_is_bound_to_it() {
        let mut api = ApiServer::default();
        api.put(claim(json!({})).into());
        api.put(volume("2").into());
        api.send(volume("2").into()).unwrap();
        assert_eq!(now(&api).0.spec.volume_name, "");
        api.send(volume("1").into()).unwrap();
        let (claim, phase) = now(&api);
        assert_eq!((claim.spec.volume_name, phase), ("v".into(), PersistentVolumePhase::Bound));
        assert!(claim.metadata.annotations.get_str(BIND_COMPLETED).is_some());
    }

    #[test]
    fn a_claim_with_a_node_gets_a_volume_there() {
        let mut api = ApiServer::default();
        let node = json!({"metadata": {"name": "n", "labels": {HOSTNAME: "host-n"}}});
        api.put(Object::Node(Arc::new(serde_json::from_value(node).unwrap())));
        let chosen = claim(json!({SELECTED_NODE: "n"}));
        api.put(chosen.clone().into());
        assert_eq!(now(&api).0.spec.volume_name, "");
        api.send(chosen.into()).unwrap();
        let (claim, phase) = now(&api);
        assert_eq!(
            (claim.spec.volume_name, phase),
            ("pvc-d-c".into(), PersistentVolumePhase::Bound)
        );
        let key = NamespacedName::new(Symbol::EMPTY, "pvc-d-c".into());
        let volume = &api.objects().persistent_volumes[&key];
        assert_eq!(volume.spec.node_affinity, Some(only_on("host-n".into())));
        assert_eq!(volume.spec.capacity, claim.spec.resources.requests);
    }
}
