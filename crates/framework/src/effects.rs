//! What PreFilter and PostFilter request of the scheduler: they see its state, but do not change it.

use std::fmt;
use std::sync::Arc;

use crate::shared::{PluginState, PluginStates};
use kubestep_api::Uid;
use kubestep_api::intern::Symbol;

/// A change of a plugin's state, which the scheduler applies after the plugins of the extension
/// point ran.
#[derive(Clone)]
pub struct StateUpdate(Arc<dyn Fn(&mut PluginStates) + Send + Sync>);

impl StateUpdate {
    /// A change of the state of type `S`.
    pub fn new<S: PluginState>(change: impl Fn(&mut S) + Send + Sync + 'static) -> StateUpdate {
        StateUpdate(Arc::new(move |states| states.update(|state: &mut S| change(state))))
    }

    /// Applies the change to the states of all plugins.
    pub fn apply(&self, states: &mut PluginStates) {
        (self.0)(states);
    }
}

impl fmt::Debug for StateUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateUpdate")
    }
}

/// The rejection of a pod that waits at Permit. It has no effect if the pod does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingRejection {
    /// The UID of the pod.
    pub uid: Uid,
    /// The plugin that rejects it.
    pub plugin: Symbol,
    /// The reason, for the pod's status.
    pub text: &'static str,
}

/// What a PostFilter plugin requests.
#[derive(Clone, Default, Debug)]
pub struct Effects {
    /// Changes of its state.
    pub updates: Vec<StateUpdate>,
    /// Pods to reject that wait at Permit.
    pub reject_waiting: Vec<WaitingRejection>,
}

impl Effects {
    /// Adds what another plugin requests.
    pub fn append(&mut self, mut other: Effects) {
        self.updates.append(&mut other.updates);
        self.reject_waiting.append(&mut other.reject_waiting);
    }
}
