//! NodeResourcesFit: the arithmetic of each resource.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{Container, Pod, Quantity, QuantityFormat};
use kubestep_config::Feature;
use kubestep_framework::pod::requests::{RequestOptions, is_sidecar, pod_requests};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::resource::Resource;
use kubestep_framework::resource::amount;
use kubestep_plugins::node_resources::fit::{Shortfall, shortfalls};

/// Insufficient resource. CPU in millicores, everything else in whole units (bytes for memory and
/// storage).
#[derive(Clone, PartialEq, Debug)]
pub struct Shortage {
    /// The resource; `pods` for the number of pods.
    pub resource: Symbol,
    /// The node's allocatable amount.
    pub allocatable: i64,
    /// The requests of the pods on it.
    pub requested: i64,
    /// The requests of the pods nominated to it, as far as they count for this pod.
    pub nominated: i64,
    /// The free amount; negative on an overcommitted node.
    pub free: i64,
    /// What the pod requests.
    pub needed: i64,
    /// `needed - free`.
    pub short_by: i64,
    /// The part of `needed` that is the pod's overhead.
    pub overhead: i64,
    /// Whether `needed` is the pod-level request, not the sum over its containers.
    pub pod_level: bool,
    /// The init container that determines `needed`; `None` if the containers do.
    pub init_container: Option<Symbol>,
    /// The nominated pods in `nominated`.
    pub reserved_for: Vec<NamespacedName>,
    /// The part of `requested` that belongs to pods that were pending at load and were scheduled
    /// before this one.
    pub placed_first: i64,
    /// The pods whose requests are in `placed_first`.
    pub placed_pods: Vec<NamespacedName>,
}

/// Amounts are serialized as Kubernetes quantities.
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
            ("placedFirst", self.placed_first),
        ];
        let mut fields = serializer.serialize_struct("Shortage", amounts.len() + 5)?;
        fields.serialize_field("resource", &self.resource)?;
        for (name, amount) in amounts {
            fields.serialize_field(name, &quantity(&self.resource, amount).to_string())?;
        }
        fields.serialize_field("podLevel", &self.pod_level)?;
        fields.serialize_field("initContainer", &self.init_container)?;
        fields.serialize_field("reservedFor", &self.reserved_for)?;
        fields.serialize_field("placedPods", &self.placed_pods)?;
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

impl Shortage {
    /// Whether the amount would suffice without the nominated pods.
    fn is_reserved(&self) -> bool {
        self.needed <= self.allocatable - self.requested
    }

    /// The scheduler's own words: `Insufficient cpu`.
    pub fn title(&self) -> String {
        match self.resource.as_str() {
            "pods" => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        }
    }

    /// How much is missing, in short; `None` if the amount is only reserved for nominated pods.
    pub fn lack(&self) -> Option<String> {
        let (needed, has) = (self.show(self.needed), self.show(self.allocatable));
        match self.needed > self.allocatable {
            _ if self.resource == "pods" => None,
            true => Some(format!("needs {needed} {}, {has} allocatable", self.resource)),
            false if self.is_reserved() => None,
            false => Some(format!("{} {} short", self.show(self.short_by), self.resource)),
        }
    }

    fn who_asks(&self) -> String {
        match (self.init_container, self.pod_level, self.overhead) {
            (Some(name), ..) => format!(" (init container {name})"),
            (None, true, 0) => " (the pod's spec.resources)".to_owned(),
            (None, _, 0) => String::new(),
            (None, _, overhead) => format!(" ({} of it overhead)", self.show(overhead)),
        }
    }

    fn show(&self, amount: i64) -> String {
        amount::of(&self.resource, amount)
    }

    /// The free amount and how it is computed.
    fn what_is_free(&self) -> String {
        let show = |amount| self.show(amount);
        let has = show(self.allocatable);
        let used = format!("{} requested{}", show(self.requested), self.placed_first());
        let unreserved = show(self.allocatable - self.requested);
        match (self.nominated, self.is_reserved()) {
            (0, _) => format!("{} free ({has} allocatable − {used})", show(self.free)),
            (kept, true) => format!(
                "{unreserved} free ({has} allocatable − {used}), but {} reserved for {}",
                show(kept),
                self.reserved_for()
            ),
            (kept, false) => format!(
                "{} free ({has} allocatable − {used} − {} reserved for {})",
                show(self.free),
                show(kept),
                self.reserved_for()
            ),
        }
    }

    /// `, 1 of it by default/urgent, placed first`
    fn placed_first(&self) -> String {
        let by = match self.placed_pods.as_slice() {
            [] => return String::new(),
            [pod] => pod.to_string(),
            [pod, others @ ..] => format!("{pod} and {}", count(others.len(), "more pod")),
        };
        format!(", {} of it by {by}, placed first", self.show(self.placed_first))
    }

