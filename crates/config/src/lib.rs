//! KubeSchedulerConfiguration: from the document to the plugins of each profile.
//!
//! This layer knows the documents that kube-scheduler 1.36 takes and its feature gates. It knows no
//! plugin: which ones there are, where they run and what arguments they take is in the
//! descriptors that the caller passes in, usually those of a registry.
//!
//! - [`points`], [`features`]: extension points and descriptors of plugins, gates.
//! - [`types`]: the document after defaulting.
//! - [`args`]: what a plugin with arguments declares.
//! - [`resolve`](fn@resolve): the one call; its steps are [`load`] and [`build`].
//! - [`profile`]: what the engine runs; [`describe`]: the same as text.
//! - [`rows`]: the same row by row, each with whether it is the default.
//! - [`manual`]: the manual of a plugin, from its descriptor.
//! - [`problem`]: what is wrong with a document, with line and column.

pub mod args;
mod argument_value;
mod construct;
mod decode;
mod decode_args;
mod defaults;
pub mod describe;
pub mod duration;
pub mod encode;
mod expand;
pub mod features;
mod locate;
pub mod manual;
mod merge;
pub mod node;
pub mod overlay;
pub mod path;
pub mod points;
pub mod problem;
pub mod profile;
pub mod reader;
mod resolve;
pub mod rows;
pub mod suggest;
pub mod types;
pub mod validation;
mod warnings;
pub use args::{ArgsType, Arguments, PluginArgs};
pub use argument_value::ArgumentValue;
pub use decode::Decoded;
pub use encode::{to_json, to_yaml};
pub use features::{Feature, FeatureGateError, FeatureGates};
pub use overlay::{Overlay, Switch};
pub use path::FieldPath;
pub use points::{
    ArgumentDoc, DefaultProfile, ExtensionPoint, PluginDescriptor, PointSet, find_plugin,
};
pub use problem::{ConfigError, Location, Problem, Stage};
pub use profile::{Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile};
pub use resolve::{ResolvedConfig, build, load, load_unvalidated, resolve, resolve_with};
