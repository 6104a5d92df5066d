//! What plugins store during one scheduling cycle.
//!
//! Every plugin has at most one value per type. Cloning a state is cheap (values are shared until
//! written), because preemption and nominated pods try every node on a copy. Upstream:
//! `pkg/scheduler/framework/cycle_state.go`.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::effects::{StateUpdate, WaitingRejection};
use crate::pod::NamespacedName;
use crate::status::Status;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Uid};
use kubestep_config::ExtensionPoint;

/// The text of an injected fault in a status or an error.
pub const FAULT: &str = "injected fault";

/// A value that a plugin stores in the cycle state.
pub trait StateData: Any + Send + Sync {
    /// A deep copy, made before a shared value is written.
    fn clone_data(&self) -> Arc<dyn StateData>;
    /// The value for downcasting.
    fn as_any(&self) -> &dyn Any;
    /// The value for downcasting, mutable.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Clone + Send + Sync> StateData for T {
    fn clone_data(&self) -> Arc<dyn StateData> {
        Arc::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The state of one scheduling cycle.
#[derive(Clone, Default)]
pub struct CycleState {
    /// One value per type; a handful of entries, so a list is faster than a map.
    values: Vec<(TypeId, Arc<dyn StateData>)>,
    /// Plugins whose Filter (and AddPod/RemovePod) are skipped.
    pub skip_filter: Vec<Symbol>,
    /// Plugins whose Score is skipped.
    pub skip_score: Vec<Symbol>,
    /// Plugins whose PreBind is skipped.
    pub skip_pre_bind: Vec<Symbol>,
    /// Whether all PostFilter plugins are skipped, as during preemption for a pod group.
    pub skip_post_filters: bool,
    /// Pods that a plugin wants activated after this cycle, as (namespace, name).
    pub pods_to_activate: Vec<(Symbol, Name)>,
    /// Pods that a Permit plugin wants activated at once.
    pub activate_at_once: Vec<NamespacedName>,
    /// Injected faults: plugins that fail, and at which extension points.
    pub faults: Vec<(ExtensionPoint, Symbol)>,
    /// When PreBind polls again; `None` for the default interval.
    pub poll_again_in: Option<Duration>,
    /// Whether PreBindPreFlight ran, which allows plugins to run PreBind in parallel.
    pub pre_flight_done: bool,
    /// Number of ignorable extenders that failed to bind the pod.
    pub binders_ignored: usize,
    /// Waiting pods, by UID, that a Permit plugin allows at once, with the plugin's name.
    pub allow_at_once: Vec<(Uid, Symbol)>,
    /// Waiting pods that a plugin rejects in Unreserve.
    pub reject_at_once: Vec<WaitingRejection>,
    /// Changes of their states that plugins request in PreFilter.
    pub updates: Vec<StateUpdate>,
}

impl CycleState {
    /// The error that `plugin` returns at `point` if a fault is injected there.
    pub fn fault(&self, point: ExtensionPoint, plugin: Symbol) -> Option<Status> {
        self.faults.contains(&(point, plugin)).then(|| Status::error(FAULT))
    }

    /// Makes PreBind poll again within that time.
    pub fn poll_again_within(&mut self, span: Duration) {
        self.poll_again_in = Some(self.poll_again_in.map_or(span, |other| other.min(span)));
    }

    /// Stores `value`, replacing an earlier one of the same type.
    pub fn write<T: Any + Clone + Send + Sync>(&mut self, value: T) {
        let (id, value) = (TypeId::of::<T>(), Arc::new(value) as Arc<dyn StateData>);
        match self.values.iter_mut().find(|(other, _)| *other == id) {
            Some(entry) => entry.1 = value,
            None => self.values.push((id, value)),
        }
    }

    /// The value of type `T`, if one was written.
    pub fn read<T: Any + Clone + Send + Sync>(&self) -> Option<&T> {
        let (_, value) = self.values.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        (**value).as_any().downcast_ref()
    }

    /// The value of type `T`, mutable; other clones of the state are not affected.
    pub fn read_mut<T: Any + Clone + Send + Sync>(&mut self) -> Option<&mut T> {
        let (_, value) = self.values.iter_mut().find(|(id, _)| *id == TypeId::of::<T>())?;
        if Arc::get_mut(value).is_none() {
            *value = (**value).clone_data();
        }
        Arc::get_mut(value)?.as_any_mut().downcast_mut()
    }

    /// Whether Filter of `plugin` is skipped in this cycle, because its PreFilter returned Skip.
    pub fn skips_filter(&self, plugin: Symbol) -> bool {
        self.skip_filter.contains(&plugin)
    }

    /// Whether Score of `plugin` is skipped in this cycle, because its PreScore returned Skip.
    pub fn skips_score(&self, plugin: Symbol) -> bool {
        self.skip_score.contains(&plugin)
    }

    /// Whether PreBind of `plugin` is skipped in this cycle, because its PreBindPreFlight returned
    /// Skip.
    pub fn skips_pre_bind(&self, plugin: Symbol) -> bool {
        self.skip_pre_bind.contains(&plugin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Debug)]
    struct Counts(Vec<u32>);

    #[test]
    fn a_clone_is_written_without_touching_the_original() {
        let mut state = CycleState::default();
        state.write(Counts(vec![1]));
        let mut copy = state.clone();
        copy.read_mut::<Counts>().unwrap().0.push(2);
        assert_eq!(state.read::<Counts>(), Some(&Counts(vec![1])));
        assert_eq!(copy.read::<Counts>(), Some(&Counts(vec![1, 2])));
    }

    #[test]
    fn a_type_that_was_never_written_is_absent() {
        assert!(CycleState::default().read::<Counts>().is_none());
    }

    #[test]
    fn writing_again_replaces() {
        let mut state = CycleState::default();
        state.write(Counts(vec![1]));
        state.write(Counts(vec![9]));
        assert_eq!(state.read::<Counts>(), Some(&Counts(vec![9])));
    }
}
