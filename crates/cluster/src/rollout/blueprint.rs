//! What the pods are like that a rollout creates.
//!
//! A new pod is a copy of a pod that there is, so that what admission added to the template, such as
//! sidecars, is part of it.

use super::{Owners, REVISION, ReplicaSetRef, WorkloadKind, WorkloadName};
use crate::api_server::ApiServer;
use crate::disruption::claims::{OwnClaims, unbound};
use crate::disruption::replace::fresh;
use crate::workload::{TEMPLATE_HASH, for_node};
use kubestep_api::admission::{merge_label_keys, unmerge_label_keys};
use kubestep_api::{Name, Object, OwnerReference, PersistentVolumeClaim, Pod};
use kubestep_framework::pod::NamespacedName;

/// The labels of a StatefulSet's pod with its name and its ordinal.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// A new pod before it has a name.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub pod: Pod,
    claims: OwnClaims,
    /// The claims of a StatefulSet's templates that do not exist yet.
    volumes: Vec<PersistentVolumeClaim>,
}

impl Blueprint {
    /// The claims that are created with the pod, which has a name. It learns the names of device
    /// claims.
    pub fn claims(&self, api: &ApiServer, pod: &mut Pod) -> Vec<Object> {
        let is_missing = |claim: &&PersistentVolumeClaim| {
            let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
            !api.objects().persistent_volume_claims.contains_key(&key)
        };
        let volumes = self.volumes.iter().filter(is_missing).cloned().map(Object::from);
        self.claims.make(pod).into_iter().chain(volumes).collect()
    }
}

/// How the template of a workload changes.
pub(super) struct TemplateChange<'a, F> {
    pub workload: WorkloadName,
    pub owners: &'a Owners,
    /// The name of the new template.
    pub revision: Name,
    pub change: &'a F,
}

impl<F: Fn(&mut Pod) -> Result<(), String>> TemplateChange<'_, F> {
    /// The pod of a slot with the template of `model`.
    pub fn kept(&self, api: &ApiServer, slot: Name, model: &Pod) -> Blueprint {
        let mut pod = fresh(model);
        match self.workload.kind {
            WorkloadKind::StatefulSet => rename(&mut pod, slot),
            WorkloadKind::DaemonSet => pod = for_node(pod, slot),
            WorkloadKind::Deployment => {}
        }
        let volumes = missing_volumes(api, &pod, model);
        Blueprint { pod, claims: OwnClaims::of(api, model), volumes }
    }

    /// The same with the new template.
    pub fn changed(&self, api: &ApiServer, slot: Name, model: &Pod) -> Result<Blueprint, String> {
        let mut made = self.kept(api, slot, model);
        let new = &mut made.pod;
        unmerge_label_keys(new);
        let label = match self.owners {
            Owners::ReplicaSets { .. } => TEMPLATE_HASH,
            Owners::Workload { .. } => REVISION,
        };
        new.metadata.labels.insert(label.into(), self.revision);
        (self.change)(new)?;
        merge_label_keys(new);
        let mut base = self.workload.key.name;
        if let Owners::ReplicaSets { new: set, .. } = self.owners {
            new.metadata.owner_references = vec![owned_by(*set, new)].into();
            base = set.name;
        }
        if self.workload.kind != WorkloadKind::StatefulSet {
            new.metadata.name = Name::EMPTY;
            new.metadata.generate_name = format!("{base}-").as_str().into();
        }
        Ok(made)
    }
}

fn owned_by(set: ReplicaSetRef, pod: &Pod) -> OwnerReference {
    let owner = pod.metadata.controller().cloned().unwrap_or_default();
    OwnerReference { name: set.name, uid: set.uid, ..owner }
}

/// Gives a copy of a StatefulSet's pod another ordinal: its name, labels and claims.
fn rename(pod: &mut Pod, slot: Name) {
    let old = pod.metadata.name;
    if old == slot {
        return;
    }
    pod.metadata.name = slot;
    let index = slot.text().rsplit_once('-').map(|(_, index)| Name::new(index)).unwrap_or_default();
    for (label, value) in [(POD_NAME, slot), (POD_INDEX, index)] {
        if pod.metadata.labels.contains_key(label.into()) {
            pod.metadata.labels.insert(label.into(), value);
        }
    }
    pod.spec.volumes.update(|volumes| {
        let claims = volumes.iter_mut().filter_map(|one| one.persistent_volume_claim.as_mut());
        for claim in claims {
            if let Some(template) = claim.claim_name.text().strip_suffix(old.text().as_str()) {
                claim.claim_name = Name::new(&format!("{template}{slot}"));
            }
        }
    });
}

/// Unbound copies of the claims of `model` for those claims of `pod` that do not exist.
fn missing_volumes(api: &ApiServer, pod: &Pod, model: &Pod) -> Vec<PersistentVolumeClaim> {
    let claims = &api.objects().persistent_volume_claims;
    let key = |name| NamespacedName::new(pod.metadata.namespace, name);
    let volumes = pod.spec.volumes.iter().zip(model.spec.volumes.iter());
    let names = volumes.filter_map(|(volume, like)| {
        let names =
            (volume.persistent_volume_claim.as_ref()?, like.persistent_volume_claim.as_ref()?);
        Some((names.0.claim_name, names.1.claim_name))
    });
    let missing = names.filter(|(name, _)| !claims.contains_key(&key(*name)));
    missing.filter_map(|(name, like)| Some(unbound(claims.get(&key(like))?, name))).collect()
}
