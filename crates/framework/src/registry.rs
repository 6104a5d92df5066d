//! The registry: every plugin with the function that builds it.
//!
//! `kubestep_plugins::registry()` returns one with the in-tree plugins; programs add their own with
//! [`Registry::register`]. Upstream: `pkg/scheduler/framework/runtime/registry.go`.

use std::sync::Arc;

use crate::error::PluginError;
use crate::plugin::Plugin;
use kubestep_api::intern::Symbol;
use kubestep_config::{FeatureGates, PluginDescriptor, ProfileArgs};

/// Why a plugin cannot be registered or built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another plugin of that name is registered.
    #[error("a plugin named {0} already exists")]
    NameTaken(&'static str),
    /// No plugin of that name is registered.
    #[error("plugin {0:?} is not registered")]
    NotRegistered(Symbol),
    /// The plugin rejects its arguments.
    #[error(transparent)]
    Rejected(#[from] PluginError),
}

/// What a factory returns.
pub type Built = Result<Arc<dyn Plugin>, PluginError>;

/// Builds a plugin from the arguments of a profile.
pub type Factory = dyn Fn(&ProfileArgs, &FeatureGates) -> Built + Send + Sync;

/// A plugin in the registry.
#[derive(Clone)]
pub struct Entry {
    /// What configuration and documentation need to know.
    pub descriptor: PluginDescriptor,
    factory: Arc<Factory>,
}

impl Entry {
    /// A plugin that `factory` builds, once for each profile that runs it.
    pub fn new(
        descriptor: PluginDescriptor,
        factory: impl Fn(&ProfileArgs, &FeatureGates) -> Built + Send + Sync + 'static,
    ) -> Entry {
        Entry { descriptor, factory: Arc::new(factory) }
    }
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
    /// [`RegistryError::NameTaken`].
    pub fn register(&mut self, entry: Entry) -> Result<(), RegistryError> {
        let name = entry.descriptor.name;
        if self.entries.iter().any(|other| other.descriptor.name == name) {
            return Err(RegistryError::NameTaken(name));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// A registry of these plugins.
    ///
    /// # Errors
    /// [`RegistryError::NameTaken`].
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Result<Registry, RegistryError> {
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
    /// [`RegistryError::NotRegistered`], or [`RegistryError::Rejected`] by the factory.
    pub fn build(
        &self,
        name: Symbol,
        args: &ProfileArgs,
        features: &FeatureGates,
    ) -> Result<Arc<dyn Plugin>, RegistryError> {
        let entry = self.entries.iter().find(|entry| name == entry.descriptor.name);
        let entry = entry.ok_or(RegistryError::NotRegistered(name))?;
        Ok((entry.factory)(args, features)?)
    }
}
