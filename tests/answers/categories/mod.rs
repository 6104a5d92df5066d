//! The categories of causes that are planted in a cluster, by name. Each returns the cluster, the
//! pod and the expected explanation, with figures computed here.

mod devices;
mod gates;
mod mixtures;
mod nodes;
mod pods;
mod preemption;
mod resources;
mod selectors;
mod spread;
mod volumes;
mod volumes_taken;

use crate::cluster::Case;
use crate::random::Random;

/// A category of clusters.
pub struct Category {
    pub name: &'static str,
    pub build: fn(&mut Random) -> Case,
}

/// All categories, by file.
pub const CATEGORIES: &[&[Category]] = &[
    resources::ALL,
    nodes::ALL,
    selectors::ALL,
    pods::ALL,
    spread::ALL,
    preemption::ALL,
    volumes::ALL,
    volumes_taken::ALL,
    devices::ALL,
    gates::ALL,
    mixtures::ALL,
];

/// Lists functions as categories, by their names.
macro_rules! categories {
    ($($name:ident),* $(,)?) => {
        pub const ALL: &[super::Category] =
            &[$(super::Category { name: stringify!($name), build: $name }),*];
    };
}
use categories;
