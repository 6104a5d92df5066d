//! The scheduling framework: what a plugin is, what it is told, and how plugins are run.

pub mod binding;
pub mod cycle_state;
pub mod events;
pub mod filter;
pub mod node_statuses;
pub mod nominated;
pub mod placement;
pub mod plugin;
pub mod registry;
pub mod runtime;
pub mod scoring;
pub mod shared;

#[cfg(test)]
mod tests;
