//! Exit codes: one table for the program, its help and the documentation.

use std::process::{ExitCode, Termination};

/// Why the program ends, as its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: all pods were or can be scheduled, or the debugger was closed.
    Fine,
    /// 1: some pod stays, or would stay, pending; or a drain or rollout cannot be completed.
    Unschedulable,
    /// 2: invalid usage or input.
    Usage,
    /// 3: the compared sides differ.
    Differs,
    /// 4: a cluster or another source is not reachable.
    Unreachable,
    /// 5: this scheduler is not the leader any more and stopped writing.
    Lost,
    /// 6: a run was ended before it was complete, so that the answer is not known.
    Incomplete,
}

/// All exits with their meanings, by number.
pub const EXITS: [(Exit, &str); 7] = [
    (Exit::Fine, "every pod has a node or would get one, or the debugger was quit"),
    (Exit::Unschedulable, "a pod stays pending, or a drain or rollout cannot be completed"),
    (Exit::Usage, "invalid usage or input; nothing was done"),
    (Exit::Differs, "the compared sides differ"),
    (Exit::Unreachable, "a cluster or another source on the network is unreachable"),
    (Exit::Lost, "the lease was lost, and all writes stopped (kubestep schedule)"),
    (
        Exit::Incomplete,
        "--max-cycles or Ctrl-C ended a run, so the answer is incomplete (diff, upgrade, --survive)",
    ),
];

/// A source is not reachable: an error with this as its root ends the program with
/// [`Exit::Unreachable`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

impl Exit {
    /// 0 to 255, for the shell.
    pub fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Unschedulable => 1,
            Exit::Usage => 2,
            Exit::Differs => 3,
            Exit::Unreachable => 4,
            Exit::Lost => 5,
            Exit::Incomplete => 6,
        }
    }

    /// The exit code for an error.
    pub fn of_error(error: &anyhow::Error) -> Exit {
        match error.chain().any(|cause| cause.is::<Unreachable>()) {
            true => Exit::Unreachable,
            false => Exit::Usage,
        }
    }

    /// The table of all codes, for the help.
    pub fn table() -> String {
        let line = |(exit, text): &(Exit, &str)| format!("  {}  {text}\n", exit.code());
        format!("Exit codes:\n{}", EXITS.iter().map(line).collect::<String>())
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn the_codes_are_those_of_their_places() {
        let codes: Vec<u8> = EXITS.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_error_says_how_it_ends_the_program() {
        let unreachable = anyhow::Error::from(Unreachable("no answer".into()));
        let unreachable = Err::<(), _>(unreachable).context("cluster").unwrap_err();
        assert_eq!(Exit::of_error(&unreachable), Exit::Unreachable);
        assert_eq!(format!("{unreachable:#}"), "cluster: no answer");
        assert_eq!(Exit::of_error(&anyhow!("wrong")), Exit::Usage);
    }
}
