//! Small clusters for the engine's unit tests: objects written as JSON or built in one line,
//! a snapshot and a context made of them, profiles of chosen plugins, a host that only
//! writes down what it is asked.
//!
//! The usual test: a [`Cluster`] of [`node`]s and [`pod`]s, a [`framework`] of the plugins
//! concerned, and [`Cluster::cx`] for the pod in question.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // for tests only

use std::sync::Arc;
use std::task::Poll;

use hashbrown::HashMap;
use serde_json::{Value, json};

use crate::api::{
    Condition, Kind, Node, NodeAllocatableResourceClaimStatus, Object, Pod,
    PodExtendedResourceClaimStatus, PodPhase, Quantity, Time,
};
use crate::config::{
    ExtensionPoint, FeatureGates, Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile,
};
use crate::engine::framework::nominated::NominatedPods;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::framework::registry::Registry;
use crate::engine::framework::runtime::Framework;
use crate::engine::framework::shared::Shared;
use crate::engine::host::{ApiEvent, ExtenderCall, Host, PodStatusPatch};
use crate::engine::node::{ImageState, NodeId, NodeInfo};
use crate::engine::objects::Objects;
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::snapshot::Snapshot;
use crate::intern::Symbol;

/// `namespace/name` as a key; without a slash the namespace is `default`.
pub fn key(text: &str) -> NamespacedName {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    NamespacedName::new(namespace.into(), name.into())
}

/// An object of any kind, written as the API has it (`kind` included).
pub fn object(json: Value) -> Object {
    let kind = Kind::by_name(json["kind"].as_str().unwrap()).unwrap();
    Object::deserialize_as(kind, json).unwrap()
}

/// A node with 4 CPU, 8Gi memory and room for 110 pods.
pub fn node(name: &str) -> Node {
    let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources},
    }))
    .unwrap()
}

/// A pod in `default` (or `namespace/name`) with one container, the key as its UID.
pub fn pod(name: &str) -> Pod {
    let key = key(name);
    let uid = format!("{}-{}", key.namespace, key.name);
    serde_json::from_value(json!({
        "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
        "spec": {"containers": [{"name": "main"}], "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending"},
    }))
    .unwrap()
}

/// Changes of a node, to be chained.
pub trait NodeBuilder {
    /// Sets a label.
    fn label(self, key: &str, value: &str) -> Self;
    /// Sets an allocatable (and capacity) amount.
    fn offers(self, resource: &str, amount: &str) -> Self;
}

impl NodeBuilder for Node {
    fn label(mut self, key: &str, value: &str) -> Node {
        self.metadata.labels.insert(key.into(), value.into());
        self
    }

    fn offers(mut self, resource: &str, amount: &str) -> Node {
        let amount = Quantity::parse(amount).unwrap();
        for list in [&mut self.status.capacity, &mut self.status.allocatable] {
            list.get_or_insert_default().insert(resource.into(), amount.clone());
        }
        self
    }
}

/// Changes of a pod, to be chained.
pub trait PodBuilder {
    /// Sets a label.
    fn label(self, key: &str, value: &str) -> Self;
    /// Sets a request of its container.
    fn requests(self, resource: &str, amount: &str) -> Self;
    /// Sets the priority.
    fn priority(self, priority: i32) -> Self;
    /// Puts it on a node, running.
    fn on(self, node: &str) -> Self;
    /// Sets the start time, in seconds since the epoch.
    fn started(self, seconds: i64) -> Self;
    /// Nominates it to a node.
    fn nominated(self, node: &str) -> Self;
    /// Replaces parts of the spec by those of `spec`, written as the API has it.
    fn spec(self, spec: Value) -> Self;
}

impl PodBuilder for Pod {
    fn label(mut self, key: &str, value: &str) -> Pod {
        self.metadata.labels.insert(key.into(), value.into());
        self
    }

