//! The allocator of one scheduling cycle: the slices, classes and allocated devices, the
//! validation of claims, and the entry to the search.
//!
//! Upstream: `Allocator` and `Allocate` in `allocator_incubating.go`.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use thiserror::Error;

use crate::dynamic_resources::structured::constraint::ConstraintState;
use crate::dynamic_resources::structured::counters::{self, Counters};
use crate::dynamic_resources::structured::device::DeviceRef;
use crate::dynamic_resources::structured::kept::{Demand, Found, FoundOnNode};
use crate::dynamic_resources::structured::pools::{DevicePool, NodePools, PoolState, Slices};
use crate::dynamic_resources::structured::request::{Alternatives, RequestData, RequestView};
use crate::dynamic_resources::structured::search::{
    DeviceSearch, SearchPosition, SearchStop, full_name,
};
use crate::dynamic_resources::structured::{Features, MAX_DEVICES_PER_CLAIM};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocationResult, DeviceAllocationMode, DeviceClass, Name, Node, ResourceClaim,
};
use kubestep_cel as cel;
use kubestep_cel::Expression;
use kubestep_framework::dra::{AllocatedDevices, PoolDevices};
use kubestep_framework::error::PluginError;
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::ByKey;
use kubestep_framework::pod::NamespacedName;

/// Devices that a search looks at in a second, about as many as upstream on common hardware. It
/// turns the time limit into a number, as the engine has no clock.
const LOOKS_PER_SECOND: u64 = 300_000;

/// Why the search on a node ended with an error.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AllocationError {
    /// An error that rejects only this node.
    #[error("{0}")]
    OnNode(String),
    /// The search reached its time limit.
    #[error("filter operation aborted: context deadline exceeded")]
    TimedOut,
    /// Any other error; Filter ends with it.
    #[error("{0}")]
    Failed(String),
}

/// The devices that can be allocated, for all nodes of a scheduling cycle.
#[derive(Debug)]
pub struct Allocator {
    features: Features,
    allocated: Arc<AllocatedDevices>,
    classes: ByKey<DeviceClass>,
    pub(super) slices: Arc<Slices>,
    pub(super) look_limit: u64,
    /// The counters left, by the name of the pool alone: as upstream, pools of two drivers with the
    /// same name share the entry.
    counters: Mutex<HashMap<Name, Arc<Counters>>>,
}

/// What a search on a node found.
pub(super) struct SearchOutcome {
    pub found: Result<Option<Vec<AllocationResult>>, AllocationError>,
    pub steps: u64,
    /// Whether it depends on other nodes too.
    reads_counters: bool,
}

impl Allocator {
    /// Allocates devices of the slices, except the `allocated` ones. The search on a node may take
    /// `seconds`; 0 for no limit.
    pub fn new(
        features: Features,
        allocated: Arc<AllocatedDevices>,
        classes: ByKey<DeviceClass>,
        slices: Arc<Slices>,
        seconds: u64,
    ) -> Allocator {
        Allocator {
            features,
            allocated,
            classes,
            slices,
            look_limit: if seconds == 0 { u64::MAX } else { seconds * LOOKS_PER_SECOND },
            counters: Mutex::default(),
        }
    }

    /// Allocates all claims on the node: one result for each, or `None` if they do not fit.
    ///
    /// # Errors
    /// A claim, class or pool is invalid, or the search reached its time limit.
    pub fn allocate(
        &self,
        node: &Arc<Node>,
        claims: &[Arc<ResourceClaim>],
    ) -> Result<Option<Vec<AllocationResult>>, AllocationError> {
        self.allocate_counting(node, claims).0
    }

    /// Like [`Allocator::allocate`], with the number of steps, which upstream's tests check.
    pub(crate) fn allocate_counting(
        &self,
        node: &Arc<Node>,
        claims: &[Arc<ResourceClaim>],
    ) -> (Result<Option<Vec<AllocationResult>>, AllocationError>, u64) {
        match self.pools_of(node).map(|pools| self.search(node, claims, &pools)) {
            Ok(outcome) => (outcome.found, outcome.steps),
            Err(error) => (Err(error), 0),
        }
    }

