//! DynamicResources: the claim, the request, and why the accessible devices do not meet it.

use hashbrown::HashMap;
use serde::Serialize;

use super::node_terms::{ParsedTerms, UnmetExpression};
use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{ContainerExtendedResourceRequest, Name, Node, NodeSelector};
use kubestep_framework::dra::DeviceId;
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::dynamic_resources::structured as dra;
use kubestep_plugins::dynamic_resources::structured::{Constrained, DeviceShortage};
use kubestep_plugins::dynamic_resources::{
    DeviceReason, DynamicResourcesArgs, Unavailable, Wanted, WhyUnavailable, reasons, shortage,
};

/// Why a resource claim cannot be used or allocated on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "problem")]
pub enum DeviceCause {
    /// The claim's devices are not accessible from the node.
    OutOfReach {
        /// Namespace and name of the claim.
        claim: NamespacedName,
        /// The unmet expressions of the allocation's node selector.
        unmet: Vec<UnmetExpression>,
    },
    /// A device of the claim failed.
    Failed {
        /// Namespace and name of the claim.
        claim: NamespacedName,
        /// The driver's message, from the conditions of the claim's device.
        message: String,
    },
    /// The claim's devices were not ready in time.
    TimedOut {
        /// Namespace and name of the claim.
        claim: NamespacedName,
    },
    /// Too few devices match a request.
    TooFew {
        /// The devices by request.
        request: Devices,
    },
    /// Each request could be met by itself, but not all of them together.
    NotTogether {
        /// The requests with what each found by itself.
        requests: Vec<Devices>,
        /// The constraints without which they could be met. Empty: the requests compete for
        /// devices, or for counters of a pool.
        constraints: Vec<UnmetConstraint>,
    },
    /// The claims cannot be allocated for a reason that only the plugin's message gives.
    Message {
        /// The status's reason, as the plugin wrote it.
        message: String,
    },
}

/// A constraint that the matching devices do not meet.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetConstraint {
    /// Name of the claim.
    pub claim: String,
    /// Its index in the claim.
    pub index: usize,
    /// The requests that it applies to; all if empty.
    pub requests: Vec<Symbol>,
    /// Name of the attribute.
    pub attribute: Symbol,
    /// Whether its values must be distinct; otherwise they must be equal.
    pub distinct: bool,
    /// The values of the matching devices.
    pub values: Vec<AttributeValue>,
}

/// Devices with the same value of an attribute.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributeValue {
    /// The value; `None` for devices without the attribute.
    pub value: Option<String>,
    /// The devices that have it.
    pub devices: Vec<Symbol>,
}

impl UnmetConstraint {
    fn new(found: Constrained) -> UnmetConstraint {
        let Constrained { claim, index, requests, attribute, distinct, values } = found;
        let value = |(value, devices): (String, Vec<Symbol>)| AttributeValue {
            value: (!value.is_empty()).then_some(value),
            devices,
        };
        let values = values.into_iter().map(value).collect();
        UnmetConstraint { claim, index, requests, attribute, distinct, values }
    }

    fn gist(&self) -> String {
        let UnmetConstraint { claim, requests, attribute, distinct, .. } = self;
        let names: Vec<&str> = requests.iter().map(|name| name.as_str()).collect();
        let over = match names.as_slice() {
            [] => "all requests".to_owned(),
            names => format!("requests {}", names.join(", ")),
        };
        let must = if *distinct { "differ" } else { "agree" };
        format!("claim {claim}: the devices of {over} must {must} in {attribute}")
    }

    fn text(&self) -> String {
        let value = |one: &AttributeValue| {
            let devices: Vec<&str> = one.devices.iter().take(NAMED).map(|d| d.as_str()).collect();
            let more = match one.devices.len() - devices.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let value = one.value.as_deref().unwrap_or("no value");
            format!("{}{more} has {value}", devices.join(", "))
        };
        let values: Vec<String> = self.values.iter().map(value).collect();
        match values.is_empty() {
            true => self.gist(),
            false => format!("{}, but {}", self.gist(), values.join(", ")),
        }
    }
}

