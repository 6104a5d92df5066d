//! Amounts of resources as people write them: the engine's, for views.

pub use kubestep_engine::engine::amount::{bytes, cpu, of, parts, resources};
