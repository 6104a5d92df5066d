//! Why a cluster has no scheduler, or keeps the one it has.

use std::fmt::Display;

use kubestep_config::ConfigError;

/// Why a scheduler cannot be built, or cannot be given another configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorldError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(ConfigError),
    /// The scheduler rejects it, for example an argument of a plugin: upstream's message.
    #[error("{0}")]
    Scheduler(String),
}

impl WorldError {
    pub(crate) fn scheduler(error: impl Display) -> WorldError {
        WorldError::Scheduler(error.to_string())
    }
}
