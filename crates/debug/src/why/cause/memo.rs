//! What explainers know beside the plugins' state, and a cache of what they compute once for all
//! nodes: parsed terms, the values of a label, pods by domain.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashMap;

use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

/// What explainers share.
pub(crate) struct Memo<'a> {
    /// What was computed, by type and name.
    values: RefCell<HashMap<(TypeId, Symbol), Rc<dyn Any>>>,
    /// Whether a pod was placed since the cluster was loaded.
    pub is_placed: &'a dyn Fn(NamespacedName) -> bool,
}

impl<'a> Memo<'a> {
    /// An empty cache, and which pods were placed.
    pub fn new(is_placed: &'a dyn Fn(NamespacedName) -> bool) -> Memo<'a> {
        Memo { values: RefCell::default(), is_placed }
    }

    /// The value of type `T` of that name, computed on first use.
    pub fn get<T: 'static>(&self, name: Symbol, make: impl FnOnce() -> T) -> Rc<T> {
        let key = (TypeId::of::<T>(), name);
        let known = self.values.borrow().get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        let made = Rc::new(make());
        self.values.borrow_mut().insert(key, made.clone());
        made
    }

    /// The one value of type `T`.
    pub fn one<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        self.get(Symbol::EMPTY, make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_each_name() {
        let memo = Memo::new(&|_| false);
        assert_eq!(*memo.get("a".into(), || 1), 1);
        assert_eq!(*memo.get("a".into(), || 2), 1);
        assert_eq!(*memo.get("b".into(), || 3), 3);
        assert_eq!(*memo.one(|| "text"), "text");
    }
}