    fn requests(mut self, resource: &str, amount: &str) -> Pod {
        let requests = &mut self.spec.containers[0].resources.requests;
        let amount = Quantity::parse(amount).unwrap();
        requests.get_or_insert_default().insert(resource.into(), amount);
        self
    }

    fn priority(mut self, priority: i32) -> Pod {
        self.spec.priority = Some(priority);
        self
    }

    fn on(mut self, node: &str) -> Pod {
        self.spec.node_name = node.into();
        self.status.phase = PodPhase::Running;
        self
    }

    fn started(mut self, seconds: i64) -> Pod {
        self.status.start_time = Some(Time(seconds * 1_000_000));
        self
    }

    fn nominated(mut self, node: &str) -> Pod {
        self.status.nominated_node_name = node.into();
        self
    }

    fn spec(mut self, spec: Value) -> Pod {
        let mut whole = serde_json::to_value(&self.spec).unwrap();
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        self.spec = serde_json::from_value(whole).unwrap();
        self
    }
}

/// A pod with what is parsed from it.
pub fn info(pod: Pod) -> Arc<PodInfo> {
    Arc::new(PodInfo::new(Arc::new(pod)))
}

/// Everything a cycle's context is made of.
#[derive(Default)]
pub struct Cluster {
    /// The nodes with their pods, in the order given.
    pub snapshot: Snapshot,
    /// All other objects, pods included.
    pub objects: Objects,
    /// The feature gates.
    pub features: FeatureGates,
    /// Nominated pods.
    pub nominated: NominatedPods,
    /// What plugins keep between cycles.
    pub shared: Shared,
    /// The time.
    pub now: Time,
}

impl Cluster {
    /// A cluster of these nodes (in this order) and pods; those without a node are pending.
    pub fn new(
        nodes: impl IntoIterator<Item = Node>,
        pods: impl IntoIterator<Item = Pod>,
    ) -> Cluster {
        let pods: Vec<Arc<PodInfo>> = pods.into_iter().map(info).collect();
        let nodes = nodes.into_iter().enumerate();
        let nodes = nodes.map(|(slot, node)| filled(slot, node, &pods)).collect();
        let mut cluster = Cluster { snapshot: snapshot(nodes), ..Cluster::default() };
        for pod in pods {
            cluster.objects.insert(Object::Pod(pod.pod.clone()));
        }
        cluster
    }

    /// The same cluster with one more object (not a node, not a pod on a node).
    pub fn with(mut self, object: impl Into<Object>) -> Cluster {
        self.objects.insert(object.into());
        self
    }

