//! DynamicResources: the claim, the request, and what of the devices in reach fails it.

use hashbrown::HashMap;
use serde::Serialize;

use super::node_terms::{NodeTerms, Unmet};
use super::{Case, Cause, Outlook, Words};
use crate::api::NodeSelector;
use crate::engine::dra::{DeviceId, Survey};
use crate::engine::plugins::dynamic_resources::{Obstacle, obstacles};
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;

/// Why a resource claim cannot be used or allocated on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "problem")]
pub enum DeviceCause {
    /// The claim's devices cannot be reached from the node.
    OutOfReach {
        /// The claim.
        claim: NamespacedName,
        /// What of the allocation's node selector the node does not meet.
        unmet: Vec<Unmet>,
    },
    /// A device of the claim failed.
    Failed {
        /// The claim.
        claim: NamespacedName,
        /// What is said of it.
        saying: String,
    },
    /// The claim's devices were not ready in time.
    TimedOut {
        /// The claim.
        claim: NamespacedName,
    },
    /// Too few devices suit a request.
    TooFew {
        /// What the devices in reach come to.
        request: Devices,
    },
    /// Each request could be met by itself, but not all together: they compete for devices or
    /// counters, or a constraint over several of them cannot be met.
    NotTogether {
        /// The requests.
        requests: Vec<Devices>,
    },
    /// The claims cannot be allocated for a reason that only the plugin's words tell.
    Said {
        /// Those words.
        saying: String,
    },
}

/// What the devices in reach of a node come to for a request.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Devices {
    /// The claim.
    pub claim: String,
    /// The request.
    pub request: String,
    /// The device class.
    pub class: Symbol,
    /// How many devices are asked for; 0 for all there are.
    pub wanted: usize,
    /// Devices in reach.
    pub devices: usize,
    /// Selectors with how many of the devices each does not select.
    pub unselected: Vec<(Symbol, usize)>,
    /// Devices that other claims have.
    pub taken: usize,
    /// The claims that have them, as far as they are written down.
    pub taken_by: Vec<Holder>,
    /// Devices with a taint that is not tolerated.
    pub tainted: usize,
    /// Devices with too little capacity left.
    pub too_small: usize,
    /// Devices that suit this request by itself.
    pub suitable: usize,
    /// Pools that cannot be used as they are.
    pub unusable_pools: usize,
}

/// A claim that has devices, and who uses it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The claim.
    pub claim: NamespacedName,
    /// The pods of its namespace that it is reserved for.
    pub pods: Vec<Symbol>,
}

impl Holder {
    fn words(&self) -> String {
        let Holder { claim, pods } = self;
        match pods.as_slice() {
            [] => format!("claim {claim}"),
            [pod] => format!("claim {claim} of pod {pod}"),
            [pod, others @ ..] => format!("claim {claim} of pod {pod} and {} more", others.len()),
        }
    }
}

/// Who has which device.
struct Holders(HashMap<DeviceId, Holder>);

impl Holders {
    fn of(case: &Case<'_>) -> Holders {
        let mut holders = HashMap::new();
        for (key, claim) in case.probe.cx().objects.resource_claims.iter() {
            let Some(allocation) = &claim.status.allocation else { continue };
            let pods = claim.status.reserved_for.iter().filter(|user| user.resource == "pods");
            let holder = Holder { claim: *key, pods: pods.map(|user| user.name).collect() };
            for result in &allocation.devices.results {
                let (driver, pool, device) = (result.driver, result.pool, result.device);
                holders.insert(DeviceId { driver, pool, device }, holder.clone());
            }
        }
        Holders(holders)
    }
}

impl Devices {
    fn new(case: &Case<'_>, survey: &Survey) -> Devices {
        let Survey { claim, request, class, wanted, devices, unselected, .. } = survey.clone();
        let holders = case.memo.one(|| Holders::of(case));
        let mut taken_by: Vec<Holder> =
            survey.taken.iter().filter_map(|id| holders.0.get(id).cloned()).collect();
        taken_by.dedup();
        Devices {
            claim,
            request,
            class,
            wanted,
            devices,
            unselected,
            taken: survey.taken.len(),
            taken_by,
            tainted: survey.tainted,
            too_small: survey.too_small,
            suitable: survey.suitable,
            unusable_pools: survey.unusable_pools,
        }
    }
}

impl Devices {
    /// What is asked for.
    fn head(&self) -> String {
        let Devices { claim, request, class, .. } = self;
        let wanted = match self.wanted {
            0 => "all devices".to_owned(),
            1 => "1 device".to_owned(),
            many => format!("{many} devices"),
        };
        format!("claim {claim}, request {request}: {wanted} of class {class} cannot be had")
    }

    /// What most of all keeps the devices away, the same for all nodes where it is so.
    fn main_obstacle(&self) -> String {
        let words = match self {
            Devices { devices: 0, .. } => "none is in reach",
            Devices { taken: 1.., .. } => "others have them",
            Devices { tainted: 1.., .. } => "they are tainted",
            Devices { too_small: 1.., .. } => "too little capacity is left",
            _ => match self.unselected.first() {
                Some((selector, _)) => return format!("not selected by {selector}"),
                None => "there are too few",
            },
        };
        words.to_owned()
    }

    fn gist(&self) -> String {
        format!("{}: {}", self.head(), self.main_obstacle())
    }

