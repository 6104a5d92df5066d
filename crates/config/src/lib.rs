//! KubeSchedulerConfiguration: from the document to the plugins of each profile.
//!
//! This package knows the documents that each version of kube-scheduler accepts, its feature gates
//! and what else the version changes ([`versions`]). It knows
//! no plugin: descriptors with the arguments of each come in from a registry, and the scheduler
//! builds on the result.
//!
//! - [`points`], [`features`]: extension points, descriptors of plugins, gates.
//! - [`types`], [`args`]: the document after defaulting.
//! - [`resolve`](fn@resolve): the entry point; its steps are [`load`] and [`build`].
//! - [`profile`]: what the engine runs; [`describe`]: the same as text.
//! - [`opaque`]: plugins that only a configuration knows.
//! - [`rows`]: the same as rows, each with whether it differs from the default.
//! - [`manual`]: the manual of each plugin, from its descriptor.
//! - [`problem`]: the problems of a document, with line and column.

pub mod args;
mod argument_value;
mod construct;
mod decode;
mod decode_args;
mod defaults;
pub mod describe;
pub mod encode;
mod expand;
pub mod features;
mod locate;
pub mod manual;
mod merge;
pub mod opaque;
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
pub mod versions;
mod warnings;
pub mod yaml_value;
pub use args::{ArgsType, Arguments, PluginArgs};
pub use argument_value::ArgumentValue;
pub use decode::DecodedDocument;
pub use encode::{to_json, to_yaml};
pub use features::{Feature, FeatureGateError, FeatureGates, GateSpec};
pub use opaque::UnknownPlugins;
pub use overlay::{Overlay, Switch};
pub use path::FieldPath;
pub use points::{
    ArgumentDoc, DefaultProfile, ExtensionPoint, PluginChange, PluginDescriptor, PointSet,
    find_plugin,
};
pub use problem::{ConfigError, ConfigStage, Location, Problem};
pub use profile::{Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile};
pub use resolve::{
    ResolvedConfig, build, load, load_unvalidated, resolve, resolve_as, resolve_with,
};
pub use versions::KubeVersion;
