//! Queueing hints: which events can make a pod schedulable that did not fit.

use super::super::{incoming_request, is_served_by_devices};
use super::check::{Demand, Exempt};
use crate::is_placed;
use kubestep_api::intern::Symbol;
use kubestep_api::{Node, Pod};
use kubestep_config::Feature;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::objects::extended_resources::implicit_resource;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use kubestep_framework::resource::{Resource, is_scalar_name};

/// A pod was deleted or reduced its requests.
pub(crate) fn after_pod_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    Ok(QueueingHint::queue_if(match objects.pods()? {
        (Some(deleted), None) => is_placed(deleted, cx.features, Switch::FitHintCountsNominated),
        (Some(old), Some(new)) => frees_something(cx, pod, old, new),
        _ => true,
    }))
}

/// Whether a change of another pod, or of the pod itself, frees a resource that the pod requests.
fn frees_something(cx: &QueueContext<'_>, pod: &PodInfo, old: &Pod, new: &Pod) -> bool {
    if !cx.features.enabled(Feature::InPlacePodVerticalScaling) {
        return false;
    }
    let is_own = new.metadata.uid == pod.uid();
    if is_own && cx.features.has(Switch::FitHintComparesRequests) {
        return true;
    }
    if !is_own && new.spec.node_name.is_empty() {
        return false;
    }
    let options = RequestOptions::with_status(cx.features);
    let before = Resource::from_list(&pod_requests(old, &options));
    let after = Resource::from_list(&pod_requests(new, &options));
    let wanted = pod_requests(&pod.pod, &options);
    wanted.iter().any(|(name, quantity)| {
        let counted = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || is_scalar_name(&name);
        counted && !quantity.is_zero() && before.amount(name) > after.amount(name)
    })
}

/// A node was added, or its allocatable resources changed.
pub(crate) fn after_node_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (old, new) = objects.nodes()?;
    let Some(new) = new else { return Ok(QueueingHint::Skip) };
    let demand = Demand::new(cx, pod, &Exempt::default());
    if !demand.lacking(&empty_node(new)).is_none() {
        return Ok(QueueingHint::Skip);
    }
    let Some(old) = old else { return Ok(QueueingHint::Queue) };
    if !cx.features.has(Switch::FitHintComparesRequests) {
        return Ok(QueueingHint::Queue);
    }
    Ok(QueueingHint::queue_if(offers_more(cx, &incoming_request(pod, cx.features), old, new)))
}

fn empty_node(node: &Node) -> NodeInfo {
    let mut info = NodeInfo::new(NodeId(0), node.metadata.name);
    info.allocatable = allocatable(node);
    info
}

fn allocatable(node: &Node) -> Resource {
    node.status.allocatable.as_ref().map(Resource::from_list).unwrap_or_default()
}

/// Whether the node offers more of a requested resource, or more pods.
fn offers_more(cx: &QueueContext<'_>, request: &Resource, old: &Node, new: &Node) -> bool {
    let (old, new) = (allocatable(old), allocatable(new));
    if new.allowed_pods > old.allowed_pods {
        return true;
    }
    let rose = |requested: i64, old: i64, new: i64| requested > 0 && new > old;
    rose(request.milli_cpu, old.milli_cpu, new.milli_cpu)
        || rose(request.memory, old.memory, new.memory)
        || rose(request.ephemeral_storage, old.ephemeral_storage, new.ephemeral_storage)
        || request.scalars.iter().filter(|(_, amount)| *amount != 0).any(|(name, _)| {
            let (before, after) = (old.scalar(*name), new.scalar(*name));
            after > before || (after <= 0 && is_served_by_devices(cx, *name))
        })
}

