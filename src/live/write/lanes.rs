//! Writes about one object are made in the order in which they were asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::api::Kind;
use crate::engine::pod::NamespacedName;

/// An object.
pub type Lane = (Kind, NamespacedName);

type Ends = HashMap<Lane, (u64, oneshot::Receiver<()>)>;

/// The newest write of each object that has some under way.
#[derive(Default)]
pub struct Lanes {
    ends: Arc<Mutex<Ends>>,
    entered: u64,
}

/// A place in a lane.
pub struct Place {
    before: Option<oneshot::Receiver<()>>,
    turn: Turn,
}

/// Held while it is one's turn.
pub struct Turn {
    lane: Lane,
    number: u64,
    ends: Arc<Mutex<Ends>>,
    _end: oneshot::Sender<()>,
}

impl Lanes {
    /// Takes the next place.
    pub fn enter(&mut self, lane: Lane) -> Place {
        self.entered += 1;
        let (end, ended) = oneshot::channel();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ends.insert(lane, (self.entered, ended)).map(|(_, ended)| ended);
        let turn = Turn { lane, number: self.entered, ends: self.ends.clone(), _end: end };
        Place { before, turn }
    }
}

impl Place {
    /// Waits for those before.
    pub async fn turn(self) -> Turn {
        if let Some(before) = self.before {
            // It ends by being dropped, which is an error to the channel.
            let _ended = before.await;
        }
        self.turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.get(&self.lane).is_some_and(|(newest, _)| *newest == self.number) {
            ends.remove(&self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Lane {
        (Kind::Pod, NamespacedName::new("d".into(), name.into()))
    }

    #[tokio::test]
    async fn one_after_the_other_and_nothing_is_left() {
        let mut lanes = Lanes::default();
        let (first, second, other) =
            (lanes.enter(pod("a")), lanes.enter(pod("a")), lanes.enter(pod("b")));
        drop(other.turn().await);
        let first = first.turn().await;
        let waiting = tokio::spawn(second.turn());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        drop(waiting.await.unwrap());
        assert!(lanes.ends.lock().unwrap().is_empty());
    }
}
