//! A device as the search sees it, the nodes that can use it, and which selectors match it.
//!
//! Upstream: `NodeMatches` in `pools_incubating.go` and `deviceWithID`.

use std::sync::{Arc, Mutex, PoisonError};

use kubestep_api::selector::NodeMatcher;
use kubestep_api::{Device, Name, Node, NodeSelector, ResourceSlice};
use kubestep_cel::{CelError, Expression};
use kubestep_framework::dra::{DeviceId, PoolId};
use kubestep_framework::error::PluginError;

/// The nodes that can use a slice or a device.
#[derive(Clone, Debug)]
enum NodeReach {
    Nowhere,
    Node(Name),
    Everywhere,
    Selected(NodeMatcher),
    /// The node selector is invalid; the error.
    Invalid(String),
}

impl NodeReach {
    fn new(name: Option<Name>, all: Option<bool>, selector: Option<&NodeSelector>) -> NodeReach {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return NodeReach::Node(name);
        }
        if all == Some(true) {
            return NodeReach::Everywhere;
        }
        let Some(selector) = selector else { return NodeReach::Nowhere };
        let matcher = NodeMatcher::new(selector, "");
        match matcher.check() {
            Ok(()) => NodeReach::Selected(matcher),
            Err(errors) => NodeReach::Invalid(errors.to_string()),
        }
    }

    fn includes(&self, node: &Node) -> Result<bool, PluginError> {
        match self {
            NodeReach::Nowhere => Ok(false),
            NodeReach::Node(name) => Ok(*name == node.metadata.name),
            NodeReach::Everywhere => Ok(true),
            NodeReach::Selected(matcher) => Ok(matcher.matches_node(node)),
            NodeReach::Invalid(text) => {
                Err(format!("failed to parse node selector: {text}").into())
            }
        }
    }
}

/// The most selectors whose verdicts a slice keeps; those of the one kept for longest are dropped
/// first.
const KEPT_SELECTORS: usize = 16;

/// Whether a selector matches the devices of a slice, as far as it was asked.
#[derive(Debug)]
struct SelectorVerdicts {
    selector: Arc<Expression>,
    /// By the device's index.
    devices: Vec<Option<Result<bool, CelError>>>,
}

/// A slice with compiled node selectors.
#[derive(Debug)]
pub struct PreparedSlice {
    pub slice: Arc<ResourceSlice>,
    reach: NodeReach,
    /// One entry for each device, if each device selects its nodes itself.
    device_reach: Vec<NodeReach>,
    /// An expression's verdict about a device never changes, so these save only time.
    verdicts: Mutex<Vec<SelectorVerdicts>>,
}

impl PreparedSlice {
    /// Compiles the node selectors.
    pub fn new(slice: Arc<ResourceSlice>) -> PreparedSlice {
        let spec = &slice.spec;
        let reach = NodeReach::new(spec.node_name, spec.all_nodes, spec.node_selector.as_ref());
        let of = |device: &Device| {
            NodeReach::new(device.node_name, device.all_nodes, device.node_selector.as_ref())
        };
        let device_reach = match spec.per_device_node_selection {
            Some(true) => spec.devices.iter().map(of).collect(),
            _ => Vec::new(),
        };
        PreparedSlice { slice, reach, device_reach, verdicts: Mutex::default() }
    }

    /// The identity of its pool.
    pub(crate) fn of_pool(&self) -> PoolId {
        PoolId { driver: self.slice.spec.driver, name: self.slice.spec.pool.name }
    }

    /// Whether the selector matches the device at an index.
    ///
    /// # Errors
    /// The selector is invalid, or its evaluation fails for this device.
    pub(crate) fn is_selected(
        &self,
        index: usize,
        selector: &Arc<Expression>,
    ) -> Result<bool, CelError> {
        let spec = &self.slice.spec;
        let Some(device) = spec.devices.get(index) else { return Ok(false) };
        let evaluate = || selector.matches(spec.driver, device);
        let mut kept = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |kept: &SelectorVerdicts| Arc::ptr_eq(&kept.selector, selector);
        let at = kept.iter().position(is_its).unwrap_or_else(|| {
            if kept.len() == KEPT_SELECTORS {
                kept.remove(0);
            }
            let devices = vec![None; spec.devices.len()];
            kept.push(SelectorVerdicts { selector: selector.clone(), devices });
            kept.len() - 1
        });
        let verdict = &mut kept[at].devices[index];
        debug_assert!(verdict.as_ref().is_none_or(|verdict| *verdict == evaluate()));
        verdict.get_or_insert_with(evaluate).clone()
    }

    /// Whether the node can use the slice, or any of its devices.
    ///
    /// # Errors
    /// A node selector is invalid.
    pub fn reaches(&self, node: &Node) -> Result<bool, PluginError> {
        let spec = &self.slice.spec;
        if !spec.shared_counters.is_empty() {
            return Ok(true);
        }
        let name = self.slice.metadata.name;
        if !matches!(self.reach, NodeReach::Nowhere) {
            let reached = self.reach.includes(node);
            return reached.map_err(|text| {
                format!("failed to perform node selection for slice {name}: {text}").into()
            });
        }
        for (reach, device) in self.device_reach.iter().zip(&spec.devices) {
            let reached = reach.includes(node).map_err(|text| {
                let device = device.name;
                format!(
                    "failed to perform node selection for device {device} in slice {name}: {text}"
                )
            })?;
            if reached {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the node can use the device, given that it can use the slice.
    ///
    /// # Errors
    /// The device's node selector is invalid.
    pub(crate) fn device_reaches(&self, device: usize, node: &Node) -> Result<bool, PluginError> {
        self.device_reach.get(device).map_or(Ok(true), |reach| reach.includes(node))
    }

    /// The identity of the device: driver, pool and name.
    pub fn id(&self, device: &Device) -> DeviceId {
        let spec = &self.slice.spec;
        DeviceId { driver: spec.driver, pool: spec.pool.name, device: device.name }
    }
}

/// A device that the node can use.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRef<'a> {
    /// Its driver, pool and name.
    pub id: DeviceId,
    pub device: &'a Device,
    /// The slice it is in.
    pub slice: &'a PreparedSlice,
    /// Its index in the slice.
    pub index: usize,
    /// The index of its pool among the node's pools.
    pub pool: usize,
}

impl DeviceRef<'_> {
    /// Whether several claims may be allocated the device at the same time.
    pub fn is_shared(&self) -> bool {
        self.device.allow_multiple_allocations == Some(true)
    }
}
