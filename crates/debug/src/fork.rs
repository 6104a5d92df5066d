//! Branches: what-if sessions that begin as another one up to some position and go their own
//! way from there. They form a tree with names; the original, its root, is never changed by an
//! edit.
//!
//! The session that is worked on stays with whoever works on it; the others are kept here.
//! Undo takes back the last edit of a branch with all that was done after it, redo does all of
//! that again.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::edit::{Applied, Edit, EditError};
use crate::input::Input;
use crate::session::Session;

/// The name of the root.
pub const ORIGINAL: &str = "original";
/// Branches kept at most: each has its own list of what was done.
const KEPT: usize = 24;

/// A branch.
#[derive(Clone)]
struct Branch {
    name: String,
    /// Whether somebody chose the name.
    named: bool,
    /// The branch it was forked from, by its place.
    parent: Option<usize>,
    /// Steps that it shares with the branch it was forked from.
    shared: usize,
    /// The session; `None` for the branch that is worked on.
    session: Option<Session>,
    /// What was taken back, the last first: each an edit and what followed it.
    undone: Vec<VecDeque<Input>>,
}

/// A branch as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchInfo {
    /// Its name.
    pub name: String,
    /// The name of the branch it was forked from.
    pub parent: Option<String>,
    /// Whether it is the one that is worked on.
    pub current: bool,
    /// Its edits, in order.
    pub edits: Vec<String>,
}

/// What was done again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redone {
    /// The words of what came first.
    pub words: String,
    /// How many steps are left.
    pub left: usize,
}

/// The tree of branches of one session.
#[derive(Clone)]
pub struct Branches {
    branches: Vec<Branch>,
    current: usize,
    /// The names of those that were given up, which are not given again, and of how many of
    /// them somebody was told.
    given_up: Vec<String>,
    told: usize,
}

impl Default for Branches {
    fn default() -> Branches {
        let root = Branch {
            name: ORIGINAL.into(),
            named: true,
            parent: None,
            shared: 0,
            session: None,
            undone: Vec::new(),
        };
        Branches { branches: vec![root], current: 0, given_up: Vec::new(), told: 0 }
    }
}

impl Branches {
    /// The name of the branch that is worked on.
    pub fn name(&self) -> &str {
        self.branches.get(self.current).map_or(ORIGINAL, |branch| &branch.name)
    }

    /// Whether the original is worked on.
    pub fn on_original(&self) -> bool {
        self.current == 0
    }

    /// The session of another branch than the one that is worked on.
    pub fn other(&self, name: &str) -> Option<&Session> {
        self.branches.iter().find(|branch| branch.name == name)?.session.as_ref()
    }

    /// All branches, in the order they were made. `session` is the one that is worked on.
    pub fn list(&self, session: &Session) -> Vec<BranchInfo> {
        let info = |(at, branch): (usize, &Branch)| BranchInfo {
            name: branch.name.clone(),
            parent: branch.parent.and_then(|at| Some(self.branches.get(at)?.name.clone())),
            current: at == self.current,
            edits: edits(branch.session.as_ref().unwrap_or(session), branch.shared),
        };
        self.branches.iter().enumerate().map(info).collect()
    }

    /// Goes on in a new branch from the position of `session`. Gives its name: the one asked
    /// for, or the next that is free.
    ///
    /// # Errors
    /// There is a branch of that name already.
    pub fn fork(&mut self, session: &mut Session, name: Option<&str>) -> Result<String, EditError> {
        let taken = |name: &str| self.branches.iter().any(|branch| branch.name == name);
        let named = name.is_some();
        let name = match name {
            Some(name) if taken(name) => {
                return Err(EditError(format!("branch {name:?} already exists")));
            }
            Some(name) => name.to_owned(),
            None => self.free_name("what-if"),
        };
        let fork = session.fork();
        let branch = Branch {
            name: name.clone(),
            named,
            parent: Some(self.current),
            shared: fork.timeline().steps().end(),
            session: None,
            undone: Vec::new(),
        };
        let left = std::mem::replace(session, fork);
        self.leave(left);
        self.branches.push(branch);
        self.current = self.branches.len() - 1;
        self.give_up_oldest();
        Ok(name)
    }

    /// Works on another branch from now on.
    ///
    /// # Errors
    /// There is no branch of that name.
    pub fn switch(&mut self, session: &mut Session, name: &str) -> Result<(), EditError> {
        let known = || self.branches.iter().map(|branch| branch.name.as_str());
        let at = known().position(|known| known == name).ok_or_else(|| {
            let names = known().collect::<Vec<_>>().join(", ");
            EditError(format!("there is no branch {name:?}; there is {names}"))
        })?;
        if let Some(there) = self.branches.get_mut(at).and_then(|branch| branch.session.take()) {
            let left = std::mem::replace(session, there);
            // Whoever debugs takes the breakpoints along.
            session.take_breakpoints_of(&left);
            self.leave(left);
            self.current = at;
        }
        Ok(())
    }

    /// Makes the state at the position the newest one of this branch. What was done after it
    /// is kept in a branch of its own, whose name is given; `None` if there was nothing.
    pub fn cut(&mut self, session: &mut Session) -> Option<String> {
        let shared = session.step() + 1;
        if shared >= session.timeline().steps().end() {
            return None;
        }
        let name = self.free_name("future");
        let kept = Branch {
            name: name.clone(),
            named: false,
            parent: Some(self.current),
            shared,
            session: Some(session.clone()),
            undone: Vec::new(),
        };
        self.branches.push(kept);
        self.give_up_oldest();
        session.cut();
        Some(name)
    }

