//! How much of a node's resources is requested and reserved.

use std::collections::HashMap;

use crate::tui::model::Model;
use crate::tui::widget::bar::Load;
use kubestep_api::Name;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::resource::amount;

/// The resources that are drawn, in the order of their columns and of the maps.
pub const DRAWN: [&str; 3] = ["cpu", "memory", "pods"];

/// Requested, reserved for nominated pods, and allocatable: cpu in thousandths, memory in bytes, pods as
/// their number.
#[derive(Clone, Copy, Default)]
pub struct ResourceUse {
    pub requested: i64,
    pub reserved: i64,
    pub allocatable: i64,
}

impl ResourceUse {
    /// What a bar shows of it.
    pub fn load(self) -> Load {
        Load::of(self.requested, self.reserved, self.allocatable)
    }

    /// The text of a column: `requested/allocatable`.
    pub fn ratio(self, name: &str) -> String {
        let amount = |value| amount::of(name, value);
        format!("{}/{}", amount(self.requested), amount(self.allocatable))
    }
}

/// What is reserved on each node for pods nominated to it, of each drawn resource; of pods, how many.
pub type Reserved = HashMap<Name, [i64; 3]>;

/// The sums of what nominated pods request, by node.
pub fn reserved(model: &Model) -> Reserved {
    let mut reserved = Reserved::new();
    for (node, pod) in &model.nominated {
        let request = &pod.resource.resource;
        let sums = reserved.entry(*node).or_default();
        for (sum, more) in sums.iter_mut().zip([request.milli_cpu, request.memory, 1]) {
            *sum = sum.saturating_add(more);
        }
    }
    reserved
}

/// The use of each drawn resource, of a node or the sum of several.
#[derive(Clone, Copy, Default)]
pub struct ResourceUses(pub [ResourceUse; 3]);

impl ResourceUses {
    /// The use of one node.
    pub fn of(reserved: &Reserved, node: &NodeInfo) -> ResourceUses {
        let (used, all) = (&node.requested, &node.allocatable);
        let reserved = reserved.get(&node.name).copied().unwrap_or_default();
        let pods = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
        let requested = [used.milli_cpu, used.memory, pods];
        let allocatable = [all.milli_cpu, all.memory, all.allowed_pods];
        let mut uses = ResourceUses::default();
        for (at, of) in uses.0.iter_mut().enumerate() {
            let (requested, allocatable) = (requested[at], allocatable[at]);
            *of = ResourceUse { requested, reserved: reserved[at], allocatable };
        }
        uses
    }

    /// Adds that of another node.
    pub fn add(&mut self, other: ResourceUses) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            sum.requested = sum.requested.saturating_add(more.requested);
            sum.reserved = sum.reserved.saturating_add(more.reserved);
            sum.allocatable = sum.allocatable.saturating_add(more.allocatable);
        }
    }
}
