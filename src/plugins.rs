//! The plugins that the program knows, and the WebAssembly guests that configurations name.

use anyhow::Result;
use kubestep_config::UnknownPlugins;
use kubestep_debug::edit::Edit;
use kubestep_framework::registry::Registry;

/// Declares the custom kinds that plugins read. To be called before objects are read.
pub fn declare_kinds() {
    kubestep_scheduler_plugins::declare_kinds();
}

/// The in-tree plugins, kubestep's own, and those of the project scheduler-plugins.
pub fn registry() -> Registry {
    kubestep_scheduler_plugins::add_to(kubestep_plugins::registry())
}

/// The same with the guests that a configuration names, and a sentence for each that is not
/// there.
///
/// # Errors
/// A guest cannot be a plugin, or it is not there and `unknown` refuses such plugins.
pub fn registry_for(
    configuration: Option<&str>,
    unknown: UnknownPlugins,
) -> Result<(Registry, Vec<String>)> {
    let mut registry = registry();
    let notices = guests::add(&mut registry, configuration.unwrap_or_default(), unknown)?;
    Ok((registry, notices))
}

/// The edits of a line, with the guests of a configuration that it loads.
///
/// # Errors
/// The line is not an edit, a file is not valid, or a guest cannot be a plugin.
pub fn read_edits(line: &str, unknown: UnknownPlugins) -> Result<Vec<Edit>> {
    let edits = Edit::read_line(line, kubestep_source::read_whole)?;
    let complete = |edit: Edit| edit.with_plugins(|text| registry_for(Some(text), unknown));
    edits.into_iter().map(complete).collect()
}

#[cfg(feature = "wasm")]
mod guests {
    use std::path::Path;

    use anyhow::{Context, Result, anyhow};
    use kubestep_config::UnknownPlugins;
    use kubestep_framework::registry::Registry;
    use kubestep_wasm::{GuestLimits, GuestModule, GuestRef, entry, guests};

    /// Registers the guests of a configuration. One whose file is not there stays opaque, if such
    /// plugins are allowed, with a sentence.
    pub(super) fn add(
        registry: &mut Registry,
        configuration: &str,
        unknown: UnknownPlugins,
    ) -> Result<Vec<String>> {
        let (mut notices, mut plugins) = (Vec::new(), indexmap::IndexMap::<_, Vec<_>>::new());
        for GuestRef { plugin, url } in guests(configuration) {
            let bytes = match read(&url) {
                Ok(bytes) => bytes,
                Err(error) if unknown == UnknownPlugins::Opaque => {
                    notices.push(format!("the guest of plugin {plugin} is not there: {error:#}"));
                    continue;
                }
                Err(error) => return Err(error.context(format!("the guest of plugin {plugin}"))),
            };
            let module =
                GuestModule::new(&bytes).with_context(|| format!("plugin {plugin}: {url}"))?;
            plugins.entry(plugin).or_default().push((url, module));
        }
        for (plugin, modules) in plugins {
            // Plugins that kubestep has take no guest.
            let _registered = registry.register(entry(plugin, modules, GuestLimits::default()));
        }
        Ok(notices)
    }

    fn read(url: &str) -> Result<Vec<u8>> {
        let path = url.strip_prefix("file:").ok_or_else(|| {
            anyhow!("{url}: kubestep reads guests from files only, as file://PATH")
        })?;
        let path = path.strip_prefix("//").unwrap_or(path);
        Ok(kubestep_source::whole_file(Path::new(path))?)
    }
}

#[cfg(not(feature = "wasm"))]
mod guests {
    use super::{Registry, Result, UnknownPlugins};

    /// This build runs no guests.
    pub(super) fn add(_: &mut Registry, _: &str, _: UnknownPlugins) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_plugin_has_a_name_of_its_own() {
        let all = super::registry().descriptors().len();
        let in_tree = kubestep_plugins::registry().descriptors().len();
        assert_eq!(all, in_tree + kubestep_scheduler_plugins::entries().count());
    }
}
