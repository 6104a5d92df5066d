//! A small cluster for the tests of plugins: objects as JSON, and each extension point of one
//! plugin run over all nodes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Object, Pod, Time};
use crate::config::{FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::events::{ClusterEvent, EventObjects, Hint};
use crate::engine::framework::nominated::NominatedPods;
use crate::engine::framework::plugin::{CycleContext, Plugin, QueueContext};
use crate::engine::framework::registry::Factory;
use crate::engine::framework::shared::Shared;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::objects::Objects;
use crate::engine::pod::PodInfo;
use crate::engine::snapshot::Snapshot;
use crate::engine::status::Status;

/// Decodes an API object.
pub fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("a well-formed object")
}

/// Decodes a pod.
pub fn pod(json: Value) -> Arc<PodInfo> {
    Arc::new(PodInfo::new(Arc::new(object::<Pod>(json))))
}

/// `cpu=1 memory=2Mi` as a resource list.
pub fn list(text: &str) -> Value {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("name=amount"));
    Value::Object(pairs.map(|(name, amount)| (name.to_owned(), json!(amount))).collect())
}

/// A node `n0`, `n1`… with these allocatable amounts.
pub fn sized_node(at: usize, allocatable: &str) -> Value {
    json!({"metadata": {"name": format!("n{at}")}, "status": {"allocatable": list(allocatable)}})
}

/// A pod with one container for each text: `init cpu=1`, `sidecar cpu=1` or `main cpu=1`, named
/// by their place. The node may be empty; the UID is the name.
pub fn sized_pod(name: &str, node: &str, containers: &[&str]) -> Value {
    let mut spec = json!({"nodeName": node, "containers": [], "initContainers": []});
    for (at, text) in containers.iter().enumerate() {
        let (kind, requests) = text.split_once(' ').unwrap_or((text, ""));
        let mut container =
            json!({"name": at.to_string(), "resources": {"requests": list(requests)}});
        if kind == "sidecar" {
            container["restartPolicy"] = json!("Always");
        }
        let field = if kind == "main" { "containers" } else { "initContainers" };
        spec[field].as_array_mut().expect("a list").push(container);
    }
    json!({"metadata": {"name": name, "uid": name}, "spec": spec})
}

/// Builds a plugin with the given arguments and the default gates.
pub fn plugin(factory: Factory, args: &ProfileArgs) -> Arc<dyn Plugin> {
    factory(args, &FeatureGates::default()).expect("arguments that the plugin accepts")
}

/// A cluster at rest.
#[derive(Default)]
pub struct Fixture {
    /// Nodes and their pods.
    pub snapshot: Snapshot,
    /// Everything else.
    pub objects: Objects,
    /// The gates.
    pub features: FeatureGates,
    /// Nominated pods.
    pub nominated: NominatedPods,
    /// What plugins keep.
    pub shared: Shared,
}

impl Fixture {
    /// Nodes in this order, with the pods whose `spec.nodeName` names them. Sets `objects.pods`
    /// as well.
    pub fn new(nodes: Vec<Value>, pods: Vec<Value>) -> Fixture {
        let mut fixture = Fixture::default();
        let mut infos = Vec::new();
        for (slot, node) in nodes.into_iter().enumerate() {
            let node = Arc::new(object::<crate::api::Node>(node));
            let mut info = NodeInfo::new(NodeId(slot as u32), node.metadata.name);
            info.set_node(node);
            infos.push(info);
        }
        for json in pods {
            let pod = pod(json);
            fixture.objects.insert(Object::Pod(pod.pod.clone()));
            if let Some(node) = infos.iter_mut().find(|node| node.name == pod.pod.spec.node_name) {
                node.add_pod(pod);
            }
        }
        fixture.set_nodes(infos);
        fixture
    }

    /// Replaces all nodes; the slots must run from 0.
    pub fn set_nodes(&mut self, infos: Vec<NodeInfo>) {
        self.snapshot = Snapshot::of(infos);
    }

    /// Changes one node.
    pub fn edit_node(&mut self, slot: u32, change: impl FnOnce(&mut NodeInfo)) {
        let mut infos: Vec<NodeInfo> = self.snapshot.iter().map(|node| (**node).clone()).collect();
        change(&mut infos[slot as usize]);
        self.set_nodes(infos);
    }

    /// What a cycle for `pod` sees.
    pub fn cycle<'a>(&'a self, pod: &'a Arc<PodInfo>) -> CycleContext<'a> {
        CycleContext {
            pod,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            nominated: &self.nominated,
            shared: &self.shared,
            now: Time(0),
            chance: 0,
        }
    }

    /// What the queue sees.
    pub fn queue(&self) -> QueueContext<'_> {
        QueueContext {
            objects: &self.objects,
            features: &self.features,
            shared: &self.shared,
            now: Time(0),
        }
    }

    /// PreFilter's status, or else Filter's status on every node.
    pub fn filter(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &Arc<PodInfo>,
    ) -> Result<Vec<Status>, Status> {
        let (cx, mut state) = (self.cycle(pod), CycleState::default());
        let answer = plugin.pre_filter(&cx, &mut state);
        if !answer.status.is_success() {
            return Err(answer.status);
        }
        Ok(self.snapshot.iter().map(|node| plugin.filter(&cx, &state, node)).collect())
    }

    /// Filter's messages, one for each node; empty where the node passed.
    pub fn refusals(&self, plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>) -> Vec<String> {
        let statuses = self.filter(plugin, pod).expect("PreFilter succeeds");
        statuses.iter().map(Status::message).collect()
    }

    /// PreScore's status, or else the raw scores of all nodes.
    pub fn raw_scores(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &Arc<PodInfo>,
    ) -> Result<Vec<i64>, Status> {
        let (cx, mut state) = (self.cycle(pod), CycleState::default());
        let status = plugin.pre_score(&cx, &mut state, self.snapshot.order());
        if !status.is_success() {
            return Err(status);
        }
        self.snapshot.iter().map(|node| plugin.score(&cx, &state, node)).collect()
    }

    /// PreScore's status, or else the normalized scores of all nodes.
    pub fn scores(&self, plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>) -> Result<Vec<i64>, Status> {
        let (cx, mut state) = (self.cycle(pod), CycleState::default());
        let status = plugin.pre_score(&cx, &mut state, self.snapshot.order());
        if !status.is_success() {
            return Err(status);
        }
        let mut scores = self
            .snapshot
            .iter()
            .map(|node| plugin.score(&cx, &state, node))
            .collect::<Result<Vec<_>, _>>()?;
        let status = plugin.normalize(&cx, &state, self.snapshot.order(), &mut scores);
        if status.is_success() { Ok(scores) } else { Err(status) }
    }

    /// The hint of `plugin` on a change from `old` to `new`.
    pub fn hint(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &PodInfo,
        event: ClusterEvent,
        old: Option<Object>,
        new: Option<Object>,
    ) -> Hint {
        let objects = EventObjects { old, new };
        plugin.hint(&self.queue(), pod, &event, &objects).unwrap_or(Hint::Queue)
    }
}
