//! What is looked for beside the keys, above all the smallest change that makes a pod fit; what
//! is found is applied as a what-if where it was asked for.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::beside::{Beside, Came};
use super::difference::Comparing;
use super::{Done, Driver, Open};
use crate::report::fixes;
use crate::tui::action::whatif::Wish;
use crate::tui::widget::status_line::Severity;
use kubestep_debug::Position as Frame;
use kubestep_debug::edit::{Edit, EditError};
use kubestep_debug::fix::{self, Fixes, Limits};
use kubestep_framework::pod::NamespacedName;

/// Without waiting.
const NOW: Duration = Duration::ZERO;

/// What was asked, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pod: NamespacedName,
    branch: String,
    step: usize,
    stop: usize,
    frame: Frame,
}

/// What is looked for beside the keys.
pub(super) enum Searching {
    /// What would make a pod fit.
    Fixes(Question, Beside<Fixes>),
    /// What differs between two branches.
    Difference(Comparing),
}

/// What a search came to.
pub(super) struct Answer {
    question: Question,
    fixes: Fixes,
}

impl Driver {
    /// What would make the pod fit at the position: looked for, or at hand from before.
    pub(super) fn fixes(&mut self, pod: NamespacedName) -> Done {
        let question = Question {
            pod,
            branch: self.branches.name().to_owned(),
            step: self.session.step(),
            stop: self.session.stop_index(),
            frame: self.session.position(),
        };
        let same =
            |other: &Question| Question { frame: question.frame, ..other.clone() } == question;
        if let Some(answer) = self.found.as_ref().filter(|answer| same(&answer.question)) {
            return Done { open: Some(window(answer)), ..Done::default() };
        }
        if self.session.world_at(self.session.step()).api().objects().pod(pod).is_none() {
            return super::why::gone(pod);
        }
        self.stop_search();
        match self.begin_search(question) {
            Ok(searching) => self.searching = Some(searching),
            Err(error) => {
                let text = format!("cannot search: {error}");
                return Done { message: Some((Severity::Error, text)), ..Done::default() };
            }
        }
        Done { searching: true, ..Done::default() }
    }

    fn begin_search(&mut self, question: Question) -> std::io::Result<Searching> {
        let pod = question.pod;
        let mut world = Arc::unwrap_or_clone(self.session.world_at(self.session.step()));
        world.write_here();
        let work = Beside::begin("fixes", move |told| {
            let mut go_on = |tried, of| told.go_on(tried, of);
            fix::fixes(&world, &world, pod, Limits::default(), &mut go_on)
        })?;
        Ok(Searching::Fixes(question, work))
    }

    /// Whether a search is under way: call `search_tick` now and then.
    pub fn is_searching(&self) -> bool {
        self.searching.is_some()
    }

    /// Ends the search; what it has found until then still comes.
    pub fn stop_search(&mut self) {
        match &self.searching {
            Some(Searching::Fixes(_, work)) => work.stop(),
            Some(Searching::Difference(comparing)) => comparing.stop(),
            None => {}
        }
    }

    /// Looks how far the search is. What came of it once it is over.
    pub fn search_tick(&mut self) -> Option<Done> {
        self.model.searching = None;
        let going_on = match self.searching.take()? {
            Searching::Fixes(question, work) => match work.result(NOW) {
                Came::NotYet => Searching::Fixes(question, work),
                came => return Some(self.take_found(question, came)),
            },
            Searching::Difference(comparing) => match self.take_compared(comparing, NOW) {
                Err(comparing) => Searching::Difference(comparing),
                Ok(done) => return Some(done),
            },
        };
        self.model.searching = Some(going_on.words());
        self.searching = Some(going_on);
        None
    }

    fn take_found(&mut self, question: Question, came: Came<Fixes>) -> Done {
        let Came::Result(fixes) = came else {
            let text = "the search ended without a result".to_owned();
            return Done { message: Some((Severity::Error, text)), ..Done::default() };
        };
        let answer = Answer { question, fixes };
        let open = Some(window(&answer));
        self.found = Some(answer);
        Done { open, ..Done::default() }
    }

    /// Does the edits of a change that was found, in a branch from where it was asked for.
    pub(super) fn apply_fix(&mut self, number: usize) -> Result<Done, EditError> {
        let found = self.found.as_ref().and_then(|answer| {
            let lines = answer.fixes.found.get(number)?.edits.iter().map(Edit::line);
            Some((answer.question.clone(), lines.collect::<Vec<String>>()))
        });
        let nothing = || EditError("nothing was found yet; X looks for it".into());
        let (question, lines) = found.ok_or_else(nothing)?;
        self.branches.switch(&mut self.session, &question.branch)?;
        let steps = self.session.timeline().steps().end();
        if question.step >= steps || question.stop >= self.session.timeline().stops().end() {
            return Err(EditError(
                "what it was found for is not there any more; X looks anew".into(),
            ));
        }
        self.session.go_to_stop(question.stop);
        self.session.go_to(question.frame);
        let done = self.edits(&lines)?;
        let told = done.message.map(|(_, text)| text).unwrap_or_default();
        Ok(Done::said(format!("{told}; c runs on, D compares, u undoes")))
    }
}

impl Searching {
    fn words(&self) -> String {
        let (question, work) = match self {
            Searching::Fixes(question, work) => (question, work),
            Searching::Difference(comparing) => return comparing.words(),
        };
        let pod = question.pod;
        match (work.is_stopping(), work.progress()) {
            (true, _) => format!("ending the search of what {pod} needs"),
            (_, (_, 0)) => format!("looking at what {pod} needs; Esc stops"),
            (_, (tried, of)) => format!("{tried} of {of} changes tried for {pod}; Esc stops"),
        }
    }
}

fn window(answer: &Answer) -> Open {
    let title = format!("What would make {} fit?", answer.question.pod);
    let lines = fixes::lines(&answer.fixes).into_iter();
    Open::Fixes(title, lines.map(|(fix, line)| (fix.map(Wish::Fix), line)).collect())
}