    /// The context of a cycle for `pod`.
    pub fn cx<'a>(&'a self, pod: &'a Arc<PodInfo>) -> CycleContext<'a> {
        CycleContext {
            pod,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            nominated: &self.nominated,
            shared: &self.shared,
            now: self.now,
            chance: 0,
        }
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> &Arc<NodeInfo> {
        self.snapshot.by_name(name.into()).unwrap()
    }
}

fn filled(slot: usize, node: Node, pods: &[Arc<PodInfo>]) -> NodeInfo {
    let mut info = NodeInfo::new(NodeId(slot as u32), node.metadata.name);
    info.generation = slot as u64 + 1;
    info.set_node(Arc::new(node));
    let name = info.name;
    for pod in pods.iter().filter(|pod| pod.pod.spec.node_name == name) {
        info.add_pod(pod.clone());
    }
    info
}

/// A snapshot of these nodes, in this order; slots as in the nodes' ids.
pub fn snapshot(mut nodes: Vec<NodeInfo>) -> Snapshot {
    set_image_states(&mut nodes);
    Snapshot::of(nodes)
}

/// Fills in image states as the cache would after all nodes were added (C-010).
fn set_image_states(nodes: &mut [NodeInfo]) {
    let images = |node: &NodeInfo| -> Vec<(Symbol, i64)> {
        let images = node.node.iter().flat_map(|node| node.status.images.clone());
        images
            .flat_map(|image| image.names.clone().into_iter().map(move |n| (n, image.size_bytes)))
            .collect()
    };
    let mut all: HashMap<Symbol, ImageState> = HashMap::new();
    for (name, size) in nodes.iter().flat_map(images) {
        all.entry(name).or_insert(ImageState { name, size, num_nodes: 0 }).num_nodes += 1;
    }
    for node in nodes {
        let mut states: Vec<_> = images(node).iter().map(|(name, _)| all[name]).collect();
        states.sort_by_key(|image| image.name);
        node.image_states = states.into();
    }
}

/// A profile of these plugins, each at every point it implements, with default arguments.
pub fn framework(plugins: &[&str]) -> Framework {
    framework_with(plugins, ProfileArgs::default(), &Registry::in_tree(), FeatureGates::default())
}

/// A profile of these plugins of `registry`, each at every point it implements. Weights are
/// those of the default profile.
pub fn framework_with(
    plugins: &[&str],
    args: ProfileArgs,
    registry: &Registry,
    features: FeatureGates,
) -> Framework {
    let mut profile = ResolvedProfile {
        scheduler_name: "default-scheduler".into(),
        instances: plugins.iter().map(|name| Symbol::new(name)).collect(),
        args,
        ..ResolvedProfile::default()
    };
    let descriptors = registry.descriptors();
    for name in plugins {
        let descriptor = descriptors.iter().find(|other| other.name == *name).unwrap();
        for point in descriptor.points.iter() {
            let weight =
                if point.has_weights() { descriptor.default_weight.unwrap_or(1) } else { 0 };
            let name = Symbol::new(name);
            profile.points[point.index()].push(ResolvedPlugin {
                name,
                weight,
                origin: Origin::MultiPoint,
            });
        }
    }
    Framework::new(profile, registry, &features).unwrap()
}

/// The names of the plugins of `framework` at `point`.
pub fn names_at(framework: &Framework, point: ExtensionPoint) -> Vec<Symbol> {
    framework.at(point).iter().map(|plugin| plugin.name()).collect()
}

/// What a [`FakeHost`] was asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// To bind a pod to a node.
    Bind(NamespacedName, Symbol),
    /// To change a pod's status.
    Patch(NamespacedName, PodStatusPatch),
    /// To delete a pod.
    Delete(NamespacedName),
    /// To delete an object.
    DeleteObject(Kind, NamespacedName),
    /// To say which claim stands for a pod's extended resources.
    SetExtendedResourceClaim(NamespacedName, PodExtendedResourceClaimStatus),
    /// To say what a pod's claims take of the node's own resources.
    SetNodeResourceClaims(NamespacedName, Vec<NodeAllocatableResourceClaimStatus>),
    /// To update an object.
    Update(Object),
    /// To create an object.
    Create(Object),
    /// To record an event.
    Event(ApiEvent),
    /// To call an extender.
    Extender(ExtenderCall),
}

/// A host that writes down what it is asked and agrees, but for what it was told to refuse.
#[derive(Default)]
pub struct FakeHost {
    /// What was asked, in order.
    pub asked: Vec<Asked>,
    /// Names of pods and objects for which every request fails with `refused`.
    pub refuse: Vec<Symbol>,
    /// Names of pods that are gone: deleting one answers `false`.
    pub gone: Vec<Symbol>,
    /// What the server has, later entries in place of earlier ones.
    pub stored: Vec<Object>,
    /// Answers of extenders, used up from the front; without one the call fails.
    pub extender_answers: Vec<Result<Value, String>>,
}

impl FakeHost {
    fn answer(&mut self, name: Symbol, asked: Asked) -> Result<(), String> {
        self.asked.push(asked);
        if self.refuse.contains(&name) { Err("refused".into()) } else { Ok(()) }
    }
}

impl Host for FakeHost {
    fn bind(
        &mut self,
        pod: NamespacedName,
        _uid: Symbol,
        node: Symbol,
    ) -> Poll<Result<(), String>> {
        Poll::Ready(self.answer(pod.name, Asked::Bind(pod, node)))
    }

