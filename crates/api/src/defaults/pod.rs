//! Defaults of pods: requests from limits, pod-level resources, ports, names.

use super::{claim_spec_defaults, round_up, set_if_empty};
use crate::intern::Symbol;
use crate::{
    Container, ContainerRestartPolicy, Pod, Protocol, Quantity, ResourceList, ResourceRequirements,
    RestartPolicy, Volume,
};

const DEFAULT_SCHEDULER: &str = "default-scheduler";
const GRACE_PERIOD_SECONDS: i64 = 30;
const HUGE_PAGES: &str = "hugepages-";

pub(super) fn apply(pod: &mut Pod) {
    let host_network = pod.spec.host_network;
    each_container(pod, |container| requests_from_limits(&mut container.resources));
    pod_level_limits(pod);
    pod_level_requests(pod);
    each_container(pod, |container| {
        ports(container, host_network);
        round(&mut container.resources);
    });
    let spec = &mut pod.spec;
    set_if_empty(&mut spec.scheduler_name, DEFAULT_SCHEDULER);
    if spec.restart_policy.is_unset() {
        spec.restart_policy = RestartPolicy::Always;
    }
    spec.termination_grace_period_seconds.get_or_insert(GRACE_PERIOD_SECONDS);
    spec.overhead.iter_mut().for_each(round_up);
    spec.resources.iter_mut().for_each(|resources| round(resources));
    spec.volumes.update(|volumes| volumes.iter_mut().for_each(volume));
    if pod.status.phase.is_unset() {
        // The registry's default, not the decoder's: a created pod is pending.
        pod.status.phase = crate::PodPhase::Pending;
    }
    statuses(pod);
}

/// Containers are shared by many pods, before and after the change.
fn each_container(pod: &mut Pod, change: impl Fn(&mut Container)) {
    for containers in [&mut pod.spec.containers, &mut pod.spec.init_containers] {
        containers.update(|containers| containers.iter_mut().for_each(&change));
    }
}

fn requests_from_limits(resources: &mut ResourceRequirements) {
    let Some(limits) = &resources.limits else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits.iter() {
        if !requests.contains_key(name) {
            requests.insert(name, limit.clone());
        }
    }
}

fn round(resources: &mut ResourceRequirements) {
    resources.requests.iter_mut().for_each(round_up);
    resources.limits.iter_mut().for_each(round_up);
}

fn ports(container: &mut Container, host_network: bool) {
    for port in &mut container.ports {
        if port.protocol.is_unset() {
            port.protocol = Protocol::Tcp;
        }
        if host_network && port.host_port == 0 {
            port.host_port = port.container_port;
        }
    }
}

fn volume(volume: &mut Volume) {
    if let Some(disk) = &mut volume.azure_disk {
        disk.kind.get_or_insert_with(|| "Shared".into());
    }
    if let Some(rbd) = &mut volume.rbd {
        set_if_empty(&mut rbd.pool, "rbd");
    }
    let ephemeral = volume.ephemeral.as_mut().and_then(|e| e.volume_claim_template.as_mut());
    if let Some(template) = ephemeral {
        claim_spec_defaults(&mut template.spec);
    }
}

fn statuses(pod: &mut Pod) {
    let status = &mut pod.status;
    for statuses in [&mut status.container_statuses, &mut status.init_container_statuses] {
        statuses.update(|statuses| {
            for container in statuses {
                container.allocated_resources.iter_mut().for_each(round_up);
                container.resources.iter_mut().for_each(round);
            }
        });
    }
    status.allocated_resources.iter_mut().for_each(round_up);
    status.resources.iter_mut().for_each(|resources| round(resources));
}

/// Limits for huge pages that only containers have are set for the pod too.
fn pod_level_limits(pod: &mut Pod) {
    let Some(resources) = &pod.spec.resources else { return };
    if is_empty(&resources.limits) && is_empty(&resources.requests) {
        return;
    }
    let aggregate = aggregate(pod, |resources| resources.limits.as_ref());
    let Some(resources) = &mut pod.spec.resources else { return };
    for (name, limit) in aggregate.iter().filter(|(name, _)| name.starts_with(HUGE_PAGES)) {
        let requested = resources.request(name).is_some();
        if !requested && resources.limit(name).is_none() {
            resources.limits.get_or_insert_default().insert(name, limit.clone());
        }
    }
}

/// Sets the requests of a pod with pod-level limits: the aggregated requests of its containers,
/// otherwise its limits.
fn pod_level_requests(pod: &mut Pod) {
    let Some(resources) = &pod.spec.resources else { return };
    if is_empty(&resources.limits) {
        return;
    }
    let aggregate = aggregate(pod, |resources| resources.requests.as_ref());
    let Some(resources) = &mut pod.spec.resources else { return };
    let mut requests = resources.requests.take().unwrap_or_default();
    let limits = resources.limits.iter().flat_map(|limits| limits.iter());
    let overcommittable = aggregate.iter().filter(|(name, _)| !name.starts_with(HUGE_PAGES));
    for (name, amount) in overcommittable.chain(limits) {
        if is_pod_level_resource(name) && !requests.contains_key(name) {
            requests.insert(name, amount.clone());
        }
    }
    resources.requests = (!requests.is_empty()).then_some(requests);
}

fn is_empty(amounts: &Option<ResourceList>) -> bool {
    amounts.as_ref().is_none_or(|amounts| amounts.is_empty())
}

fn is_pod_level_resource(name: Symbol) -> bool {
    matches!(name.as_str(), "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The aggregated amounts of the containers: the sum of those that run at the same time, and at
/// least the maximum over the init containers, which run one after the other.
fn aggregate(
    pod: &Pod,
    amounts: impl Fn(&ResourceRequirements) -> Option<&ResourceList>,
) -> ResourceList {
    let (mut total, mut sidecars, mut highest) = Default::default();
    for container in &pod.spec.containers {
        add(&mut total, amounts(&container.resources));
    }
    for container in &pod.spec.init_containers {
        let own = amounts(&container.resources);
        if container.restart_policy == Some(ContainerRestartPolicy::Always) {
            add(&mut total, own);
            add(&mut sidecars, own);
            raise(&mut highest, &sidecars);
        } else {
            let mut step = sidecars.clone();
            add(&mut step, own);
            raise(&mut highest, &step);
        }
    }
    raise(&mut total, &highest);
    total
}

fn add(total: &mut ResourceList, amounts: Option<&ResourceList>) {
    for (name, amount) in amounts.iter().flat_map(|amounts| amounts.iter()) {
        match total.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => drop(total.insert(name, amount.clone())),
        }
    }
}

fn raise(total: &mut ResourceList, amounts: &ResourceList) {
    for (name, amount) in amounts.iter() {
        let larger = |present: &Quantity| amount > present;
        if total.get(name).is_none_or(larger) {
            total.insert(name, amount.clone());
        }
    }
}
