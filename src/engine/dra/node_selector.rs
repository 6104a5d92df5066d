//! Which nodes can use what was allocated to a claim (AL-032).
//!
//! Upstream: `createNodeSelector` in `allocator_incubating.go`.

use std::collections::BTreeSet;

use crate::api::{NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm};
use crate::engine::dra::device::DeviceRef;
use crate::intern::Symbol;

/// The selector for a claim whose devices these are; `None` if any node will do.
///
/// # Errors
/// A slice's selector has several terms.
pub fn node_selector<'a>(
    devices: impl Iterator<Item = DeviceRef<'a>>,
    node: Symbol,
) -> Result<Option<NodeSelector>, String> {
    let mut term = NodeSelectorTerm::default();
    for device in devices {
        let spec = &device.slice.slice.spec;
        let (name, selector) = match spec.per_device_node_selection {
            Some(true) => (device.device.node_name, &device.device.node_selector),
            _ => (spec.node_name, &spec.node_selector),
        };
        if name.is_some() || device.device.binds_to_node == Some(true) {
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
                return Err(format!("unsupported ResourceSlice.NodeSelector with {count} terms"));
            }
        }
    }
    let empty = term == NodeSelectorTerm::default();
    Ok((!empty).then(|| NodeSelector { node_selector_terms: vec![term] }))
}

/// The node of that name.
fn only(node: Symbol) -> NodeSelector {
    let name = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: NodeSelectorOperator::In,
        values: vec![node],
    };
    let term = NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}

/// Adds the requirements that are not there yet; the order of values does not matter.
fn add_new(to: &mut Vec<NodeSelectorRequirement>, from: &[NodeSelectorRequirement]) {
    let values = |requirement: &NodeSelectorRequirement| {
        requirement.values.iter().copied().collect::<BTreeSet<Symbol>>()
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