    fn reserved_for(&self) -> String {
        match self.reserved_for.as_slice() {
            [] => "nominated pods".to_owned(),
            [pod] => format!("{pod}, nominated to the node"),
            [pod, others @ ..] => {
                format!("{pod} and {}, nominated to the node", count(others.len(), "more pod"))
            }
        }
    }
}

impl CauseText for Shortage {
    fn gist(&self) -> String {
        let is_too_large = self.resource != "pods" && self.needed > self.allocatable;
        self.title() + if is_too_large { " even on the empty node" } else { "" }
    }

    fn text(&self) -> String {
        let needs = format!("needs {}{}", self.show(self.needed), self.who_asks());
        match (self.resource.as_str(), self.needed > self.allocatable) {
            ("pods", _) => format!("{}: {}", self.gist(), self.what_is_free()),
            (name, true) => {
                let has = self.show(self.allocatable);
                format!("Insufficient {name}: {needs}, node has {has} allocatable")
            }
            (name, false) => {
                let free = self.what_is_free();
                let short = match self.is_reserved() {
                    true => String::new(),
                    false => format!(": {} {name} short", self.show(self.short_by)),
                };
                format!("Insufficient {name}: {needs}, {free}{short}")
            }
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let lacking = shortfalls(case.state, case.node).into_iter();
    lacking.map(|lacking| cause(case, lacking)).collect()
}

fn cause(case: &RejectedCase<'_>, lacking: Shortfall) -> Cause {
    let Shortfall { resource, allocatable, requested, needed } = lacking;
    let pod = &case.probe.pod().pod;
    let before = match resource.as_str() {
        "pods" => case.plain.pods.len() as i64,
        _ => case.plain.requested.amount(resource),
    };
    let overhead = pod.spec.overhead.as_ref().map(Resource::from_list);
    let free = allocatable - requested;
    let pod_level = case.probe.cx().features.enabled(Feature::PodLevelResources)
        && pod.spec.resources.as_ref().is_some_and(|own| own.request(resource).is_some());
    let init = || InitContainer(ruling_init_container(pod, resource));
    let placed = placed_first(case, resource);
    let shortage = Shortage {
        resource,
        allocatable,
        requested: before,
        nominated: requested - before,
        free,
        needed,
        short_by: needed - free,
        overhead: overhead.map_or(0, |overhead| overhead.amount(resource)),
        pod_level,
        init_container: if pod_level { None } else { case.memo.get(resource, init).0 },
        reserved_for: reserved_for(case),
        placed_first: placed.iter().map(|placed| placed.1).sum(),
        placed_pods: placed.into_iter().map(|placed| placed.0).collect(),
    };
    // With reservations included, the free amount of a node can be negative.
    let part = (shortage.short_by as f64 / needed.max(1) as f64).min(1.0);
    let outlook = if needed > allocatable { Outlook::Mismatch } else { Outlook::Cluster };
    Cause::new(shortage, part, outlook)
}

/// The pods on the node that were pending when the cluster was loaded, with their requests.
fn placed_first(case: &RejectedCase<'_>, resource: Symbol) -> Vec<(NamespacedName, i64)> {
    let amount = |pod: &PodInfo| match resource.as_str() {
        "pods" => 1,
        _ => pod.resource.resource.amount(resource),
    };
    let pods = case.plain.pods.iter().filter(|pod| (case.memo.is_placed)(pod.key()));
    pods.map(|pod| (pod.key(), amount(pod))).filter(|(_, amount)| *amount > 0).collect()
}

/// The nominated pods that count on the node.
fn reserved_for(case: &RejectedCase<'_>) -> Vec<NamespacedName> {
    let there = |pod: &PodInfo| case.plain.pods.iter().any(|other| other.uid() == pod.uid());
    match std::ptr::eq(case.node, case.plain) {
        true => Vec::new(),
        false => case.node.pods.iter().filter(|pod| !there(pod)).map(|pod| pod.key()).collect(),
    }
}

struct InitContainer(Option<Symbol>);

/// The init container that requests more than the containers that run after it.
fn ruling_init_container(pod: &Pod, resource: Symbol) -> Option<Symbol> {
    let asks_with = |keep: &dyn Fn(&Container) -> bool| {
        let mut part = pod.clone();
        part.spec.init_containers.update(|all| all.retain(|one| is_sidecar(one) || keep(one)));
        let requests = pod_requests(&part, &RequestOptions::default());
        Resource::from_list(&requests).amount(resource)
    };
    let all = asks_with(&|_| true);
    if asks_with(&|_| false) == all {
        return None;
    }
    let mut names = pod.spec.init_containers.iter().map(|one| one.name);
    names.find(|name| asks_with(&|one| one.name == *name) == all)
}
