//! Extended resources backed by DRA: the claim that the plugin creates for them.
//!
//! Upstream: `extendeddynamicresources.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubestep_api::admission::derived_uid;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Container, ContainerExtendedResourceRequest, ContainerRestartPolicy, DeviceAllocationMode,
    DeviceRequest, ExactDeviceRequest, Name, ObjectMeta, OwnerReference, Pod, ResourceClaim,
};
use kubestep_config::Feature;
use kubestep_framework::host::{Host, HostError};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::extended_resources::DEVICE_CLASS_PREFIX;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use kubestep_framework::resource::{Resource, is_extended_name};
use kubestep_framework::status::Status;

use super::post_filter::key;
use super::reserve::FINALIZER;
use super::state::ClaimState;

/// The name of the claim until it is created; it is not a valid object name.
pub(crate) const IN_MEMORY_NAME: &str = "<extended-resources>";
/// Marks the claims that the plugin creates.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// Which request of the claim serves which container and resource.
pub(crate) type Mappings = Vec<ContainerExtendedResourceRequest>;

/// The claim, with all scalar resources that the pod requests.
pub(crate) type ClaimWithScalars = (Arc<ResourceClaim>, Vec<(Symbol, i64)>);

/// The claim for the pod's extended resources if a device class serves any of them, with all
/// scalar resources that the pod requests: the claim that an earlier attempt created, or a
/// claim without requests that exists only in memory.
pub(crate) fn claim_for(cx: &CycleContext<'_>) -> Option<ClaimWithScalars> {
    if !cx.features.enabled(Feature::DRAExtendedResource)
        || cx.objects.extended_resources.is_empty()
    {
        return None;
    }
    let pod = &cx.pod.pod;
    let requests = pod_requests(pod, &RequestOptions::default());
    let served = requests.iter().any(|(name, amount)| {
        !amount.is_zero()
            && is_device_resource(name)
            && cx.objects.extended_resources.class_for(name).is_some()
    });
    if !served {
        return None;
    }
    let existing = cx.shared.claims.all(cx.objects).filter(|claim| is_claim_of(claim, pod));
    let existing = existing.min_by_key(|claim| key(claim)).cloned();
    let claim = existing.unwrap_or_else(|| Arc::new(in_memory_claim(pod)));
    Some((claim, Resource::from_list(&requests).scalars.to_vec()))
}

fn is_device_resource(name: Symbol) -> bool {
    is_extended_name(&name) || name.starts_with(DEVICE_CLASS_PREFIX)
}

fn is_claim_of(claim: &ResourceClaim, pod: &Pod) -> bool {
    let marked = claim.metadata.annotations.get(ANNOTATION.into());
    let is_owner = |owner: &OwnerReference| {
        owner.name == pod.metadata.name
            && owner.controller == Some(true)
            && owner.uid == pod.metadata.uid
    };
    marked.is_some_and(|value| *value == "true")
        && claim.metadata.owner_references.iter().any(is_owner)
}

fn in_memory_claim(pod: &Pod) -> ResourceClaim {
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.metadata.name,
        uid: pod.metadata.uid,
        controller: Some(true),
        ..OwnerReference::default()
    };
    let prefix = format!("{}-extended-resources-", pod.metadata.name);
    let mut metadata = ObjectMeta {
        namespace: pod.metadata.namespace,
        name: IN_MEMORY_NAME.into(),
        // Upstream generates it at random; it must only be unique.
        uid: derived_uid(&format!("{IN_MEMORY_NAME}/{}", pod.metadata.uid)),
        generate_name: prefix.as_str().into(),
        owner_references: vec![owner].into(),
        ..ObjectMeta::default()
    };
    metadata.annotations.insert(ANNOTATION.into(), "true".into());
    ResourceClaim { metadata, ..ResourceClaim::default() }
}

/// The claim with the requests for this node: those for resources that the node does not offer
/// itself. `None` if there are none on this node.
///
/// # Errors
/// The node cannot serve a resource, or the claim is left over from an earlier attempt.
pub(crate) fn claim_on(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
) -> Result<Option<(Arc<ResourceClaim>, Mappings)>, Status> {
    let Some(claim) = state.extended() else { return Ok(None) };
    if !claim.spec.devices.requests.is_empty() {
        return Err(Status::unresolvable("cannot schedule extended resource claim"));
    }
    let mut by_devices = Vec::new();
    for (name, amount) in &state.scalars {
        if *amount == 0 || !is_device_resource(*name) {
            continue;
        }
        let offered = node.allocatable.scalars.iter().find(|(other, _)| other == name);
        let served = cx.objects.extended_resources.class_for(*name).is_some();
        if served && offered.is_none_or(|(_, amount)| *amount == 0) {
            by_devices.push(*name);
        } else if offered.is_none() {
            return Err(Status::unresolvable("cannot fit resource"));
        }
    }
    if (state.has_no_user_claims() && by_devices.is_empty()) || claim.status.allocation.is_some() {
        return Ok(None);
    }
    let (requests, mappings) = requests_and_mappings(cx, &by_devices);
    let mut claim = ResourceClaim::clone(claim);
    claim.spec.devices.requests = requests;
    Ok(Some((Arc::new(claim), mappings)))
}

