//! Why a plugin could not do its work.

use crate::events::WrongKind;
use crate::extender::ExtenderError;
use crate::host::HostError;
use crate::pod_groups::UnknownPodGroup;
use crate::shared::assumed_volumes::AssumeError;
use crate::status::Status;
use kubestep_api::selector::SelectorErrors;

/// Why a plugin could not do its work. The text is upstream's; it becomes the reason of an error
/// status.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// An event carries an object of another kind than it is about.
    #[error(transparent)]
    WrongKind(#[from] WrongKind),
    /// A selector is invalid.
    #[error(transparent)]
    Selector(#[from] SelectorErrors),
    /// A request to the outside failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A call of an extender failed.
    #[error(transparent)]
    Extender(#[from] ExtenderError),
    /// An object cannot be assumed.
    #[error(transparent)]
    Assume(#[from] AssumeError),
    /// A pod group has no pods.
    #[error(transparent)]
    PodGroup(#[from] UnknownPodGroup),
    /// Any other error, in upstream's words.
    #[error("{0}")]
    Other(String),
}

impl From<String> for PluginError {
    fn from(text: String) -> PluginError {
        PluginError::Other(text)
    }
}

impl From<&str> for PluginError {
    fn from(text: &str) -> PluginError {
        PluginError::Other(text.to_owned())
    }
}

impl From<PluginError> for Status {
    fn from(error: PluginError) -> Status {
        Status::error(error)
    }
}
