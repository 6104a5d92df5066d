//! Comparing what a pod demands with what a node has left.

use smallvec::SmallVec;

use super::super::{incoming_request, is_served_by_devices};
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::resource::{Resource, is_extended_name};

/// The resources of the first bits of reasons.
const FIXED: [&str; 4] = ["pods", "cpu", "memory", "ephemeral-storage"];

/// Extended resources that are not checked. FIT-004
#[derive(Clone, Default, Debug)]
pub struct Exempt {
    /// By name.
    pub resources: Vec<Symbol>,
    /// By what stands before the slash.
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

/// What a pod demands of a node.
#[derive(Clone, Debug)]
pub struct Demand {
    /// All requests.
    pub request: Resource,
    /// The scalars that are checked, sorted by name.
    pub scalars: SmallVec<[ScalarDemand; 2]>,
    empty: bool,
}

/// A scalar that a pod demands.
#[derive(Clone, Copy, Debug)]
pub struct ScalarDemand {
    /// The resource.
    pub name: Symbol,
    /// How much; not 0.
    pub amount: i64,
    /// Whether devices provide it where the node itself has none.
    pub devices_serve: bool,
}

/// One resource that a node has too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The resource; `pods` for the number of pods.
    pub resource: Symbol,
    /// What the node offers.
    pub allocatable: i64,
    /// What the pods on it request.
    pub requested: i64,
    /// What the pod requests.
    pub needed: i64,
}

/// What a node lacks for a pod: a bit per reason, in the order in which reasons are listed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Lacking {
    /// Bits 0 to 3: pods, CPU, memory, ephemeral storage; from 4 on the demanded scalars.
    pub reasons: u64,
    /// Whether even the empty node would lack something, other than room for one more pod.
    pub unresolvable: bool,
}

impl Lacking {
    /// Whether nothing lacks.
    pub fn is_none(&self) -> bool {
        self.reasons == 0
    }

    /// Gives whether it lacks.
    fn add(&mut self, bit: usize, request: i64, allocatable: i64, used: i64) -> bool {
        // FIT-003
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
    /// What `pod` demands, with the exempt resources left out.
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

    /// What `node` lacks, in the order in which reasons are listed.
    pub fn shortfalls(&self, node: &NodeInfo) -> Vec<Shortfall> {
        let mut found = Vec::new();
        self.walk(node, |bit, allocatable, requested, needed| {
            found.push(Shortfall { resource: self.resource(bit), allocatable, requested, needed });
        });
        found
    }

    /// What `node` lacks. FIT-002
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

    /// Compares each resource. `hear` gets the bit of every one that lacks, what the node offers
    /// and what is requested there, and what the pod requests.
    fn walk(&self, node: &NodeInfo, mut hear: impl FnMut(usize, i64, i64, i64)) -> Lacking {
        let mut lacking = Lacking::default();
        let (has, used, request) = (&node.allocatable, &node.requested, &self.request);
        let pods = node.pods.len() as i64;
        if pods + 1 > has.allowed_pods {
            lacking.reasons |= 1;
            hear(0, has.allowed_pods, pods, 1);
        }
        if self.empty {
            return lacking;
        }
        let mut check = |bit, request, has, used| {
            if lacking.add(bit, request, has, used) {
                hear(bit, has, used, request);
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
            // FIT-005
            if !scalar.devices_serve || allocatable > 0 {
                check(4 + at, scalar.amount, allocatable, used.scalar(scalar.name));
            }
        }
        lacking
    }
}
