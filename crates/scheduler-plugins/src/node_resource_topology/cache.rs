//! What is known of the zones of a node between two reports of its agent.
//!
//! Upstream compares the report of a node with its pods every few seconds, if a pod was rejected
//! there or a foreign pod was seen. Here it is done at once, and then whenever the report or the pods
//! change; in between, nothing could be found that was not found before.
//!
//! Upstream: `pkg/noderesourcetopology/cache`.

use kubestep_framework::api::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::align::effective_request;
use super::exclusive::exclusive_containers;
use super::fingerprint::fingerprint;
use super::placement::{NumaPlacement, Victims, container_hash};
use super::topology::{NodeResourceTopology, NumaZone, TOPOLOGIES, TopologyManager};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{CustomObject, Object, Pod, PodPhase, ResourceList, Uid};
use kubestep_framework::events::EventObjects;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{BindContext, HandlerContext};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::shared::{PluginState, PluginStore};

/// Which changes count that the agent has not reported yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportCache {
    /// Only what the agent reported counts.
    Passthrough,
    /// A node with a pod on its way has no valid report.
    DiscardReserved,
    /// What was reserved counts against every zone until the report has the same pods.
    OverReserve {
        /// Which pods of other schedulers make a report invalid.
        foreign: Symbol,
        /// Which pods a fingerprint counts.
        method: Symbol,
        /// Whether all pods count that are not pending, as opposed to those that are running.
        dedicated: bool,
        /// Whether a changed setting of the topology manager is taken on at once.
        attributes: bool,
    },
}

/// The zones of a node.
pub struct NodeTopology {
    /// How its topology manager is set.
    pub manager: TopologyManager,
    /// The NUMA zones, with what is known to be free.
    pub zones: Vec<NumaZone>,
}

/// What is known of a node.
pub enum NodeReport {
    /// There is no report of the node.
    Nothing,
    /// Nothing valid, and why.
    Stale(&'static str),
    /// The zones, less what pods took since the report.
    NodeTopology(NodeTopology),
}

/// UIDs of the pods on their way to each node.
#[derive(Clone, Default, PartialEq, Debug)]
struct Reserved(BTreeMap<Name, BTreeSet<Uid>>);

impl PluginState for Reserved {}

/// The reports that are used, and what was reserved since.
#[derive(Clone, Default, PartialEq, Debug)]
struct Reports {
    used: BTreeMap<Name, Arc<CustomObject>>,
    reserved: BTreeMap<Name, BTreeMap<NamespacedName, ResourceList>>,
    /// Where the containers of nodes are, by the reports that are used.
    placed: BTreeMap<Name, NumaPlacement>,
    /// Nodes with pods of other schedulers that their report does not have.
    foreign: BTreeSet<Name>,
    /// Nodes that rejected a pod since.
    rejecting: BTreeSet<Name>,
}

impl PluginState for Reports {}

fn key(node: Name) -> NamespacedName {
    NamespacedName::new(Symbol::EMPTY, node)
}

fn topology(report: &NodeResourceTopology) -> NodeTopology {
    NodeTopology { manager: report.topology_manager(), zones: report.numa_zones() }
}

impl ReportCache {
    /// What is known of a node.
    pub fn known(self, objects: &Objects, shared: &PluginStore, node: Name) -> NodeReport {
        let report = || {
            let report = objects.custom::<NodeResourceTopology>(key(node));
            report.map_or(NodeReport::Nothing, |report| NodeReport::NodeTopology(topology(report)))
        };
        match self {
            ReportCache::Passthrough => report(),
            ReportCache::DiscardReserved => {
                let reserved = shared.plugins.get::<Reserved>();
                match reserved.is_some_and(|it| it.0.get(&node).is_some_and(|it| !it.is_empty())) {
                    true => NodeReport::Stale("a pod is on its way to the node"),
                    false => report(),
                }
            }
            ReportCache::OverReserve { .. } => {
                shared.plugins.get::<Reports>().map_or(NodeReport::Nothing, |it| it.known(node))
            }
        }
    }

    /// A pod was given a node.
    pub fn reserve(self, cx: &mut BindContext<'_>) {
        let (node, pod) = (cx.node, cx.pod.clone());
        match self {
            ReportCache::Passthrough => {}
            ReportCache::DiscardReserved => cx.shared.plugins.update(|reserved: &mut Reserved| {
                reserved.0.entry(node).or_default().insert(pod.uid());
            }),
            ReportCache::OverReserve { .. } => cx.shared.plugins.update(|reports: &mut Reports| {
                if reports.used.contains_key(&node) {
                    let reserved = reports.reserved.entry(node).or_default();
                    reserved.insert(pod.key(), effective_request(&pod.pod));
                }
            }),
        }
    }