    fn patch_pod_status(
        &mut self,
        pod: NamespacedName,
        patch: PodStatusPatch,
    ) -> Result<(), String> {
        self.answer(pod.name, Asked::Patch(pod, patch))
    }

    fn evict(
        &mut self,
        pod: NamespacedName,
        _uid: Symbol,
        condition: Option<Condition>,
    ) -> Poll<Result<bool, String>> {
        if condition.is_some() {
            let patch = PodStatusPatch { condition, nominated_node: None };
            self.answer(pod.name, Asked::Patch(pod, patch))?;
        }
        self.answer(pod.name, Asked::Delete(pod))?;
        Poll::Ready(Ok(!self.gone.contains(&pod.name)))
    }

    fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object> {
        let same = |other: &&Object| other.kind() == kind && NamespacedName::of(other) == key;
        self.stored.iter().rev().find(same).cloned()
    }

    fn update(&mut self, object: Object) -> Poll<Result<Object, String>> {
        self.answer(object.metadata().name, Asked::Update(object.clone()))?;
        Poll::Ready(Ok(object))
    }

    fn send(&mut self, object: Object) -> Result<(), String> {
        self.answer(object.metadata().name, Asked::Update(object))
    }

    fn create(&mut self, object: Object) -> Poll<Result<Object, String>> {
        self.answer(object.metadata().name, Asked::Create(object.clone()))?;
        Poll::Ready(Ok(object))
    }

    fn delete(&mut self, kind: Kind, key: NamespacedName) -> Result<bool, String> {
        self.answer(key.name, Asked::DeleteObject(kind, key))?;
        Ok(!self.gone.contains(&key.name))
    }

    fn set_extended_resource_claim(
        &mut self,
        pod: NamespacedName,
        status: PodExtendedResourceClaimStatus,
    ) -> Poll<Result<(), String>> {
        Poll::Ready(self.answer(pod.name, Asked::SetExtendedResourceClaim(pod, status)))
    }

    fn set_node_resource_claims(
        &mut self,
        pod: NamespacedName,
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    ) -> Result<(), String> {
        self.answer(pod.name, Asked::SetNodeResourceClaims(pod, statuses))
    }

    fn event(&mut self, event: ApiEvent) {
        self.asked.push(Asked::Event(event));
    }

    fn call_extender(&mut self, call: ExtenderCall) -> Result<Value, String> {
        self.asked.push(Asked::Extender(call));
        match self.extender_answers.is_empty() {
            true => Err("no answer".into()),
            false => self.extender_answers.remove(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_its_pods_on_its_nodes() {
        let pods = [pod("a").requests("cpu", "1").on("n2"), pod("shop/b")];
        let cluster = Cluster::new([node("n1"), node("n2").offers("cpu", "2")], pods);
        assert_eq!(cluster.node("n2").requested.milli_cpu, 1000);
        assert_eq!(cluster.node("n2").allocatable.milli_cpu, 2000);
        assert_eq!(cluster.node("n1").pods.len(), 0);
        assert!(cluster.objects.pod(key("shop/b")).is_some());
        assert_eq!(cluster.snapshot.order().as_slice(), [NodeId(0), NodeId(1)]);
    }

    #[test]
    fn a_framework_runs_plugins_where_they_belong() {
        let framework = framework(&["PrioritySort", "DefaultBinder"]);
        assert_eq!(names_at(&framework, ExtensionPoint::QueueSort), ["PrioritySort"]);
        assert_eq!(names_at(&framework, ExtensionPoint::Bind), ["DefaultBinder"]);
        assert!(names_at(&framework, ExtensionPoint::Filter).is_empty());
    }

    #[test]
    fn a_spec_is_replaced_in_parts() {
        let pod = pod("a").priority(3).spec(json!({"nodeSelector": {"disk": "ssd"}}));
        assert_eq!(pod.spec.priority, Some(3));
        let selector = pod.spec.node_selector.unwrap();
        assert_eq!(selector.get("disk".into()), Some(&Symbol::new("ssd")));
    }
}
