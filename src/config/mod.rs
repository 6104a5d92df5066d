//! KubeSchedulerConfiguration: from the document to the plugins of each profile.
//!
//! This layer knows the documents that kube-scheduler 1.36 takes, its feature
//! gates and what its plugins are called and where they run. It knows nothing
//! of how they decide; the engine builds on the outcome.
//!
//! - [`points`], [`intree`], [`features`]: extension points, plugins, gates.
//! - [`types`], [`args`]: the document after defaulting.
//! - [`profile`]: what the engine runs.

pub mod args;
pub mod duration;
pub mod features;
pub mod intree;
pub mod points;
pub mod profile;
mod suggest;
pub mod types;

pub use features::{Feature, FeatureGateError, FeatureGates};
pub use points::{ExtensionPoint, PluginDescriptor, PointSet};
pub use profile::{Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile};
