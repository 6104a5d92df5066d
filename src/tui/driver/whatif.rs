//! Edits and branches: what the interface wishes, done with the session it works on.

use std::sync::Arc;
use std::time::Instant;

use super::{Done, Driver, Goal};
use crate::tui::action::whatif::{Choice, Wish};
use crate::tui::lines::Line;
use crate::tui::widget::status_line::Severity;
use kubestep_api::ObjectKey;
use kubestep_api::intern::Symbol;
use kubestep_debug::edit::offers::{Offer, offers};
use kubestep_debug::edit::{Edit, EditError};
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::preview;
use kubestep_framework::pod::NamespacedName;

/// Something to open over the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// Lines to read, under a title.
    Lines(String, Vec<String>),
    /// Why a pod is where it is, under a title.
    Answer(String, Vec<Line>),
    /// Changes that would make a pod fit, under a title: each line with the change it is about.
    Fixes(String, Vec<Choice>),
    /// The branches, under a title.
    Branches(String, Vec<Choice>),
    /// Edits to choose from, under a title.
    Offers(String, Vec<Offer>),
    /// A text for the editor: the object's words, and the object as YAML.
    Editor(String, String),
}

impl Driver {
    /// Does what is wished.
    pub(super) fn what_if(&mut self, wish: &Wish) -> Done {
        let done = match wish {
            Wish::Menu(key, pod) => Ok(self.menu(*key, *pod)),
            Wish::Offers(title, found) => Ok(Done {
                open: Some(Open::Offers(title.clone(), found.clone())),
                ..Done::default()
            }),
            Wish::Yaml(key) => self.yaml(*key),
            Wish::Edits(lines) => self.edits(lines),
            Wish::Fix(number) => self.apply_fix(*number),
            Wish::Undo => {
                self.branches.undo(&mut self.session).map(|w| said(format!("undone: {w}")))
            }
            Wish::Redo => self.redo(),
            Wish::Fork(name) => {
                let forked = self.branches.fork(&mut self.session, name.as_deref());
                forked
                    .map(|name| said(format!("on branch {name}; the branch before stays as it is")))
            }
            Wish::Branch(Some(name)) => {
                let switched = self.branches.switch(&mut self.session, name);
                switched.map(|()| said(format!("on branch {name}")))
            }
            Wish::Branch(None) => Ok(self.list_branches()),
            Wish::Compare(name) => self.compare(name.as_deref()),
            Wish::Weigh(plugin, by) => self.weigh(*plugin, *by),
        };
        let looks = matches!(wish, Wish::Menu(..) | Wish::Offers(..) | Wish::Yaml(_));
        if !looks && !matches!(wish, Wish::Weigh(..) | Wish::Compare(_)) {
            self.model.weights.clear();
            let name = self.branches.name();
            self.model.branch = if name == ORIGINAL { String::new() } else { name.to_owned() };
            self.future_forgotten();
        }
        let notes = self.given_up();
        done.map(|done| Done { notes, ..done }).unwrap_or_else(|EditError(text)| Done {
            message: Some((Severity::Error, text)),
            ..Done::default()
        })
    }

    /// What there is to say of branches that were given up.
    pub(super) fn given_up(&mut self) -> Vec<String> {
        let names = self.branches.take_given_up().iter();
        names.map(|name| format!("branch {name} was given up: there were too many")).collect()
    }

    fn menu(&mut self, key: ObjectKey, pod: Option<NamespacedName>) -> Done {
        let world = &*self.session.world_at(self.session.step());
        let mut found = Vec::new();
        let pending = |pod: &NamespacedName| {
            let object = world.api().objects().pod(*pod);
            object.is_some_and(|object| object.spec.node_name.is_empty())
        };
        if let Some(pod) = pod.filter(pending) {
            let words = |verb| format!("{verb} node {} for pod {pod}", key.name);
            let decisions = ["choose", "force", "veto"].map(words);
            found.extend(decisions.map(|words| Offer { words, missing: "" }));
        }
        found.extend(offers(world, key));
        let open = Open::Offers(format!("What if: {key}"), found);
        Done { open: Some(open), ..Done::default() }
    }

    fn yaml(&mut self, key: ObjectKey) -> Result<Done, EditError> {
        let name = NamespacedName::new(key.namespace, key.name);
        let world = self.session.world_at(self.session.step());
        let found = world.api().get(key.kind, name);
        let object = found.ok_or_else(|| EditError(format!("there is no {key} here")))?;
        let open = Open::Editor(key.to_string(), kubestep_debug::edit::yaml(&object));
        Ok(Done { open: Some(open), ..Done::default() })
    }

