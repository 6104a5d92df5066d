//! Branches: what-if sessions that share the log of another one up to some position. They form a
//! tree with names; edits never change its root, the original.
//!
//! The caller holds the current session; the other ones are stored here. Undo removes the last edit
//! of a branch with all later inputs, redo applies them again.

use std::collections::VecDeque;
use std::fmt;

use crate::edit::{Applied, Edit, EditError};
use crate::input::Input;
use crate::session::Session;
use kubestep_cluster::DeliveryObserver;

/// The name of the root.
pub const ORIGINAL: &str = "original";
/// Maximum number of branches, with the original: each has its own log.
const KEPT: usize = 24;

/// A branch: its own inputs, and the steps that it shares with its parent.
#[derive(Clone)]
struct Branch {
    name: String,
    /// Whether the user chose the name.
    named: bool,
    /// The index of the branch it was forked from.
    parent: Option<usize>,
    /// Steps that it shares with the branch it was forked from.
    shared: usize,
    /// The session; `None` for the current branch.
    session: Option<Session>,
    /// The undone inputs, the last first: each an edit and what followed it.
    undone: Vec<VecDeque<Input>>,
}

/// A branch, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchInfo {
    /// The name that `:branch` switches to.
    pub name: String,
    /// The name of the branch it was forked from.
    pub parent: Option<String>,
    /// Whether it is the current one.
    pub current: bool,
    /// Its edits, in order.
    pub edits: Vec<String>,
}

/// The result of a redo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedoneInputs {
    /// The words of the first input.
    pub words: String,
    /// The number of steps left.
    pub left: usize,
}

/// The tree of branches of one session.
#[derive(Clone)]
pub struct Branches {
    branches: Vec<Branch>,
    current: usize,
    /// The dropped branches, whose names are not used again, and how many of them were reported.
    dropped: Vec<DroppedBranch>,
    shown_so_far: usize,
}

/// A branch that was dropped. Prints as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedBranch {
    /// The name by which it could be opened.
    pub name: String,
    reason: DropReason,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DropReason {
    TooMany,
    Memory,
}

impl fmt::Display for DroppedBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            DropReason::TooMany => "there were too many",
            DropReason::Memory => "the branches took more than --history-memory",
        };
        write!(f, "branch {} was dropped: {why}", self.name)
    }
}

/// Edits of a branch that are not part of it yet.
pub struct EditDraft {
    session: Session,
    /// Steps that the new branch shares; `None`: they continue the branch.
    shared: Option<usize>,
    /// The index of the branch, and its number of steps.
    branch: usize,
    end: usize,
}

impl EditDraft {
    /// Applies a further edit and returns its side effects. If `observer` stops it, the draft
    /// must be dropped.
    ///
    /// # Errors
    /// The edit cannot be applied.
    pub fn edit(
        &mut self,
        edit: Edit,
        observer: Option<DeliveryObserver>,
    ) -> Result<Applied, EditError> {
        self.session.edit(edit, observer)
    }
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
        Branches { branches: vec![root], current: 0, dropped: Vec::new(), shown_so_far: 0 }
    }
}

impl Branches {
    /// The name of the current branch.
    pub fn name(&self) -> &str {
        self.branches.get(self.current).map_or(ORIGINAL, |branch| &branch.name)
    }

    /// Whether the original is the current branch.
    pub fn on_original(&self) -> bool {
        self.current == 0
    }

    /// The session of a branch that is not the current one.
    pub fn other(&self, name: &str) -> Option<&Session> {
        self.branches.iter().find(|branch| branch.name == name)?.session.as_ref()
    }

    /// All branches, in order of creation. `session` is the current one.
    pub fn list(&self, session: &Session) -> Vec<BranchInfo> {
        let info = |(at, branch): (usize, &Branch)| BranchInfo {
            name: branch.name.clone(),
            parent: branch.parent.and_then(|at| Some(self.branches.get(at)?.name.clone())),
            current: at == self.current,
            edits: edits(branch.session.as_ref().unwrap_or(session), branch.shared),
        };
        self.branches.iter().enumerate().map(info).collect()
    }

