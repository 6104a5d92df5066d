//! The search for the smallest change that makes a pod fit: on a thread of its own, so that keys
//! are answered meanwhile, and what it finds applied as a what-if where it was asked for.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use super::{Done, Driver, Open};
use crate::debug::Position as Frame;
use crate::debug::edit::{Edit, EditError};
use crate::debug::fix::{self, Fixes, Limits};
use crate::engine::pod::NamespacedName;
use crate::report::fixes;
use crate::tui::widget::status_line::Severity;

/// As of a program's first thread.
const STACK: usize = 8 << 20;

/// What was asked, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Question {
    pod: NamespacedName,
    branch: String,
    step: usize,
    stop: usize,
    frame: Frame,
}

/// A search under way.
pub(super) struct Searching {
    question: Question,
    told: Arc<Told>,
    answer: Receiver<Fixes>,
}

/// What both threads know.
#[derive(Default)]
struct Told {
    stop: AtomicBool,
    tried: AtomicUsize,
    of: AtomicUsize,
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
        if self.session.world_here().api().objects().pod(pod).is_none() {
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
        let (sender, answer) = sync_channel(1);
        let told = Arc::new(Told::default());
        let (pod, telling) = (question.pod, told.clone());
        let mut world = self.session.world_here().clone();
        world.write_here();
        let work = move || {
            let mut go_on = |tried, of| {
                telling.tried.store(tried, Ordering::Relaxed);
                telling.of.store(of, Ordering::Relaxed);
                !telling.stop.load(Ordering::Relaxed)
            };
            // Nobody waits any more for what was given up.
            let _sent = sender.send(fix::fixes(&world, pod, Limits::default(), &mut go_on));
        };
        thread::Builder::new().name("fixes".into()).stack_size(STACK).spawn(work)?;
        Ok(Searching { question, told, answer })
    }

    /// Whether a search is under way: call `search_tick` now and then.
    pub fn is_searching(&self) -> bool {
        self.searching.is_some()
    }

    /// Ends the search; what it has found until then still comes.
    pub fn stop_search(&mut self) {
        if let Some(searching) = &self.searching {
            searching.told.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Looks how far the search is. What came of it once it is over.
    pub fn search_tick(&mut self) -> Option<Done> {
        let searching = self.searching.take()?;
        match searching.answer.try_recv() {
            Ok(fixes) => {
                self.model.searching = None;
                let answer = Answer { question: searching.question, fixes };
                let open = Some(window(&answer));
                self.found = Some(answer);
                return Some(Done { open, ..Done::default() });
            }
            Err(TryRecvError::Disconnected) => {
                self.model.searching = None;
                let text = "the search ended without a result".to_owned();
                return Some(Done { message: Some((Severity::Error, text)), ..Done::default() });
            }
            Err(TryRecvError::Empty) => {}
        }
        self.model.searching = Some(words(&searching));
        self.searching = Some(searching);
        None
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
        let steps = self.session.timeline().steps().len();
        if question.step >= steps || question.stop >= self.session.timeline().stops().len() {
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

fn words(searching: &Searching) -> String {
    let Told { stop, tried, of } = &*searching.told;
    let pod = searching.question.pod;
    match (stop.load(Ordering::Relaxed), of.load(Ordering::Relaxed)) {
        (true, _) => format!("ending the search of what {pod} needs"),
        (_, 0) => format!("looking at what {pod} needs; Esc stops"),
        (_, of) => {
            let tried = tried.load(Ordering::Relaxed);
            format!("{tried} of {of} changes tried for {pod}; Esc stops")
        }
    }
}

fn window(answer: &Answer) -> Open {
    let title = format!("What would make {} fit?", answer.question.pod);
    Open::Fixes(title, fixes::lines(&answer.fixes))
}
