//! The resources with weights that several plugins take in their arguments.

use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::argument_object;

argument_object! {
    /// A resource and its weight.
    #[derive(Copy, Eq)]
    pub struct ResourceSpec {
        /// The resource, by name.
        name: Symbol, put "name";
        /// The resource's weight in the mean.
        weight: i64, put_some "weight";
    }
}

/// CPU and memory with these weights.
pub fn cpu_and_memory(cpu: i64, memory: i64) -> Vec<ResourceSpec> {
    let spec = |(name, weight)| ResourceSpec { name: Symbol::new(name), weight };
    [("cpu", cpu), ("memory", memory)].map(spec).to_vec()
}