    /// Continues in a new branch from the position of `session`. Returns its name: the given one,
    /// or the next free one.
    ///
    /// # Errors
    /// A branch of that name already exists.
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
        let shared = fork.timeline().steps().end();
        self.add(session, fork, Branch { named, ..self.child(name.clone(), shared) });
        Ok(name)
    }

    /// A branch of the current one.
    fn child(&self, name: String, shared: usize) -> Branch {
        let (parent, undone) = (Some(self.current), Vec::new());
        Branch { name, named: false, parent, shared, session: None, undone }
    }

    /// Continues in a new branch, with this session.
    fn add(&mut self, session: &mut Session, fork: Session, branch: Branch) {
        let left = std::mem::replace(session, fork);
        self.leave(left);
        self.branches.push(branch);
        self.current = self.branches.len() - 1;
        self.drop_oldest(session);
    }

    /// Switches to another branch.
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
            // Breakpoints belong to the user, not to a branch.
            session.take_breakpoints_of(&left);
            self.leave(left);
            self.current = at;
            session.restore_budget();
        }
        Ok(())
    }

    /// Makes the state at the position the newest one of this branch. Later inputs are moved to a
    /// new branch, whose name is returned; `None` if there were none.
    pub fn cut(&mut self, session: &mut Session) -> Option<String> {
        let shared = session.step() + 1;
        if shared >= session.timeline().steps().end() {
            return None;
        }
        let name = self.free_name("future");
        let kept = self.child(name.clone(), shared);
        let mut later = session.clone();
        later.keep_least();
        self.branches.push(Branch { session: Some(later), ..kept });
        self.drop_oldest(session);
        session.cut();
        Some(name)
    }

    /// The branches that were dropped since the last call, because there were too many or they
    /// took too much memory.
    pub fn take_dropped(&mut self) -> &[DroppedBranch] {
        let shown_so_far = std::mem::replace(&mut self.shown_so_far, self.dropped.len());
        self.dropped.get(shown_so_far..).unwrap_or_default()
    }

    /// Drops the oldest branches while there are too many; one with a name from the user only if
    /// all have one. Never the original, the current or the newest one.
    fn drop_oldest(&mut self, session: &Session) {
        while let Some(reason) = self.excess(session) {
            let newest = self.branches.len() - 1;
            let old = (1..newest).filter(|at| *at != self.current);
            let Some(at) = old.min_by_key(|at| self.branches[*at].named) else { return };
            self.drop_branch(at, reason);
        }
    }

    /// Why a branch has to be dropped.
    fn excess(&self, session: &Session) -> Option<DropReason> {
        if self.branches.len() > KEPT {
            return Some(DropReason::TooMany);
        }
        let original = self.other(ORIGINAL).unwrap_or(session);
        let begins = original.timeline().steps().start();
        let left = self.branches.iter().skip(1).filter_map(|branch| {
            Some(branch.session.as_ref()?.recorded_bytes_beside(begins, branch.shared))
        });
        let bytes: usize = left.sum();
        session.history_memory().is_some_and(|most| bytes > most).then_some(DropReason::Memory)
    }

    fn drop_branch(&mut self, at: usize, reason: DropReason) {
        let removed = self.branches.remove(at);
        for branch in &mut self.branches {
            match branch.parent {
                Some(parent) if parent == at => {
                    branch.parent = removed.parent;
                    branch.shared = branch.shared.min(removed.shared);
                }
                Some(parent) if parent > at => branch.parent = Some(parent - 1),
                _ => {}
            }
        }
        self.current -= usize::from(self.current > at);
        self.dropped.push(DroppedBranch { name: removed.name, reason });
    }

    fn free_name(&self, stem: &str) -> String {
        let there = |name: &str| self.branches.iter().any(|branch| branch.name == name);
        let taken =
            |name: &str| there(name) || self.dropped.iter().any(|branch| branch.name == name);
        let mut names = (1..).map(|number| format!("{stem}-{number}"));
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// Stores the session of the current branch. The original keeps its memory; what another
    /// branch drops is computed again when it is shown.
    fn leave(&mut self, mut session: Session) {
        if !self.on_original() {
            session.keep_least();
        }
        if let Some(branch) = self.branches.get_mut(self.current) {
            branch.session = Some(session);
        }
    }

    /// Applies an edit at the position. On the original, and where later steps would be lost, it is
    /// applied in a new branch, whose name is returned.
    ///
    /// # Errors
    /// The edit cannot be applied; no branch is created.
    pub fn edit(
        &mut self,
        session: &mut Session,
        edit: Edit,
    ) -> Result<(Applied, Option<String>), EditError> {
        let mut draft = self.draft(session);
        let applied = draft.edit(edit, None)?;
        Ok((applied, self.take(session, draft)?))
    }

    /// What edits at the position are applied to; nothing of it is seen before [`Branches::take`].
    pub fn draft(&self, session: &Session) -> EditDraft {
        let end = session.timeline().steps().end();
        let forks = self.on_original() || session.step() + 1 < end;
        let draft = if forks { session.fork() } else { session.clone() };
        let shared = forks.then(|| draft.timeline().steps().end());
        EditDraft { session: draft, shared, branch: self.current, end }
    }

    /// Makes the edits of a draft part of the branch, or of a new one, whose name is returned.
    ///
    /// # Errors
    /// The branch is not as it was when the draft was begun; nothing changed.
    pub fn take(
        &mut self,
        session: &mut Session,
        draft: EditDraft,
    ) -> Result<Option<String>, EditError> {
        let EditDraft { session: edited, shared, branch, end } = draft;
        let goes_on = shared.is_none() && session.timeline().steps().end() != end;
        if branch != self.current || goes_on {
            return Err(EditError("the branch went on meanwhile: nothing was applied".into()));
        }
        if let Some(shared) = shared {
            let name = self.free_name("what-if");
            self.add(session, edited, self.child(name.clone(), shared));
            return Ok(Some(name));
        }
        *session = edited;
        if let Some(branch) = self.branches.get_mut(self.current) {
            branch.undone.clear();
        }
        Ok(None)
    }

    /// Undoes the last edit of this branch and all later inputs. Returns the words of the edit.
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
        let words = taken.front().map(Input::describe).unwrap_or_default();
        session.go_to_stop(session.timeline().last_stop_of(at - 1));
        session.cut();
        branch.undone.push(taken);
        Ok(words)
    }

    /// Redoes what was undone last: at least the edit, and the inputs after it while `more` returns
    /// true. The next call redoes the rest.
    ///
    /// # Errors
    /// Nothing was undone, or the edit cannot be applied any more.
    pub fn redo(
        &mut self,
        session: &mut Session,
        mut more: impl FnMut() -> bool,
    ) -> Result<RedoneInputs, EditError> {
        let branch = self.branches.get_mut(self.current).ok_or_else(|| nothing("redo"))?;
        let mut taken = branch.undone.pop().ok_or_else(|| nothing("redo"))?;
        let words = taken.front().map(Input::describe).unwrap_or_default();
        session.go_to_end();
        while let Some(input) = taken.pop_front() {
            session.apply(input)?;
            if !more() {
                break;
            }
        }
        let left = taken.len();
        if left > 0 {
            branch.undone.push(taken);
        }
        Ok(RedoneInputs { words, left })
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
    edits.map(Input::describe).collect()
}

#[cfg(test)]
mod tests;
