//! Helpers shared by the volume plugins: the claims behind a pod's volumes, the class of a claim,
//! the API server's "not found" messages, and the signature of a pod's volumes.
//!
//! Upstream: `staging/src/k8s.io/component-helpers/storage/{ephemeral,volume}` and
//! `staging/src/k8s.io/kube-scheduler/framework/signers.go`.

use std::fmt::Display;

use std::sync::Arc;

use kubestep_api::{Name, PersistentVolumeClaim, Pod, Volume};
use kubestep_framework::error::PluginError;
use kubestep_framework::events::EventObjects;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Status;

pub mod migration;

/// The signature key under which all volume plugins sign.
const SIGNATURE_KEY: &str = "v1.Pod.Spec.Volumes.NonSyntheticSources()";

/// The claim behind a volume of a pod.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClaimVolume {
    /// The claim, in the pod's namespace. The name is empty if the volume names no claim.
    pub key: NamespacedName,
    /// Whether the claim belongs to an ephemeral volume: it must be owned by this pod.
    pub ephemeral: bool,
}

impl ClaimVolume {
    /// The claim behind `volume`; `None` for any other source.
    pub fn of(pod: &Pod, volume: &Volume) -> Option<ClaimVolume> {
        let namespace = pod.metadata.namespace;
        if let Some(source) = &volume.persistent_volume_claim {
            let key = NamespacedName::new(namespace, source.claim_name);
            return Some(ClaimVolume { key, ephemeral: false });
        }
        volume.ephemeral.as_ref()?;
        let name = Name::from(format!("{}-{}", pod.metadata.name, volume.name));
        Some(ClaimVolume { key: NamespacedName::new(namespace, name), ephemeral: true })
    }
}

/// The claims behind a pod's volumes, in the order of the volumes.
pub fn claims(pod: &Pod) -> impl Iterator<Item = ClaimVolume> + '_ {
    pod.spec.volumes.iter().filter_map(|volume| ClaimVolume::of(pod, volume))
}

/// The claims that a pod references by name, without those of ephemeral volumes.
pub(crate) fn named_claims(pod: &Pod) -> impl Iterator<Item = NamespacedName> + '_ {
    claims(pod).filter(|claim| !claim.ephemeral).map(|claim| claim.key)
}

/// Checks that the claim of an ephemeral volume was created for `pod`.
///
/// # Errors
/// Upstream's message that the pod does not own the claim.
pub(crate) fn check_owner(pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), PluginError> {
    let (of_claim, of_pod) = (&claim.metadata, &pod.metadata);
    let owned = of_claim.controller().is_some_and(|owner| owner.uid == of_pod.uid);
    if owned && of_claim.namespace == of_pod.namespace {
        return Ok(());
    }
    Err(format!(
        "PVC {}/{} was not created for pod {} (pod is not owner)",
        of_claim.namespace,
        of_claim.name,
        pod.full_name()
    )
    .into())
}

/// The storage class of a claim; the beta annotation takes precedence over the field.
pub fn class_of(claim: &PersistentVolumeClaim) -> Name {
    let annotated = claim.metadata.annotations.get_str("volume.beta.kubernetes.io/storage-class");
    annotated.map(|class| Name::new(class)).or(claim.spec.storage_class_name).unwrap_or_default()
}

/// The claim of that name.
///
/// # Errors
/// The API server's "not found" message.
pub(crate) fn find_claim(
    objects: &Objects,
    key: NamespacedName,
) -> Result<&Arc<PersistentVolumeClaim>, PluginError> {
    let claim = objects.persistent_volume_claims.get(&key);
    Ok(claim.ok_or_else(|| not_found("persistentvolumeclaim", key.name))?)
}

/// The API server's message for an object that does not exist.
pub fn not_found(resource: &str, name: Name) -> String {
    format!("{resource} \"{name}\" not found")
}

