//! The amounts behind a score: for each configured resource, a node's allocatable amount, and the
//! allocated amount without and with the pod.

use smallvec::SmallVec;

use super::ResourceSpec;
use super::devices::{DeviceTotals, is_device_resource};
use crate::keys;
use kubestep_api::Pod;
use kubestep_api::intern::Symbol;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, GroupContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::requests::{RequestOptions, default_requests, pod_requests};
use kubestep_framework::pod_groups::Proposal;
use kubestep_framework::resource::is_scalar_name;

/// A resource of `scoringStrategy.resources`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Counted {
    kind: AmountKind,
    weight: i64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum AmountKind {
    Cpu,
    Memory,
    EphemeralStorage,
    /// Counts only if the pod requests it.
    Scalar(Symbol),
    /// A name that no node can have.
    Unknown(Symbol),
}

/// One resource of a node; only resources with an allocatable amount take part in a score.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Amounts {
    /// The resource, by name.
    pub resource: Symbol,
    /// Allocated plus the pod's request.
    pub requested: i64,
    /// Allocated to the pods on the node.
    pub allocated: i64,
    /// The allocatable amount of the node; not 0.
    pub allocatable: i64,
    /// `weight` of the resource in the arguments.
    pub weight: i64,
}

/// How the pod's requests are computed; upstream's plugins differ here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestBasis {
    /// The requests as written, with the status of resizes (NodeResourcesBalancedAllocation).
    Requested,
    /// CPU and memory default to 100m and 200Mi, and pod-level requests are ignored
    /// (NodeResourcesFit).
    NonZero,
}

/// The configured resources and how requests are computed.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceScorer {
    counted: Vec<Counted>,
    reading: RequestBasis,
}

/// The inputs of a score from the pod and from devices, computed once per cycle.
#[derive(Clone)]
pub struct ScoreInput {
    /// The pod's requests, parallel to the scorer's resources.
    requests: SmallVec<[i64; 4]>,
    devices: Option<DeviceTotals>,
}

impl ScoreInput {
    /// Whether the pod requests none of the resources.
    pub fn is_zero(&self) -> bool {
        self.requests.iter().all(|request| *request == 0)
    }
}

impl ResourceScorer {
    /// A scorer over `resources`.
    pub fn new(resources: &[ResourceSpec], reading: RequestBasis) -> ResourceScorer {
        let counted = |spec: &ResourceSpec| Counted {
            weight: spec.weight,
            kind: match spec.name.as_str() {
                "cpu" => AmountKind::Cpu,
                "memory" => AmountKind::Memory,
                "ephemeral-storage" => AmountKind::EphemeralStorage,
                name if is_scalar_name(name) => AmountKind::Scalar(spec.name),
                _ => AmountKind::Unknown(spec.name),
            },
        };
        ResourceScorer { counted: resources.iter().map(counted).collect(), reading }
    }

    /// Whether no resource is configured.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Everything of a pod that its scores depend on. `None` if devices may count, as they are
    /// allocated without a change of the node.
    pub fn key(&self, pod: &PodInfo) -> Option<String> {
        let requested = |name: Symbol| pod.resource.resource.scalar(name) != 0;
        let by_devices = |counted: &Counted| match counted.kind {
            AmountKind::Scalar(name) => is_device_resource(&name) && requested(name),
            _ => false,
        };
        let node_alone = !self.counted.iter().any(by_devices);
        node_alone.then(|| keys::requests(pod)).flatten()
    }

    /// The inputs that are the same for all nodes.
    pub fn input(&self, cx: &CycleContext<'_>) -> ScoreInput {
        let requests = self.requests(cx.features, &cx.pod.pod);
        ScoreInput { requests, devices: self.device_totals(cx) }
    }

    fn requests(&self, features: &FeatureGates, pod: &Pod) -> SmallVec<[i64; 4]> {
        let options = match self.reading {
            RequestBasis::NonZero => RequestOptions {
                skip_pod_level: true,
                non_missing: default_requests(),
                ..RequestOptions::default()
            },
            RequestBasis::Requested => RequestOptions {
                skip_pod_level: !features.enabled(Feature::PodLevelResources),
                ..RequestOptions::with_status(features)
            },
        };
        let requests = pod_requests(pod, &options);
        let amount = |counted: &Counted| {
            let quantity = requests.get(counted.kind.name());
            quantity.map_or(0, |quantity| match counted.kind {
                AmountKind::Cpu => quantity.milli_value(),
                _ => quantity.value(),
            })
        };
        self.counted.iter().map(amount).collect()
    }

