//! Lists that records share.

use std::ops::Deref;
use std::sync::Arc;

/// An immutable list; copies share it. Most lists of a cycle, such as the answers of PreFilter,
/// equal those of the cycle before, so that thousands of records need one.
#[derive(PartialEq, Debug)]
pub struct SharedList<T>(Arc<[T]>);

impl<T: PartialEq> SharedList<T> {
    /// `last` if it holds these items, otherwise a new list, which takes the place of `last`.
    pub fn like(last: &mut SharedList<T>, items: Vec<T>) -> SharedList<T> {
        if last[..] != items[..] {
            *last = items.into();
        }
        last.clone()
    }
}

impl<T> SharedList<T> {
    /// Whether both are the same list in memory.
    pub fn is_shared_with(&self, other: &SharedList<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> SharedList<T> {
        SharedList(self.0.clone())
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> SharedList<T> {
        SharedList(Arc::default())
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(items: Vec<T>) -> SharedList<T> {
        SharedList(items.into())
    }
}

impl<'a, T> IntoIterator for &'a SharedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_one() {
        let mut last = SharedList::default();
        let first = SharedList::like(&mut last, vec![1, 2]);
        assert!(first.is_shared_with(&SharedList::like(&mut last, vec![1, 2])));
        let other = SharedList::like(&mut last, vec![1]);
        assert!(!first.is_shared_with(&other) && first == vec![1, 2].into());
        assert!(last.is_shared_with(&other));
    }
}
