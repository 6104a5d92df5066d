//! Jobs and CronJobs: the pods that run in parallel at the start.

use super::manifest::{WorkloadManifest, owner};
use super::{ExpandedWorkload, WorkloadInputs, named};
use crate::START;
use kubestep_api::admission::derived_uid;
use kubestep_api::{DecodeError, Name, Pod, Uid};

const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The pods that a Job creates at once.
pub(super) fn job(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    pods(manifest, surroundings, "spec", manifest.name.to_owned(), manifest.uid())
}

/// The pods of the Job that a CronJob would start.
pub(super) fn cron_job(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let minutes = START.0 / 60_000_000;
    let name = format!("{}-{minutes}", manifest.name);
    let uid = derived_uid(&format!("Job {}/{name}", manifest.namespace));
    let manifest = WorkloadManifest { template: "spec.jobTemplate.spec.template", ..*manifest };
    pods(&manifest, surroundings, "spec.jobTemplate.spec", name, uid)
}

fn pods(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
    spec: &str,
    name: String,
    uid: Uid,
) -> Result<ExpandedWorkload, DecodeError> {
    let mut pod = manifest.template_pod()?;
    pod.metadata.owner_references = vec![owner("batch/v1", "Job", &name, uid)].into();
    let controller = uid.to_string();
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", controller.as_str()),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", controller.as_str()),
        ("job-name", &name),
    ] {
        pod.metadata.labels.insert(key.into(), Name::new(value));
    }
    let parallel = manifest.count(&format!("{spec}.parallelism"))?.unwrap_or(1);
    let completions = manifest.count(&format!("{spec}.completions"))?.unwrap_or(usize::MAX);
    let suspended = manifest.field(&format!("{spec}.suspend")) == true
        || (spec != "spec" && manifest.field("spec.suspend") == true);
    let mut notices = Vec::new();
    if suspended {
        notices.push(format!("{}: is suspended, but its pods are tried", manifest.title()));
    }
    let indexed = manifest.field(&format!("{spec}.completionMode")) == "Indexed";
    Ok(ExpandedWorkload {
        name: manifest.title(),
        owners: Vec::new(),
        replicas: surroundings.replicas.unwrap_or(parallel.min(completions)),
        can_grow: true,
        notices,
        make: Box::new(move |number| vec![numbered(&pod, &name, number, indexed).into()]),
    })
}

fn numbered(pod: &Pod, job: &str, number: usize, indexed: bool) -> Pod {
    if !indexed {
        return named(pod, &format!("{job}-{}", number + 1));
    }
    let mut pod = named(pod, &format!("{job}-{number}"));
    let index = Name::new(&number.to_string());
    pod.metadata.labels.insert(COMPLETION_INDEX.into(), index);
    pod.metadata.annotations.insert(COMPLETION_INDEX.into(), index.into());
    pod
}
