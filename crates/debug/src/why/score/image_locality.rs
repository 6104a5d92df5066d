//! ImageLocality: the pod's images that are already on the node.

use super::{Case, Input};
use kubestep_framework::resource::amount;
use kubestep_plugins::image_locality::held_images;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let cx = case.probe.cx();
    let total = cx.snapshot.len();
    let held = held_images(&cx, case.node).into_iter().map(|(image, scaled)| {
        let (size, nodes) = (amount::bytes(image.size), image.num_nodes);
        let scaled = amount::bytes(scaled);
        Input::new(image.name, format!("{size} × {nodes}/{total} nodes = {scaled}"))
    });
    let mut inputs: Vec<Input> = held.collect();
    if inputs.is_empty() {
        inputs.push(Input::new("images", "none of the pod's images is on the node"));
    }
    inputs
}
