//! Amounts of resources as people write them: the engine's, for views.

pub use crate::engine::amount::{bytes, cpu, of, parts, resources};
