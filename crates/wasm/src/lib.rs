//! Scheduler plugins as WebAssembly guests, with the interface of
//! kubernetes-sigs/kube-scheduler-wasm-extension (as of Kubernetes 1.33).
//!
//! A configuration names a guest by `guestURL` in the arguments of a plugin. [`guests`] finds those
//! of a document, the program reads the files, and [`entry`] makes a plugin of each:
//!
//! ```
//! use kubestep_framework::registry::Registry;
//! use kubestep_wasm::{GuestModule, GuestLimits, entry, guests};
//!
//! let configuration = "
//! profiles:
//! - plugins: {multiPoint: {enabled: [{name: Mine}]}}
//!   pluginConfig: [{name: Mine, args: {guestURL: file://mine.wasm}}]
//! ";
//! let guest = guests(configuration).remove(0);
//! assert_eq!((guest.plugin.as_str(), guest.url.as_str()), ("Mine", "file://mine.wasm"));
//!
//! # let bytes = wat::parse_str(r#"(module (memory (export "memory") 1)
//! #   (func (export "filter") (result i32) i32.const 0))"#)?;
//! let module = GuestModule::new(&bytes)?;
//! let mut registry = Registry::default();
//! registry.register(entry(guest.plugin, vec![(guest.url, module)], GuestLimits::default()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A guest has no clock, no randomness and no I/O, and [`GuestLimits`] end it. So the same input gives
//! the same decisions, as from plugins in Rust, and a guest's verdicts are as certain as theirs.

use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::{PluginDescriptor, PointSet};
use kubestep_framework::error::PluginError;
use kubestep_framework::registry::Entry;
use serde::Deserialize;
use std::sync::Arc;

mod abi;
mod module;
mod plugin;
mod proto;
mod running;
mod schema;
mod wasi;

pub use module::GuestModule;
pub use running::GuestLimits;

use plugin::{GuestArgs, GuestPlugin};

/// Why a guest cannot be a plugin.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GuestError {
    /// The bytes are no module, or it wants what the scheduler does not offer.
    #[error("it is not a WebAssembly module that can run here: {0}")]
    Invalid(String),
    /// The scheduler could not hand anything over.
    #[error("the guest does not export its memory as \"memory\"")]
    NoMemory,
    /// A function of the interface takes or returns something else.
    #[error("the guest's function {export} must take no parameters and return {result}")]
    Signature {
        /// Name of the exported function.
        export: &'static str,
        /// What it has to return.
        result: &'static str,
    },
    /// It exports none of the functions that make a plugin.
    #[error("the guest exports none of filter, score, reserve, permit and bind")]
    NoPlugin,
    /// It failed before the first pod.
    #[error("{0}")]
    Start(String),
}

/// A guest that a configuration names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestRef {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// `guestURL` as the configuration has it.
    pub url: String,
}

/// The guests that a configuration names, each once, in order. What is wrong with the document is
/// not reported here.
pub fn guests(document: &str) -> Vec<GuestRef> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Document {
        profiles: Vec<Profile>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Profile {
        plugin_config: Vec<PluginConfig>,
    }
    #[derive(Deserialize)]
    struct PluginConfig {
        name: String,
        #[serde(default)]
        args: serde_json::Value,
    }
    let document: Document = kubestep_framework::api::yaml::from_str(document).unwrap_or_default();
    let mut found: Vec<GuestRef> = Vec::new();
    for config in document.profiles.into_iter().flat_map(|profile| profile.plugin_config) {
        let Some(url) = config.args.get("guestURL").and_then(|url| url.as_str()) else { continue };
        let guest = GuestRef { plugin: config.name.as_str().into(), url: url.to_owned() };
        if !found.contains(&guest) {
            found.push(guest);
        }
    }
    found
}

/// A plugin for a registry. `modules` are all that profiles name for it, by their `guestURL`.
pub fn entry(plugin: Symbol, modules: Vec<(String, GuestModule)>, limits: GuestLimits) -> Entry {
    let points =
        modules.iter().fold(PointSet::default(), |set, (_, module)| set.with(module.points()));
    let descriptor = PluginDescriptor {
        points,
        signs: false,
        doc: "is a WebAssembly guest",
        ..PluginDescriptor::new(plugin.as_str(), &[])
    };
    Entry::new(descriptor, move |args, _| {
        let args = args.get(plugin).and_then(|args| args.as_raw()).cloned().unwrap_or_default();
        let args: GuestArgs = serde_json::from_value(args).map_err(|error| {
            PluginError::from(format!(
                "the arguments of {plugin} are not those of a guest: {error}"
            ))
        })?;
        let module = modules.iter().find(|(url, _)| *url == args.guest_url);
        let (_, module) = module.ok_or("wasm: guestURL is required")?;
        let guest = GuestPlugin::new(plugin, module.clone(), args, limits);
        Ok(Arc::new(guest.map_err(|error| format!("wasm: {error}"))?))
    })
}
