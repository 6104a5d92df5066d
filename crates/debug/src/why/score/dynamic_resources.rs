//! DynamicResources: the devices that would be allocated to the pod's claims on the node.

use super::{Case, Input};
use kubestep_plugins::dynamic_resources::found_devices;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let found = found_devices(&case.scored.state, case.node.name);
    found.into_iter().map(|(request, device)| Input::new(request, device)).collect()
}
