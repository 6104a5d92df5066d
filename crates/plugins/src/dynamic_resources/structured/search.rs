//! The depth-first search: claim by claim, request by request, device by device. It takes the
//! first device that fits and backtracks if the rest cannot be allocated.
//!
//! Upstream: `allocateOne`, `allocateDevice` and `isSelectable` in `allocator_incubating.go`. Three
//! omissions of upstream are replicated: counters stay consumed if the taints or a constraint
//! then reject the device, constraints stay updated if its capacity does not suffice, and counters
//! of shared devices are not released on backtracking.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::dynamic_resources::structured::allocator::Allocator;
use crate::dynamic_resources::structured::constraint::{ConstraintState, RequestName};
use crate::dynamic_resources::structured::counters::{self, Counters};
use crate::dynamic_resources::structured::device::DeviceRef;
use crate::dynamic_resources::structured::pools::{DevicePool, PoolState};
use crate::dynamic_resources::structured::request::{Alternatives, RequestData};
use crate::dynamic_resources::structured::rules::AllDevices;
use crate::dynamic_resources::structured::{MAX_DEVICES_PER_CLAIM, capacity};
use kubestep_api::{DeviceTaint, DeviceToleration, Name};
use kubestep_api::{DeviceTaintEffect, DeviceTolerationOperator, Node, ResourceClaim};
use kubestep_cel::Expression;
use kubestep_framework::dra::DeviceId;
use kubestep_framework::dra::allocated::{self, Capacities, PoolDevices};
use kubestep_framework::error::PluginError;

/// Why the search, or a branch of it, ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SearchStop {
    /// A claim would get more devices than it may have: only this branch ends.
    TooMany,
    /// The search reached its time limit.
    TimedOut,
    /// A device of a request for all devices is taken; up to 1.32 no other branch is tried.
    AllTaken,
    /// An error; its message.
    Failed(String),
}

/// A device that the search allocated.
#[derive(Clone, Debug)]
pub struct Pick<'a> {
    /// The request that it was allocated for.
    pub request: RequestName,
    pub device: DeviceRef<'a>,
    /// Whether the request has admin access, which does not allocate the device exclusively.
    pub admin_access: bool,
    /// The tolerations of the request.
    pub tolerations: &'a [DeviceToleration],
    /// The consumed capacities of a shared device.
    pub consumed: Capacities,
}

/// The position of the search: claim, request, alternative, and device within the request.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct SearchPosition {
    pub claim: usize,
    pub request: usize,
    pub sub: usize,
    pub device: usize,
}

/// Where the search for the next device starts.
#[derive(Clone, Copy, Default)]
struct DeviceCursor {
    pool: usize,
    slice: usize,
    device: usize,
}

/// What [`DeviceSearch::undo`] needs to release a device.
struct Undo<'a> {
    at: SearchPosition,
    request: RequestName,
    device: DeviceRef<'a>,
    is_shared: bool,
    holds: bool,
    picks: usize,
}

/// One search on one node.
pub struct DeviceSearch<'a> {
    pub allocator: &'a Allocator,
    pub node: &'a Node,
    pub claims: &'a [Arc<ResourceClaim>],
    pub pools: &'a [DevicePool],
    /// What is allocated of each pool.
    allocated: Vec<Option<&'a PoolDevices>>,
    /// By claim and request.
    pub requests: Vec<Vec<Alternatives<'a>>>,
    /// The constraints of each claim, with what they require so far.
    pub constraints: Vec<Vec<ConstraintState>>,
    /// The devices allocated so far, by claim.
    pub picks: Vec<Vec<Pick<'a>>>,
    pub(super) matches: HashMap<(SearchPosition, DeviceId), bool>,
    pub(super) consumed: HashMap<Name, Counters>,
    allocating: HashMap<DeviceId, BTreeSet<usize>>,
    allocating_capacity: HashMap<DeviceId, Capacities>,
    /// Whether it depends on more than the node, its pools and what is allocated of them: on the
    /// counters of pools, which those of other nodes with the same name share.
    pub(super) reads_counters: bool,
    /// The number of steps, and of devices looked at.
    pub steps: u64,
    pub looks: u64,
}

