//! Whether the resources of a pod or container are free in one NUMA zone.
//!
//! Upstream: `pkg/noderesourcetopology/filter.go` and `numaresources.go`.

use super::topology::{ManagerScope, NumaZone};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Pod, Quantity, ResourceList};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{Explanation, LowerRequest};
use kubestep_framework::pod::qos::QosClass;
use kubestep_framework::pod::requests::is_sidecar;
use kubestep_framework::resource::amount;
use kubestep_framework::status::{Code, Status};

/// Whether Kubernetes itself has the resource.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource may have no NUMA zone.
fn is_of_host(name: &str) -> bool {
    ["ephemeral-storage", "storage"].contains(&name) || !is_native(name)
}

/// Whether the resource always has a NUMA zone. Only Guaranteed pods get it exclusively.
fn is_affine(name: &str) -> bool {
    ["cpu", "memory"].contains(&name) || name.starts_with("hugepages-")
}

/// Whether a zone with `free` can give the amount.
pub fn suits(class: QosClass, name: &str, wanted: &Quantity, free: &Quantity) -> bool {
    (class != QosClass::Guaranteed && is_affine(name)) || free >= wanted
}

/// Resources that must come from one zone.
#[derive(Clone)]
pub struct Need {
    /// The container; `None` for the whole pod.
    pub container: Option<Symbol>,
    /// The amounts that one zone has to have.
    wanted: ResourceList,
    /// `init` or `sidecar`: the resources are free again for the next container.
    kind: Option<&'static str>,
}

/// What a pod needs, in the order in which the kubelet aligns it.
pub fn needs(pod: &Pod, scope: ManagerScope) -> Vec<Need> {
    if scope == ManagerScope::Pod {
        return vec![Need { container: None, wanted: effective_request(pod), kind: None }];
    }
    let need = |container: &kubestep_framework::api::Container, kind| Need {
        container: Some(container.name),
        wanted: container.resources.requests.clone().unwrap_or_default(),
        kind,
    };
    let init = pod.spec.init_containers.iter().map(|container| {
        need(container, Some(if is_sidecar(container) { "sidecar" } else { "init" }))
    });
    init.chain(pod.spec.containers.iter().map(|container| need(container, None))).collect()
}

/// The sum of the containers, or the largest init container, and the overhead.
pub(crate) fn effective_request(pod: &Pod) -> ResourceList {
    let mut sum = ResourceList::default();
    let requests = |it: &kubestep_framework::api::Container| it.resources.requests.clone();
    for list in pod.spec.containers.iter().filter_map(requests) {
        add(&mut sum, &list);
    }
    for list in pod.spec.init_containers.iter().filter_map(requests) {
        for (name, quantity) in list.iter() {
            if sum.get(name).is_none_or(|present| present < quantity) {
                sum.insert(name, quantity.clone());
            }
        }
    }
    pod.spec.overhead.iter().for_each(|overhead| add(&mut sum, overhead));
    sum
}

/// Adds the amounts of `other`.
pub fn add(sum: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other.iter() {
        match sum.get_mut(name) {
            Some(total) => total.add(quantity),
            None => drop(sum.insert(name, quantity.clone())),
        }
    }
}

/// What a zone lacks.
pub struct Lack {
    zone: usize,
    name: Symbol,
    wanted: Quantity,
    /// `None`: the zone does not have the resource.
    free: Option<Quantity>,
}

impl Lack {
    fn describe(&self) -> String {
        let Lack { zone, name, wanted, free } = self;
        let wanted = shown(*name, wanted);
        match free {
            Some(free) => {
                let free = shown(*name, free);
                format!("NUMA zone {zone} has {free} {name} free of {wanted} needed")
            }
            None => format!("NUMA zone {zone} has no {name} of {wanted} needed"),
        }
    }

    /// How much of what is wanted is missing.
    fn share(&self) -> f64 {
        let free = self.free.as_ref().map_or(0.0, Quantity::as_approximate_f64);
        1.0 - free / self.wanted.as_approximate_f64().max(f64::MIN_POSITIVE)
    }
}