    /// The node was taken away again.
    pub fn unreserve(self, cx: &mut BindContext<'_>) {
        let (node, key) = (cx.node, cx.pod.key());
        match self {
            ReportCache::OverReserve { .. } => cx.shared.plugins.update(|reports: &mut Reports| {
                if let Some(reserved) = reports.reserved.get_mut(&node) {
                    reserved.remove(&key);
                }
            }),
            _ => self.bound(cx),
        }
    }

    /// The pod was bound.
    pub fn bound(self, cx: &mut BindContext<'_>) {
        if self != ReportCache::DiscardReserved {
            return;
        }
        let (node, uid) = (cx.node, cx.pod.uid());
        cx.shared.plugins.update(|reserved: &mut Reserved| {
            if let Some(pods) = reserved.0.get_mut(&node) {
                pods.remove(&uid);
            }
        });
    }

    /// Adds to the zones of a node what victims of preemption free there.
    pub fn release(
        self,
        shared: &PluginStore,
        node: Name,
        victims: &Victims,
        zones: &mut [NumaZone],
    ) -> Result<(), &'static str> {
        let ReportCache::OverReserve { .. } = self else { return Ok(()) };
        let reports = shared.plugins.get::<Reports>();
        let known = reports.and_then(|it| Some((it.placed.get(&node)?, it.used.get(&node)?)));
        let report = known.and_then(|(placed, used)| Some((placed, used.get()?)));
        report.map_or(Ok(()), |(placed, report)| placed.release(report, victims, zones))
    }

    /// A report or a pod changed.
    pub fn handle_event(self, cx: &mut HandlerContext<'_>, objects: &EventObjects) {
        let ReportCache::OverReserve { .. } = self else { return };
        let newest = objects.new.as_ref().or(objects.old.as_ref());
        let (node, report, pod) = match newest {
            Some(Object::Custom(report)) if report.kind == TOPOLOGIES && objects.new.is_some() => {
                (report.metadata.name, Some(report.clone()), None)
            }
            Some(Object::Pod(pod)) if !pod.spec.node_name.is_empty() => {
                let reports = cx.objects.custom_objects(TOPOLOGIES);
                let node = pod.spec.node_name;
                (node, reports.get(&key(node)).cloned(), Some((pod, objects.new.is_some())))
            }
            _ => return,
        };
        let Some(report) = report else { return };
        let is_foreign = pod.is_some_and(|(pod, _)| self.is_foreign(pod, cx.profiles, &report));
        let pods = || self.pods_of(cx.objects, node, pod);
        cx.shared.plugins.update(|reports: &mut Reports| {
            if is_foreign && reports.used.contains_key(&node) {
                reports.foreign.insert(node);
            }
            self.compare(reports, node, report, &pods);
        });
    }

    /// Filter rejected a pod on these nodes.
    pub fn rejected(self, cx: &mut HandlerContext<'_>, nodes: &[Name]) {
        let ReportCache::OverReserve { .. } = self else { return };
        for node in nodes {
            let reports = cx.objects.custom_objects(TOPOLOGIES);
            let Some(report) = reports.get(&key(*node)).cloned() else { continue };
            let pods = || self.pods_of(cx.objects, *node, None);
            cx.shared.plugins.update(|reports: &mut Reports| {
                reports.rejecting.insert(*node);
                self.compare(reports, *node, report, &pods);
            });
        }
    }

    /// Takes the report on if upstream would by now.
    fn compare(
        self,
        reports: &mut Reports,
        node: Name,
        report: Arc<CustomObject>,
        pods: &dyn Fn() -> Vec<Arc<Pod>>,
    ) {
        let is_current = self.is_current(&report, pods);
        let is_due = reports.foreign.contains(&node) || reports.rejecting.contains(&node);
        let known = reports.used.get(&node);
        let is_taken =
            (is_current && is_due) || known.is_none_or(|known| self.is_changed(known, &report));
        // What exists when the scheduler starts counts as compared.
        let is_same = known.is_some_and(|known| Arc::ptr_eq(known, &report));
        if is_taken || (is_same && is_current) {
            let placed = placement(&report, &pods()).filter(|_| known.is_some() || is_current);
            match placed {
                Some(placed) => drop(reports.placed.insert(node, placed)),
                None => drop(reports.placed.remove(&node)),
            }
        }
        if is_taken {
            reports.used.insert(node, report);
            reports.reserved.remove(&node);
            reports.foreign.remove(&node);
            reports.rejecting.remove(&node);
        }
    }