    /// All of the edits, or none.
    pub(super) fn edits(&mut self, lines: &[String]) -> Result<Done, EditError> {
        let read = |line: &String| Edit::read_line(line, kubestep_source::read_whole);
        let edits: Result<Vec<Vec<Edit>>, EditError> = lines.iter().map(read).collect();
        let edits: Vec<Edit> = edits?.into_iter().flatten().collect();
        let mut tried = Arc::unwrap_or_clone(self.session.world_at(self.session.step()));
        for edit in &edits {
            edit.apply(&mut tried)?;
        }
        let mut words = Vec::new();
        for edit in edits {
            let text = edit.to_string();
            let (applied, forked) = self.branches.edit(&mut self.session, edit)?;
            words.push(text);
            words.extend(applied.notes);
            words.extend(forked.map(|name| format!("in branch {name}")));
        }
        Ok(said(words.join("; ")))
    }

    fn list_branches(&self) -> Done {
        let list = self.branches.list(&self.session);
        let lines = list.into_iter().map(|branch| {
            let mark = if branch.current { "* " } else { "  " };
            let from = branch.parent.map(|name| format!(", from {name}")).unwrap_or_default();
            let edits = match branch.edits.as_slice() {
                [] => String::new(),
                edits => format!(": {}", edits.join(", ")),
            };
            let line = format!("{mark}{}{from}{edits}", branch.name);
            (Some(Wish::Branch(Some(branch.name))), line)
        });
        Done { open: Some(Open::Branches("Branches".into(), lines.collect())), ..Done::default() }
    }

    /// Does again what was taken back: in a moment, or as a run.
    fn redo(&mut self) -> Result<Done, EditError> {
        let (start, patience) = (Instant::now(), self.picture.patience);
        let redone = self.branches.redo(&mut self.session, || start.elapsed() < patience)?;
        if redone.left == 0 {
            return Ok(said(again(&redone.words)));
        }
        self.redoing = Some(redone);
        Ok(self.begin_run(Goal::Redo))
    }

    /// Goes on with it; what came of it once it is over.
    pub(super) fn redo_on(&mut self, more: impl FnMut() -> bool) -> Option<Done> {
        let begun = self.redoing.take()?;
        let left = match self.branches.redo(&mut self.session, more) {
            Ok(redone) => redone.left,
            Err(error) => {
                let message = Some((Severity::Error, error.to_string()));
                return Some(Done { message, ..Done::default() });
            }
        };
        let done = begun.left.saturating_sub(left);
        self.model.progress =
            (left > 0).then(|| format!("{done} of {} steps done again; Esc stops", begun.left));
        if left == 0 {
            return Some(said(again(&begun.words)));
        }
        self.redoing = Some(begun);
        None
    }

    fn weigh(&mut self, plugin: Symbol, by: i64) -> Result<Done, EditError> {
        let record = self.session.latest_record().cloned();
        let nothing = || EditError(format!("{plugin} gives no scores in this cycle"));
        let record = record.ok_or_else(nothing)?;
        let column = record.score.plugins.iter().find(|column| column.plugin == plugin);
        let real = column.ok_or_else(nothing)?.weight;
        let weights = &mut self.model.weights;
        let weight = (preview::weight_of(weights, plugin).unwrap_or(real) + by).max(0);
        weights.retain(|(name, _)| *name != plugin);
        if weight != real {
            weights.push((plugin, weight));
        }
        self.model.revision += 1;
        let totals = preview::totals(&record, &self.model.weights);
        let best = preview::winner(&record, &totals).and_then(|at| record.feasible.get(at));
        let best = best.map(|id| record.nodes.name(*id)).unwrap_or_default();
        let how = match (weight == real, weight) {
            (true, _) => "as configured".to_owned(),
            (false, 0) => format!(":what-if disable {plugin} at Score runs with it"),
            (false, _) => format!(":what-if weight {plugin}={weight} runs with it"),
        };
        Ok(said(format!("weight {weight}: the best is {best}; {how}")))
    }
}

fn again(words: &str) -> String {
    format!("done again: {words}")
}

fn said(text: String) -> Done {
    Done { message: Some((Severity::Info, text)), ..Done::default() }
}

#[cfg(test)]
mod tests;
