//! The registry: every plugin with the function that builds it.
//!
//! `kubestep_plugins::registry()` returns one with the in-tree plugins; programs add their own with
//! [`Registry::register`]. Upstream: `pkg/scheduler/framework/runtime/registry.go`.

use std::sync::Arc;

use crate::plugin::Plugin;
use kubestep_api::intern::Symbol;
use kubestep_config::{FeatureGates, PluginDescriptor, ProfileArgs};

/// Builds a plugin from its arguments. The error text is upstream's.
pub type Factory = fn(&ProfileArgs, &FeatureGates) -> Result<Arc<dyn Plugin>, String>;

/// A plugin in the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What configuration and documentation need to know.
    pub descriptor: PluginDescriptor,
    /// The function that builds it.
    pub factory: Factory,
}

/// Plugins by name, in the order registered.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// Adds a plugin.
    ///
    /// # Errors
    /// A plugin of that name is already registered.
    pub fn register(&mut self, entry: Entry) -> Result<(), String> {
        let name = entry.descriptor.name;
        if self.entries.iter().any(|other| other.descriptor.name == name) {
            return Err(format!("a plugin named {name} already exists"));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// A registry of these plugins.
    ///
    /// # Errors
    /// Two have the same name.
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Result<Registry, String> {
        let mut registry = Registry::default();
        entries.into_iter().try_for_each(|entry| registry.register(entry))?;
        Ok(registry)
    }

    /// The descriptors, in order.
    pub fn descriptors(&self) -> Vec<PluginDescriptor> {
        self.entries.iter().map(|entry| entry.descriptor).collect()
    }

    /// Builds a plugin.
    ///
    /// # Errors
    /// It is not registered, or it rejects its arguments.
    pub fn build(
        &self,
        name: Symbol,
        args: &ProfileArgs,
        features: &FeatureGates,
    ) -> Result<Arc<dyn Plugin>, String> {
        let entry = self.entries.iter().find(|entry| name == entry.descriptor.name);
        let entry = entry.ok_or_else(|| format!("plugin {name:?} is not registered"))?;
        (entry.factory)(args, features)
    }
}
