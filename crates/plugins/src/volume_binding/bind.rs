//! Assumes volumes at Reserve, writes them at PreBind, and reverts them at Unreserve.

use std::sync::Arc;
use std::task::{Poll, ready};

use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Duration, Kind, Name, Object, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
    Time,
};
use kubestep_framework::error::PluginError;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::BindContext;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::shared::assumed_volumes::AssumedVolumes;

use super::candidate::CandidateVolume;
use super::claims::is_bound;
use super::find::{PodVolumes, SELECTED_NODE};
use super::matching::is_bound_to;

/// On a volume: a controller or the scheduler bound it to its claim, not a user.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Whether all claims of the pod are bound.
pub(crate) fn all_bound(pod: &Pod, objects: &Objects, assumed: &AssumedVolumes) -> bool {
    let bound = |key| assumed.claims.get(objects, key).is_some_and(|claim| is_bound(claim));
    volumes::claims(pod).all(|claim| bound(claim.key))
}

/// Assumes the volumes that Filter found, and returns the assumed objects.
///
/// # Errors
/// An object changed in the meantime; then nothing stays assumed.
pub fn assume(
    found: &PodVolumes,
    node: Name,
    objects: &Objects,
    assumed: &mut AssumedVolumes,
) -> Result<PodVolumes, PluginError> {
    let mut done = PodVolumes::default();
    let result = assume_all(found, node, objects, assumed, &mut done);
    match result {
        Ok(()) => Ok(done),
        Err(text) => {
            revert(&done, assumed);
            Err(text)
        }
    }
}

fn assume_all(
    found: &PodVolumes,
    node: Name,
    objects: &Objects,
    assumed: &mut AssumedVolumes,
    done: &mut PodVolumes,
) -> Result<(), PluginError> {
    for (volume, claim) in &found.bindings {
        let bound = Arc::new(bound_to(volume, claim));
        if bound != *volume {
            assumed.volumes.assume(objects, bound.clone())?;
        }
        done.bindings.push((bound, claim.clone()));
    }
    for provision in &found.provisions {
        let mut claim = (*provision.claim).clone();
        claim.metadata.annotations.insert(SELECTED_NODE.into(), node.into());
        let claim = Arc::new(claim);
        assumed.claims.assume(objects, claim.clone())?;
        done.provisions.push(super::find::Provision { claim, capacity: None });
    }
    Ok(())
}