/// The requests for `resources` (sorted), and the containers that they serve. Each request is
/// named `container-<index>-request-<k>`, as upstream.
fn requests_and_mappings(
    cx: &CycleContext<'_>,
    resources: &[Symbol],
) -> (Vec<DeviceRequest>, Mappings) {
    let (mut requests, mut mappings) = (Vec::new(), Vec::new());
    for resource in resources {
        if let Some(class) = cx.objects.extended_resources.class_for(*resource) {
            let of = ClassRequest { resource: *resource, class: class.metadata.name };
            let (more, mapped) = of.requests(&cx.pod.pod);
            requests.extend(more);
            mappings.extend(mapped);
        }
    }
    requests.sort_by_key(|request| request.name);
    (requests, mappings)
}

/// A resource and the class that serves it.
struct ClassRequest {
    resource: Symbol,
    class: Name,
}

impl ClassRequest {
    /// App containers and sidecars get devices of their own. Other init containers reuse devices of
    /// later containers, and share one request for what they need beyond those.
    fn requests(&self, pod: &Pod) -> (Vec<DeviceRequest>, Mappings) {
        let init = pod.spec.init_containers.len();
        let containers: Vec<&Container> =
            pod.spec.init_containers.iter().chain(&pod.spec.containers).collect();
        let ends = |at: &usize| {
            let policy = containers[*at].restart_policy;
            *at < init && policy != Some(ContainerRestartPolicy::Always)
        };
        let (short, long): (Vec<usize>, Vec<usize>) = (0..containers.len()).partition(ends);
        let mut lasting: Vec<Option<DeviceRequest>> = vec![None; containers.len()];
        let mut mappings = Vec::new();
        for at in long {
            let (request, mapped) = self.of_container(at, containers[at], &[]);
            lasting[at] = request;
            mappings.extend(mapped);
        }
        let mut largest: Option<DeviceRequest> = None;
        let (mut names, mut passing) = (BTreeSet::new(), Vec::new());
        for at in short {
            let (request, mapped) = self.of_container(at, containers[at], &lasting[at..]);
            passing.extend(mapped);
            let Some(request) = request else { continue };
            names.insert(request.name);
            if largest.as_ref().is_none_or(|largest| count(largest) < count(&request)) {
                largest = Some(request);
            }
        }
        if let Some(largest) = &largest {
            let merged = passing.iter_mut().filter(|mapping| names.contains(&mapping.request_name));
            merged.for_each(|mapping| mapping.request_name = largest.name);
        }
        mappings.extend(passing);
        (largest.into_iter().chain(lasting.into_iter().flatten()).collect(), mappings)
    }

    /// The demand of a container beyond the `reusable` requests, and the requests that it uses.
    fn of_container(
        &self,
        at: usize,
        container: &Container,
        reusable: &[Option<DeviceRequest>],
    ) -> (Option<DeviceRequest>, Mappings) {
        let requests = container.resources.requests.as_ref();
        let wanted = requests.and_then(|requests| requests.get(self.resource)?.as_i64());
        let (Some(requests), Some(wanted)) = (requests, wanted.filter(|wanted| *wanted != 0))
        else {
            return (None, Vec::new());
        };
        let mapping = |request: Symbol| ContainerExtendedResourceRequest {
            container_name: container.name,
            resource_name: self.resource,
            request_name: request,
        };
        let (mut sum, mut mappings) = (0, Vec::new());
        for request in reusable.iter().flatten() {
            sum += count(request);
            mappings.push(mapping(request.name));
            if sum >= wanted {
                return (None, mappings);
            }
        }
        let mut names: Vec<Symbol> = requests.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let place = names.iter().position(|name| *name == self.resource).unwrap_or(0);
        let name = Symbol::new(&format!("container-{at}-request-{place}"));
        mappings.push(mapping(name));
        let exactly = ExactDeviceRequest {
            device_class_name: self.class,
            allocation_mode: DeviceAllocationMode::ExactCount,
            count: wanted - sum,
            ..ExactDeviceRequest::default()
        };
        let request = DeviceRequest { name, exactly: Some(exactly), first_available: Vec::new() };
        (Some(request), mappings)
    }
}

fn count(request: &DeviceRequest) -> i64 {
    request.exactly.as_ref().map_or(0, |exactly| exactly.count)
}