    /// Whether the pod is one of another scheduler that counts.
    fn is_foreign(self, pod: &Pod, profiles: &[Symbol], report: &CustomObject) -> bool {
        let ReportCache::OverReserve { foreign, .. } = self else { return false };
        let is_known = foreign == "None" || profiles.contains(&pod.spec.scheduler_name);
        !is_known && (foreign != "OnlyExclusiveResources" || has_exclusive(pod, report))
    }

    /// Whether the settings of the topology manager changed.
    fn is_changed(self, old: &CustomObject, new: &CustomObject) -> bool {
        let manager = |report: &CustomObject| {
            report.get::<NodeResourceTopology>().map(NodeResourceTopology::topology_manager)
        };
        matches!(self, ReportCache::OverReserve { attributes: true, .. })
            && manager(old) != manager(new)
    }

    /// The pods of the node that count in fingerprints, with the change of one of them.
    fn pods_of(
        self,
        objects: &Objects,
        node: Name,
        changed: Option<(&Arc<Pod>, bool)>,
    ) -> Vec<Arc<Pod>> {
        let is_other = |pod: &&Arc<Pod>| {
            changed.is_none_or(|(changed, _)| changed.metadata.uid != pod.metadata.uid)
        };
        let exists = changed.into_iter().filter(|(_, exists)| *exists).map(|(pod, _)| pod);
        let pods = objects.pods.values().filter(is_other).chain(exists);
        pods.filter(|pod| pod.spec.node_name == node && self.counts(pod)).cloned().collect()
    }

    /// Whether the report has these pods.
    fn is_current(self, report: &CustomObject, pods: &dyn Fn() -> Vec<Arc<Pod>>) -> bool {
        let Some((expected, exclusive_only)) = self.expected(report) else { return false };
        let pods = pods();
        let counted = pods.iter().filter(|pod| !exclusive_only || has_exclusive(pod, report));
        let names =
            counted.map(|pod| NamespacedName::new(pod.metadata.namespace, pod.metadata.name));
        fingerprint(names) == expected
    }

    /// Whether the pod counts in fingerprints.
    fn counts(self, pod: &Pod) -> bool {
        match self {
            ReportCache::OverReserve { dedicated: true, .. } => {
                pod.status.phase != PodPhase::Pending
            }
            _ => pod.status.phase == PodPhase::Running,
        }
    }

    /// The fingerprint in a report, and whether it counts only pods with exclusive resources.
    fn expected(self, report: &CustomObject) -> Option<(String, bool)> {
        let ReportCache::OverReserve { method, .. } = self else { return None };
        let topology = report.get::<NodeResourceTopology>()?;
        if let Some(expected) = topology.attribute("nodeTopologyPodsFingerprint") {
            let reported = topology.attribute("nodeTopologyPodsFingerprintMethod");
            let exclusive_only = method == "OnlyExclusiveResources"
                || (method == "Autodetect" && reported == Some("with-exclusive-resources"));
            return Some((expected.to_owned(), exclusive_only));
        }
        let annotation = report.metadata.annotations.get_str("topology.node.k8s.io/fingerprint")?;
        Some((annotation.to_string(), false))
    }
}

impl Reports {
    fn known(&self, node: Name) -> NodeReport {
        if self.foreign.contains(&node) {
            return NodeReport::Stale(
                "the node has pods of other schedulers that its report lacks",
            );
        }
        let report = self.used.get(&node).and_then(|it| it.get::<NodeResourceTopology>());
        let Some(mut topology) = report.map(topology) else { return NodeReport::Nothing };
        for reserved in self.reserved.get(&node).into_iter().flat_map(BTreeMap::values) {
            topology.zones.iter_mut().for_each(|zone| reserve(zone, reserved));
        }
        NodeReport::NodeTopology(topology)
    }
}

/// Takes from a zone what was reserved somewhere on the node.
fn reserve(zone: &mut NumaZone, reserved: &ResourceList) {
    for (name, amount) in reserved.iter() {
        if let Some(free) = zone.free.get_mut(name) {
            let taken = if *free < *amount { free.clone() } else { amount.clone() };
            free.sub(&taken);
        }
    }
}

/// Whether a container has resources for itself while the pod runs.
fn has_exclusive(pod: &Pod, report: &CustomObject) -> bool {
    let report = report.get::<NodeResourceTopology>();
    report.is_some_and(|report| exclusive_containers(pod, report).next().is_some())
}

/// Where the containers of the pods are that have resources for themselves.
fn placement(report: &CustomObject, pods: &[Arc<Pod>]) -> Option<NumaPlacement> {
    let report = report.get::<NodeResourceTopology>()?;
    let hashes = pods.iter().flat_map(|pod| {
        exclusive_containers(pod, report).map(move |container| container_hash(pod, &container.name))
    });
    NumaPlacement::of(report, &Vec::from_iter(hashes))
}
