//! A session that acts: the writes of its scheduler are sent to the API server of a real cluster,
//! and its extenders bind.
//!
//! Only one session acts, and copies of it do not: what-if, search and comparison cannot act, as
//! all of them work on copies. Sending is a step of the log, so that past states contain what was
//! unsent at that time, and nothing can be sent twice.

use std::sync::Arc;

use super::Session;
use crate::edit::EditError;
use crate::input::{Change, Input};
use kubestep_cluster::remote::{Outgoing, Request};
use kubestep_cluster::{ExtenderFn, World};
use kubestep_framework::stopwatch::{Done, Spent};

/// Writes that are listed by name; others are only counted.
const NAMED: usize = 3;

/// How a session acts; its copies do not.
#[derive(Default)]
pub(super) struct Acting(Option<ExtenderCaller>);

/// Answers the calls of extenders, including binds; `None`: there are no extenders.
type ExtenderCaller = Option<ExtenderFn>;

impl Clone for Acting {
    fn clone(&self) -> Acting {
        Acting(None)
    }
}

impl Acting {
    pub fn extenders(&self) -> Option<&ExtenderFn> {
        self.0.as_ref()?.as_ref()
    }
}

/// The step that sends writes to the API server.
#[derive(Debug)]
struct SentWrites(String);

impl Change for SentWrites {
    fn describe(&self) -> String {
        self.0.clone()
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        world.api_mut().take_outbox();
        Ok(())
    }
}

/// The step with which a copy stops acting.
#[derive(Debug)]
struct Detached;

impl Change for Detached {
    fn describe(&self) -> String {
        "what-if: nothing is written from here on".into()
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        world.detach();
        Ok(())
    }
}

impl Session {
    /// Makes this session act, for a cluster that writes to a remote API server. From now on
    /// stepping past the end of the recording runs no cycle. `extenders` answers the
    /// calls of extenders.
    pub fn act(&mut self, extenders: Option<ExtenderFn>) {
        self.acts = Acting(Some(extenders));
    }

    /// Whether this session acts.
    pub fn acts(&self) -> bool {
        self.acts.0.is_some()
    }

    /// The writes of the scheduler that are not sent yet. Empty if this session does not act.
    pub fn unsent(&self) -> &[Outgoing] {
        match self.acts() {
            true => self.world.api().outbox(),
            false => &[],
        }
    }

    /// A short description of what is not sent yet.
    pub fn describe_unsent(&self) -> String {
        // Events describe the writes, so they are only named if there are no writes.
        let (events, writes): (Vec<_>, Vec<_>) =
            self.unsent().iter().partition(|open| is_event(open));
        let named = if writes.is_empty() { &events } else { &writes };
        let words = named.iter().take(NAMED).map(|open| open.request.describe());
        let more = named.len().saturating_sub(NAMED);
        let words: Vec<String> = words.chain((more > 0).then(|| format!("{more} more"))).collect();
        words.join(", ")
    }

    /// Takes the writes to be sent. Unless they are only events this is a step, and a position at
    /// the end moves with it.
    pub fn send(&mut self) -> Vec<Outgoing> {
        if !self.acts() {
            return Vec::new();
        }
        let unsent = self.unsent().to_vec();
        if unsent.iter().all(is_event) {
            self.world.api_mut().take_outbox();
        } else {
            let sent = SentWrites(format!("sent: {}", self.describe_unsent()));
            // Taking writes does not fail.
            let _done = self.apply_in_background(Input::Change(Arc::new(sent)));
        }
        unsent
    }

    /// What a session that acts has measured since the last call: the plugins' durations, and other
    /// work of the scheduler.
    pub fn take_measurements(&mut self) -> (Vec<Spent>, Vec<Done>) {
        self.times.take_unreported()
    }

    /// Stops acting: from now on the writes of the scheduler stay in this session, and those on
    /// their way count as done. No effect on a session with a simulated cluster.
    pub fn detach(&mut self) {
        if !self.world.api().is_local() {
            // This change does not fail.
            let _done = self.apply(Input::Change(Arc::new(Detached)));
        }
    }
}

fn is_event(open: &Outgoing) -> bool {
    matches!(open.request, Request::Event { .. })
}

#[cfg(test)]
mod tests;