/// Why the resources cannot come from one zone.
pub enum Misalignment {
    /// The report of the zones is not valid.
    Stale(&'static str),
    /// A resource that the node does not have.
    Absent {
        /// What does not fit.
        need: Need,
        /// The resource, by name.
        name: Symbol,
    },
    /// Each zone lacks something.
    Zones {
        /// What does not fit.
        need: Need,
        /// What each zone lacks.
        lacking: Vec<Vec<Lack>>,
    },
    /// More was taken from a zone than it has.
    Inconsistent(String),
    /// It is not known what an eviction would free.
    Eviction(&'static str),
}

impl Misalignment {
    /// The status, in upstream's words.
    pub fn status(&self) -> Status {
        match self {
            Misalignment::Stale(_) => Status::unschedulable("invalid node topology data"),
            Misalignment::Inconsistent(text) => {
                let reasons = ["inconsistent resource accounting", text];
                Status::with_reasons(Code::Error, reasons.map(Symbol::new).to_vec())
            }
            Misalignment::Eviction(why) => {
                Status::unschedulable(&format!("eviction simulation in NRT is not possible:{why}"))
            }
            Misalignment::Absent { need, .. } | Misalignment::Zones { need, .. } => {
                Status::unschedulable(&match (need.container, need.kind) {
                    (None, _) => "cannot align pod".to_owned(),
                    (Some(_), None) => "cannot align container".to_owned(),
                    (Some(_), Some(kind)) => format!("cannot align {kind} container"),
                })
            }
        }
    }

    /// What is missing in which zone.
    pub fn explain(self) -> Vec<Explanation> {
        match self {
            Misalignment::Stale(why) => {
                vec![Explanation::new("the topology data of the node is not valid", why.to_owned())]
            }
            Misalignment::Inconsistent(_) | Misalignment::Eviction(_) => Vec::new(),
            Misalignment::Absent { need, name } => {
                let words =
                    format!("{} requests {name}, which the node does not have", need.what());
                vec![Explanation::new("the node does not have a resource", words)]
            }
            Misalignment::Zones { need, lacking } => {
                let first = || lacking.iter().filter_map(|zone| zone.first());
                let zones: Vec<String> = first().map(Lack::describe).collect();
                let words = match zones.is_empty() {
                    true => format!("no NUMA zone has what {} requests", need.what()),
                    false => format!("{} fits in no NUMA zone: {}", need.what(), zones.join(", ")),
                };
                let missing = first().map(Lack::share).fold(1.0, f64::min);
                let gist = "cannot be aligned to one NUMA zone".to_owned();
                let lower_requests = need.lower(&lacking);
                vec![Explanation { gist, words, missing, lower_requests }]
            }
        }
    }
}

fn shown(name: Symbol, quantity: &Quantity) -> String {
    let units = if name == "cpu" { quantity.milli_value() } else { quantity.value() };
    amount::of(&name, units)
}

impl Need {
    /// `container app`, or `the pod`.
    fn what(&self) -> String {
        self.container.map_or("the pod".to_owned(), |name| format!("container {name}"))
    }

    /// Takes the resources from the zone that the kubelet would choose, the lowest that has them
    /// all. Those of an init container stay free.
    pub fn align(
        &self,
        zones: &mut [NumaZone],
        node: &NodeInfo,
        class: QosClass,
    ) -> Option<Misalignment> {
        let mut fitting = u64::MAX;
        for (name, wanted) in self.wanted.iter().filter(|(_, wanted)| !wanted.is_zero()) {
            if !is_on(node, name) {
                return Some(Misalignment::Absent { need: self.clone(), name });
            }
            let known = zones.iter().filter(|zone| zone.free.get(name).is_some());
            if known.clone().next().is_none() && is_of_host(&name) {
                continue;
            }
            let suiting = known.filter(|zone| {
                zone.free.get(name).is_some_and(|free| suits(class, &name, wanted, free))
            });
            fitting &= suiting.fold(0, |bits, zone| bits | 1 << zone.id);
        }
        if fitting == 0 {
            return Some(Misalignment::Zones {
                need: self.clone(),
                lacking: self.lacking(zones, class),
            });
        }
        let chosen = fitting.trailing_zeros() as usize;
        if self.kind.is_some() || self.container.is_none() {
            return None;
        }
        let zones = zones.iter_mut().filter(|zone| zone.id == chosen);
        zones.into_iter().find_map(|zone| self.take(zone, class)).map(Misalignment::Inconsistent)
    }

    /// Takes the resources from a zone; the error if it has not enough.
    fn take(&self, zone: &mut NumaZone, class: QosClass) -> Option<String> {
        for (name, wanted) in self.wanted.iter() {
            let is_shared = class != QosClass::Guaranteed && is_affine(&name);
            let Some(free) = zone.free.get_mut(name).filter(|_| !is_shared) else { continue };
            if *free < *wanted {
                let (name, id) = (name.as_str(), zone.id);
                return Some(format!("resource {name:?} request exceeds NUMA {id} availability"));
            }
            free.sub(wanted);
        }
        None
    }

    /// What each zone lacks that lacks something.
    fn lacking(&self, zones: &[NumaZone], class: QosClass) -> Vec<Vec<Lack>> {
        let lacks = |zone: &NumaZone| -> Vec<Lack> {
            let wanted = self.wanted.iter().filter(|(_, wanted)| !wanted.is_zero());
            let lack = |(name, wanted): (Symbol, &Quantity)| {
                let free = zone.free.get(name);
                let nowhere = zones.iter().all(|zone| zone.free.get(name).is_none());
                let suits = match free {
                    Some(free) => suits(class, &name, wanted, free),
                    None => nowhere && is_of_host(&name),
                };
                let (wanted, free) = (wanted.clone(), free.cloned());
                (!suits).then_some(Lack { zone: zone.id, name, wanted, free })
            };
            wanted.filter_map(lack).collect()
        };
        zones.iter().map(lacks).filter(|lacks| !lacks.is_empty()).collect()
    }

    /// For each zone that has some of everything: the requests that it could take.
    fn lower(&self, lacking: &[Vec<Lack>]) -> Vec<Vec<LowerRequest>> {
        let lower = |lack: &Lack| {
            let amount = lack.free.clone().filter(|free| !free.is_zero())?;
            Some(LowerRequest { container: self.container, resource: lack.name, amount })
        };
        lacking.iter().filter_map(|zone| zone.iter().map(lower).collect()).collect()
    }
}

/// Whether the node has the resource at all; the usual ones always count as there.
fn is_on(node: &NodeInfo, name: Symbol) -> bool {
    let usual = ["cpu", "memory", "pods", "ephemeral-storage"];
    usual.contains(&name.as_str())
        || node.allocatable.scalars.iter().any(|(other, _)| *other == name)
}