/// The devices accessible from a node, counted for a request.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Devices {
    /// Name of the claim.
    pub claim: String,
    /// Name of the request.
    pub request: String,
    /// The extended resource that the request stands for; its claim then exists only in memory.
    pub resource: Option<Symbol>,
    /// Name of the DeviceClass.
    pub class: Name,
    /// The number of requested devices.
    pub wanted: usize,
    /// Whether the allocation mode is `All`.
    pub all: bool,
    /// The number of accessible devices.
    pub devices: usize,
    /// Selectors, each with the number of devices that it excludes.
    pub unselected: Vec<(Symbol, usize)>,
    /// Devices allocated to other claims.
    pub taken: usize,
    /// The claims they are allocated to, as far as known.
    pub taken_by: Vec<Holder>,
    /// Devices with an untolerated taint.
    pub tainted: usize,
    /// Devices with too little free capacity.
    pub too_small: usize,
    /// Devices that match this request by itself.
    pub suitable: usize,
    /// Pools that cannot be used in their state.
    pub unusable_pools: usize,
}

/// The most devices and holders that are listed by name.
const NAMED: usize = 3;

/// A claim with allocated devices, and the pods that use it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Namespace and name of the claim.
    pub claim: NamespacedName,
    /// The pods of its namespace that reserved it.
    pub pods: Vec<Name>,
    /// Its devices among those that match the request.
    pub devices: Vec<Symbol>,
}

impl Holder {
    fn text(&self) -> String {
        let Holder { claim, pods, devices } = self;
        let devices: Vec<&str> = devices.iter().map(|device| device.as_str()).collect();
        let devices = devices.join(", ");
        match pods.as_slice() {
            [] => format!("claim {claim} holds {devices}"),
            [pod] => format!("pod {pod} holds {devices} (claim {claim})"),
            [pod, others @ ..] => {
                format!("pod {pod} and {} more hold {devices} (claim {claim})", others.len())
            }
        }
    }
}

/// The holder of each device.
struct Holders(HashMap<DeviceId, Holder>);

impl Holders {
    fn of(case: &RejectedCase<'_>) -> Holders {
        let mut holders = HashMap::new();
        for (key, claim) in case.probe.cx().objects.resource_claims.sorted() {
            let Some(allocation) = &claim.status.allocation else { continue };
            let pods = claim.status.reserved_for.iter().filter(|user| user.resource == "pods");
            let pods = pods.map(|user| user.name).collect();
            let holder = Holder { claim: *key, pods, devices: Vec::new() };
            for result in &allocation.devices.results {
                let (driver, pool, device) = (result.driver, result.pool, result.device);
                holders.insert(DeviceId { driver, pool, device }, holder.clone());
            }
        }
        Holders(holders)
    }

    /// The holders of some devices, each with its devices.
    fn of_devices(&self, devices: &[DeviceId]) -> Vec<Holder> {
        let mut found: Vec<Holder> = Vec::new();
        for id in devices {
            let Some(holder) = self.0.get(id) else { continue };
            match found.iter_mut().find(|known| known.claim == holder.claim) {
                Some(known) => known.devices.push(id.device),
                None => found.push(Holder { devices: vec![id.device], ..holder.clone() }),
            }
        }
        found
    }
}

impl Devices {
    fn new(
        case: &RejectedCase<'_>,
        found: &dra::DeviceCounts,
        mappings: &[ContainerExtendedResourceRequest],
    ) -> Devices {
        let dra::DeviceCounts { claim, request, class, wanted, all, devices, .. } = found.clone();
        let holders = case.memo.one(|| Holders::of(case));
        let of_request = mappings.iter().find(|mapping| *mapping.request_name == *request);
        Devices {
            claim,
            request,
            resource: of_request.map(|mapping| mapping.resource_name),
            class,
            wanted,
            all,
            devices,
            unselected: found.unselected.clone(),
            taken: found.taken.len(),
            taken_by: holders.of_devices(&found.taken),
            tainted: found.tainted,
            too_small: found.too_small,
            suitable: found.suitable.len(),
            unusable_pools: found.unusable_pools,
        }
    }

