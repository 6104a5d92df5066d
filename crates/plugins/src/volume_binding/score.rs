//! Scores nodes by storage capacity, behind StorageCapacityScoring.

use std::collections::BTreeMap;

use super::VolumeBindingArgs;
use crate::node_resources::strategy::{Point, interpolate};
use kubestep_api::Name;

use super::find::PodVolumes;
use super::matching::requested;

/// Requested and available bytes of one class.
#[derive(Clone, Copy, Default)]
struct Use {
    requested: i64,
    capacity: i64,
}

/// The scoring function from the configuration.
pub struct CapacityScorer {
    shape: Vec<Point>,
}

impl CapacityScorer {
    /// Reads the shape of the function.
    pub fn new(args: &VolumeBindingArgs) -> CapacityScorer {
        CapacityScorer { shape: args.shape.iter().flatten().map(Point::from).collect() }
    }

    /// The score of a node: the mean over the classes, rounded half up.
    pub fn score(&self, volumes: &PodVolumes) -> i64 {
        let classes = uses(volumes);
        if classes.is_empty() {
            return 0;
        }
        let sum: i64 = classes.values().map(|class| self.class_score(*class)).sum();
        (sum as f64 / classes.len() as f64).round() as i64
    }

    fn class_score(&self, class: Use) -> i64 {
        let utilization = match class.capacity == 0 || class.requested > class.capacity {
            true => 100,
            false => (i128::from(class.requested) * 100 / i128::from(class.capacity)) as i64,
        };
        interpolate(&self.shape, utilization)
    }
}

fn uses(volumes: &PodVolumes) -> BTreeMap<Name, Use> {
    let mut classes: BTreeMap<Name, Use> = BTreeMap::new();
    let size = |claim| requested(claim).map_or(0, |size| size.value());
    for (volume, claim) in &volumes.bindings {
        let class = classes.entry(volume.spec.storage_class_name).or_default();
        let capacity = volume.spec.capacity.get_str("storage");
        class.requested += size(claim);
        class.capacity += capacity.map_or(0, |capacity| capacity.value());
    }
    if !volumes.bindings.is_empty() {
        return classes;
    }
    for provision in &volumes.provisions {
        let Some(capacity) = &provision.capacity else { continue };
        // As upstream, capacities do not add up: the last object counts for the class.
        let class = classes.entry(capacity.storage_class_name).or_default();
        class.capacity = capacity.capacity.as_ref().map_or(0, |amount| amount.value());
        class.requested += size(&provision.claim);
    }
    classes
}