    /// The names of branches that were given up since the last call, because there were too
    /// many.
    pub fn take_given_up(&mut self) -> &[String] {
        let told = std::mem::replace(&mut self.told, self.given_up.len());
        self.given_up.get(told..).unwrap_or_default()
    }

    /// Gives up the oldest branch if there are too many; one that somebody named only if all
    /// are. Never the original, the one that is worked on, or the newest.
    fn give_up_oldest(&mut self) {
        let newest = self.branches.len() - 1;
        if newest < KEPT {
            return;
        }
        let old = (1..newest).filter(|at| *at != self.current);
        let Some(at) = old.min_by_key(|at| self.branches[*at].named) else { return };
        let gone = self.branches.remove(at);
        for branch in &mut self.branches {
            match branch.parent {
                Some(parent) if parent == at => {
                    branch.parent = gone.parent;
                    branch.shared = branch.shared.min(gone.shared);
                }
                Some(parent) if parent > at => branch.parent = Some(parent - 1),
                _ => {}
            }
        }
        self.current -= usize::from(self.current > at);
        self.given_up.push(gone.name);
    }

    fn free_name(&self, stem: &str) -> String {
        let there = |name: &str| self.branches.iter().any(|branch| branch.name == name);
        let taken = |name: &str| there(name) || self.given_up.iter().any(|gone| gone == name);
        let mut names = (1..).map(|number| format!("{stem}-{number}"));
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    fn leave(&mut self, session: Session) {
        if let Some(branch) = self.branches.get_mut(self.current) {
            branch.session = Some(session);
        }
    }

    /// Applies an edit at the position. On the original, and where later steps would be lost,
    /// that is done in a new branch, whose name is given back.
    ///
    /// # Errors
    /// The edit cannot be applied; then there is no new branch either.
    pub fn edit(
        &mut self,
        session: &mut Session,
        edit: Edit,
    ) -> Result<(Applied, Option<String>), EditError> {
        // Tried on a copy first: what it says is not part of a session's log.
        let mut tried = Arc::unwrap_or_clone(session.world_at(session.step()));
        let applied = edit.apply(&mut tried)?;
        drop(tried);
        let behind = session.step() + 1 < session.timeline().steps().end();
        let forked = match self.on_original() || behind {
            true => Some(self.fork(session, None)?),
            false => None,
        };
        session.change(Arc::new(edit)).map_err(EditError)?;
        if let Some(branch) = self.branches.get_mut(self.current) {
            branch.undone.clear();
        }
        Ok((applied, forked))
    }

    /// Takes the last edit of this branch back, with all that was done after it. Gives its
    /// words.
    ///
    /// # Errors
    /// There is no edit in this branch.
    pub fn undo(&mut self, session: &mut Session) -> Result<String, EditError> {
        let Some(branch) = self.branches.get_mut(self.current) else { return Err(nothing("undo")) };
        let steps = session.timeline().steps();
        let is_edit = |step: &crate::timeline::Step| matches!(step.input, Some(Input::Change(_)));
        let last = steps.numbered().rev().find(|(_, step)| is_edit(step));
        let at = last.map(|(at, _)| at).filter(|at| *at >= branch.shared.max(1));
        let at = at.filter(|_| branch.parent.is_some()).ok_or_else(|| nothing("undo"))?;
        let taken: VecDeque<Input> = steps.from(at).filter_map(|step| step.input.clone()).collect();
        let words = taken.front().map(Input::words).unwrap_or_default();
        session.go_to_stop(session.timeline().last_stop_of(at - 1));
        session.cut();
        branch.undone.push(taken);
        Ok(words)
    }

    /// Does again what was taken back last: at least the edit, and what followed it while there
    /// is `more` time. What is left is done by the next call.
    ///
    /// # Errors
    /// Nothing was taken back, or it cannot be done any more.
    pub fn redo(
        &mut self,
        session: &mut Session,
        mut more: impl FnMut() -> bool,
    ) -> Result<Redone, EditError> {
        let branch = self.branches.get_mut(self.current).ok_or_else(|| nothing("redo"))?;
        let mut taken = branch.undone.pop().ok_or_else(|| nothing("redo"))?;
        let words = taken.front().map(Input::words).unwrap_or_default();
        session.go_to_end();
        while let Some(input) = taken.pop_front() {
            session.apply(input).map_err(EditError)?;
            if !more() {
                break;
            }
        }
        let left = taken.len();
        if left > 0 {
            branch.undone.push(taken);
        }
        Ok(Redone { words, left })
    }
}

fn nothing(verb: &str) -> EditError {
    EditError(format!("there is nothing to {verb} in this branch"))
}

/// The words of the edits after the first `shared` steps.
fn edits(session: &Session, shared: usize) -> Vec<String> {
    let steps = session.timeline().steps().from(shared);
    let inputs = steps.filter_map(|step| step.input.as_ref());
    let edits = inputs.filter(|input| matches!(input, Input::Change(_)));
    edits.map(Input::words).collect()
}

#[cfg(test)]
mod tests;
