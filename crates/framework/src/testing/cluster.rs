//! A static cluster: what a cycle or the queue sees of it, and one plugin's extension points run on
//! all of its nodes.

use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::Value;

use super::{FakeHost, decoded, info};
use crate::cycle_state::CycleState;
use crate::events::{Action, EventObjects, HintResult, QueueingHint, Registration};
use crate::node::{ImageState, NodeId, NodeInfo};
use crate::objects::Objects;
use crate::plugin::{BindContext, CycleContext, Plugin, QueueContext};
use crate::pod::PodInfo;
use crate::pod::nominated::NominatedPods;
use crate::shared::PluginStore;
use crate::snapshot::Snapshot;
use crate::status::Status;
use kubestep_api::intern::Symbol;
use kubestep_api::{Node, Object, Pod, Time};
use kubestep_config::FeatureGates;

/// Everything that a cycle's context consists of.
#[derive(Default)]
pub struct Cluster {
    /// The nodes with their pods, in the order given.
    pub snapshot: Snapshot,
    /// All objects except nodes.
    pub objects: Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: FeatureGates,
    /// The pods that are nominated to nodes.
    pub nominated: NominatedPods,
    /// What plugins store between cycles.
    pub shared: PluginStore,
    /// The current time; virtual in a simulation.
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

    /// The context of binding `pod` to `node`.
    pub fn binding<'a>(
        &'a mut self,
        pod: &'a Arc<PodInfo>,
        node: &str,
        host: &'a mut FakeHost,
    ) -> BindContext<'a> {
        BindContext {
            pod,
            node: node.into(),
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            shared: &mut self.shared,
            host,
            now: self.now,
        }
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
            random: 0,
        }
    }

    /// A cluster of nodes and pods written as in the API.
    pub fn of(nodes: Vec<Value>, pods: Vec<Value>) -> Cluster {
        Cluster::new(nodes.into_iter().map(decoded), pods.into_iter().map(decoded))
    }

    /// Changes the node at that slot.
    pub fn edit_node(&mut self, slot: u32, change: impl FnOnce(&mut NodeInfo)) {
        let mut infos: Vec<NodeInfo> = self.snapshot.iter().map(|node| (**node).clone()).collect();
        change(&mut infos[slot as usize]);
        self.snapshot = Snapshot::of(infos);
    }

    /// The context of the queue.
    pub fn queue(&self) -> QueueContext<'_> {
        QueueContext {
            objects: &self.objects,
            features: &self.features,
            shared: &self.shared,
            now: self.now,
        }
    }

    /// PreFilter's status if it fails, otherwise Filter's status on every node.
    ///
    /// # Panics
    /// [`Plugin::filters`] and [`Plugin::filter`] differ.
    pub fn filter(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &Arc<PodInfo>,
    ) -> Result<Vec<Status>, Status> {
        let (cx, mut state) = (self.cx(pod), CycleState::default());
        let answer = plugin.pre_filter(&cx, &mut state);
        if !answer.status.is_success() {
            return Err(answer.status);
        }
        let one_by_one = self.snapshot.iter().map(|node| plugin.filter(&cx, &state, node));
        let statuses: Vec<Status> = one_by_one.collect();
        if let Some(all) = plugin.filters(&cx, &state) {
            let index = |node: &NodeId| usize::from(all.by_slot[node.index()]);
            let nodes = self.snapshot.order().iter();
            let at_once: Vec<_> = nodes.map(|node| all.statuses[index(node)].clone()).collect();
            assert_eq!(at_once, statuses, "{}: `filters` and `filter` differ", plugin.name());
        }
        Ok(statuses)
    }

    /// Filter's messages, one for each node; empty where the node passed.
    pub fn rejections(&self, plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>) -> Vec<String> {
        let statuses = self.filter(plugin, pod).expect("PreFilter succeeds");
        statuses.iter().map(Status::message).collect()
    }

    /// PreScore's status if it fails, otherwise the raw scores of all nodes.
    ///
    /// # Panics
    /// [`Plugin::scores`] and [`Plugin::score`] differ.
    pub fn raw_scores(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &Arc<PodInfo>,
    ) -> Result<Vec<i64>, Status> {
        self.scored(plugin, &self.cx(pod), &mut CycleState::default())
    }

    fn scored(
        &self,
        plugin: &Arc<dyn Plugin>,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
    ) -> Result<Vec<i64>, Status> {
        let nodes = self.snapshot.order();
        let status = plugin.pre_score(cx, state, &nodes.as_slice().into());
        if !status.is_success() {
            return Err(status);
        }
        let one_by_one = self.snapshot.iter().map(|node| plugin.score(cx, state, node));
        let scores = one_by_one.collect::<Result<Vec<_>, _>>()?;
        if let Some(at_once) = plugin.scores(cx, state, nodes) {
            assert_eq!(at_once, scores, "{}: `scores` and `score` differ", plugin.name());
        }
        Ok(scores)
    }

    /// PreScore's status if it fails, otherwise the normalized scores of all nodes.
    ///
    /// # Panics
    /// See [`Cluster::raw_scores`].
    pub fn scores(&self, plugin: &Arc<dyn Plugin>, pod: &Arc<PodInfo>) -> Result<Vec<i64>, Status> {
        let (cx, mut state) = (self.cx(pod), CycleState::default());
        let mut scores = self.scored(plugin, &cx, &mut state)?;
        let status = plugin.normalize(&cx, &state, self.snapshot.order(), &mut scores);
        if status.is_success() { Ok(scores) } else { Err(status) }
    }

    /// The hint of `plugin` on a change from `old` to `new`; an error counts as Queue.
    pub fn hint(
        &self,
        plugin: &Arc<dyn Plugin>,
        pod: &PodInfo,
        old: Option<Object>,
        new: Option<Object>,
    ) -> QueueingHint {
        self.try_hint(&**plugin, pod, &EventObjects { old, new }).unwrap_or(QueueingHint::Queue)
    }

    /// The answer of the hint that `plugin` registered for such a change; if for none, that of its
    /// hint for other changes of the kind. Skip if it registered nothing for the kind.
    pub fn try_hint(
        &self,
        plugin: &dyn Plugin,
        pod: &PodInfo,
        objects: &EventObjects,
    ) -> HintResult {
        let action = match (&objects.old, &objects.new) {
            (None, _) => Action::ADD,
            (_, None) => Action::DELETE,
            _ => Action::UPDATE,
        };
        let kind = objects.new.as_ref().or(objects.old.as_ref()).map(|one| one.kind().as_str());
        let of_kind = |registration: &Registration| {
            registration.event.resource.as_str().rsplit('/').next() == kind
        };
        let mut registered = plugin.events().unwrap_or_default();
        registered.retain(of_kind);
        let exact = registered.iter().find(|one| one.event.action.overlaps(action));
        let Some(registration) = exact.or(registered.first()) else {
            return Ok(QueueingHint::Skip);
        };
        let hint = registration.hint.as_ref();
        hint.map_or(Ok(QueueingHint::Queue), |hint| hint(&self.queue(), pod, objects))
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

/// Fills in image states as the cache would after all nodes were added.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NodeBuilder, PodBuilder, key, node, pod};

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
}