/// The volume with the claim as its claimRef.
fn bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> PersistentVolume {
    let mut bound = volume.clone();
    let metadata = &claim.metadata;
    let same = |reference: &ObjectReference| {
        reference.name == metadata.name
            && reference.namespace == metadata.namespace
            && reference.uid == metadata.uid
    };
    if !volume.spec.claim_ref.as_ref().is_some_and(same) {
        bound.spec.claim_ref = Some(ObjectReference {
            api_version: "v1".into(),
            kind: "PersistentVolumeClaim".into(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            field_path: Symbol::EMPTY,
        });
    }
    if !is_bound_to(volume, claim) {
        let annotations = &mut bound.metadata.annotations;
        if annotations.get_str(BOUND_BY_CONTROLLER).is_none() {
            annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
        }
    }
    bound
}

/// Reverts the assumed objects.
pub fn revert(volumes: &PodVolumes, assumed: &mut AssumedVolumes) {
    volumes.bindings.iter().for_each(|(volume, _)| assumed.volumes.restore(volume));
    volumes.provisions.iter().for_each(|provision| assumed.claims.restore(&provision.claim));
}

/// How far the binding of a pod's volumes has progressed.
#[derive(Clone, Default, Debug)]
pub struct BindProgress {
    /// The number of volumes and claims written.
    written: usize,
    /// When the last one was written.
    waiting_since: Option<Time>,
}

/// Writes volumes and claims, then checks that all are bound. Where controllers run, they have
/// `timeout` to bind them.
///
/// # Errors
/// The server's message if a write failed; upstream's if the binding failed.
pub fn bind(
    cx: &mut BindContext<'_>,
    volumes: &PodVolumes,
    progress: &mut BindProgress,
    timeout: Duration,
) -> Poll<Result<(), PluginError>> {
    ready!(write(cx, volumes, &mut progress.written))?;
    let since = *progress.waiting_since.get_or_insert(cx.now);
    match check(cx, volumes) {
        Ok(true) => Poll::Ready(Ok(())),
        Ok(false) if cx.host.others_may_act() && cx.now < since + timeout => Poll::Pending,
        // In a simulation all controllers have finished: what is not bound now stays unbound.
        Ok(false) => Poll::Ready(Err("binding volumes: context deadline exceeded".into())),
        Err(text) => Poll::Ready(Err(format!("binding volumes: {text}").into())),
    }
}

/// Writes the assumed objects. If a write fails, those not yet written are no longer assumed.
fn write(
    cx: &mut BindContext<'_>,
    volumes: &PodVolumes,
    written: &mut usize,
) -> Poll<Result<(), PluginError>> {
    while let Some(object) = nth(volumes, *written) {
        if let Err(error) = ready!(cx.host.update(cx.pod.uid(), object)) {
            revert(&after(volumes, *written), &mut cx.shared.volumes);
            return Poll::Ready(Err(error.into()));
        }
        *written += 1;
    }
    Poll::Ready(Ok(()))
}

/// The object to write at index `at`: volumes first, then claims.
fn nth(volumes: &PodVolumes, at: usize) -> Option<Object> {
    match volumes.bindings.get(at) {
        Some((volume, _)) => Some(Object::PersistentVolume(volume.clone())),
        None => {
            let provision = volumes.provisions.get(at - volumes.bindings.len())?;
            Some(Object::PersistentVolumeClaim(provision.claim.clone()))
        }
    }
}

/// The objects left after `written` writes.
fn after(volumes: &PodVolumes, written: usize) -> PodVolumes {
    let provisioned = written.saturating_sub(volumes.bindings.len());
    PodVolumes {
        bindings: volumes.bindings.iter().skip(written).cloned().collect(),
        provisions: volumes.provisions.iter().skip(provisioned).cloned().collect(),
    }
}

/// Whether all volumes are bound.
///
/// # Errors
/// Upstream's message if the binding can no longer succeed, such as a claimRef that was reset.
fn check(cx: &BindContext<'_>, volumes: &PodVolumes) -> Result<bool, PluginError> {
    let Some(node) = cx.host.get(Kind::Node, NamespacedName::new(Symbol::EMPTY, cx.node)) else {
        let missing = volumes::not_found("node", cx.node);
        return Err(format!("failed to get node \"{}\": {missing}", cx.node).into());
    };
    let pod = cx.pod.key();
    if cx.host.get(Kind::Pod, pod).is_none() {
        let missing = volumes::not_found("pod", pod.name);
        return Err(format!("pod does not exist any more: {missing}").into());
    }
    for (volume, claim) in &volumes.bindings {
        if !check_binding(cx, &node, (volume, claim))? {
            return Ok(false);
        }
    }
    for provision in &volumes.provisions {
        if !check_provision(cx, &node, &provision.claim)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn check_binding(
    cx: &BindContext<'_>,
    node: &Object,
    (volume, claim): (&PersistentVolume, &PersistentVolumeClaim),
) -> Result<bool, PluginError> {
    let failed = |error: PluginError| format!("failed to check binding: {error}");
    let name = volume.metadata.name;
    let missing = || failed(volumes::not_found("persistentvolumes", name).into());
    let volume = get_volume(cx, name).ok_or_else(missing)?;
    let claim = get_claim(cx, claim).map_err(failed)?;
    let reach = check_reach(cx, node, &volume);
    reach.map_err(|text| format!("failed to translate pv to csi: {text}"))??;
    if volume.spec.claim_ref.as_ref().is_none_or(|reference| reference.uid.is_empty()) {
        return Err(format!("ClaimRef got reset for pv \"{}\"", volume.metadata.name).into());
    }
    Ok(is_bound(&claim))
}

fn check_provision(
    cx: &BindContext<'_>,
    node: &Object,
    claim: &PersistentVolumeClaim,
) -> Result<bool, PluginError> {
    let claim =
        get_claim(cx, claim).map_err(|text| format!("failed to check provisioning pvc: {text}"))?;
    let (name, annotations) = (claim.metadata.name, &claim.metadata.annotations);
    if annotations.is_empty() {
        return Err(format!("selectedNode annotation reset for PVC \"{name}\"").into());
    }
    if annotations.get_str(SELECTED_NODE).map(|node| &**node) != Some(&cx.node.text()) {
        return Err(format!("provisioning failed for PVC \"{name}\"").into());
    }
    if !claim.spec.volume_name.is_empty() {
        let Some(volume) = get_volume(cx, claim.spec.volume_name) else { return Ok(false) };
        check_reach(cx, node, &volume)??;
    }
    Ok(is_bound(&claim))
}

fn get_volume(cx: &BindContext<'_>, name: Name) -> Option<Arc<PersistentVolume>> {
    match cx.host.get(Kind::PersistentVolume, NamespacedName::new(Symbol::EMPTY, name)) {
        Some(Object::PersistentVolume(volume)) => Some(volume),
        _ => None,
    }
}

fn get_claim(
    cx: &BindContext<'_>,
    claim: &PersistentVolumeClaim,
) -> Result<Arc<PersistentVolumeClaim>, PluginError> {
    let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
    match cx.host.get(Kind::PersistentVolumeClaim, key) {
        Some(Object::PersistentVolumeClaim(claim)) => Ok(claim),
        _ => Err(format!("persistentvolumeclaims \"{key}\" not found").into()),
    }
}

/// Checks that the volume's node affinity matches the node; the outer error says that it cannot
/// be evaluated.
fn check_reach(
    cx: &BindContext<'_>,
    node: &Object,
    volume: &Arc<PersistentVolume>,
) -> Result<Result<(), PluginError>, PluginError> {
    let Object::Node(node) = node else { return Ok(Ok(())) };
    let csi_node = cx.objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, cx.node));
    let csi_node = csi_node.map(|csi_node| csi_node.as_ref());
    let reached = CandidateVolume::new(volume).reaches_migrated(node, csi_node)?;
    Ok(reached.then_some(()).ok_or_else(|| {
        format!(
            "pv \"{}\" node affinity doesn't match node \"{}\": no matching NodeSelectorTerms",
            volume.metadata.name, cx.node
        )
        .into()
    }))
}
