//! StatefulSets: numbered pods, each with its own claims.

use serde_json::Value;

use super::manifest::WorkloadManifest;
use super::{ExpandedWorkload, WorkloadInputs, named, owned_pod};
use kubestep_api::decode::from_value;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    DecodeError, Kind, Name, Object, PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod,
    Volume,
};

/// A StatefulSet's pods and their claims.
pub(super) fn expand(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let set = manifest.object(Kind::StatefulSet)?;
    let mut pod = owned_pod(manifest)?;
    let revision = format!("{}-{}", manifest.name, manifest.hash());
    pod.metadata.labels.insert("controller-revision-hash".into(), Name::new(&revision));
    let claims = claims(manifest)?;
    let replicas = surroundings.replicas.or(manifest.count("spec.replicas")?).unwrap_or(1);
    let start = manifest.count("spec.ordinals.start")?.unwrap_or(0);
    let ordered = manifest.field("spec.podManagementPolicy") != "Parallel" && replicas > 1;
    let notices = ordered.then(|| {
        let title = manifest.title();
        format!("{title}: a cluster creates its pods one after another; here all are tried at once")
    });
    let name = manifest.name.to_owned();
    let make = move |number: usize| replica(&pod, &claims, &name, start + number);
    Ok(ExpandedWorkload {
        name: manifest.title(),
        owners: vec![set],
        replicas,
        can_grow: true,
        notices: notices.into_iter().collect(),
        make: Box::new(make),
    })
}

/// The claim templates, in the namespace of the StatefulSet.
fn claims(manifest: &WorkloadManifest<'_>) -> Result<Vec<PersistentVolumeClaim>, DecodeError> {
    const PATH: &str = "spec.volumeClaimTemplates";
    let templates = match manifest.field(PATH) {
        Value::Null => return Ok(Vec::new()),
        Value::Array(templates) => templates,
        other => return Err(manifest.error(PATH, format!("{other} is not a list"))),
    };
    let claim = |(at, template): (usize, &Value)| {
        let path = |field: &str| format!("{PATH}[{at}].{field}");
        let decoded = from_value(Kind::PersistentVolumeClaim, template.clone())
            .map_err(|error| manifest.error(&path(&error.path), error.message))?;
        match decoded {
            Object::PersistentVolumeClaim(claim) if !claim.metadata.name.is_empty() => {
                let mut claim = claim.as_ref().clone();
                claim.metadata.namespace = Symbol::new(manifest.namespace);
                Ok(claim)
            }
            _ => Err(manifest.error(&path("metadata.name"), "is missing")),
        }
    };
    templates.iter().enumerate().map(claim).collect()
}

fn replica(pod: &Pod, claims: &[PersistentVolumeClaim], set: &str, ordinal: usize) -> Vec<Object> {
    let name = format!("{set}-{ordinal}");
    let mut pod = named(pod, &name);
    let labels = &mut pod.metadata.labels;
    labels.insert("statefulset.kubernetes.io/pod-name".into(), Name::new(&name));
    labels.insert("apps.kubernetes.io/pod-index".into(), Name::new(&ordinal.to_string()));
    let mut objects = Vec::new();
    let mut volumes = Vec::new();
    for template in claims {
        let (volume, mut claim) = (template.metadata.name, template.clone());
        claim.metadata.name = Name::new(&format!("{volume}-{name}"));
        volumes.push(Volume {
            name: volume.interned().into(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.metadata.name,
                read_only: false,
            }),
            ..Volume::default()
        });
        objects.push(claim.into());
    }
    // A claim template replaces the volume of the same name in the pod template.
    let others = pod.spec.volumes.iter();
    volumes.extend(
        others
            .filter(|other| claims.iter().all(|claim| claim.metadata.name != *other.name))
            .cloned(),
    );
    pod.spec.volumes = volumes.into();
    objects.push(pod.into());
    objects
}
