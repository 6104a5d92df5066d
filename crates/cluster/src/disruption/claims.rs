//! The claims that belong to a single pod: those of templates for devices, and those of ephemeral
//! volumes. They are created for a pod and deleted with it.

use std::sync::Arc;

use crate::api_server::ApiServer;
use kubestep_api::admission::derived_uid;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Kind, Name, Object, ObjectMeta, OwnerReference, PersistentVolumeClaim, Pod,
    PodResourceClaimStatus, ResourceClaim, SharedText,
};
use kubestep_framework::pod::NamespacedName;

/// Annotations of the persistent volume controller begin like this.
const BINDING: [&str; 2] = ["pv.kubernetes.io/", "volume.kubernetes.io/selected-node"];

/// The own claims of a pod, each with the name that it has in the pod.
#[derive(Clone, Default, Debug)]
pub(crate) struct OwnClaims {
    /// `None` if the pod needs no claim.
    devices: Vec<(Symbol, Option<Arc<ResourceClaim>>)>,
    volumes: Vec<(Name, Arc<PersistentVolumeClaim>)>,
}

impl OwnClaims {
    /// Those of a pod that exists.
    pub fn of(api: &ApiServer, pod: &Pod) -> OwnClaims {
        let key = |name| NamespacedName::new(pod.metadata.namespace, name);
        let (claims, volumes) =
            (&api.objects().resource_claims, &api.objects().persistent_volume_claims);
        let devices = pod.status.resource_claim_statuses.iter().map(|status| {
            let claim = status.resource_claim_name.and_then(|name| claims.get(&key(name)));
            (status.name, claim.cloned())
        });
        let ephemeral = pod.spec.volumes.iter().filter(|volume| volume.ephemeral.is_some());
        let volume = |name: &str| {
            let claim = volumes.get(&key(volume_claim(pod, name)))?;
            Some((name.into(), claim.clone()))
        };
        OwnClaims {
            devices: devices.collect(),
            volumes: ephemeral.filter_map(|one| volume(one.name.as_str())).collect(),
        }
    }

    /// New claims for a pod with a name. It learns the names of the device claims.
    pub fn make(&self, pod: &mut Pod) -> Vec<Object> {
        let mut made: Vec<Object> = Vec::new();
        for (name, claim) in &self.devices {
            let copy = claim.as_ref().map(|claim| device_claim(claim, *name, pod));
            let status = PodResourceClaimStatus {
                name: *name,
                resource_claim_name: copy.as_ref().map(|copy| copy.metadata.name),
            };
            pod.status.resource_claim_statuses.push(status);
            made.extend(copy.map(Object::from));
        }
        let volume = |(name, claim): &(Name, Arc<PersistentVolumeClaim>)| {
            volume_claim_copy(claim, volume_claim(pod, &name.text()), pod).into()
        };
        made.extend(self.volumes.iter().map(volume));
        made
    }

    /// The claims as objects.
    fn keys(&self) -> impl Iterator<Item = (Kind, NamespacedName)> {
        let devices = self.devices.iter().filter_map(|(_, claim)| Some(&claim.as_ref()?.metadata));
        let volumes = self.volumes.iter().map(|(_, claim)| &claim.metadata);
        let key = |of: &ObjectMeta| NamespacedName::new(of.namespace, of.name);
        let devices = devices.map(move |of| (Kind::ResourceClaim, key(of)));
        devices.chain(volumes.map(move |of| (Kind::PersistentVolumeClaim, key(of))))
    }
}

impl ApiServer {
    /// Deletes the own claims of a pod that was deleted. Other claims that it used are deallocated
    /// once they have no user left.
    pub(crate) fn release_claims(&mut self, pod: &Pod, own: &OwnClaims) {
        for (kind, key) in own.keys() {
            self.remove(kind, key);
        }
        let used = |claim: &&Arc<ResourceClaim>| {
            let mut users = claim.status.reserved_for.iter();
            claim.metadata.namespace == pod.metadata.namespace
                && users.any(|user| user.uid == pod.metadata.uid || user.name == pod.metadata.name)
        };
        let claims = self.objects().resource_claims.sorted().into_iter().map(|(_, claim)| claim);
        for mut claim in claims.filter(used).cloned().collect::<Vec<_>>() {
            let claim = Arc::make_mut(&mut claim);
            let status = &mut claim.status;
            status.reserved_for.retain(|user| user.name != pod.metadata.name);
            if status.reserved_for.is_empty() {
                status.allocation = None;
            }
            self.put(claim.clone().into());
        }
    }
}

/// The name of the claim of an ephemeral volume.
fn volume_claim(pod: &Pod, volume: &str) -> Name {
    Name::new(&format!("{}-{volume}", pod.metadata.name))
}

fn device_claim(claim: &ResourceClaim, name: Symbol, pod: &Pod) -> ResourceClaim {
    let mut copy = claim.clone();
    let name = Name::new(&format!("{}-{name}", pod.metadata.name));
    copy.metadata = owned_by(&claim.metadata, name, pod);
    copy.status = Default::default();
    copy
}

fn volume_claim_copy(
    claim: &PersistentVolumeClaim,
    name: Name,
    pod: &Pod,
) -> PersistentVolumeClaim {
    let mut copy = unbound(claim, name);
    copy.metadata = owned_by(&copy.metadata, name, pod);
    copy
}

/// A copy that is not bound to a volume.
pub(crate) fn unbound(claim: &PersistentVolumeClaim, name: Name) -> PersistentVolumeClaim {
    let mut copy = claim.clone();
    copy.metadata.name = name;
    copy.metadata.uid = derived_uid(&format!("{}/{name}", claim.metadata.namespace));
    let binding = |key: &Symbol| BINDING.iter().any(|prefix| key.starts_with(prefix));
    let annotations = claim.metadata.annotations.iter();
    let kept = annotations.filter(|(key, _)| !binding(key));
    copy.metadata.annotations = kept.map(|(key, value)| (key, value.clone())).collect();
    copy.spec.volume_name = Name::EMPTY;
    copy.status = Default::default();
    copy
}

/// The metadata of a copy that belongs to the pod.
fn owned_by(metadata: &ObjectMeta, name: Name, pod: &Pod) -> ObjectMeta {
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.metadata.name,
        uid: pod.metadata.uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    ObjectMeta {
        name,
        generate_name: SharedText::default(),
        uid: derived_uid(&format!("{name} of {}", pod.metadata.uid)),
        owner_references: vec![owner].into(),
        ..metadata.clone()
    }
}
