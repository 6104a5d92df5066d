//! Explains why claims cannot be allocated on a node: for each request, how many of the node's
//! devices are not selected, allocated, tainted or too small; and if every request could be met by
//! itself, the constraints that prevent a joint allocation. The search only reports that it found
//! nothing; every number here comes from one of its own steps, or from a search with fewer
//! constraints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dynamic_resources::structured::allocator::Allocator;
use crate::dynamic_resources::structured::constraint::{ConstraintState, lookup};
use crate::dynamic_resources::structured::device::DeviceRef;
use crate::dynamic_resources::structured::pools::PoolState;
use crate::dynamic_resources::structured::request::RequestData;
use crate::dynamic_resources::structured::search::{
    DeviceSearch, SearchPosition, full_name, has_untolerated_taint, unmet_selector,
};
use kubestep_api::intern::Symbol;
use kubestep_api::{DeviceAttribute, Name, Node, ResourceClaim};
use kubestep_framework::dra::DeviceId;

/// What prevents an allocation on a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct DeviceShortage {
    /// The devices by request.
    pub requests: Vec<DeviceCounts>,
    /// The constraints without which the claims could be allocated.
    pub constraints: Vec<Constrained>,
}

/// The devices available to a node, counted by whether a request can use them.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct DeviceCounts {
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// The request, or `request/alternative`.
    pub request: String,
    /// The device class, by name.
    pub class: Name,
    /// The number of devices requested.
    pub wanted: usize,
    /// Whether all matching devices were requested.
    pub all: bool,
    /// The number of devices available to the node.
    pub devices: usize,
    /// The number of devices that a selector rejects, by the first such selector.
    pub unselected: Vec<(Symbol, usize)>,
    /// Devices allocated to other claims.
    pub taken: Vec<DeviceId>,
    /// The number of devices with an untolerated taint.
    pub tainted: usize,
    /// The number of devices with too little free capacity, or whose pool's counters are too low.
    pub too_small: usize,
    /// Devices that match this request by itself.
    pub suitable: Vec<DeviceId>,
    /// The number of pools that are incomplete or invalid.
    pub unusable_pools: usize,
}

/// A constraint of a claim that the devices cannot satisfy.
#[derive(Clone, PartialEq, Debug)]
pub struct Constrained {
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// Its index in the claim.
    pub index: usize,
    /// The requests that it applies to; all if empty.
    pub requests: Vec<Symbol>,
    /// The attribute, with its domain.
    pub attribute: Symbol,
    /// Whether its values must differ; otherwise they must be equal.
    pub distinct: bool,
    /// The matching devices by value; the key is empty for devices without the attribute.
    pub values: BTreeMap<String, Vec<Symbol>>,
}

impl DeviceShortage {
    /// The requests with too few matching devices for every one of their alternatives.
    pub fn short(&self) -> impl Iterator<Item = &DeviceCounts> {
        let met = |request: &&DeviceCounts| {
            let same = self.requests.iter().filter(|one| one.is_of(request));
            same.into_iter().any(DeviceCounts::is_enough)
        };
        self.requests.iter().filter(move |request| !met(request))
    }
}

impl DeviceCounts {
    /// Whether both belong to the same request of the claim.
    fn is_of(&self, other: &DeviceCounts) -> bool {
        let base = |one: &DeviceCounts| one.request.split('/').next().map(str::to_owned);
        self.claim == other.claim && base(self) == base(other)
    }

    /// Whether enough devices match this request by itself.
    pub fn is_enough(&self) -> bool {
        self.suitable.len() >= self.wanted.max(1)
    }

    fn unselected_by(&mut self, selector: Symbol) {
        match self.unselected.iter_mut().find(|(known, _)| *known == selector) {
            Some((_, count)) => *count += 1,
            None => self.unselected.push((selector, 1)),
        }
    }
}

impl Allocator {
    /// Why the claims cannot be allocated on the node. Empty if the claims themselves are invalid.
    pub fn shortage(&self, node: &Node, claims: &[Arc<ResourceClaim>]) -> DeviceShortage {
        let Ok(pools) = self.slices.pools(node, &self.features()) else {
            return DeviceShortage::default();
        };
        let mut search = DeviceSearch::new(self, node, claims, &pools);
        if search.prepare().is_err() {
            return DeviceShortage::default();
        }
        let requests = search.each_request();
        let mut shortage = DeviceShortage { requests, constraints: Vec::new() };
        if shortage.short().next().is_none() {
            shortage.constraints = self.unmet_constraints(&search, &shortage.requests);
        }
        shortage
    }

    /// The single constraint without which the claims can be allocated, or all constraints if the
    /// claims can be allocated only without any.
    fn unmet_constraints(
        &self,
        search: &DeviceSearch<'_>,
        requests: &[DeviceCounts],
    ) -> Vec<Constrained> {
        let each = || {
            let of_claim = |(claim, all): (usize, &Vec<ConstraintState>)| {
                (0..all.len()).map(move |at| (claim, at)).collect::<Vec<_>>()
            };
            search.constraints.iter().enumerate().flat_map(of_claim)
        };
        let one = each().find(|one| self.is_allocated_without(search, |at| at == *one));
        let unmet: Vec<(usize, usize)> = match one {
            Some(one) => vec![one],
            None if self.is_allocated_without(search, |_| true) => each().collect(),
            None => Vec::new(),
        };
        unmet.into_iter().map(|(claim, at)| search.constrained(claim, at, requests)).collect()
    }