    /// The subject of the request.
    fn asks(&self) -> String {
        match self.resource {
            Some(resource) => resource.to_string(),
            None => format!("claim {}, request {}", self.claim, self.request),
        }
    }

    /// The subject and the requested amount.
    fn head(&self) -> String {
        let devices = count(self.wanted, "device");
        let wanted = match (self.all, self.wanted) {
            (true, 0 | 1) => "all devices".to_owned(),
            (true, _) => format!("all {devices}"),
            (false, _) => devices,
        };
        format!("{} needs {wanted} of class {}", self.asks(), self.class)
    }

    /// The main reason why devices do not match; the same for all nodes where it applies.
    fn main_obstacle(&self) -> String {
        let words = match self {
            Devices { devices: 0, .. } => "none is reachable from the node",
            Devices { taken: 1.., .. } => "held by other claims",
            Devices { tainted: 1.., .. } => "they are tainted",
            Devices { too_small: 1.., .. } => "too little capacity is free",
            _ => match self.unselected.first() {
                Some((selector, _)) => return format!("not selected by {selector}"),
                None => "too few exist",
            },
        };
        words.to_owned()
    }

    fn gist(&self) -> String {
        format!("{}: {}", self.head(), self.main_obstacle())
    }

    fn text(&self) -> String {
        if self.devices == 0 && self.unusable_pools == 0 {
            return self.gist();
        }
        let mut parts = vec![format!("{} of {} suitable", self.suitable, self.devices)];
        parts.extend(self.taken_by.iter().take(NAMED).map(Holder::text));
        let listed: usize = self.taken_by.iter().take(NAMED).map(|h| h.devices.len()).sum();
        let counts = [
            (self.taken - listed, "held by other claims"),
            (self.tainted, "tainted"),
            (self.too_small, "with too little free capacity"),
            (self.unusable_pools, "pools that are incomplete or invalid"),
        ];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        parts.extend(some.map(|(count, what)| format!("{count} {what}")));
        let unselected = self.unselected.iter();
        parts.extend(
            unselected.map(|(selector, count)| format!("{count} not selected by {selector}")),
        );
        format!("{}: {}", self.head(), parts.join(", "))
    }
}

impl CauseText for DeviceCause {
    fn gist(&self) -> String {
        match self {
            DeviceCause::OutOfReach { claim, .. } => {
                format!("the devices of claim {claim} cannot be reached from the node")
            }
            DeviceCause::Failed { claim, message } => format!("claim {claim}: {message}"),
            DeviceCause::TimedOut { claim } => {
                format!("the devices of claim {claim} were not ready in time")
            }
            DeviceCause::TooFew { request } => request.gist(),
            DeviceCause::NotTogether { constraints, .. } if !constraints.is_empty() => {
                let all = constraints.iter().map(UnmetConstraint::gist);
                all.collect::<Vec<_>>().join("; ")
            }
            DeviceCause::NotTogether { requests, .. } => {
                let names: Vec<String> = requests.iter().map(Devices::asks).collect();
                format!("not enough devices for all of: {}", names.join("; "))
            }
            DeviceCause::Message { message } => message.clone(),
        }
    }

