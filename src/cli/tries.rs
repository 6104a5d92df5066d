//! Pods to try beside those of the input: manifests of pods and workloads.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;

use kubestep_api::{DecodeError, Decoded, Kind, Node, Object, decode};
use kubestep_cluster::workload::{self, ExpandedWorkload, WorkloadInputs};
use kubestep_cluster::{World, load};
use kubestep_source::Manifest;

/// For an option and not for all that follow: a heading of the whole struct would be that of the
/// command's own options behind it.
pub(super) const HEADING: &str = "Pods to try";

/// What is to be tried.
#[derive(Args, Debug, Default)]
pub(super) struct Tries {
    /// Also schedule the pods of this file: a Pod, or a workload (Deployment, ReplicaSet,
    /// StatefulSet, DaemonSet, Job, CronJob), whose pods are made as its controller would; "-" for
    /// standard input; may be repeated
    #[arg(long = "pod", value_name = "FILE", help_heading = HEADING)]
    pub pods: Vec<PathBuf>,
    /// This many replicas of each, instead of the number in the file
    #[arg(long, value_name = "N", requires = "pods", help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub replicas: Option<u32>,
}

/// What was added to the input.
#[derive(Default)]
pub(super) struct AddedObjects {
    pub workloads: Vec<ExpandedWorkload>,
    /// What the user has to know about the objects, one sentence each.
    pub notices: Vec<String>,
}

/// Reads the files and creates in the world what their controllers would.
pub(super) fn add(tries: &Tries, strict: bool, world: &mut World) -> Result<AddedObjects> {
    let replicas = tries.replicas.map(|replicas| replicas as usize);
    let manifests = kubestep_source::manifests(&tries.pods)?;
    let odd: Vec<String> = manifests.iter().flat_map(unexpected_fields).collect();
    if let (Some(first), true) = (odd.first(), strict) {
        bail!("{first}");
    }
    let (mut added, objects) = expand(&manifests, replicas, world)?;
    added.notices.extend(odd);
    if added.workloads.is_empty() && !tries.pods.is_empty() {
        let kinds: Vec<&str> = workload::kinds().collect();
        bail!("--pod: the file has nothing to schedule; it can have {}", kinds.join(", "));
    }
    check_names(&objects, world).context("--pod")?;
    added.notices.extend(load::add(world, objects));
    Ok(added)
}

/// The fields of a manifest that are probably not meant, one sentence each.
fn unexpected_fields(manifest: &Manifest) -> Vec<String> {
    let text = |name: &str| manifest.value.pointer(name).and_then(serde_json::Value::as_str);
    let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name"));
    let sentence = |field: kubestep_source::UnexpectedField| {
        format!("{}: {kind} {}: {field}", manifest.file, name.unwrap_or_default())
    };
    manifest.unexpected_fields().into_iter().map(sentence).collect()
}

/// Creates what the controllers of an input's own workloads would. Gives one sentence each about
/// what is left out.
pub(super) fn create(manifests: &[Manifest], world: &mut World) -> Result<Vec<String>> {
    let (mut added, objects) = expand(manifests, None, world)?;
    check_names(&objects, world)?;
    added.notices.extend(load::add(world, objects));
    Ok(added.notices)
}

/// What the controllers of the manifests would create.
fn expand(
    manifests: &[Manifest],
    replicas: Option<usize>,
    world: &World,
) -> Result<(AddedObjects, Vec<Object>)> {
    let nodes: Vec<Arc<Node>> =
        world.scheduler().cache().nodes().filter_map(|info| info.node.clone()).collect();
    let surroundings = WorkloadInputs { replicas, nodes: &nodes };
    let mut added = AddedObjects::default();
    let mut objects = Vec::new();
    for manifest in manifests {
        let wrong = |error: DecodeError| anyhow::anyhow!("{}: {error}", manifest.file);
        if let Some(workload) = workload::expand(&manifest.value, &surroundings) {
            let workload = workload.map_err(wrong)?;
            added.notices.extend(workload.notices.iter().cloned());
            objects.extend(workload.objects());
            added.workloads.push(workload);
            continue;
        }
        match other(&manifest.value).map_err(wrong)? {
            Decoded::Object(object) => objects.insert(0, object),
            Decoded::Unread(kind) => {
                added.notices.push(format!("{}: not read by a scheduler: {kind}", manifest.file));
            }
        }
    }
    Ok((added, objects))
}

/// An object of another kind: a claim, a service, a priority class.
fn other(value: &serde_json::Value) -> Result<Decoded, DecodeError> {
    decode::decode(decode::Text::Json(&value.to_string()), None)
}

/// A pod that is there already is not replaced.
fn check_names(objects: &[Object], world: &World) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for object in objects {
        let mut object = object.clone();
        kubestep_api::admission::identify(&mut object);
        let key = object.key();
        let name = kubestep_framework::pod::NamespacedName::of(&object);
        let there = key.kind == Kind::Pod && world.api().get(key.kind, name).is_some();
        if there || !seen.insert(key) {
            bail!("{key} already exists; rename the one to try");
        }
    }
    Ok(())
}
