//! The gate that all writes pass: open while this program may write, closed the moment it may not.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all writers. Closing it cancels writes in flight.
#[derive(Clone, Debug)]
pub struct WriteGate(Arc<watch::Sender<GateState>>);

#[derive(Debug)]
enum GateState {
    Open,
    Closed(String),
    /// Closed permanently; the reason.
    Shut(String),
}

impl GateState {
    fn reason(&self) -> Option<&String> {
        match self {
            GateState::Open => None,
            GateState::Closed(reason) | GateState::Shut(reason) => Some(reason),
        }
    }
}

impl WriteGate {
    /// A closed gate; `reason` is reported to the writes that it stops.
    pub fn closed(reason: &str) -> WriteGate {
        WriteGate(Arc::new(watch::Sender::new(GateState::Closed(reason.to_owned()))))
    }

    /// Lets writes pass, unless it is shut permanently.
    pub fn open(&self) {
        self.0.send_if_modified(|state| {
            let closed = matches!(state, GateState::Closed(_));
            if closed {
                *state = GateState::Open;
            }
            closed
        });
    }

    /// Stops all writes immediately.
    pub fn close(&self, why: &str) {
        self.0.send_if_modified(|state| {
            let open = matches!(state, GateState::Open);
            if open {
                *state = GateState::Closed(why.to_owned());
            }
            open
        });
    }

    /// Stops all writes immediately and permanently.
    pub(crate) fn shut(&self, why: &str) {
        self.0.send_replace(GateState::Shut(why.to_owned()));
    }

    /// Whether writes pass; if not, they fail with the reason.
    pub fn is_open(&self) -> bool {
        self.0.borrow().reason().is_none()
    }

    /// Waits until it is closed. Returns the reason.
    pub(crate) async fn until_closed(&self) -> String {
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
        let gate = WriteGate::closed("not yet");
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
