//! Compares the requests of a pod with the free resources of a node.

use smallvec::SmallVec;

use super::super::{incoming_request, is_served_by_devices};
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::resource::{Resource, is_extended_name};

/// The resources of the first bits of reasons.
const FIXED: [&str; 4] = ["pods", "cpu", "memory", "ephemeral-storage"];

/// Extended resources that are not checked: those that the arguments or an extender ignore.
#[derive(Clone, Default, Debug)]
pub struct Exempt {
    /// Whole names of resources.
    pub resources: Vec<Symbol>,
    /// By the part of the name before the slash.
    pub groups: Vec<Symbol>,
}

impl Exempt {
    fn covers(&self, name: Symbol) -> bool {
        if !is_extended_name(&name) {
            return false;
        }
        let group = name.split('/').next().unwrap_or_default();
        self.resources.contains(&name) || self.groups.iter().any(|known| *known == group)
    }
}

/// The requests of a pod, prepared for the check.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What the pod requests in all.
    pub request: Resource,
    /// The scalars to check, sorted by name.
    pub scalars: SmallVec<[ScalarDemand; 2]>,
    empty: bool,
}

/// A requested scalar resource.
#[derive(Clone, Copy, Debug)]
pub struct ScalarDemand {
    /// The name of the resource.
    pub name: Symbol,
    /// The requested amount; not 0.
    pub amount: i64,
    /// Whether devices provide it if the node itself has none.
    pub devices_serve: bool,
}

/// A resource of which a node has too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The resource; `pods` for the number of pods.
    pub resource: Symbol,
    /// The node's allocatable amount.
    pub allocatable: i64,
    /// The amount requested by the pods on the node.
    pub requested: i64,
    /// The amount that the pod requests.
    pub needed: i64,
}

/// The resources that a node lacks for a pod: a bit per reason, in the order of the reasons.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Lacking {
    /// Bits 0 to 3: pods, CPU, memory, ephemeral storage; from 4 on the checked scalars.
    pub reasons: u64,
    /// Whether a request exceeds the node's allocatable amount, so that preemption can't help; not
    /// for the number of pods.
    pub unresolvable: bool,
}

impl Lacking {
    /// Whether the pod fits.
    pub fn is_none(&self) -> bool {
        self.reasons == 0
    }

    /// Gives whether it lacks.
    fn add(&mut self, bit: usize, request: i64, allocatable: i64, used: i64) -> bool {
        // Signed arithmetic as upstream: what is free can be negative.
        let lacks = request > allocatable.wrapping_sub(used);
        if lacks {
            // A pod with more than 60 scalars shares the last reason.
            self.reasons |= 1 << bit.min(63);
            self.unresolvable |= request > allocatable;
        }
        lacks
    }
}

impl Demand {
    /// The requests of `pod` without the ignored resources.
    pub fn new(cx: &QueueContext<'_>, pod: &PodInfo, exempt: &Exempt) -> Demand {
        let request = incoming_request(pod, cx.features);
        let checked = |(name, amount): &(Symbol, i64)| ScalarDemand {
            name: *name,
            amount: *amount,
            devices_serve: is_served_by_devices(cx, *name),
        };
        let scalars = request.scalars.iter();
        let scalars =
            scalars.filter(|(name, amount)| *amount != 0 && !exempt.covers(*name)).map(checked);
        Demand { scalars: scalars.collect(), empty: request.is_empty_request(), request }
    }

    /// The resources that `node` lacks, in the order of the reasons.
    pub fn shortfalls(&self, node: &NodeInfo) -> Vec<Shortfall> {
        let mut found = Vec::new();
        self.walk(node, |bit, allocatable, requested, needed| {
            found.push(Shortfall { resource: self.resource(bit), allocatable, requested, needed });
        });
        found
    }

    /// The reasons against `node`: too many pods, then each insufficient resource that the pod
    /// requests.
    pub fn lacking(&self, node: &NodeInfo) -> Lacking {
        self.walk(node, |_, _, _, _| {})
    }

    /// The resource that a bit of the reasons stands for.
    pub fn resource(&self, bit: usize) -> Symbol {
        match bit.checked_sub(FIXED.len()) {
            None => Symbol::new(FIXED[bit]),
            Some(scalar) => self.scalars[scalar].name,
        }
    }

    /// Compares each resource. `report` gets the bit of every one that lacks, what the node offers
    /// and what is requested there, and what the pod requests.
    fn walk(&self, node: &NodeInfo, mut report: impl FnMut(usize, i64, i64, i64)) -> Lacking {
        let mut lacking = Lacking::default();
        let (has, used, request) = (&node.allocatable, &node.requested, &self.request);
        let pods = node.pods.len() as i64;
        if pods + 1 > has.allowed_pods {
            lacking.reasons |= 1;
            report(0, has.allowed_pods, pods, 1);
        }
        if self.empty {
            return lacking;
        }
        let mut check = |bit, request, has, used| {
            if lacking.add(bit, request, has, used) {
                report(bit, has, used, request);
            }
        };
        if request.milli_cpu > 0 {
            check(1, request.milli_cpu, has.milli_cpu, used.milli_cpu);
        }
        if request.memory > 0 {
            check(2, request.memory, has.memory, used.memory);
        }
        if request.ephemeral_storage > 0 {
            check(3, request.ephemeral_storage, has.ephemeral_storage, used.ephemeral_storage);
        }
        for (at, scalar) in self.scalars.iter().enumerate() {
            let allocatable = has.scalar(scalar.name);
            // If only devices provide the resource, DynamicResources checks it.
            if !scalar.devices_serve || allocatable > 0 {
                check(4 + at, scalar.amount, allocatable, used.scalar(scalar.name));
            }
        }
        lacking
    }
}