    /// Like [`Allocator::allocate`] on the node in a slot, for claims of a demand: what was found
    /// before for others of it is valid while nothing of the node's pools was allocated or freed.
    pub(crate) fn allocate_for(
        &self,
        demand: &Demand,
        (slot, node): (NodeId, &Arc<Node>),
        claims: &[Arc<ResourceClaim>],
    ) -> Result<Found, AllocationError> {
        let pools = self.pools_of(node)?;
        if let Some(known) = demand.on_node(slot, &pools, (self, claims)) {
            return Ok(known);
        }
        let (found, kept) = self.search_to_keep(node, claims, pools);
        kept.into_iter().for_each(|kept| demand.keep(slot, kept));
        found
    }

    /// What is found on a node, and the same to be kept if it depends on nothing but the claims'
    /// specs, the node, its pools, and what is allocated of them.
    pub(super) fn search_to_keep(
        &self,
        node: &Arc<Node>,
        claims: &[Arc<ResourceClaim>],
        pools: Arc<NodePools>,
    ) -> (Result<Found, AllocationError>, Option<FoundOnNode>) {
        let SearchOutcome { found, reads_counters, .. } = self.search(node, claims, &pools);
        let found = found.map(|found| found.map(Arc::new));
        let may_keep = |found: &&Found| {
            !reads_counters && !found.iter().flat_map(|found| found.iter()).any(has_shares)
        };
        // An error names the claim.
        let kept = found.as_ref().ok().filter(may_keep);
        let kept = kept.map(|found| FoundOnNode::new(node, pools, &self.allocated, found.clone()));
        (found, kept)
    }

    /// What is allocated of all pools.
    pub(super) fn allocated(&self) -> &Arc<AllocatedDevices> {
        &self.allocated
    }

    /// Whether what was found depends on the same pools and allocated devices as a search now.
    pub(super) fn confirms(&self, kept: &FoundOnNode) -> bool {
        let pools = self.pools_of(&kept.node);
        pools.is_ok_and(|pools| Arc::ptr_eq(&pools, &kept.pools)) && kept.is_of(&self.allocated)
    }

    /// Whether a search finds the same, for debug builds.
    pub(super) fn finds(&self, kept: &FoundOnNode, claims: &[Arc<ResourceClaim>]) -> bool {
        let pools = self.slices.pools(&kept.node, &self.features);
        let found = pools.map(|pools| self.search(&kept.node, claims, &pools).found);
        found == Ok(Ok(kept.found.as_deref().cloned()))
    }

    /// The pools that a node can use.
    ///
    /// # Errors
    /// A node selector is invalid.
    pub(super) fn pools_of(&self, node: &Arc<Node>) -> Result<Arc<NodePools>, AllocationError> {
        let pools = self.slices.pools_of(node, &self.features);
        pools.map_err(|text| AllocationError::Failed(format!("gather pool information: {text}")))
    }

    pub(super) fn search(
        &self,
        node: &Node,
        claims: &[Arc<ResourceClaim>],
        pools: &[DevicePool],
    ) -> SearchOutcome {
        let mut search = DeviceSearch::new(self, node, claims, pools);
        let found = search.prepare().and_then(|()| search.run());
        SearchOutcome {
            found: finish(&search, found, pools),
            steps: search.steps,
            reads_counters: search.reads_counters,
        }
    }

    pub(super) fn features(&self) -> Features {
        self.features
    }

    /// What is allocated of a pool.
    pub(super) fn allocated_of(&self, pool: &DevicePool) -> Option<&PoolDevices> {
        self.allocated.pool(pool.id).map(AsRef::as_ref)
    }

    pub(super) fn look_limit(&self) -> u64 {
        self.look_limit
    }

    /// The pool's counters less the consumption of the allocated devices.
    pub(super) fn available_counters(&self, pool: &DevicePool) -> Arc<Counters> {
        let mut known = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let compute = || Arc::new(counters::available(pool, &self.allocated));
        known.entry(pool.id.name).or_insert_with(compute).clone()
    }

    fn class(&self, name: Name) -> Option<&Arc<DeviceClass>> {
        self.classes.get(&NamespacedName::new(Symbol::EMPTY, name))
    }
}

