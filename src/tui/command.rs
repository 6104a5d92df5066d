//! What the interface asks of the session: the one list of it. Actions and views make commands, the driver does
//! them.

use super::command_result::MenuItem;
use super::model::{CyclePosition, OutlineKind};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, ObjectKey};
use kubestep_debug::decision::ManualDecision;
use kubestep_debug::edit::Edit;
use kubestep_framework::pod::NamespacedName;

/// A command for the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// To the next event at any depth, `count` times.
    Step { count: u32, back: bool },
    /// To the next event at this depth.
    Next { count: u32, back: bool },
    /// To the end (or beginning) of what encloses the position.
    Finish { count: u32, back: bool },
    /// To the first event of the next cycle.
    Cycles { count: u32, back: bool },
    /// Until nothing is left to schedule, or back to the beginning.
    Continue { back: bool },
    /// To a position in the recording.
    GoTo(CyclePosition),
    /// Shows a position; the debugger stays where it is. `None` shows the debugger's own position again.
    Inspect(Option<CyclePosition>),
    /// To a cycle by its number.
    GoToCycle(u64),
    /// To a time, in microseconds of virtual time since the start.
    GoToTime(i64),
    /// To the next cycle of a pod.
    NextCycleOf(NamespacedName),
    /// To the next or previous cycle of the pod of this one.
    Attempt { back: bool },
    /// Stops the replay to an earlier state.
    CancelReplay,
    /// Makes a new branch from the position.
    ContinueHere,
    /// Freezes the live cluster, or resumes.
    Freeze,
    /// Lets a live scheduler decide without stepping.
    RunScheduler,
    /// Dumps nodes and queues, and compares the cache with the server's objects.
    Dump,
    /// Advances virtual time by microseconds, or to the next timer.
    Advance(Option<i64>),
    /// Allows or rejects waiting pods.
    Decide(ManualDecision, Vec<NamespacedName>),
    /// Holds pods at Permit, or releases them: the text of an edit.
    Hold(String),
    /// Changes breakpoints and watches.
    Breakpoint(BreakpointCommand),
    /// Edits the cluster in a branch, or changes branches.
    WhatIf(WhatIfCommand),
    /// Explains why a pod is where it is, in a window.
    Why(NamespacedName),
    /// The same in a view.
    WhyView(NamespacedName),
    /// The same, at the line of a candidate node for preemption.
    WhyCandidate(NamespacedName, Name),
    /// Searches the smallest changes that would make a pod fit.
    Fixes(NamespacedName),
    /// Which new nodes would take a pod.
    NewNodes(NamespacedName),
    /// What happened to drained and lost nodes and to rollouts, in a window.
    Disruptions,
    /// What becomes of the pods if nodes are lost: which, as typed.
    Survive(String),
    /// What an upgrade changes for the pods: the versions, as typed.
    Upgrade(String),
    /// Explains what a cycle found on a node, with causes and formulas.
    ExplainNode(u64, Name),
    /// Two nodes side by side, in a window.
    CompareNodes(Name, Name),
    /// Folds or unfolds a line of an outline.
    Fold(OutlineKind, u64),
}

impl Command {
    /// Whether it can change the session or its branches; otherwise it only shows something.
    pub fn changes_session(&self) -> bool {
        match self {
            Command::Why(_)
            | Command::WhyView(_)
            | Command::WhyCandidate(..)
            | Command::ExplainNode(..)
            | Command::CompareNodes(..)
            | Command::Inspect(_)
            | Command::Fold(..)
            | Command::Disruptions
            | Command::Dump => false,
            Command::WhatIf(command) => command.changes_session(),
            _ => true,
        }
    }
}

/// A change of breakpoints and watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakpointCommand {
    Break(String),
    /// Removes the breakpoint at a location, or sets one.
    Toggle(String),
    Watch(String),
    /// Replaces the definition of the breakpoint or watch with that number.
    Edit(u32, String),
    /// Removes the breakpoint or watch with that number.
    Remove(u32),
    /// Enables or disables one; `None` toggles it.
    Switch(u32, Option<bool>),
    Clear,
    /// Writes all to a file.
    Save(String),
    /// Adds those of a file.
    Load(String),
}

/// An edit, a branch, or a question about them.
#[derive(Clone, Debug, PartialEq)]
pub enum WhatIfCommand {
    /// Offers the edits of an object; of a node also the decisions about a pod.
    Menu(ObjectKey, Option<NamespacedName>),
    /// Offers these edits, under a title.
    Offers(String, Vec<MenuItem>),
    /// Opens an object as YAML in the editor.
    OpenEditor(ObjectKey),
    /// Does an edit that was typed.
    EditLine(String),
    /// Does edits, all or none.
    Edits(Vec<Edit>),
    /// Does a change that the search found, by its index.
    Fix(usize),
    /// Searches for more changes than were found.
    MoreFixes,
    /// Undoes the last edit and everything after it.
    Undo,
    /// Redoes what was undone last.
    Redo,
    /// Makes a branch from the position.
    Fork(Option<String>),
    /// Switches to a branch; `None` lists them.
    Branch(Option<String>),
    /// Compares with a branch, or with the original one.
    Compare(Option<String>),
    /// What changed in scheduling between two versions: between those that are named, or the
    /// branch's own and the one that is named.
    Versions(String),
    /// Adds to the weight of a plugin in the ranking on screen.
    Weigh(Symbol, i64),
}

impl WhatIfCommand {
    /// Whether it can change the session or its branches, or compares them in the background;
    /// otherwise it only shows something.
    pub fn changes_session(&self) -> bool {
        !matches!(
            self,
            WhatIfCommand::Menu(..)
                | WhatIfCommand::Offers(..)
                | WhatIfCommand::OpenEditor(_)
                | WhatIfCommand::Versions(_)
                | WhatIfCommand::MoreFixes
        )
    }
}
