//! A cache of what explainers compute once for all nodes: parsed terms, the values of a label, pods
//! by domain.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashMap;

use kubestep_api::intern::Symbol;

/// Values by type and name.
#[derive(Default)]
pub(crate) struct Memo(RefCell<HashMap<(TypeId, Symbol), Rc<dyn Any>>>);

impl Memo {
    /// The value of type `T` of that name, computed on first use.
    pub fn get<T: 'static>(&self, name: Symbol, make: impl FnOnce() -> T) -> Rc<T> {
        let key = (TypeId::of::<T>(), name);
        let known = self.0.borrow().get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        let made = Rc::new(make());
        self.0.borrow_mut().insert(key, made.clone());
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
        let memo = Memo::default();
        assert_eq!(*memo.get("a".into(), || 1), 1);
        assert_eq!(*memo.get("a".into(), || 2), 1);
        assert_eq!(*memo.get("b".into(), || 3), 3);
        assert_eq!(*memo.one(|| "text"), "text");
    }
}