/// Whether it has shares of devices, which are named after the claim.
fn has_shares(allocation: &AllocationResult) -> bool {
    allocation.devices.results.iter().any(|result| result.share_id.is_some())
}

fn finish(
    search: &DeviceSearch<'_>,
    found: Result<bool, SearchStop>,
    pools: &[DevicePool],
) -> Result<Option<Vec<AllocationResult>>, AllocationError> {
    match found {
        Ok(true) => {
            let failed = |error: PluginError| AllocationError::Failed(error.to_string());
            search.outcome().map(Some).map_err(failed)
        }
        Ok(false) if pools.iter().any(|pool| matches!(pool.state, PoolState::Invalid(_))) => {
            Err(AllocationError::OnNode("invalid resource pools were encountered".to_owned()))
        }
        Ok(false) => Ok(None),
        Err(SearchStop::AllTaken) => Ok(None),
        Err(SearchStop::TooMany) => {
            Err(AllocationError::Failed("allocation max size exceeded".to_owned()))
        }
        Err(SearchStop::TimedOut) => Err(AllocationError::TimedOut),
        Err(SearchStop::Failed(text)) => Err(AllocationError::Failed(text)),
    }
}

impl<'a> DeviceSearch<'a> {
    /// Validates all requests and checks that no claim needs more devices than it may have.
    pub(super) fn prepare(&mut self) -> Result<(), SearchStop> {
        let claims = self.claims;
        for (claim_at, claim) in claims.iter().enumerate() {
            let mut least = 0;
            let mut requests = Vec::new();
            for (request_at, request) in claim.spec.devices.requests.iter().enumerate() {
                let at = SearchPosition {
                    claim: claim_at,
                    request: request_at,
                    ..SearchPosition::default()
                };
                let is_list = !request.first_available.is_empty();
                let views = RequestView::all(request);
                self.check_features(claim, request.name, is_list, &views)?;
                let data = self.prepare_request(at, views)?;
                least += data.iter().map(|data| data.wanted).min().unwrap_or(0);
                requests.push(Alternatives { data, taken: 0, is_list });
            }
            if least > MAX_DEVICES_PER_CLAIM {
                return Err(SearchStop::Failed(format!(
                    "claim {}: number of requested devices {least} exceeds the claim limit of \
                     {MAX_DEVICES_PER_CLAIM}",
                    full_name(claim)
                )));
            }
            self.requests.push(requests);
            self.constraints.push(constraints(claim, self.allocator.features())?);
        }
        if !self.allocator.features().rules.all_in_alternatives {
            self.matches.clear();
        }
        Ok(())
    }

    /// Rejects requests that need a feature which is off.
    fn check_features(
        &self,
        claim: &ResourceClaim,
        request: Symbol,
        is_list: bool,
        views: &[RequestView<'_>],
    ) -> Result<(), SearchStop> {
        let features = self.allocator.features();
        let claim = full_name(claim);
        if is_list && !features.prioritized_list {
            return Err(SearchStop::Failed(format!(
                "claim {claim}, request {request}: has subrequests, but the DRAPrioritizedList \
                 feature is disabled"
            )));
        }
        let asks = views.iter().find(|view| view.capacity.is_some());
        let rejects = !features.consumable_capacity && !features.is_stable();
        match asks.filter(|_| rejects) {
            None => Ok(()),
            Some(view) => Err(SearchStop::Failed(format!(
                "claim {claim}, {} {}: has capacity requests, but the DRAConsumableCapacity \
                 feature is disabled",
                if is_list { "subrequest" } else { "request" },
                view.short_name()
            ))),
        }
    }

    fn prepare_request(
        &mut self,
        at: SearchPosition,
        views: Vec<RequestView<'a>>,
    ) -> Result<Vec<RequestData<'a>>, SearchStop> {
        let views = views.into_iter().enumerate();
        views.map(|(sub, view)| self.prepare_view(SearchPosition { sub, ..at }, view)).collect()
    }

