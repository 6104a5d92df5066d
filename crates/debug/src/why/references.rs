//! References of a pod and its claims: objects that do not exist, with the names that were probably
//! meant, and claims that must be bound before the pod is scheduled and are not.

use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, PersistentVolumeClaim, Pod, StorageClass, VolumeBindingMode};
use kubestep_config::suggest;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::volume_binding::{is_bound, provisions, requested};
use kubestep_plugins::volumes;

/// A reference to an object that does not exist.
pub(crate) struct Reference {
    /// The kind of the object.
    pub kind: Kind,
    /// Its namespace and name.
    pub key: NamespacedName,
    /// Where the reference is.
    pub field: ReferenceField,
}

/// The location of a reference.
pub(crate) enum ReferenceField {
    /// At that path in the pod.
    OfPod(String),
    /// At that path in a resource claim.
    OfClaim(NamespacedName, String),
    /// The class of a persistent volume claim.
    ClassOf(NamespacedName),
    /// Nowhere: a controller creates the object.
    Generated,
}

impl Reference {
    /// The name of an existing object that was probably meant.
    pub fn near(&self, objects: &Objects) -> Option<Name> {
        if matches!(self.field, ReferenceField::Generated) {
            return None;
        }
        let beside = |key: &NamespacedName| key.namespace == self.key.namespace;
        let known = objects.keys(self.kind).into_iter().filter(beside);
        suggest::closest_name(self.key.name, known.map(|key| key.name))
    }
}

/// All objects that must exist before the pod is scheduled and do not.
pub(crate) fn missing(objects: &Objects, pod: &Pod) -> Vec<Reference> {
    let mut missing = Vec::new();
    for (at, volume) in pod.spec.volumes.iter().enumerate() {
        let Some(claim) = volumes::ClaimVolume::of(pod, volume) else { continue };
        let key = claim.key;
        match objects.persistent_volume_claims.get(&key) {
            None => {
                let path = format!("spec.volumes[{at}].persistentVolumeClaim.claimName");
                let field = if claim.ephemeral {
                    ReferenceField::Generated
                } else {
                    ReferenceField::OfPod(path)
                };
                missing.push(Reference { kind: Kind::PersistentVolumeClaim, key, field });
            }
            Some(claim) => missing.extend(missing_class(objects, key, claim)),
        }
    }
    missing.extend(missing_resource_claims(objects, pod));
    missing
}

/// The missing class of a claim without a volume.
fn missing_class(
    objects: &Objects,
    key: NamespacedName,
    claim: &PersistentVolumeClaim,
) -> Option<Reference> {
    let class = volumes::class_of(claim);
    let unnamed = class.is_empty() || !claim.spec.volume_name.is_empty();
    let class = NamespacedName::new(Symbol::EMPTY, class);
    let missing = !unnamed && !objects.storage_classes.contains_key(&class);
    let field = ReferenceField::ClassOf(key);
    missing.then_some(Reference { kind: Kind::StorageClass, key: class, field })
}

fn missing_resource_claims(objects: &Objects, pod: &Pod) -> Vec<Reference> {
    let statuses = &pod.status.resource_claim_statuses;
    let mut missing = Vec::new();
    for (at, written) in pod.spec.resource_claims.iter().enumerate() {
        let generated = || statuses.iter().find(|status| status.name == written.name);
        let name = written.resource_claim_name.or_else(|| generated()?.resource_claim_name);
        let Some(name) = name else { continue };
        let key = NamespacedName::new(pod.metadata.namespace, name);
        match objects.resource_claims.get(&key) {
            Some(claim) => missing.extend(missing_device_classes(objects, key, claim)),
            None => {
                let path = format!("spec.resourceClaims[{at}].resourceClaimName");
                let field = match written.resource_claim_name {
                    Some(_) => ReferenceField::OfPod(path),
                    None => ReferenceField::Generated,
                };
                missing.push(Reference { kind: Kind::ResourceClaim, key, field });
            }
        }
    }
    missing
}

