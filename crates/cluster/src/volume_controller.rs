//! Simulates the volume controller and the provisioners of a real cluster: the scheduler's
//! decisions about volumes are carried out immediately.
//!
//! A volume with a claim reference becomes bound to the claim. A claim with a selected node gets a
//! volume `pvc-NAMESPACE-NAME`, bound to it and reachable from the topology that the provisioner
//! would choose: see [`topology`].

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    CsiPersistentVolumeSource, Kind, Name, NodeSelector, NodeSelectorOperator,
    NodeSelectorRequirement, NodeSelectorTerm, Object, ObjectReference, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimPhase, PersistentVolumePhase, StorageClass,
    TopologySelectorTerm, VolumeNodeAffinity,
};
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::volumes;
use kubestep_plugins::volumes::migration::InTree;

use super::api_server::ApiServer;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Carries out the decision in an object that the scheduler has written.
pub(super) fn react(api: &mut ApiServer, written: &Object) {
    match written {
        Object::PersistentVolume(volume) => bind(api, volume),
        Object::PersistentVolumeClaim(claim) => provision(api, claim),
        _ => {}
    }
}

/// Binds a volume to the claim that it references, if the claim is unbound.
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

/// The claim as bound to the volume.
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

/// Creates a volume for a claim with a selected node.
fn provision(api: &mut ApiServer, claim: &PersistentVolumeClaim) {
    let Some(node) = claim.metadata.annotations.get_str(SELECTED_NODE) else { return };
    let node = Name::new(node);
    if !claim.spec.volume_name.is_empty() {
        return;
    }
    let class = NamespacedName::new(Symbol::EMPTY, volumes::class_of(claim));
    let class = api.objects().storage_classes.get(&class).cloned().unwrap_or_default();
    let volume = new_volume(claim, class.provisioner, topology(api, &class, node));
    api.put(bound_claim(claim, &volume).into());
    api.put(volume.into());
}

/// The node labels that a new volume requires: as in the external provisioner, those of the
/// selected node that the CSI driver reports as topology keys in the CSINode; none for a driver
/// without topology keys. Without an entry of the driver, the topologies that the class allows;
/// otherwise the host name, if the node has one.
fn topology(api: &ApiServer, class: &StorageClass, node: Name) -> Vec<(Symbol, Name)> {
    let Some(object) = api.node(node) else { return Vec::new() };
    let labels = &object.metadata.labels;
    let has = |key: &Symbol| labels.get(*key).map(|value| (*key, *value));
    let provisioner = InTree::by_name(class.provisioner).map(|in_tree| in_tree.driver.into());
    let provisioner: Symbol = provisioner.unwrap_or(class.provisioner);
    let csi_node = api.objects().csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, node));
    let drivers = csi_node.map_or(&[][..], |csi_node| &csi_node.spec.drivers);
    if let Some(driver) = drivers.iter().find(|driver| driver.name == provisioner) {
        return driver.topology_keys.iter().filter_map(has).collect();
    }
    let allows = |term: &&TopologySelectorTerm| {
        let mut required = term.match_label_expressions.iter();
        required.all(|one| has(&one.key).is_some_and(|(_, value)| one.values.contains(&value)))
    };
    match class.allowed_topologies.iter().find(allows) {
        Some(term) => {
            let keys = term.match_label_expressions.iter();
            keys.filter_map(|one| has(&one.key)).collect()
        }
        None => has(&HOSTNAME.into()).into_iter().collect(),
    }
}

fn new_volume(
    claim: &PersistentVolumeClaim,
    provisioner: Symbol,
    topology: Vec<(Symbol, Name)>,
) -> PersistentVolume {
    let mut volume = PersistentVolume::default();
    let (from, spec) = (&claim.metadata, &mut volume.spec);
    let name = Name::from(format!("pvc-{}-{}", from.namespace, from.name));
    spec.capacity = claim.spec.resources.requests.clone();
    spec.access_modes = claim.spec.access_modes.clone();
    spec.volume_mode = claim.spec.volume_mode;
    spec.storage_class_name = volumes::class_of(claim);
    spec.persistent_volume_reclaim_policy = "Delete".into();
    spec.node_affinity = only_on(topology);
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
    volume.metadata.uid = name.text().as_str().into();
    volume.metadata.annotations.insert(PROVISIONED_BY.into(), provisioner.into());
    volume.status.phase = PersistentVolumePhase::Bound;
    volume
}

