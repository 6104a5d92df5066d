//! A session that acts: what its scheduler wants written is carried to the API server of a real
//! cluster, and its extenders bind.
//!
//! That belongs to one session alone and is never copied: no what-if, search or comparison can
//! act, as all of them work on copies. What is sent is a step of the log, so that states from
//! the past hold exactly what had not been sent then, and nothing can be sent twice.

use std::sync::Arc;

use super::Session;
use crate::input::{Change, Input};
use kubestep_cluster::remote::{Outgoing, Request};
use kubestep_cluster::{ExtenderFn, World};

/// Writes that are named; more are counted.
const NAMED: usize = 3;

/// What a session acts with; a copy of it does not act.
#[derive(Default)]
pub(super) struct Acts(Option<Hands>);

/// Who answers extenders' calls, those that bind, too; `None`: there are no extenders.
type Hands = Option<ExtenderFn>;

impl Clone for Acts {
    fn clone(&self) -> Acts {
        Acts(None)
    }
}

impl Acts {
    pub fn extenders(&self) -> Option<&ExtenderFn> {
        self.0.as_ref()?.as_ref()
    }
}

/// Writes left for the API server.
#[derive(Debug)]
struct Sent(String);

impl Change for Sent {
    fn words(&self) -> String {
        self.0.clone()
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), String> {
        world.api_mut().take_outbox();
        Ok(())
    }
}

/// A copy leaves the cluster behind.
#[derive(Debug)]
struct Alone;

impl Change for Alone {
    fn words(&self) -> String {
        "what-if: nothing is written from here on".into()
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), String> {
        world.write_here();
        Ok(())
    }
}

impl Session {
    /// From now on this session acts, for a cluster that writes elsewhere; stepping beyond the
    /// recording runs no cycle by itself any more. `extenders` answers the calls of extenders.
    pub fn act(&mut self, extenders: Option<ExtenderFn>) {
        self.acts = Acts(Some(extenders));
    }

    /// Whether this session acts.
    pub fn acts(&self) -> bool {
        self.acts.0.is_some()
    }

    /// What the scheduler wants written and was not sent yet. Nothing if this session does not
    /// act.
    pub fn unsent(&self) -> &[Outgoing] {
        match self.acts() {
            true => self.world.api().outbox(),
            false => &[],
        }
    }

    /// What is not sent yet, in a few words.
    pub fn unsent_words(&self) -> String {
        // Events tell what the others do.
        let (events, writes): (Vec<_>, Vec<_>) =
            self.unsent().iter().partition(|open| is_event(open));
        let named = if writes.is_empty() { &events } else { &writes };
        let words = named.iter().take(NAMED).map(|open| open.request.words());
        let more = named.len().saturating_sub(NAMED);
        let words: Vec<String> = words.chain((more > 0).then(|| format!("{more} more"))).collect();
        words.join(", ")
    }

    /// Takes what is to be sent, as a step unless it is only events; whoever stands at the end
    /// goes along.
    pub fn send(&mut self) -> Vec<Outgoing> {
        if !self.acts() {
            return Vec::new();
        }
        let unsent = self.unsent().to_vec();
        if unsent.iter().all(is_event) {
            self.world.api_mut().take_outbox();
        } else {
            let sent = Sent(format!("sent: {}", self.unsent_words()));
            // Taking cannot fail.
            let _done = self.apply_beside(Input::Change(Arc::new(sent)));
        }
        unsent
    }

    /// From now on what the scheduler writes stays in this session, and what is on its way counts
    /// as done. Nothing changes for a cluster of its own.
    pub fn write_here(&mut self) {
        if !self.world.api().is_here() {
            // Staying alone cannot fail.
            let _done = self.apply(Input::Change(Arc::new(Alone)));
        }
    }
}

fn is_event(open: &Outgoing) -> bool {
    matches!(open.request, Request::Event { .. })
}

#[cfg(test)]
mod tests;