    fn words(&self) -> String {
        if self.devices == 0 && self.unusable_pools == 0 {
            return self.gist();
        }
        let mut parts = vec![format!("{} in reach", self.devices)];
        let unselected = self.unselected.iter();
        parts.extend(
            unselected.map(|(selector, count)| format!("{count} not selected by {selector}")),
        );
        parts.extend((self.taken > 0).then(|| self.taken_words()));
        let counts = [
            (self.tainted, "tainted"),
            (self.too_small, "with too little capacity left"),
            (self.unusable_pools, "pools that are incomplete or invalid"),
        ];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        parts.extend(some.map(|(count, what)| format!("{count} {what}")));
        parts.push(format!("{} suitable", self.suitable));
        format!("{}: {}", self.head(), parts.join(", "))
    }

    fn taken_words(&self) -> String {
        let by = match self.taken_by.as_slice() {
            [] => "other claims".to_owned(),
            [holder] => holder.words(),
            [holder, others @ ..] => {
                format!("{} and {} more", holder.words(), others.len())
            }
        };
        format!("{} taken by {by}", self.taken)
    }
}

impl Words for DeviceCause {
    fn gist(&self) -> String {
        match self {
            DeviceCause::OutOfReach { claim, .. } => {
                format!("the devices of claim {claim} cannot be reached from there")
            }
            DeviceCause::Failed { claim, saying } => format!("claim {claim}: {saying}"),
            DeviceCause::TimedOut { claim } => {
                format!("the devices of claim {claim} were not ready in time")
            }
            DeviceCause::TooFew { request } => request.gist(),
            DeviceCause::NotTogether { requests } => {
                let names: Vec<&str> = requests.iter().map(|r| r.request.as_str()).collect();
                format!("requests {} cannot be met together", names.join(", "))
            }
            DeviceCause::Said { saying } => saying.clone(),
        }
    }

    fn words(&self) -> String {
        match self {
            DeviceCause::OutOfReach { unmet, .. } if !unmet.is_empty() => {
                let unmet: Vec<String> = unmet.iter().map(Unmet::words).collect();
                format!("{}: they are for {}", self.gist(), unmet.join("; "))
            }
            DeviceCause::TooFew { request } => request.words(),
            DeviceCause::NotTogether { requests } => {
                let told = requests.iter().map(|request| {
                    format!("{} has {} suitable devices", request.request, request.suitable)
                });
                format!(
                    "{}, though each could be by itself ({}): they compete for devices or \
                     counters, or a constraint does not hold",
                    self.gist(),
                    told.collect::<Vec<_>>().join(", ")
                )
            }
            _ => self.gist(),
        }
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let args = &case.probe.args().dynamic_resources;
    let found = obstacles(&case.probe.cx(), case.state, case.node, args);
    let mut causes: Vec<Cause> = found.into_iter().flat_map(|found| told(case, found)).collect();
    if causes.is_empty() {
        let saying = case.status.message();
        causes.push(Cause::new(DeviceCause::Said { saying }, 1.0, Outlook::ByHand));
    }
    causes
}

fn told(case: &Case<'_>, obstacle: Obstacle) -> Vec<Cause> {
    let (cause, outlook) = match obstacle {
        Obstacle::OutOfReach(claim, selector) => {
            let unmet = unmet(case, claim, &selector);
            (DeviceCause::OutOfReach { claim, unmet }, Outlook::Mismatch)
        }
        Obstacle::Failed(claim, saying) => (DeviceCause::Failed { claim, saying }, Outlook::ByHand),
        Obstacle::TimedOut(claim) => (DeviceCause::TimedOut { claim }, Outlook::ByHand),
        Obstacle::NotAllocated(surveys) => return not_allocated(case, &surveys),
    };
    vec![Cause::new(cause, 1.0, outlook)]
}

fn not_allocated(case: &Case<'_>, surveys: &[Survey]) -> Vec<Cause> {
    let short: Vec<&Survey> = surveys.iter().filter(|survey| !survey.is_enough()).collect();
    if short.is_empty() {
        let requests: Vec<Devices> = surveys.iter().map(|one| Devices::new(case, one)).collect();
        if requests.is_empty() {
            return Vec::new();
        }
        return vec![Cause::new(DeviceCause::NotTogether { requests }, 1.0, Outlook::Cluster)];
    }
    let cause = |survey: &&Survey| {
        let wanted = survey.wanted.max(1);
        let missing = (wanted - survey.suitable.min(wanted)) as f64 / wanted as f64;
        // What others have may come free; what is not there or not selected does not.
        let outlook = match survey.suitable + survey.taken.len() + survey.too_small >= wanted {
            true => Outlook::Cluster,
            false => Outlook::Mismatch,
        };
        let request = Devices::new(case, survey);
        Cause::new(DeviceCause::TooFew { request }, missing, outlook)
    };
    short.iter().map(cause).collect()
}

/// Terms that were parsed once, by the claim.
struct Parsed(NodeTerms);

fn unmet(case: &Case<'_>, claim: NamespacedName, selector: &NodeSelector) -> Vec<Unmet> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let (snapshot, memo) = (case.probe.snapshot(), case.memo);
    let name = Symbol::new(&format!("devices {claim}"));
    let parsed = memo.get(name, || Parsed(NodeTerms::of_selector(selector, true, snapshot, memo)));
    parsed.0.unmet(node).1
}
