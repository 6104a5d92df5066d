//! NodeResourcesFit: the arithmetic, resource by resource.

use serde::Serialize;

use super::{Case, Cause, Outlook, Words};
use crate::api::{Quantity, QuantityFormat};
use crate::engine::amount;
use crate::engine::plugins::node_resources::fit::{Shortfall, shortfalls};
use crate::engine::requests::has_pod_level_requests;
use crate::engine::resource::Resource;
use crate::intern::Symbol;

/// Too little is left of a resource. CPU in millicores, everything else in whole units (bytes
/// for memory and storage).
#[derive(Clone, PartialEq, Debug)]
pub struct Shortage {
    /// The resource; `pods` for the number of pods.
    pub resource: Symbol,
    /// What the node offers.
    pub allocatable: i64,
    /// What the pods on it request.
    pub requested: i64,
    /// What the pods nominated to it request, as far as they count against this pod.
    pub nominated: i64,
    /// What is left; below 0 on a node that is overcommitted.
    pub free: i64,
    /// What the pod requests.
    pub needed: i64,
    /// How much too little is left.
    pub short_by: i64,
    /// What of `needed` is the pod's overhead.
    pub overhead: i64,
    /// Whether `needed` is what the pod requests as a whole, not the sum over its containers.
    pub pod_level: bool,
}

/// With amounts as Kubernetes writes quantities.
impl Serialize for Shortage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let amounts = [
            ("allocatable", self.allocatable),
            ("requested", self.requested),
            ("nominated", self.nominated),
            ("free", self.free),
            ("needed", self.needed),
            ("shortBy", self.short_by),
            ("overhead", self.overhead),
        ];
        let mut fields = serializer.serialize_struct("Shortage", amounts.len() + 2)?;
        fields.serialize_field("resource", &self.resource)?;
        for (name, amount) in amounts {
            fields.serialize_field(name, &quantity(&self.resource, amount).to_string())?;
        }
        fields.serialize_field("podLevel", &self.pod_level)?;
        fields.end()
    }
}

fn quantity(resource: &str, amount: i64) -> Quantity {
    match resource {
        "cpu" => Quantity::new_milli(amount, QuantityFormat::DecimalSi),
        "memory" | "ephemeral-storage" => Quantity::new(amount, QuantityFormat::BinarySi),
        name if name.starts_with("hugepages-") => Quantity::new(amount, QuantityFormat::BinarySi),
        _ => Quantity::new(amount, QuantityFormat::DecimalSi),
    }
}

impl Words for Shortage {
    fn gist(&self) -> String {
        match (self.resource.as_str(), self.needed > self.allocatable) {
            ("pods", _) => "no room for one more pod".to_owned(),
            (name, false) => format!("not enough {name} left"),
            (name, true) => format!("not enough {name} even on the empty node"),
        }
    }

    fn words(&self) -> String {
        let show = |value| amount::of(&self.resource, value);
        let nominated = match self.nominated {
            0 => String::new(),
            nominated => format!(" − {} nominated", show(nominated)),
        };
        let of_needed = match (self.overhead, self.pod_level) {
            (0, false) => String::new(),
            (0, true) => " for the pod as a whole".to_owned(),
            (overhead, _) => format!(" with {} overhead", show(overhead)),
        };
        format!(
            "{}: {} allocatable − {} requested{nominated} = {} free, {} needed{of_needed}, \
             short by {}",
            self.resource,
            show(self.allocatable),
            show(self.requested),
            show(self.free),
            show(self.needed),
            show(self.short_by),
        )
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let (probe, cx) = (case.probe, case.probe.cx());
    let args = &probe.args().node_resources_fit;
    let lacking = shortfalls(&cx.queue(), args, probe.pod(), case.node);
    lacking.into_iter().map(|lacking| cause(case, lacking)).collect()
}

fn cause(case: &Case<'_>, lacking: Shortfall) -> Cause {
    let Shortfall { resource, allocatable, requested, needed } = lacking;
    let pod = &case.probe.pod().pod;
    let before = match resource.as_str() {
        "pods" => case.plain.pods.len() as i64,
        name => of(&case.plain.requested, name),
    };
    let overhead = pod.spec.overhead.as_ref().map(Resource::from_list);
    let free = allocatable - requested;
    let shortage = Shortage {
        resource,
        allocatable,
        requested: before,
        nominated: requested - before,
        free,
        needed,
        short_by: needed - free,
        overhead: overhead.map_or(0, |overhead| of(&overhead, &resource)),
        pod_level: has_pod_level_requests(pod) && is_pod_level(&resource),
    };
    let part = shortage.short_by as f64 / needed.max(1) as f64;
    let outlook = if needed > allocatable { Outlook::Never } else { Outlook::Cluster };
    Cause::new(shortage, part, outlook)
}

fn is_pod_level(resource: &str) -> bool {
    resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-")
}

/// The amount of a resource by its name.
fn of(amounts: &Resource, name: &str) -> i64 {
    match name {
        "cpu" => amounts.milli_cpu,
        "memory" => amounts.memory,
        "ephemeral-storage" => amounts.ephemeral_storage,
        name => amounts.scalar(Symbol::new(name)),
    }
}