/// Rejects a pod that needs an object that does not exist; preemption can't help.
pub fn unresolvable(error: impl Display) -> Status {
    Status::unresolvable(&error.to_string())
}

/// The part of a pod's signature that describes its volumes: all except those that the kubelet
/// creates from ConfigMaps and Secrets. Volume names do not count.
pub fn sign(pod: &Pod) -> Vec<(&'static str, String)> {
    let synthetic = |volume: &Volume| volume.config_map.is_some() || volume.secret.is_some();
    let mut sources: Vec<String> = pod
        .spec
        .volumes
        .iter()
        .filter(|volume| !synthetic(volume))
        .map(|volume| Volume { name: Default::default(), ..volume.clone() })
        .filter_map(|source| serde_json::to_string(&source).ok())
        .collect();
    sources.sort_unstable();
    vec![(SIGNATURE_KEY, format!("{sources:?}"))]
}

/// The claim as an event leaves it, if it is in the pod's namespace.
pub(crate) fn new_claim_beside<'a>(
    pod: &Pod,
    objects: &'a EventObjects,
) -> Result<Option<&'a PersistentVolumeClaim>, PluginError> {
    let (_, new) = objects.persistent_volume_claims()?;
    let claim = new.ok_or("the event carries no persistent volume claim")?;
    Ok(Some(claim).filter(|claim| claim.metadata.namespace == pod.metadata.namespace))
}

/// Whether the pod uses the claim that an event leaves.
pub(crate) fn uses_new_claim(pod: &Pod, objects: &EventObjects) -> Result<bool, PluginError> {
    let claim = new_claim_beside(pod, objects)?;
    let is_used = |claim: &PersistentVolumeClaim| {
        claims(pod).any(|used| used.key.name == claim.metadata.name)
    };
    Ok(claim.is_some_and(is_used))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: serde_json::Value) -> Pod {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn claims_are_named_or_made_for_the_pod() {
        let pod = pod(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "scratch", "ephemeral": {}},
            ]},
        }));
        let claims: Vec<(String, bool)> =
            claims(&pod).map(|claim| (claim.key.to_string(), claim.ephemeral)).collect();
        assert_eq!(claims, [("shop/disk".into(), false), ("shop/web-scratch".into(), true)]);
        assert_eq!(named_claims(&pod).count(), 1);
    }

    #[test]
    fn only_the_owner_uses_an_ephemeral_claim() {
        let pod = pod(serde_json::json!({"metadata": {"name": "a", "namespace": "x", "uid": "1"}}));
        let mut claim: PersistentVolumeClaim = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a-v", "namespace": "x",
                "ownerReferences": [{"kind": "Pod", "name": "a", "uid": "1", "controller": true}]},
        }))
        .unwrap();
        assert_eq!(check_owner(&pod, &claim), Ok(()));
        claim.metadata.owner_references[0].uid = "2".into();
        let text = "PVC x/a-v was not created for pod x/a (pod is not owner)";
        assert_eq!(check_owner(&pod, &claim), Err(text.into()));
    }

    #[test]
    fn the_annotation_names_the_class_first() {
        let mut claim = PersistentVolumeClaim::default();
        assert_eq!(class_of(&claim), "");
        claim.spec.storage_class_name = Some("slow".into());
        assert_eq!(class_of(&claim), "slow");
        claim.metadata.annotations = [("volume.beta.kubernetes.io/storage-class", "fast")].into();
        assert_eq!(class_of(&claim), "fast");
    }

    #[test]
    fn the_signature_leaves_out_names_and_config_maps() {
        let with_name = |name: &str| {
            pod(serde_json::json!({"spec": {"volumes": [
                {"name": name, "persistentVolumeClaim": {"claimName": "disk"}},
                {"name": "c", "configMap": {}},
            ]}}))
        };
        assert_eq!(sign(&with_name("a")), sign(&with_name("b")));
        assert!(sign(&with_name("a"))[0].1.contains("disk"));
    }
}
