//! Amounts of resources as people write them: the engine's, for views.

pub use kubestep_framework::resource::amount::{bytes, cpu, of, parts, resources};