/// Node affinity for nodes with all these labels; `None` for all nodes.
fn only_on(topology: Vec<(Symbol, Name)>) -> Option<VolumeNodeAffinity> {
    if topology.is_empty() {
        return None;
    }
    let expression = |(key, value): (Symbol, Name)| NodeSelectorRequirement {
        key,
        operator: NodeSelectorOperator::In,
        values: vec![value],
    };
    let match_expressions = topology.into_iter().map(expression).collect();
    let term = NodeSelectorTerm { match_expressions, match_fields: Vec::new() };
    Some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_framework::host::Host;

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
        let volume = api.objects().persistent_volumes.get(&key).unwrap();
        assert_eq!(volume.spec.node_affinity, only_on(vec![(HOSTNAME.into(), "host-n".into())]));
        assert_eq!(volume.spec.capacity, claim.spec.resources.requests);
    }

    /// The labels that the volume requires when it is provisioned for the node `n`.
    fn asked(labels: Value, class: Value, csi_node: Option<Value>) -> Vec<(String, String)> {
        let mut api = ApiServer::default();
        let node = json!({"metadata": {"name": "n", "labels": labels}});
        api.put(Object::Node(Arc::new(serde_json::from_value(node).unwrap())));
        let class: StorageClass = serde_json::from_value(class).unwrap();
        api.put(class.into());
        if let Some(drivers) = csi_node {
            let json = json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}});
            let csi_node: kubestep_api::CsiNode = serde_json::from_value(json).unwrap();
            api.put(csi_node.into());
        }
        let chosen = claim(json!({SELECTED_NODE: "n"}));
        api.put(chosen.clone().into());
        api.send(chosen.into()).unwrap();
        let key = NamespacedName::new(Symbol::EMPTY, "pvc-d-c".into());
        let affinity =
            api.objects().persistent_volumes.get(&key).unwrap().spec.node_affinity.clone();
        let terms = affinity.and_then(|affinity| affinity.required);
        let terms = terms.map(|required| required.node_selector_terms).unwrap_or_default();
        let expressions = terms.into_iter().flat_map(|term| term.match_expressions);
        expressions.map(|one| (one.key.to_string(), one.values[0].to_string())).collect()
    }

    #[test]
    fn a_volume_is_where_its_provisioner_would_put_it() {
        const ZONE: &str = "topology.kubernetes.io/zone";
        let zone = || vec![(ZONE.to_owned(), "z1".to_owned())];
        let plain = || json!({"metadata": {"name": "k"}, "provisioner": "csi.example.com"});
        let allowed = |values: Value| {
            let expressions = json!([{"key": ZONE, "values": values}]);
            let terms = json!([{"matchLabelExpressions": expressions}]);
            json!({"metadata": {"name": "k"}, "provisioner": "csi.example.com",
                   "allowedTopologies": terms})
        };
        let labels = || json!({HOSTNAME: "h", ZONE: "z1"});
        let driver =
            |keys: Value| json!([{"name": "csi.example.com", "nodeID": "n", "topologyKeys": keys}]);
        // The allowed topologies of the class, even if nodes have no host name.
        assert_eq!(asked(labels(), allowed(json!(["z0", "z1"])), None), zone());
        assert_eq!(asked(json!({ZONE: "z1"}), allowed(json!(["z1"])), None), zone());
        // The topology keys of the driver on that node; there may be none.
        assert_eq!(asked(labels(), plain(), Some(driver(json!([ZONE])))), zone());
        assert_eq!(asked(labels(), plain(), Some(driver(json!([])))), []);
        // A label that the node lacks is never required.
        assert_eq!(asked(json!({}), plain(), None), []);
        assert_eq!(asked(labels(), plain(), None), [(HOSTNAME.to_owned(), "h".to_owned())]);
    }
}