fn missing_device_classes(
    objects: &Objects,
    key: NamespacedName,
    claim: &kubestep_api::ResourceClaim,
) -> Vec<Reference> {
    let mut named = Vec::new();
    for (at, request) in claim.spec.devices.requests.iter().enumerate() {
        let exactly = request.exactly.iter();
        named.extend(exactly.map(|one| (one.device_class_name, format!("[{at}].exactly"))));
        let alternatives = request.first_available.iter().enumerate();
        named
            .extend(alternatives.map(|(sub, one)| {
                (one.device_class_name, format!("[{at}].firstAvailable[{sub}]"))
            }));
    }
    let missing = named.into_iter().filter_map(|(class, place)| {
        let class = NamespacedName::new(Symbol::EMPTY, class);
        let field = match claim.metadata.controller() {
            Some(_) => ReferenceField::Generated,
            None => ReferenceField::OfClaim(
                key,
                format!("spec.devices.requests{place}.deviceClassName"),
            ),
        };
        let there = objects.device_classes.contains_key(&class);
        (!there).then_some(Reference { kind: Kind::DeviceClass, key: class, field })
    });
    missing.collect()
}

/// A claim that must be bound before the pod is scheduled, and is not.
pub(crate) struct Unbound<'a> {
    /// Namespace and name of the claim.
    pub key: NamespacedName,
    claim: &'a PersistentVolumeClaim,
    class: Option<&'a StorageClass>,
}

/// The claims of the pod that VolumeBinding calls unbound and immediate, except those whose class
/// does not exist.
pub(crate) fn unbound<'a>(objects: &'a Objects, pod: &Pod) -> Vec<Unbound<'a>> {
    let unbound = |claim: volumes::ClaimVolume| {
        let key = claim.key;
        let claim = objects.persistent_volume_claims.get(&key)?.as_ref();
        let name = NamespacedName::new(Symbol::EMPTY, volumes::class_of(claim));
        let class = objects.storage_classes.get(&name).map(AsRef::as_ref);
        let named = !claim.spec.volume_name.is_empty();
        let mode = class.and_then(|class| class.volume_binding_mode);
        let immediate = mode == Some(VolumeBindingMode::Immediate);
        let waits = named || immediate || name.name.is_empty();
        (waits && !is_bound(claim)).then_some(Unbound { key, claim, class })
    };
    volumes::claims(pod).filter_map(unbound).collect()
}

impl Unbound<'_> {
    /// The problem of the claim.
    pub fn text(&self) -> String {
        let Unbound { key, claim, class } = self;
        let volume = claim.spec.volume_name;
        match class {
            _ if !volume.is_empty() => {
                format!("claim {key} names volume {volume} and is not bound to it yet")
            }
            None => format!("claim {key} has no volume and no class that would provision one"),
            Some(class) if provisions(class) => format!(
                "claim {key} has no volume: class {} (Immediate) does not wait for the pod, and {} \
                 has not provisioned one",
                class.metadata.name, class.provisioner
            ),
            Some(class) => format!(
                "claim {key} has no volume: class {} (Immediate) provisions none",
                class.metadata.name
            ),
        }
    }

    /// What to do about it.
    pub fn advice(&self, objects: &Objects) -> String {
        let size = requested(self.claim).map(|size| format!(" of at least {size}"));
        let size = size.unwrap_or_default();
        let volume = self.claim.spec.volume_name;
        let class = self.class.filter(|class| provisions(class));
        let first = match class {
            _ if !volume.is_empty() => {
                let name = NamespacedName::new(Symbol::EMPTY, volume);
                match objects.persistent_volumes.contains_key(&name) {
                    true => {
                        format!("check that volume {volume} matches the claim and is available")
                    }
                    false => format!("create the volume {volume}"),
                }
            }
            Some(class) => {
                format!("check the events of the claim and the logs of {}", class.provisioner)
            }
            None => format!("create a volume{size} for it"),
        };
        let waits = objects.storage_classes.values().filter(|class| {
            class.volume_binding_mode == Some(VolumeBindingMode::WaitForFirstConsumer)
        });
        let names: Vec<String> =
            waits.map(|class| class.metadata.name.to_string()).take(3).collect();
        match names.is_empty() {
            true => first,
            false => {
                format!("{first}; or use a class that waits for the pod: {}", names.join(", "))
            }
        }
    }
}