impl<'a> DeviceSearch<'a> {
    /// A search that has not started.
    pub fn new(
        allocator: &'a Allocator,
        node: &'a Node,
        claims: &'a [Arc<ResourceClaim>],
        pools: &'a [DevicePool],
    ) -> DeviceSearch<'a> {
        DeviceSearch {
            allocator,
            node,
            claims,
            pools,
            allocated: pools.iter().map(|pool| allocator.allocated_of(pool)).collect(),
            requests: Vec::new(),
            constraints: Vec::new(),
            picks: claims.iter().map(|_| Vec::new()).collect(),
            matches: HashMap::new(),
            consumed: HashMap::new(),
            allocating: HashMap::new(),
            allocating_capacity: HashMap::new(),
            reads_counters: false,
            steps: 0,
            looks: 0,
        }
    }

    /// Whether the search found an allocation; `picks` then holds it.
    pub fn run(&mut self) -> Result<bool, SearchStop> {
        self.allocate(SearchPosition::default(), false, DeviceCursor::default())
    }

    /// Continues at `at`. `alternative_taken`: whether `at.sub` is already chosen.
    ///
    /// It calls itself for each device as upstream's search does, so the depth is bounded by
    /// [`MAX_DEVICES_PER_CLAIM`] for each claim of the pod.
    fn allocate(
        &mut self,
        at: SearchPosition,
        alternative_taken: bool,
        start: DeviceCursor,
    ) -> Result<bool, SearchStop> {
        self.steps += 1;
        let Some(requests) = self.requests.get(at.claim) else { return Ok(true) };
        let Some(request) = requests.get(at.request) else {
            let next = SearchPosition { claim: at.claim + 1, ..SearchPosition::default() };
            return match self.allocate(next, false, DeviceCursor::default()) {
                Err(SearchStop::TooMany) => Ok(false),
                other => other,
            };
        };
        if request.is_list && !alternative_taken {
            return self.allocate_alternatives(at, request.data.len());
        }
        let Some(data) = request.data.get(at.sub) else { return Ok(false) };
        if data.view.wants_all() && data.all.is_empty() && !self.is_all_of_none() {
            return Ok(false);
        }
        if at.device >= data.wanted {
            let next = SearchPosition {
                claim: at.claim,
                request: at.request + 1,
                ..SearchPosition::default()
            };
            return self.allocate(next, false, DeviceCursor::default());
        }
        let after = self.picks[at.claim].len() + data.wanted - at.device;
        if after > MAX_DEVICES_PER_CLAIM {
            return Err(SearchStop::TooMany);
        }
        let data = data.clone();
        match data.view.wants_all() {
            true => self.allocate_all(at, &data),
            false => self.allocate_any(at, &data, start),
        }
    }

    /// Allocates the first alternative with which the rest can be allocated.
    fn allocate_alternatives(
        &mut self,
        at: SearchPosition,
        count: usize,
    ) -> Result<bool, SearchStop> {
        let mut all_exceed = true;
        for sub in 0..count {
            match self.allocate(SearchPosition { sub, ..at }, true, DeviceCursor::default()) {
                Err(SearchStop::TooMany) => continue,
                Err(stop) => return Err(stop),
                Ok(true) => {
                    self.requests[at.claim][at.request].taken = sub;
                    return Ok(true);
                }
                Ok(false) => all_exceed = false,
            }
        }
        if all_exceed { Err(SearchStop::TooMany) } else { Ok(false) }
    }

    /// Allocates the next device of a request for all devices.
    fn allocate_all(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
    ) -> Result<bool, SearchStop> {
        let rules = self.allocator.features().rules;
        let undo = self.pick(at, data, data.all[at.device], true)?;
        match rules.all {
            AllDevices::Ending if undo.is_none() => return Err(SearchStop::AllTaken),
            AllDevices::Keeping | AllDevices::Releasing if undo.is_none() => return Ok(false),
            _ => {}
        }
        // Up to 1.35 the search continues with the first alternative.
        let sub = if rules.all_in_alternatives { at.sub } else { 0 };
        let done = self.next_device(SearchPosition { sub, ..at }, DeviceCursor::default());
        match (rules.all, undo) {
            (AllDevices::Available, _) if done == Ok(false) => {
                return Err(SearchStop::Failed("stop allocation".to_owned()));
            }
            (AllDevices::Releasing, Some(undo)) if done != Ok(true) => self.undo(&undo),
            _ => {}
        }
        done
    }

    /// Whether no device is enough for a request for all devices.
    fn is_all_of_none(&self) -> bool {
        matches!(self.allocator.features().rules.all, AllDevices::Available | AllDevices::Ending)
    }

    fn next_device(&mut self, at: SearchPosition, start: DeviceCursor) -> Result<bool, SearchStop> {
        self.allocate(SearchPosition { device: at.device + 1, ..at }, true, start)
    }

    /// Allocates the first device from `start` on with which the rest can be allocated.
    fn allocate_any(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        start: DeviceCursor,
    ) -> Result<bool, SearchStop> {
        let pools = self.pools;
        for (pool_at, pool) in pools.iter().enumerate().skip(start.pool) {
            self.check_pool(pool)?;
            let in_pool = pool_at == start.pool;
            let first_slice = if in_pool { start.slice } else { 0 };
            for (slice_at, slice) in pool.slices.iter().enumerate().skip(first_slice) {
                let in_slice = in_pool && slice_at == start.slice;
                let first = if in_slice { start.device } else { 0 };
                for (index, device) in slice.slice.spec.devices.iter().enumerate().skip(first) {
                    let id = slice.id(device);
                    let device = DeviceRef { id, device, slice, index, pool: pool_at };
                    let next = DeviceCursor { pool: pool_at, slice: slice_at, device: index + 1 };
                    if self.try_device(at, data, device, next)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Up to 1.34 an invalid pool is an error.
    fn check_pool(&self, pool: &DevicePool) -> Result<(), SearchStop> {
        match &pool.state {
            PoolState::Invalid(why) if !self.allocator.features().rules.skips_unusable => {
                let name = pool.id.name;
                Err(SearchStop::Failed(format!("pool {name} is invalid: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether everything can be allocated with this device.
    fn try_device(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
        next: DeviceCursor,
    ) -> Result<bool, SearchStop> {
        self.looks += 1;
        if self.looks > self.allocator.look_limit() {
            return Err(SearchStop::TimedOut);
        }
        if self.is_taken(at, data, device)
            || !self.is_selectable(at, data, device)?
            || !self.has_capacity(data, device)
        {
            return Ok(false);
        }
        let Some(undo) = self.pick(at, data, device, false)? else { return Ok(false) };
        let done = self.next_device(at, next);
        if done != Ok(true) {
            self.undo(&undo);
        }
        done
    }

    /// Whether the device is in use. A request with admin access may use allocated devices, but not
    /// twice in the same claim.
    pub(super) fn is_taken(
        &self,
        at: SearchPosition,
        data: &RequestData<'_>,
        device: DeviceRef<'_>,
    ) -> bool {
        match (data.view.admin_access, self.allocator.features().rules.admin_once) {
            (true, true) => self.is_allocating_for(&device.id, at.claim),
            (true, false) => false,
            (false, _) => self.is_in_use(device),
        }
    }

    fn is_in_use(&self, device: DeviceRef<'_>) -> bool {
        let allocated = self.allocated_of(device);
        allocated.is_some_and(|allocated| allocated.dedicated.contains(&device.id.device))
            || self.allocating.get(&device.id).is_some_and(|claims| !claims.is_empty())
    }

    /// What is allocated of the device's pool.
    fn allocated_of(&self, device: DeviceRef<'_>) -> Option<&'a PoolDevices> {
        self.allocated.get(device.pool).copied().flatten()
    }

    /// What claims consume of the device's capacities.
    fn consumed_of(&self, device: DeviceRef<'_>) -> Option<&'a Capacities> {
        self.allocated_of(device)?.consumed.get(&device.id.device)
    }

    fn is_allocating_for(&self, id: &DeviceId, claim: usize) -> bool {
        self.allocating.get(id).is_some_and(|claims| claims.contains(&claim))
    }

    /// Whether the selectors match the device, and the device's own node selection the node.
    pub(crate) fn is_selectable(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
    ) -> Result<bool, SearchStop> {
        let features = self.allocator.features();
        let leaves_out = features.rules.knows_conditions && !features.binding_conditions;
        if leaves_out && !device.device.binding_conditions.is_empty() {
            return Ok(false);
        }
        let key = (SearchPosition { device: 0, ..at }, device.id);
        if let Some(known) = self.matches.get(&key) {
            return Ok(*known);
        }
        let matches =
            self.select(at, data, device).map_err(|error| SearchStop::Failed(error.to_string()))?;
        self.matches.insert(key, matches);
        Ok(matches)
    }

    fn select(
        &self,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
    ) -> Result<bool, PluginError> {
        let of_class = || format!("class {}", data.class.metadata.name);
        let of_claim = || format!("claim {}", full_name(&self.claims[at.claim]));
        Ok(unmet_selector(&data.class_selectors, device, of_class)?.is_none()
            && unmet_selector(&data.selectors, device, of_claim)?.is_none()
            && device.slice.device_reaches(device.index, self.node)?)
    }

    /// Whether the device has the requested capacities left.
    pub(crate) fn has_capacity(&self, data: &RequestData<'_>, device: DeviceRef<'_>) -> bool {
        !self.allocator.features().consumable_capacity
            || capacity::fits(
                data.view.capacity,
                &device.device.capacity,
                self.consumed_of(device),
                self.allocating_capacity.get(&device.id),
            )
    }

    /// Allocates the device; `None` if that is impossible. With `must`, an unsatisfied constraint
    /// is an error, as upstream in mode `All`.
    fn pick(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
        must: bool,
    ) -> Result<Option<Undo<'a>>, SearchStop> {
        let features = self.allocator.features();
        let (view, id) = (data.view, device.id);
        let is_shared = features.consumable_capacity && device.is_shared();
        if !(view.admin_access && is_shared) && self.is_taken(at, data, device) {
            return Ok(None);
        }
        if !self.takes_counters(device, is_shared)
            || (features.taints && has_untolerated_taint(device, view.tolerations))
            || !self.meets_constraints(at, data, device, must)?
        {
            return Ok(None);
        }
        let holds = !is_shared && (!view.admin_access || features.rules.admin_once);
        if holds {
            self.allocating.entry(id).or_default().insert(at.claim);
        }
        if !self.has_capacity(data, device) {
            return Ok(None);
        }
        let mut consumed = Capacities::new();
        if is_shared {
            consumed = capacity::consumption(view.capacity, &device.device.capacity);
            allocated::add(self.allocating_capacity.entry(id).or_default(), &consumed);
        }
        let picks = &mut self.picks[at.claim];
        let undo = Undo { at, request: view.name, device, is_shared, holds, picks: picks.len() };
        let (request, tolerations) = (view.name, view.tolerations);
        let admin_access = view.admin_access;
        picks.push(Pick { request, device, admin_access, tolerations, consumed });
        Ok(Some(undo))
    }

    /// Consumes the device's share of the pool's counters; `false` if they do not suffice. A shared
    /// device in use has already consumed them.
    pub(super) fn takes_counters(&mut self, device: DeviceRef<'a>, is_shared: bool) -> bool {
        if device.device.consumes_counters.is_empty() {
            return true;
        }
        if !self.allocator.features().partitionable {
            return false;
        }
        let in_use =
            self.consumed_of(device).is_some() || self.allocating_capacity.contains_key(&device.id);
        if is_shared && in_use {
            return true;
        }
        self.reads_counters = true;
        let available = self.allocator.available_counters(&self.pools[device.pool]);
        let consumed = self.consumed.entry(device.id.pool).or_default();
        counters::consume(consumed, device.device);
        if counters::suffice(&available, consumed) {
            return true;
        }
        counters::release(consumed, device.device);
        false
    }

    fn meets_constraints(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        device: DeviceRef<'a>,
        must: bool,
    ) -> Result<bool, SearchStop> {
        let name = data.view.name;
        let constraints = &mut self.constraints[at.claim];
        let failed = constraints
            .iter_mut()
            .position(|constraint| !constraint.add(name, device.device, device.id.driver));
        let Some(failed) = failed else { return Ok(true) };
        if must {
            return Err(SearchStop::Failed(format!(
                "claim {}, request {}: cannot add device {} because a claim constraint would not \
                 be satisfied",
                full_name(&self.claims[at.claim]),
                data.view.short_name(),
                device.id
            )));
        }
        constraints[..failed].iter_mut().for_each(|constraint| constraint.remove(name));
        Ok(false)
    }

    fn undo(&mut self, undo: &Undo<'a>) {
        let (claim, id) = (undo.at.claim, undo.device.id);
        self.constraints[claim].iter_mut().for_each(|constraint| constraint.remove(undo.request));
        if let Some(claims) = self.allocating.get_mut(&id).filter(|_| undo.holds) {
            claims.remove(&claim);
        }
        if undo.is_shared {
            if let Some(pick) = self.picks[claim].get(undo.picks) {
                release_capacity(&mut self.allocating_capacity, id, &pick.consumed);
            }
        } else if let Some(consumed) = self.consumed.get_mut(&id.pool) {
            counters::release(consumed, undo.device.device);
        }
        self.picks[claim].truncate(undo.picks);
    }
}

fn release_capacity(all: &mut HashMap<DeviceId, Capacities>, id: DeviceId, consumed: &Capacities) {
    if consumed.is_empty() {
        return;
    }
    let Some(allocating) = all.get_mut(&id) else { return };
    allocated::subtract(allocating, consumed);
    if allocating.values().all(kubestep_api::Quantity::is_zero) {
        all.remove(&id);
    }
}

/// The first selector that does not select the device; errors name the class or claim.
pub(super) fn unmet_selector(
    selectors: &[Arc<Expression>],
    device: DeviceRef<'_>,
    owner: impl Fn() -> String,
) -> Result<Option<usize>, PluginError> {
    for (at, selector) in selectors.iter().enumerate() {
        let matches = device.slice.is_selected(device.index, selector);
        if !matches.map_err(|error| format!("{}: selector #{at}: {error}", owner()))? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Whether the device has a NoSchedule or NoExecute taint that is not tolerated.
pub(super) fn has_untolerated_taint(
    device: DeviceRef<'_>,
    tolerations: &[DeviceToleration],
) -> bool {
    let effects = [DeviceTaintEffect::NoSchedule, DeviceTaintEffect::NoExecute];
    let taints = device.device.taints.iter();
    let mut keeping = taints.filter(|taint| effects.contains(&taint.effect));
    keeping.any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    if !toleration.effect.is_unset() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    match toleration.operator {
        DeviceTolerationOperator::Exists => true,
        DeviceTolerationOperator::Equal => toleration.value == taint.value,
        other => other.is_unset() && toleration.value == taint.value,
    }
}

/// `namespace/name`, the form in which errors show a claim.
pub fn full_name(claim: &ResourceClaim) -> String {
    let (namespace, name) = (claim.metadata.namespace, claim.metadata.name);
    match namespace.is_empty() {
        true => name.to_string(),
        false => format!("{namespace}/{name}"),
    }
}
