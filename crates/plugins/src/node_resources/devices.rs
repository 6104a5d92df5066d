//! Extended resources backed by DRA: how many devices a node has, and how many of them are
//! allocated.
//!
//! Upstream: `calculateDRAResourceTotals` in `resource_allocation.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{
    Device, DeviceClass, Name, Node, NodeSelector, ResourceSlice, ResourceSliceSpec,
};
use kubestep_cel as cel;
use kubestep_config::Feature;
use kubestep_framework::dra::{AllocatedDevices, DeviceId, counts_shares};
use kubestep_framework::error::PluginError;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::extended_resources::DEVICE_CLASS_PREFIX;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::resource::is_extended_name;

/// All slices, and which of their devices are allocated.
#[derive(Clone)]
pub struct DeviceTotals {
    slices: Arc<Vec<Arc<ResourceSlice>>>,
    allocated: Arc<AllocatedDevices>,
    /// What selectors can read of devices.
    options: cel::Options,
}

impl DeviceTotals {
    pub fn new(cx: &CycleContext<'_>) -> DeviceTotals {
        let shares = counts_shares(cx.features);
        let allocated = cx.shared.claims.allocated(cx.objects, shares);
        let slices = cx.objects.resource_slices.values().cloned().collect();
        let lists = cx.features.enabled(Feature::DRAListTypeAttributes);
        let options = cel::Options { lists, sharing: false };
        DeviceTotals { slices: Arc::new(slices), allocated, options }
    }

    /// The number of devices on the node that serve `resource`, and how many of them are allocated.
    /// Both are 0 if no class serves it, or on an evaluation error.
    pub fn totals(&self, cx: &CycleContext<'_>, node: &NodeInfo, resource: Symbol) -> (i64, i64) {
        let Some(class) = cx.objects.extended_resources.class_for(resource) else { return (0, 0) };
        let Some(node) = node.node.as_deref() else { return (0, 0) };
        self.count(class, node).unwrap_or((0, 0))
    }

    fn count(&self, class: &DeviceClass, node: &Node) -> Result<(i64, i64), PluginError> {
        let (mut capacity, mut allocated) = (0, 0);
        for slice in self.slices.iter() {
            let spec = &slice.spec;
            for device in devices_on(spec, node)? {
                if !is_in_class(spec.driver, device, class, self.options)? {
                    continue;
                }
                capacity += 1;
                let (driver, pool) = (spec.driver, spec.pool.name);
                let id = DeviceId { driver, pool, device: device.name };
                allocated += i64::from(self.allocated.contains(&id));
            }
        }
        Ok((capacity, allocated))
    }
}

/// Whether devices can serve a resource of that name.
pub(crate) fn is_device_resource(name: &str) -> bool {
    is_extended_name(name) || name.starts_with(DEVICE_CLASS_PREFIX)
}

/// The devices of a slice that the node can use.
fn devices_on<'a>(
    spec: &'a ResourceSliceSpec,
    node: &Node,
) -> Result<Vec<&'a Device>, PluginError> {
    if spec.per_device_node_selection != Some(true) {
        return Ok(match slice_is_on(spec, node)? {
            true => spec.devices.iter().collect(),
            false => Vec::new(),
        });
    }
    let mut devices = Vec::new();
    for device in &spec.devices {
        let name = device.node_name.unwrap_or_default();
        let named = !name.is_empty() && name == node.metadata.name;
        let selected = device.node_selector.as_ref();
        if device.all_nodes == Some(true)
            || named
            || (selected.is_some() && node_matches(node, name, selected)?)
        {
            devices.push(device);
        }
    }
    Ok(devices)
}

/// As upstream, a slice without any node selection counts for every node.
fn slice_is_on(spec: &ResourceSliceSpec, node: &Node) -> Result<bool, PluginError> {
    let name = spec.node_name.unwrap_or_default();
    if spec.all_nodes == Some(true) || name == node.metadata.name {
        return Ok(true);
    }
    match &spec.node_selector {
        Some(selector) => node_matches(node, name, Some(selector)),
        None => Ok(name.is_empty()),
    }
}

fn node_matches(
    node: &Node,
    name: Name,
    selector: Option<&NodeSelector>,
) -> Result<bool, PluginError> {
    if !name.is_empty() {
        return Ok(node.metadata.name == name);
    }
    let Some(selector) = selector else { return Ok(false) };
    let matcher = NodeMatcher::new(selector, "");
    matcher.check().map_err(|errors| errors.to_string())?;
    Ok(matcher.matches_node(node))
}

/// Whether the device matches the class's selectors. As upstream, `allowMultipleAllocations` is
/// not visible to them.
fn is_in_class(
    driver: Symbol,
    device: &Device,
    class: &DeviceClass,
    options: cel::Options,
) -> Result<bool, PluginError> {
    for cel in class.spec.selectors.iter().filter_map(|selector| selector.cel.as_ref()) {
        let matches = cel::compile(cel.expression, options).matches(driver, device);
        if !matches.map_err(|error| error.to_string())? {
            return Ok(false);
        }
    }
    Ok(true)
}
