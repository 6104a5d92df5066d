//! Pods that do not exist yet: no scheduler sees them, and only the reports of controllers say why.

use std::collections::BTreeMap;

use hashbrown::HashSet;
use kubestep_api::intern::Symbol;
use kubestep_api::words::{count, span};
use kubestep_api::{Event, KueueWorkload, Name, OwnerReference, Time};
use kubestep_cluster::World;

use crate::why;

/// The longest age of an event that still counts: API servers keep events for an hour.
const EVENT_AGE: i64 = 3_600 * 1_000_000;

/// One sentence for each object whose pods, or which itself, was not created.
pub fn notices(world: &World) -> Vec<String> {
    let reports = world.controllers();
    let owners = owners_of_pods(world);
    let workloads = reports.workloads.iter().filter_map(|workload| {
        let owner = job_of(workload).filter(|owner| !owners.contains(&key(workload, owner)))?;
        Some(not_admitted(workload, owner, world.now()))
    });
    let suspended = reports.job_sets.iter().filter(|set| set.spec.suspend == Some(true));
    let job_sets = suspended.map(|set| {
        let name = &set.metadata;
        format!(
            "JobSet {}/{}: it is suspended, so its pods do not exist",
            name.namespace, name.name
        )
    });
    let rejections = rejections(&reports.events, world.now());
    workloads.chain(job_sets).chain(rejections).collect()
}

/// Namespace, kind and name of each owner that has a pod.
fn owners_of_pods(world: &World) -> HashSet<(Symbol, Symbol, Name)> {
    let pods = world.api().objects().pods.values();
    let owned = pods.flat_map(|pod| {
        let owners = pod.metadata.owner_references.iter();
        owners.map(|owner| (pod.metadata.namespace, owner.kind, owner.name))
    });
    owned.collect()
}

fn key(workload: &KueueWorkload, owner: &OwnerReference) -> (Symbol, Symbol, Name) {
    (workload.metadata.namespace, owner.kind, owner.name)
}

/// The job of a Workload that Kueue keeps suspended; single pods exist, gated.
fn job_of(workload: &KueueWorkload) -> Option<&OwnerReference> {
    if workload.is("Admitted") || workload.is("Finished") {
        return None;
    }
    workload.metadata.owner_references.iter().find(|owner| owner.kind != "Pod")
}

fn not_admitted(workload: &KueueWorkload, owner: &OwnerReference, now: Time) -> String {
    let pods: i64 = workload.spec.pod_sets.iter().map(|set| set.count).sum();
    let pods = count(usize::try_from(pods).unwrap_or_default(), "pod");
    let why::WorkloadGate { text, advice } = why::waiting(workload, now);
    format!(
        "{} {}/{}: its {pods} do not exist yet: {text}; {advice}",
        owner.kind, workload.metadata.namespace, owner.name
    )
}

/// The last event of each object, unless it is old.
fn rejections(events: &[Event], now: Time) -> Vec<String> {
    let mut last: BTreeMap<(Symbol, Symbol, Name), (Time, &Event)> = BTreeMap::new();
    for event in events {
        let object = &event.involved_object;
        let seen = event.last_seen().unwrap_or(now);
        let entry = last.entry((object.kind, object.namespace, object.name));
        let known = entry.or_insert((seen, event));
        if seen >= known.0 {
            *known = (seen, event);
        }
    }
    let fresh = last.into_values().filter(|(seen, _)| now.0 - seen.0 <= EVENT_AGE);
    fresh.map(|(seen, event)| rejection(event, seen, now)).collect()
}

fn rejection(event: &Event, seen: Time, now: Time) -> String {
    let object = &event.involved_object;
    let what = match event.reason.as_str() {
        "ProvisioningFailed" => "no volume was provisioned",
        "FailedResourceClaimCreation" => "a ResourceClaim was not created",
        _ => "a pod was not created",
    };
    let ago = match now.0 - seen.0 {
        ..=0 => String::new(),
        age => format!(" {} ago", span(age)),
    };
    format!("{} {}/{}: {what}{ago}: {}", object.kind, object.namespace, object.name, event.message)
}