    fn text(&self) -> String {
        match self {
            DeviceCause::OutOfReach { unmet, .. } if !unmet.is_empty() => {
                let unmet: Vec<String> = unmet.iter().map(UnmetExpression::text).collect();
                format!("{}: they are for {}", self.gist(), unmet.join("; "))
            }
            DeviceCause::TooFew { request } => request.text(),
            DeviceCause::NotTogether { constraints, .. } if !constraints.is_empty() => {
                let all = constraints.iter().map(UnmetConstraint::text);
                all.collect::<Vec<_>>().join("; ")
            }
            DeviceCause::NotTogether { requests, .. } => {
                let each = requests.iter().map(|request| {
                    let Devices { wanted, suitable, .. } = request;
                    format!("{} needs {wanted}, {suitable} suitable", request.asks())
                });
                let mut parts: Vec<String> = each.collect();
                let mut holders: Vec<&Holder> =
                    requests.iter().flat_map(|request| &request.taken_by).collect();
                holders.sort_by_key(|holder| holder.claim);
                holders.dedup_by_key(|holder| holder.claim);
                parts.extend(holders.into_iter().take(NAMED).map(Holder::text));
                format!("not enough devices for all requests: {}", parts.join("; "))
            }
            _ => self.gist(),
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let args = case.probe.args().read::<DynamicResourcesArgs>();
    let found = reasons(&case.probe.cx(), case.state, case.node, &args).into_iter();
    found.flat_map(|reason| causes(case, node, reason)).collect()
}

fn causes(case: &RejectedCase<'_>, node: &Node, reason: DeviceReason) -> Vec<Cause> {
    let quoted =
        |message: String| vec![Cause::new(DeviceCause::Message { message }, 1.0, Outlook::Manual)];
    match reason {
        DeviceReason::Status(_) | DeviceReason::Failed(_) => quoted(case.status.message()),
        DeviceReason::Unavailable(claims) => {
            claims.into_iter().map(|claim| unavailable(case, claim)).collect()
        }
        DeviceReason::NotAllocated(wanted) => {
            let found = not_allocated(case, &wanted, shortage(case.state, node, &wanted));
            if found.is_empty() { quoted(case.status.message()) } else { found }
        }
    }
}

fn unavailable(case: &RejectedCase<'_>, unavailable: Unavailable) -> Cause {
    let Unavailable { claim: object, why, .. } = unavailable;
    let claim = NamespacedName::new(object.metadata.namespace, object.metadata.name);
    let (cause, outlook) = match why {
        WhyUnavailable::OutOfReach => {
            let allocation = object.status.allocation.as_ref();
            let selector = allocation.and_then(|found| found.node_selector.as_ref());
            let unmet = selector.map(|selector| unmet(case, claim, selector)).unwrap_or_default();
            (DeviceCause::OutOfReach { claim, unmet }, Outlook::Mismatch)
        }
        WhyUnavailable::Failed(message) => {
            (DeviceCause::Failed { claim, message }, Outlook::Manual)
        }
        WhyUnavailable::TimedOut => (DeviceCause::TimedOut { claim }, Outlook::Manual),
    };
    Cause::new(cause, 1.0, outlook)
}

fn not_allocated(case: &RejectedCase<'_>, wanted: &Wanted, shortage: DeviceShortage) -> Vec<Cause> {
    let devices = |one: &dra::DeviceCounts| Devices::new(case, one, &wanted.mappings);
    let short: Vec<&dra::DeviceCounts> = shortage.short().collect();
    if short.is_empty() && !shortage.requests.is_empty() {
        let requests = shortage.requests.iter().map(devices).collect();
        let constraints = shortage.constraints.into_iter().map(UnmetConstraint::new).collect();
        let cause = DeviceCause::NotTogether { requests, constraints };
        return vec![Cause::new(cause, 1.0, Outlook::Cluster)];
    }
    let cause = |found: &&dra::DeviceCounts| {
        let (wanted, suitable) = (found.wanted.max(1), found.suitable.len());
        let missing = (wanted - suitable.min(wanted)) as f64 / wanted as f64;
        // Allocated devices may be released; missing or excluded ones stay so.
        let outlook = match suitable + found.taken.len() + found.too_small >= wanted {
            true => Outlook::Cluster,
            false => Outlook::Mismatch,
        };
        Cause::new(DeviceCause::TooFew { request: devices(found) }, missing, outlook)
    };
    short.iter().map(cause).collect()
}

/// Terms that were parsed once, by claim.
struct ClaimTerms(ParsedTerms);

fn unmet(
    case: &RejectedCase<'_>,
    claim: NamespacedName,
    selector: &NodeSelector,
) -> Vec<UnmetExpression> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let (snapshot, memo) = (case.probe.snapshot(), case.memo);
    let name = Symbol::new(&format!("devices {claim}"));
    let parsed = memo.get(name, || ClaimTerms(ParsedTerms::new(selector, true, snapshot, memo)));
    parsed.0.unmet(node, node.metadata.name)
}