/// Deletes a claim that exists on the server; its finalizer is removed first.
///
/// # Errors
/// The write failed.
pub fn delete_claim(claim: &ResourceClaim, host: &mut dyn Host) -> Result<(), HostError> {
    let deleted = host.delete_claim(claim, Symbol::new(FINALIZER));
    deleted.map_err(|error| error.context(format!("update resourceclaim {}", key(claim))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::DeviceAllocationMode::ExactCount;
    use kubestep_framework::testing::{self, Cluster};

    /// Containers as `name=amount` of example.com/gpu; init containers first, sidecars with `*`.
    fn requests(init: &[&str], main: &[&str]) -> (Vec<String>, Vec<String>) {
        let container = |text: &&str| -> Value {
            let (name, amount) = text.split_once('=').unwrap();
            let mut json = json!({
                "name": name.trim_end_matches('*'),
                "resources": {"requests": {"cpu": "1", "example.com/gpu": amount}},
            });
            if name.ends_with('*') {
                json["restartPolicy"] = json!("Always");
            }
            json
        };
        let list = |texts: &[&str]| texts.iter().map(container).collect::<Value>();
        let spec = json!({"initContainers": list(init), "containers": list(main)});
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let wanted = ClassRequest { resource: "example.com/gpu".into(), class: "gpu".into() };
        let (mut requests, mappings) = wanted.requests(&pod);
        requests.sort_by_key(|request| request.name);
        let modes = requests.iter().flat_map(|request| &request.exactly);
        assert!(modes.map(|exactly| exactly.allocation_mode).all(|mode| mode == ExactCount));
        (
            requests.iter().map(|request| format!("{}={}", request.name, count(request))).collect(),
            mappings.iter().map(|m| format!("{}: {}", m.container_name, m.request_name)).collect(),
        )
    }

    #[test]
    fn a_claim_in_memory_is_that_of_its_pod() {
        let pod = |name: &str, uid: &str| -> Pod {
            testing::decoded(json!({"metadata": {"name": name, "namespace": "d", "uid": uid}}))
        };
        let (own, claim) = (pod("p", "1"), in_memory_claim(&pod("p", "1")));
        assert!(is_claim_of(&claim, &own));
        assert!(!is_claim_of(&claim, &pod("p", "2")) && !is_claim_of(&claim, &pod("q", "1")));
        let metadata = &claim.metadata;
        let names = (metadata.namespace, metadata.name, metadata.generate_name.clone());
        assert_eq!(names, ("d".into(), IN_MEMORY_NAME.into(), "p-extended-resources-".into()));
        assert_ne!(metadata.uid, in_memory_claim(&pod("p", "2")).metadata.uid);
        let owner = &metadata.owner_references[0];
        assert_eq!((owner.api_version, owner.kind), ("v1".into(), "Pod".into()));
    }

    #[test]
    fn a_claim_is_needed_for_amounts_of_a_class_alone() {
        let mut cluster = Cluster::default();
        cluster.objects.insert(testing::object(json!({
            "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        })));
        let scalars = |list: Value| {
            let container = json!({"name": "main", "resources": {"requests": list}});
            let pod = testing::info_of(json!({
                "metadata": {"name": "p"}, "spec": {"containers": [container]},
            }));
            claim_for(&cluster.cx(&pod)).map(|(_, scalars)| scalars)
        };
        let gpus = scalars(json!({"example.com/gpu": "2"}));
        assert_eq!(gpus, Some(vec![("example.com/gpu".into(), 2)]));
        assert_eq!(scalars(json!({"example.com/gpu": "0"})), None);
        assert_eq!(scalars(json!({"example.com/other": "2", "cpu": "1"})), None);
    }

    #[test]
    fn containers_that_stay_have_requests_of_their_own() {
        let (requests, mappings) = requests(&["side*=1"], &["a=2", "b=0", "c=1"]);
        assert_eq!(
            requests,
            ["container-0-request-1=1", "container-1-request-1=2", "container-3-request-1=1"]
        );
        assert_eq!(
            mappings,
            ["side: container-0-request-1", "a: container-1-request-1", "c: container-3-request-1"]
        );
    }

    #[test]
    fn init_containers_use_what_later_containers_have() {
        let (requests, mappings) = requests(&["init=3"], &["a=2", "b=2"]);
        assert_eq!(requests, ["container-1-request-1=2", "container-2-request-1=2"]);
        assert_eq!(
            mappings,
            [
                "a: container-1-request-1",
                "b: container-2-request-1",
                "init: container-1-request-1",
                "init: container-2-request-1",
            ]
        );
    }

    #[test]
    fn init_containers_share_what_they_need_beyond_that() {
        // The sidecar starts before the second init container, which cannot reuse its device.
        let (requests, mappings) = requests(&["first=4", "side*=1", "second=4"], &["a=1"]);
        assert_eq!(
            requests,
            ["container-1-request-1=1", "container-2-request-1=3", "container-3-request-1=1"]
        );
        assert_eq!(
            mappings,
            [
                "side: container-1-request-1",
                "a: container-3-request-1",
                "first: container-1-request-1",
                "first: container-3-request-1",
                "first: container-2-request-1",
                "second: container-3-request-1",
                "second: container-2-request-1",
            ]
        );
    }
}
