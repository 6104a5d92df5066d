//! What doing a command led to, for the interface to show.

use super::command::{Command, WhatIfCommand};
use super::compare::Table;
use super::lines::DetailLine;
use super::view_id::ViewId;
use super::widget::status_line::Severity;
use kubestep_debug::edit::offers::EditOffer;

/// What doing a command led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandResult {
    /// A message for the status line.
    pub message: Option<(Severity, String)>,
    /// Messages of logging breakpoints, and others that are only listed.
    pub notes: Vec<String>,
    /// A long run has begun, to be continued slice by slice.
    pub running: bool,
    /// A search has begun on its own thread.
    pub searching: bool,
    /// A breakpoint stopped the debugger, or nothing is left that could run.
    pub stopped: bool,
    /// The view that shows the new position best, after a step into or within a cycle.
    pub look_at: Option<ViewId>,
    /// The row to select in it, by its key.
    pub row: Option<u64>,
    /// Windows show what was before: another branch is on screen.
    pub closes_windows: bool,
    /// A window to open.
    pub window: Option<WindowContent>,
    /// An object to open in the editor.
    pub editor: Option<EditorText>,
    /// The marked waiting pods were allowed or rejected: their marks go.
    pub decided: bool,
}

impl CommandResult {
    /// Nothing but a message.
    pub fn info(text: impl Into<String>) -> CommandResult {
        CommandResult::of(Severity::Info, text)
    }

    /// Nothing was done, and why.
    pub fn error(text: impl Into<String>) -> CommandResult {
        CommandResult::of(Severity::Error, text)
    }

    /// A breakpoint stopped the debugger.
    pub fn stopped(text: impl Into<String>) -> CommandResult {
        let text = format!("stopped: {}", text.into());
        CommandResult { stopped: true, ..CommandResult::of(Severity::Info, text) }
    }

    /// A message of any severity.
    pub fn of(severity: Severity, text: impl Into<String>) -> CommandResult {
        CommandResult { message: Some((severity, text.into())), ..CommandResult::default() }
    }

    pub fn window(window: WindowContent) -> CommandResult {
        CommandResult { window: Some(window), ..CommandResult::default() }
    }
}

/// A line of a window, and the command that choosing it gives.
pub type Choice = (Option<WhatIfCommand>, String);

/// What a window shows, under its title.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowContent {
    /// A title with lines to read.
    Lines(String, Vec<String>),
    /// Why a pod is where it is.
    Answer(String, Vec<DetailLine>),
    /// Changes that would make a pod fit.
    Fixes(String, Vec<Choice>),
    /// A title with the branches to choose from.
    Branches(String, Vec<Choice>),
    /// Two nodes side by side.
    Table(String, Table),
    /// Edits and commands to choose from.
    Offers(String, Vec<MenuItem>),
    /// A report that was computed in the background.
    Report {
        title: String,
        lines: Vec<String>,
        /// The command line that shows it again.
        line: String,
    },
}

/// An entry of a menu.
#[derive(Clone, PartialEq, Debug)]
pub enum MenuItem {
    /// An edit, in a branch.
    Edit(EditOffer),
    /// A command that only shows something.
    Command {
        /// As it is typed.
        line: String,
        /// What it does, in a few words.
        about: &'static str,
        command: Command,
    },
}

impl MenuItem {
    /// As it is typed, with the format of what is missing.
    pub fn label(&self) -> String {
        match self {
            MenuItem::Edit(offer) => offer.label(),
            MenuItem::Command { line, .. } => format!(":{line}"),
        }
    }

    /// What it does, in a few words.
    pub fn about(&self) -> &'static str {
        match self {
            MenuItem::Edit(offer) => offer.about(),
            MenuItem::Command { about, .. } => about,
        }
    }
}

/// An object for the editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorText {
    /// The object's kind and name.
    pub name: String,
    /// The object as YAML.
    pub yaml: String,
}
