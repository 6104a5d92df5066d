//! Exit codes.

use std::process::{ExitCode, Termination};

/// How the program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: everything was placed, or the debugger was left.
    Fine,
    /// 1: some pod stayed pending.
    Unschedulable,
    /// 2: wrong usage or input.
    Usage,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Unschedulable => 1,
            Exit::Usage => 2,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
