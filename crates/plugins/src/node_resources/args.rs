//! The resources that both plugins take in their arguments.

use kubestep_api::intern::Symbol;
use kubestep_config::argument_object;

argument_object! {
    /// A resource and its weight.
    #[derive(Copy, Eq)]
    pub struct ResourceSpec {
        /// The resource, by name.
        name: Symbol, put "name";
        /// 1 to 100; 1 if unset.
        weight: i64, put_some "weight";
    }
}

/// CPU and memory, weight 1 each.
pub(crate) fn default_resources() -> Vec<ResourceSpec> {
    ["cpu", "memory"].map(|name| ResourceSpec { name: Symbol::new(name), weight: 1 }).to_vec()
}

/// CPU and memory where no resource is given; a weight of 0 becomes 1.
pub(super) fn complete(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = default_resources();
    }
    for resource in resources.iter_mut().filter(|resource| resource.weight == 0) {
        resource.weight = 1;
    }
}