/// A device class was added or changed.
pub(crate) fn after_class_change(
    _: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (old, new) = objects.device_classes()?;
    let Some(new) = new else { return Ok(QueueingHint::Skip) };
    let requests = pod_requests(&pod.pod, &RequestOptions::default());
    let wants = |name: Symbol| requests.contains_key(name);
    let resource = new.spec.extended_resource_name;
    if let Some(old) = old {
        if old.spec.extended_resource_name.unwrap_or_default() == resource.unwrap_or_default() {
            return Ok(QueueingHint::Skip);
        }
    } else if wants(implicit_resource(new)) {
        return Ok(QueueingHint::Queue);
    }
    Ok(QueueingHint::queue_if(resource.is_some_and(wants)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::node_resources::fit::build;
    use kubestep_api as api;
    use kubestep_api::Object;
    use kubestep_config::{Feature, ProfileArgs};
    use kubestep_framework::events::{EventObjects, EventResource, QueueingHint};
    use kubestep_framework::testing::{
        Cluster, decoded, info_of, list, plugin, sized_node, sized_pod,
    };

    fn hint(
        cluster: &Cluster,
        waiting: Value,
        old: Option<Object>,
        new: Option<Object>,
    ) -> QueueingHint {
        let plugin = plugin(build, &ProfileArgs::default());
        cluster.hint(&plugin, &info_of(waiting), old, new)
    }

    fn pod_hint(waiting: Value, old: Option<Value>, new: Option<Value>) -> QueueingHint {
        let pod = |json: Value| Object::from(decoded::<api::Pod>(json));
        let (old, new) = (old.map(pod), new.map(pod));
        hint(&Cluster::default(), waiting, old, new)
    }

    #[test]
    fn a_deleted_pod_counts_if_it_had_a_node_or_a_nomination() {
        let waiting = || sized_pod("p", "", &["main cpu=1"]);
        let other = |node: &str| sized_pod("q", node, &["main cpu=1"]);
        assert_eq!(pod_hint(waiting(), Some(other("n")), None), QueueingHint::Queue);
        assert_eq!(pod_hint(waiting(), Some(other("")), None), QueueingHint::Skip);
        let mut nominated = other("");
        nominated["status"] = json!({"nominatedNodeName": "n"});
        assert_eq!(pod_hint(waiting(), Some(nominated), None), QueueingHint::Queue);
    }

    #[test]
    fn a_smaller_pod_counts_if_it_frees_what_is_requested() {
        let hint = |wants: &str, node: &str, old: &str, new: &str| {
            let sized = |text| sized_pod("q", node, &[&format!("main {text}")]);
            let waiting = sized_pod("p", "", &[&format!("main {wants}")]);
            pod_hint(waiting, Some(sized(old)), Some(sized(new)))
        };
        assert_eq!(hint("cpu=1", "n", "cpu=2", "cpu=1"), QueueingHint::Queue);
        assert_eq!(hint("cpu=1", "", "cpu=2", "cpu=1"), QueueingHint::Skip);
        assert_eq!(hint("cpu=1", "n", "memory=2", "memory=1"), QueueingHint::Skip);
        assert_eq!(hint("memory=1", "n", "memory=2", "memory=1"), QueueingHint::Queue);
        assert_eq!(hint("cpu=0", "n", "cpu=2", "cpu=1"), QueueingHint::Skip);
        let storage = "ephemeral-storage=2";
        assert_eq!(hint("ephemeral-storage=1", "n", storage, ""), QueueingHint::Queue);
        assert_eq!(
            hint("example.com/x=1", "n", "example.com/x=2", "example.com/x=1"),
            QueueingHint::Queue
        );
        // `storage` is not a resource that nodes count.
        assert_eq!(hint("storage=1", "n", "storage=2", "storage=1"), QueueingHint::Skip);
        let itself = |cpu| sized_pod("p", "", &[&format!("main cpu={cpu}")]);
        assert_eq!(pod_hint(itself(1), Some(itself(2)), Some(itself(1))), QueueingHint::Queue);
        let whole = |name: &str, node: &str, requests: &str| {
            let mut json = sized_pod(name, node, &["main"]);
            json["spec"]["resources"] = json!({"requests": list(requests)});
            json
        };
        let hint = |old: &str, new: &str| {
            let (old, new) = (whole("q", "n", old), whole("q", "n", new));
            pod_hint(whole("p", "", "cpu=1"), Some(old), Some(new))
        };
        assert_eq!(hint("cpu=2", "cpu=1"), QueueingHint::Queue);
        assert_eq!(hint("memory=2", "memory=1"), QueueingHint::Skip);
    }

    fn node_hint(cluster: &Cluster, wants: &str, old: Option<&str>, new: &str) -> QueueingHint {
        let node = |text: &str| Object::from(decoded::<api::Node>(sized_node(0, text)));
        let waiting = sized_pod("p", "", &[&format!("main {wants}")]);
        hint(cluster, waiting, old.map(node), Some(node(new)))
    }

    #[test]
    fn a_node_counts_if_the_pod_fits_it_empty_and_it_offers_more() {
        let cluster = Cluster::default();
        let wants = "memory=2 example.com/a=1";
        for (wants, old, new, expected) in [
            ("memory=2", None, "pods=1 memory=1", QueueingHint::Skip),
            ("memory=2", None, "memory=2", QueueingHint::Skip),
            ("example.com/a=1", None, "pods=1 example.com/b=1", QueueingHint::Skip),
            (wants, None, "pods=1 memory=4 example.com/a=2", QueueingHint::Queue),
            (
                wants,
                Some("pods=1 memory=2 example.com/a=2"),
                "pods=1 memory=2 example.com/a=1 example.com/b=2",
                QueueingHint::Skip,
            ),
            (
                wants,
                Some("pods=1 memory=2 example.com/a=1"),
                "pods=1 memory=2 example.com/a=2",
                QueueingHint::Queue,
            ),
            (
                wants,
                Some("pods=1 memory=4 example.com/a=2"),
                "pods=1 memory=1 example.com/a=2",
                QueueingHint::Skip,
            ),
            (
                wants,
                Some("pods=1 memory=1 example.com/a=2"),
                "pods=1 memory=4 example.com/a=2",
                QueueingHint::Queue,
            ),
            ("", Some("pods=1 cpu=1 memory=1"), "pods=1 cpu=2 memory=2", QueueingHint::Skip),
            ("", Some("pods=1 cpu=1"), "pods=2 cpu=1", QueueingHint::Queue),
            ("cpu=2m", Some("pods=1 cpu=1 memory=1"), "pods=1 cpu=1 memory=5", QueueingHint::Skip),
            (
                "cpu=2m ephemeral-storage=1",
                Some("pods=1 cpu=1 ephemeral-storage=1"),
                "pods=1 cpu=1 ephemeral-storage=2",
                QueueingHint::Queue,
            ),
        ] {
            assert_eq!(node_hint(&cluster, wants, old, new), expected, "{wants} {old:?} {new}");
        }
    }

    fn class(name: &str, resource: Option<&str>) -> Object {
        Object::from(decoded::<api::DeviceClass>(
            json!({"metadata": {"name": name}, "spec": {"extendedResourceName": resource}}),
        ))
    }

    #[test]
    fn a_node_without_the_resource_counts_where_devices_serve_it() {
        let mut cluster = Cluster::default();
        cluster.objects.insert(class("gpu", Some("example.com/gpu")));
        let hint = |cluster: &Cluster, old, new| {
            node_hint(cluster, "example.com/gpu=2 cpu=1m", Some(old), new)
        };
        assert_eq!(hint(&cluster, "pods=1 cpu=1", "pods=1 cpu=1"), QueueingHint::Queue);
        let zero = "pods=1 cpu=1 example.com/gpu=0";
        assert_eq!(hint(&cluster, zero, zero), QueueingHint::Queue);
        let fewer = "pods=1 cpu=1 example.com/gpu=2";
        assert_eq!(hint(&cluster, "pods=1 cpu=1 example.com/gpu=4", fewer), QueueingHint::Skip);
        cluster.features = cluster.features.with(Feature::DRAExtendedResource, false);
        assert_eq!(hint(&cluster, zero, zero), QueueingHint::Skip);
    }

    #[test]
    fn a_device_class_counts_if_it_comes_to_serve_what_is_requested() {
        let gpu = Some("example.com/gpu");
        let implicit = "deviceclass.resource.kubernetes.io/gpuclass=1";
        for (wants, old, new, expected) in [
            ("memory=2", Some(class("c", None)), class("c", None), QueueingHint::Skip),
            ("example.com/gpu=1", Some(class("c", gpu)), class("c", gpu), QueueingHint::Skip),
            (implicit, None, class("gpuclass", gpu), QueueingHint::Queue),
            (implicit, None, class("other", gpu), QueueingHint::Skip),
            ("example.com/other=1", None, class("c", gpu), QueueingHint::Skip),
            (implicit, Some(class("gpuclass", None)), class("gpuclass", gpu), QueueingHint::Skip),
            ("example.com/gpu=1", None, class("c", gpu), QueueingHint::Queue),
            (
                "example.com/gpu=1",
                Some(class("c", Some("example.com/x"))),
                class("c", gpu),
                QueueingHint::Queue,
            ),
            ("example.com/gpu=1", Some(class("c", gpu)), class("c", None), QueueingHint::Skip),
        ] {
            let waiting = sized_pod("p", "", &[&format!("main {wants}")]);
            let text = format!("{wants} {old:?} {new:?}");
            let hint = hint(&Cluster::default(), waiting, old, Some(new));
            assert_eq!(hint, expected, "{text}");
        }
    }

    #[test]
    fn objects_of_another_kind_are_an_error() {
        let fit = plugin(build, &ProfileArgs::default());
        let cluster = Cluster::default();
        let objects = EventObjects { old: None, new: Some(class("c", None)) };
        let waiting = info_of(sized_pod("p", "", &["main"]));
        let events = fit.events().unwrap();
        let of_nodes = events.iter().find(|one| one.event.resource == EventResource::Node);
        let hint = of_nodes.and_then(|registration| registration.hint.clone()).unwrap();
        let error = hint(&cluster.queue(), &waiting, &objects).unwrap_err();
        assert_eq!(error.to_string(), "expected Node, but got DeviceClass");
    }
}