    /// Whether the claims could be allocated without the given constraints.
    fn is_allocated_without(
        &self,
        search: &DeviceSearch<'_>,
        leaves_out: impl Fn((usize, usize)) -> bool,
    ) -> bool {
        let without = |(claim_at, claim): (usize, &Arc<ResourceClaim>)| {
            let mut claim = ResourceClaim::clone(claim);
            let mut at = 0..;
            let devices = &mut claim.spec.devices;
            devices.constraints.retain(|_| {
                at.next().is_some_and(|constraint| !leaves_out((claim_at, constraint)))
            });
            Arc::new(claim)
        };
        let claims: Vec<_> = search.claims.iter().enumerate().map(without).collect();
        matches!(self.search(search.node, &claims, search.pools).found, Ok(Some(_)))
    }
}

impl<'a> DeviceSearch<'a> {
    /// Counts the devices for each request by itself, before any device is allocated.
    fn each_request(&mut self) -> Vec<DeviceCounts> {
        let requests = self.requests.clone();
        let mut found = Vec::new();
        for (claim, requests) in requests.iter().enumerate() {
            for (request, alternatives) in requests.iter().enumerate() {
                for (sub, data) in alternatives.data.iter().enumerate() {
                    let at = SearchPosition { claim, request, sub, device: 0 };
                    found.push(self.devices(at, data));
                }
            }
        }
        found
    }

    fn devices(&mut self, at: SearchPosition, data: &RequestData<'a>) -> DeviceCounts {
        let name = data.view.name;
        let sub = name.sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        let pools = self.pools;
        let unusable = pools.iter().filter(|pool| pool.state != PoolState::Usable);
        let mut found = DeviceCounts {
            claim: full_name(&self.claims[at.claim]),
            request: format!("{}{sub}", name.base),
            class: data.view.class,
            wanted: data.wanted,
            all: data.view.wants_all(),
            unusable_pools: unusable.count(),
            ..DeviceCounts::default()
        };
        for (pool, known) in pools.iter().enumerate() {
            for slice in &known.slices {
                for (index, device) in slice.slice.spec.devices.iter().enumerate() {
                    let id = slice.id(device);
                    let device = DeviceRef { id, device, slice, index, pool };
                    self.count(&mut found, at, data, device);
                }
            }
        }
        found
    }

    fn count(
        &mut self,
        found: &mut DeviceCounts,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
    ) {
        if !device.slice.device_reaches(device.index, self.node).unwrap_or(false) {
            return;
        }
        found.devices += 1;
        let features = self.allocator.features();
        // A selector that fails on a device counts as rejecting it.
        if !self.is_selectable(at, data, device).unwrap_or(false) {
            match text_of_unmet(data, device) {
                Some(selector) => found.unselected_by(selector),
                // The device has binding conditions, and their feature is off.
                None => found.devices -= 1,
            }
        } else if self.is_taken(at, data, device) {
            found.taken.push(device.id);
        } else if features.taints && has_untolerated_taint(device, data.view.tolerations) {
            found.tainted += 1;
        } else if !self.has_capacity(data, device) || !self.has_counters(device) {
            found.too_small += 1;
        } else {
            found.suitable.push(device.id);
        }
    }

    /// Whether the pool's counters suffice for this device alone.
    fn has_counters(&mut self, device: DeviceRef<'a>) -> bool {
        self.consumed.clear();
        let takes = self.takes_counters(device, device.is_shared());
        self.consumed.clear();
        takes
    }

    fn constrained(&self, claim: usize, at: usize, requests: &[DeviceCounts]) -> Constrained {
        let (name, constraint) = (full_name(&self.claims[claim]), &self.constraints[claim][at]);
        let data = self.requests[claim].iter().flat_map(|request| &request.data);
        let over: BTreeSet<Symbol> = data
            .filter(|data| constraint.applies_to(data.view.name))
            .map(|data| data.view.name.full())
            .collect();
        let of_claim = requests.iter().filter(|request| {
            request.claim == name && over.contains(&Symbol::new(&request.request))
        });
        let suitable: BTreeSet<DeviceId> = of_claim.flat_map(|one| one.suitable.clone()).collect();
        let mut values: BTreeMap<String, Vec<Symbol>> = BTreeMap::new();
        let slices = self.pools.iter().flat_map(|pool| &pool.slices);
        for slice in slices {
            for device in &slice.slice.spec.devices {
                if suitable.contains(&slice.id(device)) {
                    let value = lookup(device, slice.slice.spec.driver, constraint.attribute);
                    let value = value.map(text_of_value).unwrap_or_default();
                    values.entry(value).or_default().push(device.name);
                }
            }
        }
        Constrained {
            claim: name,
            index: at,
            requests: constraint.requests.clone(),
            attribute: constraint.attribute,
            distinct: constraint.is_distinct(),
            values,
        }
    }
}

/// The first selector, of the class or of the request, that rejects the device.
fn text_of_unmet(data: &RequestData<'_>, device: DeviceRef<'_>) -> Option<Symbol> {
    let texts = data.class.spec.selectors.iter().chain(data.view.selectors);
    let texts: Vec<Symbol> =
        texts.filter_map(|selector| Some(selector.cel.as_ref()?.expression)).collect();
    let compiled: Vec<_> =
        data.class_selectors.iter().chain(data.selectors.iter()).cloned().collect();
    let fails = |at: &usize| {
        let one = std::slice::from_ref(&compiled[*at]);
        !matches!(unmet_selector(one, device, String::new), Ok(None))
    };
    let unmet = (0..compiled.len()).find(fails)?;
    texts.get(unmet).copied()
}

fn text_of_value(value: &DeviceAttribute) -> String {
    let DeviceAttribute { string_value, int_value, bool_value, version_value, .. } = value;
    let text = string_value.or(*version_value).map(|text| text.to_string());
    let number = int_value.map(|number| number.to_string());
    text.or(number).or(bool_value.map(|flag| flag.to_string())).unwrap_or_default()
}
