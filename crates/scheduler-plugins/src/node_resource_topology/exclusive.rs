//! Which containers get resources for themselves, as opposed to a share of what the node has.
//!
//! Upstream: `pkg/noderesourcetopology/resourcerequests`.

use super::align::is_native;
use super::topology::NodeResourceTopology;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Container, Pod, ResourceList};
use kubestep_framework::pod::qos::{QosClass, qos_class};
use kubestep_framework::pod::requests::is_sidecar;

/// Whether a container requests a resource that Kubernetes itself does not have.
pub fn requests_devices(pod: &Pod) -> bool {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let lists = containers.filter_map(|container| container.resources.requests.as_ref());
    lists.flat_map(|list| list.keys()).any(|name| !is_native(&name))
}

/// What the container of a pod of that class has for itself. Of devices only those count that zones
/// of the node have.
pub fn exclusive_requests(
    class: QosClass,
    container: &Container,
    report: &NodeResourceTopology,
) -> ResourceList {
    let mut exclusive = ResourceList::default();
    let requests = container.resources.requests.iter().flat_map(|list| list.iter());
    for (name, amount) in requests {
        let value = amount.value();
        let is_exclusive = match name.as_str() {
            device if !is_native(device) => has_resource(report, name),
            _ if class != QosClass::Guaranteed => false,
            "cpu" => value > 0 && value.wrapping_mul(1000) == amount.milli_value(),
            "memory" => value > 0,
            other => other.starts_with("hugepages-") && value > 0,
        };
        if is_exclusive {
            exclusive.insert(name, amount.clone());
        }
    }
    exclusive
}

fn has_resource(report: &NodeResourceTopology, name: Symbol) -> bool {
    report.zones.iter().flat_map(|zone| &zone.resources).any(|resource| resource.name == name)
}

/// The containers that have resources for themselves while the pod runs.
pub fn exclusive_containers<'a>(
    pod: &'a Pod,
    report: &'a NodeResourceTopology,
) -> impl Iterator<Item = &'a Container> {
    let class = qos_class(pod);
    let sidecars = pod.spec.init_containers.iter().filter(|container| is_sidecar(container));
    let all = sidecars.chain(&pod.spec.containers);
    all.filter(move |container| !exclusive_requests(class, container, report).is_empty())
}