    fn device_totals(&self, cx: &CycleContext<'_>) -> Option<DeviceTotals> {
        let classes = &cx.objects.extended_resources;
        if classes.is_empty() || !cx.features.enabled(Feature::DRAExtendedResource) {
            return None;
        }
        let mut names = self.counted.iter().map(|counted| counted.kind.name());
        names
            .any(|name| is_device_resource(&name) && classes.class_for(name).is_some())
            .then(|| DeviceTotals::new(cx))
    }

    /// The resources of a node that take part in the score.
    pub fn amounts(
        &self,
        cx: &CycleContext<'_>,
        input: &ScoreInput,
        node: &NodeInfo,
    ) -> SmallVec<[Amounts; 4]> {
        let mut all = SmallVec::new();
        for (counted, request) in self.counted.iter().zip(&input.requests) {
            // A scalar that the pod does not request does not count, even if the node has it.
            if *request == 0 && matches!(counted.kind, AmountKind::Scalar(_)) {
                continue;
            }
            let (allocatable, allocated) = match counted.kind {
                AmountKind::Scalar(name) => scalar_totals(cx, input.devices.as_ref(), node, name),
                kind => self.plain_totals(kind, node),
            };
            if allocatable != 0 {
                let requested = allocated.wrapping_add(*request);
                let weight = counted.weight;
                let resource = counted.kind.name();
                all.push(Amounts { resource, requested, allocated, allocatable, weight });
            }
        }
        all
    }

    /// The resources of a whole placement with the group's pods on it; without devices, as
    /// upstream.
    pub(crate) fn placement_amounts(
        &self,
        cx: &GroupContext<'_>,
        proposal: &Proposal<'_>,
    ) -> SmallVec<[Amounts; 4]> {
        let pods = proposal.assignments.iter();
        let pods: Vec<_> = pods.map(|(pod, _)| self.requests(cx.features, &pod.pod)).collect();
        let nodes = proposal.placement.nodes.iter().filter_map(|name| cx.snapshot.by_name(*name));
        let mut all = SmallVec::new();
        for (at, counted) in self.counted.iter().enumerate() {
            let request: i64 = pods.iter().map(|requests| requests[at]).sum();
            if request == 0 && matches!(counted.kind, AmountKind::Scalar(_)) {
                continue;
            }
            let offered = nodes.clone().map(|node| self.node_totals(counted.kind, node));
            let (allocatable, allocated) = offered
                .filter(|(allocatable, _)| *allocatable != 0)
                .fold((0, 0), |sum, totals| (sum.0 + totals.0, sum.1 + totals.1));
            if allocatable != 0 {
                let (requested, weight) = (allocated + request, counted.weight);
                let resource = counted.kind.name();
                all.push(Amounts { resource, requested, allocated, allocatable, weight });
            }
        }
        all
    }

    /// The allocatable and allocated amount of a node, without devices.
    fn node_totals(&self, kind: AmountKind, node: &NodeInfo) -> (i64, i64) {
        match kind {
            AmountKind::Scalar(name) => {
                (node.allocatable.scalar(name), node.requested.scalar(name))
            }
            kind => self.plain_totals(kind, node),
        }
    }

    /// The allocatable and allocated amount of CPU, memory or ephemeral storage.
    fn plain_totals(&self, kind: AmountKind, node: &NodeInfo) -> (i64, i64) {
        let requested = match self.reading {
            RequestBasis::Requested => &node.requested,
            RequestBasis::NonZero => &node.non_zero_requested,
        };
        match kind {
            AmountKind::Cpu => (node.allocatable.milli_cpu, requested.milli_cpu),
            AmountKind::Memory => (node.allocatable.memory, requested.memory),
            AmountKind::EphemeralStorage => {
                (node.allocatable.ephemeral_storage, node.requested.ephemeral_storage)
            }
            AmountKind::Scalar(_) | AmountKind::Unknown(_) => (0, 0),
        }
    }
}

/// The allocatable and allocated amount of a scalar; of devices if the node itself has none.
fn scalar_totals(
    cx: &CycleContext<'_>,
    devices: Option<&DeviceTotals>,
    node: &NodeInfo,
    name: Symbol,
) -> (i64, i64) {
    let allocatable = node.allocatable.scalar(name);
    if allocatable == 0
        && let Some(devices) = devices
    {
        let (capacity, allocated) = devices.totals(cx, node, name);
        if capacity > 0 {
            return (capacity, allocated);
        }
    }
    (allocatable, node.requested.scalar(name))
}

impl AmountKind {
    fn name(self) -> Symbol {
        match self {
            AmountKind::Cpu => Symbol::new("cpu"),
            AmountKind::Memory => Symbol::new("memory"),
            AmountKind::EphemeralStorage => Symbol::new("ephemeral-storage"),
            AmountKind::Scalar(name) | AmountKind::Unknown(name) => name,
        }
    }
}
