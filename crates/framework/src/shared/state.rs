//! State that plugins keep between cycles.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// State that a plugin keeps between cycles: any type of its own that can be cloned and compared.
///
/// A session copies the whole scheduler to go back in time, and a copy must continue exactly as the
/// original would. So plugins keep nothing that changes in themselves: each registers a type, of
/// which there is one value for the scheduler.
pub trait PluginState: Any + Clone + Default + PartialEq + fmt::Debug + Send + Sync {}

/// The states of all plugins, by type. A clone shares each value until one of the two changes it.
#[derive(Clone, Default)]
pub struct PluginStates(BTreeMap<TypeId, Arc<dyn AnyState>>);

impl PluginStates {
    /// The state of type `S`; `None` if nothing was stored.
    pub fn get<S: PluginState>(&self) -> Option<&S> {
        self.0.get(&TypeId::of::<S>())?.as_any().downcast_ref()
    }

    /// Changes the state of type `S`, which starts as its default.
    pub fn update<S: PluginState, R>(&mut self, change: impl FnOnce(&mut S) -> R) -> R {
        let stored = self.0.entry(TypeId::of::<S>()).or_insert_with(|| Arc::new(S::default()));
        let own = Arc::get_mut(stored).and_then(|state| state.as_any_mut().downcast_mut());
        if let Some(state) = own {
            return change(state);
        }
        // A clone of the states shares the value.
        let mut state = stored.as_any().downcast_ref::<S>().cloned().unwrap_or_default();
        let result = change(&mut state);
        *stored = Arc::new(state);
        result
    }
}

impl PartialEq for PluginStates {
    fn eq(&self, other: &PluginStates) -> bool {
        let known = |(id, state): (&TypeId, &Arc<dyn AnyState>)| {
            other.0.get(id).is_some_and(|other| state.equals(other.as_any()))
        };
        self.0.len() == other.0.len() && self.0.iter().all(known)
    }
}

impl fmt::Debug for PluginStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.values()).finish()
    }
}

/// State of any type, behind one pointer.
trait AnyState: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<S: PluginState> AnyState for S {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default, PartialEq, Debug)]
    struct Counter(u32);
    impl PluginState for Counter {}

    #[derive(Clone, Default, PartialEq, Debug)]
    struct Name(String);
    impl PluginState for Name {}

    #[test]
    fn a_clone_does_not_see_later_changes() {
        let mut states = PluginStates::default();
        assert_eq!(states.get::<Counter>(), None);
        states.update(|counter: &mut Counter| counter.0 += 1);
        let before = states.clone();
        assert_eq!(before, states);
        states.update(|counter: &mut Counter| counter.0 += 1);
        assert_eq!((before.get(), states.get()), (Some(&Counter(1)), Some(&Counter(2))));
        assert_ne!(before, states);
    }

    #[test]
    fn a_value_that_is_not_shared_is_changed_in_place() {
        let address = |states: &PluginStates| std::ptr::from_ref(states.get::<Counter>().unwrap());
        let mut states = PluginStates::default();
        states.update(|counter: &mut Counter| counter.0 += 1);
        let first = address(&states);
        states.update(|counter: &mut Counter| counter.0 += 1);
        assert_eq!((address(&states), states.get()), (first, Some(&Counter(2))));
        let copy = states.clone();
        states.update(|counter: &mut Counter| counter.0 += 1);
        assert_ne!(address(&states), address(&copy));
    }

    #[test]
    fn each_type_has_its_own_value() {
        let mut states = PluginStates::default();
        states.update(|name: &mut Name| name.0.push('a'));
        assert_eq!(states.get::<Counter>(), None);
        assert_eq!(states.get(), Some(&Name("a".into())));
        assert_ne!(states, PluginStates::default());
    }
}
