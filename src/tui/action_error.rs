//! Why an action or a command is not carried out.

use kubestep_debug::breakpoint::BreakpointError;

/// Why an action or a command is not carried out: one sentence for the status line, which says what
/// to do instead where that is known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ActionError(String);

impl From<String> for ActionError {
    fn from(problem: String) -> ActionError {
        ActionError(problem)
    }
}

impl From<&str> for ActionError {
    fn from(problem: &str) -> ActionError {
        ActionError(problem.to_owned())
    }
}

impl From<BreakpointError> for ActionError {
    fn from(problem: BreakpointError) -> ActionError {
        ActionError(problem.to_string())
    }
}
