//! What lets writes pass: open while this program may write, closed the moment it may not.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all who write. Closing it ends what is on its way.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Debug)]
enum State {
    Open,
    Closed(String),
    /// For good.
    Shut(String),
}

impl State {
    fn reason(&self) -> Option<&String> {
        match self {
            State::Open => None,
            State::Closed(reason) | State::Shut(reason) => Some(reason),
        }
    }
}

impl Gate {
    /// A gate that is closed for that reason.
    pub fn closed(reason: &str) -> Gate {
        Gate(Arc::new(watch::Sender::new(State::Closed(reason.to_owned()))))
    }

    /// Lets writes pass, unless it is shut.
    pub fn open(&self) {
        self.0.send_if_modified(|state| {
            let closed = matches!(state, State::Closed(_));
            if closed {
                *state = State::Open;
            }
            closed
        });
    }

    /// Stops all writes at once.
    pub fn close(&self, why: &str) {
        self.0.send_if_modified(|state| {
            let open = matches!(state, State::Open);
            if open {
                *state = State::Closed(why.to_owned());
            }
            open
        });
    }

    /// Stops all writes at once and for good.
    pub fn shut(&self, why: &str) {
        self.0.send_replace(State::Shut(why.to_owned()));
    }

    /// Whether writes pass.
    pub fn is_open(&self) -> bool {
        self.0.borrow().reason().is_none()
    }

    /// Why it is closed, as soon as it is.
    pub async fn until_closed(&self) -> String {
        let mut state = self.0.subscribe();
        let closed = state.wait_for(|state| state.reason().is_some()).await;
        let reason = closed.ok().and_then(|state| state.reason().cloned());
        reason.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closing_is_heard_at_once() {
        let gate = Gate::closed("not yet");
        assert_eq!(gate.until_closed().await, "not yet");
        gate.open();
        assert!(gate.is_open());
        let (heard, ()) = tokio::join!(gate.until_closed(), async { gate.close("lost") });
        assert_eq!(heard, "lost");
        assert!(!gate.is_open());
        gate.open();
        assert!(gate.is_open());
        gate.shut("for good");
        gate.open();
        assert_eq!(gate.until_closed().await, "for good");
    }
}
