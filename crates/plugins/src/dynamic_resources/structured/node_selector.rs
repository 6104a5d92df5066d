//! The nodes on which the devices allocated to a claim can be used.
//!
//! Upstream: `createNodeSelector` in `allocator_incubating.go`.

use std::collections::BTreeSet;

use crate::dynamic_resources::structured::device::DeviceRef;
use kubestep_api::{
    Name, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use kubestep_framework::error::PluginError;

/// The node selector for a claim with these devices; `None` if every node can use them. Without
/// `binds`, the `bindsToNode` of a device is ignored.
///
/// # Errors
/// A slice's selector has several terms.
pub fn node_selector<'a>(
    devices: impl Iterator<Item = DeviceRef<'a>>,
    node: Name,
    binds: bool,
) -> Result<Option<NodeSelector>, PluginError> {
    let mut term = NodeSelectorTerm::default();
    for device in devices {
        let spec = &device.slice.slice.spec;
        let (name, selector) = match spec.per_device_node_selection {
            Some(true) => (device.device.node_name, &device.device.node_selector),
            _ => (spec.node_name, &spec.node_selector),
        };
        if name.is_some() || (binds && device.device.binds_to_node == Some(true)) {
            return Ok(Some(only(node)));
        }
        let terms = selector.iter().flat_map(|selector| &selector.node_selector_terms);
        match terms.collect::<Vec<_>>()[..] {
            [] => {}
            [one] => {
                add_new(&mut term.match_fields, &one.match_fields);
                add_new(&mut term.match_expressions, &one.match_expressions);
            }
            ref terms => {
                let count = terms.len();
                return Err(
                    format!("unsupported ResourceSlice.NodeSelector with {count} terms").into()
                );
            }
        }
    }
    let empty = term == NodeSelectorTerm::default();
    Ok((!empty).then(|| NodeSelector { node_selector_terms: vec![term] }))
}

/// Selects the node of that name.
fn only(node: Name) -> NodeSelector {
    let name = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: NodeSelectorOperator::In,
        values: vec![node],
    };
    let term = NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}

/// Adds the requirements that are not in the list yet; the order of values does not matter.
fn add_new(to: &mut Vec<NodeSelectorRequirement>, from: &[NodeSelectorRequirement]) {
    let values = |requirement: &NodeSelectorRequirement| {
        requirement.values.iter().copied().collect::<BTreeSet<Name>>()
    };
    for requirement in from {
        let known = to.iter().any(|other| {
            (other.key, other.operator) == (requirement.key, requirement.operator)
                && values(other) == values(requirement)
        });
        if !known {
            to.push(requirement.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::dynamic_resources::structured::device::PreparedSlice;

    /// The selector for the first device of each slice, or the error.
    fn selector(slices: &[Value]) -> Result<Value, PluginError> {
        let prepare = |spec: &Value| {
            let json = json!({"spec": spec});
            PreparedSlice::new(Arc::new(serde_json::from_value(json).unwrap()))
        };
        let slices: Vec<PreparedSlice> = slices.iter().map(prepare).collect();
        let devices = slices.iter().map(|slice| {
            let device = &slice.slice.spec.devices[0];
            DeviceRef { id: slice.id(device), device, slice, index: 0, pool: 0 }
        });
        let selector = node_selector(devices, "n".into(), true)?;
        Ok(serde_json::to_value(selector).unwrap())
    }

    fn label(key: &str, values: &[&str]) -> Value {
        json!({"key": key, "operator": "In", "values": values})
    }

    fn selected(terms: &[Value]) -> Value {
        let terms: Vec<_> = terms.iter().map(|term| json!({"matchExpressions": [term]})).collect();
        json!({"devices": [{}], "nodeSelector": {"nodeSelectorTerms": terms}})
    }

    fn on_n() -> Value {
        let name = json!({"key": "metadata.name", "operator": "In", "values": ["n"]});
        json!({"nodeSelectorTerms": [{"matchFields": [name]}]})
    }

    #[test]
    fn what_all_slices_require_is_joined_without_repeating() {
        let found = selector(&[
            selected(&[label("zone", &["a", "b"])]),
            selected(&[label("zone", &["b", "a"])]),
            selected(&[label("rack", &["1"])]),
        ]);
        let joined = [label("zone", &["a", "b"]), label("rack", &["1"])];
        assert_eq!(found, Ok(json!({"nodeSelectorTerms": [{"matchExpressions": joined}]})));
        assert_eq!(selector(&[json!({"devices": [{}], "allNodes": true})]), Ok(Value::Null));
    }

    #[test]
    fn one_device_of_a_node_binds_the_claim_to_it() {
        let anywhere = selected(&[label("zone", &["a"])]);
        let local = json!({"devices": [{}], "nodeName": "n"});
        assert_eq!(selector(&[anywhere.clone(), local]), Ok(on_n()));
        let binding = json!({"devices": [{"bindsToNode": true}], "allNodes": true});
        assert_eq!(selector(&[anywhere, binding]), Ok(on_n()));
        let each = json!({"devices": [{"nodeName": "n"}], "perDeviceNodeSelection": true});
        assert_eq!(selector(&[each]), Ok(on_n()));
    }

    #[test]
    fn several_terms_cannot_be_joined() {
        let two = selected(&[label("zone", &["a"]), label("zone", &["b"])]);
        let error = "unsupported ResourceSlice.NodeSelector with 2 terms";
        assert_eq!(selector(&[two]), Err(error.into()));
    }
}
