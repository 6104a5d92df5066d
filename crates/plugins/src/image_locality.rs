//! ImageLocality: prefers nodes that already have the pod's images, weighted by size.
//!
//! Upstream: `pkg/scheduler/framework/plugins/imagelocality/image_locality.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::signers;
use kubestep_api::Pod;
use kubestep_api::intern::Symbol;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{ImageState, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, QueueContext, ScoreBasis};
use kubestep_framework::pod::{PodInfo, normalized_image_name};
use kubestep_framework::record::scores::MAX_NODE_SCORE;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

const MIB: i64 = 1024 * 1024;
/// A smaller sum of image sizes scores 0.
const MIN_THRESHOLD: i64 = 23 * MIB;
/// Multiplied by the number of containers, the sum of image sizes that scores 100.
const MAX_CONTAINER_THRESHOLD: i64 = 1000 * MIB;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(1),
    registers_events: false,
    default_profile: DefaultProfile::Present,
    doc: "prefers nodes that already have the images",
    long_doc: "Scores by the size of the pod's images that are on the node, scaled by how many \
               nodes have them.",
    example: "A node with the 800 MB image of the pod scores higher than one that must pull it, \
              and the more so the more nodes have it.",
    ..PluginDescriptor::new("ImageLocality", &[ExtensionPoint::Score])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(ImageLocality { name: Symbol::new("ImageLocality") }))
}

struct ImageLocality {
    name: Symbol,
}

/// The image's size, scaled by the share of nodes that have it, so that pods do not pile up on the
/// few nodes with a rare image.
fn scaled_size(state: &ImageState, total_nodes: usize) -> i64 {
    let spread = f64::from(state.num_nodes) / total_nodes as f64;
    (state.size as f64 * spread) as i64
}

/// The pod's images that a node has, each with its scaled size.
pub fn held_images(cx: &CycleContext<'_>, node: &NodeInfo) -> Vec<(ImageState, i64)> {
    let total = cx.snapshot.len();
    let held = |image: &Symbol| {
        let state = node.image_states.iter().find(|state| state.name == *image)?;
        Some((*state, scaled_size(state, total)))
    };
    cx.pod.images.iter().filter_map(held).collect()
}

fn score_of(sum: i64, containers: usize) -> i64 {
    let max = MAX_CONTAINER_THRESHOLD * containers as i64;
    let sum = match sum {
        sum if sum < MIN_THRESHOLD => MIN_THRESHOLD,
        sum => sum.min(max),
    };
    MAX_NODE_SCORE * (sum - MIN_THRESHOLD) / (max - MIN_THRESHOLD)
}

fn containers(pod: &Pod) -> usize {
    // As upstream, image volumes do not count here, although their images add to the sum.
    pod.spec.init_containers.len() + pod.spec.containers.len()
}

impl Plugin for ImageLocality {
    fn name(&self) -> Symbol {
        self.name
    }

    fn counts_nodes(&self) -> bool {
        true
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::NodeAlone
    }

    fn score_key(&self, pod: &PodInfo) -> Option<String> {
        Some(format!("{:?} {}", pod.images, containers(&pod.pod)))
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        _state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let sizes = held_images(cx, node).into_iter().map(|(_, scaled)| scaled);
        let sum = sizes.fold(0, i64::wrapping_add);
        Ok(score_of(sum, containers(&cx.pod.pod)))
    }

    /// The names of containers' images, normalized and sorted; image volumes are not included.
    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        let spec = &pod.pod.spec;
        let containers = spec.containers.iter().chain(&spec.init_containers);
        let names: BTreeSet<Symbol> =
            containers.map(|container| normalized_image_name(container.image)).collect();
        signers::fragment("v1.Pod.Spec.CanonicalImageNames()", &names)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_framework::testing::{Cluster, info_of, plugin};

    /// A cluster of `total` nodes, the first of which has the given images.
    fn cluster(total: usize, images: &[(&str, i64, u32)]) -> Cluster {
        let nodes = (0..total).map(|i| json!({"metadata": {"name": format!("n{i}")}}));
        let mut cluster = Cluster::of(nodes.collect(), vec![]);
        cluster.edit_node(0, |node| {
            let state = |(name, mib, nodes): &(&str, i64, u32)| ImageState {
                name: Symbol::new(name),
                size: mib << 20,
                num_nodes: *nodes,
            };
            node.image_states = images.iter().map(state).collect();
        });
        cluster
    }

    fn images(init: &[&str], main: &[&str], volumes: &[&str]) -> Arc<PodInfo> {
        let containers = |images: &[&str]| -> Vec<Value> {
            images.iter().map(|image| json!({"image": image})).collect()
        };
        let volumes: Vec<Value> =
            volumes.iter().map(|image| json!({"image": {"reference": image}})).collect();
        info_of(json!({"spec": {"initContainers": containers(init), "containers": containers(main),
            "volumes": volumes}}))
    }

    #[test]
    fn scores_grow_between_the_thresholds() {
        let locality = plugin(build, &ProfileArgs::default());
        let cluster = cluster(
            2,
            &[
                ("gcr.io/40:latest", 40, 1),
                ("gcr.io/250:latest", 250, 1),
                ("gcr.io/300:v1", 300, 2),
                ("gcr.io/4000:latest", 4000, 2),
            ],
        );
        for (pod, expected) in [
            (images(&[], &["gcr.io/40"], &[]), 0),
            // 250/2 = 125: 100 × (125 − 23) / (1000 − 23)
            (images(&[], &["gcr.io/250"], &[]), 10),
            // 125 + 20 over two containers
            (images(&[], &["gcr.io/250", "gcr.io/40:latest"], &[]), 6),
            (images(&["gcr.io/250"], &["gcr.io/250"], &[]), 11),
            (images(&[], &["gcr.io/4000"], &[]), 100),
            (images(&[], &["gcr.io/300:v1"], &[]), 28),
            (images(&[], &["gcr.io/300"], &[]), 0),
            // An image volume adds its image, but does not count as a container.
            (images(&[], &["none"], &["gcr.io/300:v1"]), 28),
        ] {
            let scores = cluster.raw_scores(&locality, &pod).unwrap();
            assert_eq!(scores, [expected, 0], "{:?}", pod.images);
        }
    }

    #[test]
    fn the_signature_names_every_image_once_in_order() {
        let locality = plugin(build, &ProfileArgs::default());
        let pod = images(&["b"], &["a:1", "b:latest"], &["volume"]);
        let fragments = locality.sign(&Cluster::default().queue(), &pod).unwrap();
        assert_eq!(
            fragments,
            [("v1.Pod.Spec.CanonicalImageNames()", r#"["a:1","b:latest"]"#.to_owned())]
        );
    }
}