    /// Validates a request and compiles its selectors; for mode `All`, collects its devices.
    fn prepare_view(
        &mut self,
        at: SearchPosition,
        view: RequestView<'a>,
    ) -> Result<RequestData<'a>, SearchStop> {
        let claims = self.claims;
        let fail = |text: String| {
            let (claim, request) = (full_name(&claims[at.claim]), view.short_name());
            SearchStop::Failed(format!("claim {claim}, request {request}{text}"))
        };
        if let Some(at) = view.selectors.iter().position(|selector| selector.cel.is_none()) {
            let text = "CEL expression empty (unsupported selector type?)";
            return Err(fail(format!(", selector #{at}: {text}")));
        }
        if view.names_admin_access && self.allocator.features().rules.rejects_admin_access {
            return Err(fail(": admin access is requested, but the feature is disabled".into()));
        }
        let name = view.class;
        if name.is_empty() {
            return Err(fail(": missing device class name (unsupported request type?)".into()));
        }
        let allocator = self.allocator;
        let class = allocator.class(name).ok_or_else(|| {
            let missing = format!("deviceclass.resource.k8s.io {:?} not found", name);
            fail(format!(": could not retrieve device class {name}: {missing}"))
        })?;
        let options = allocator.features.cel();
        let mut data = RequestData {
            view,
            class,
            class_selectors: compile(&class.spec.selectors, options),
            selectors: compile(view.selectors, options),
            wanted: usize::try_from(view.count).unwrap_or(0),
            all: Vec::new().into(),
        };
        match view.mode {
            DeviceAllocationMode::ExactCount => {}
            DeviceAllocationMode::All => {
                data.all = self.selectable_devices(at, &data, &fail)?.into();
                data.wanted = data.all.len();
            }
            other => return Err(fail(format!(": unsupported count mode {other}"))),
        }
        Ok(data)
    }

    /// All devices that the request selects and whose capacity suffices.
    fn selectable_devices(
        &mut self,
        at: SearchPosition,
        data: &RequestData<'a>,
        fail: &impl Fn(String) -> SearchStop,
    ) -> Result<Vec<DeviceRef<'a>>, SearchStop> {
        let pools = self.pools;
        // Up to 1.35 alternatives share what is known of devices with the one before.
        let shares = !self.allocator.features().rules.all_in_alternatives;
        let sub = if shares { at.sub.saturating_sub(1) } else { at.sub };
        let at = SearchPosition { sub, ..at };
        let mut devices = Vec::new();
        for (pool, known) in pools.iter().enumerate() {
            unusable(known).map_or(Ok(()), |text| Err(fail(text)))?;
            for slice in &known.slices {
                for (index, device) in slice.slice.spec.devices.iter().enumerate() {
                    let device = DeviceRef { id: slice.id(device), device, slice, index, pool };
                    if self.is_selectable(at, data, device)? && self.has_capacity(data, device) {
                        devices.push(device);
                    }
                }
            }
        }
        Ok(devices)
    }
}

/// Why the pool prevents requests for all devices: every pool must be complete and valid.
fn unusable(pool: &DevicePool) -> Option<String> {
    let state = match pool.state {
        PoolState::Usable => return None,
        PoolState::Incomplete => "being updated",
        PoolState::Invalid(_) => "invalid",
    };
    Some(format!(": asks for all devices, but resource pool {} is currently {state}", pool.id))
}

fn compile(
    selectors: &[kubestep_api::DeviceSelector],
    options: cel::Options,
) -> std::rc::Rc<[Arc<Expression>]> {
    let texts = selectors.iter().filter_map(|selector| selector.cel.as_ref());
    texts.map(|cel| cel::compile(cel.expression, options)).collect()
}

fn constraints(
    claim: &ResourceClaim,
    features: Features,
) -> Result<Vec<ConstraintState>, SearchStop> {
    let written = claim.spec.devices.constraints.iter().enumerate();
    written
        .map(|(at, constraint)| {
            ConstraintState::new(constraint, !features.is_stable()).ok_or_else(|| {
                let claim = full_name(claim);
                let text = "empty constraint (unsupported constraint type?)";
                SearchStop::Failed(format!("claim {claim}, constraint #{at}: {text}"))
            })
        })
        .collect()
}
