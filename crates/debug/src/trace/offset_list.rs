//! A list that grows at its end and whose oldest items can be dropped, while every item keeps its
//! index: item number 7,000 stays number 7,000.
//!
//! The history and the log of a session are such lists: indices into them can be stored anywhere,
//! and the index of a dropped item is simply not found.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;
use std::ops::Range;

/// A list whose oldest items can be dropped while the others keep their indices.
#[derive(Clone, Debug)]
pub struct OffsetList<T> {
    /// The index of the oldest item that is kept.
    first: usize,
    items: VecDeque<T>,
}

impl<T> Default for OffsetList<T> {
    fn default() -> OffsetList<T> {
        OffsetList { first: 0, items: VecDeque::new() }
    }
}

impl<T> OffsetList<T> {
    /// The index of the oldest item that is kept; equals the number of dropped items.
    pub fn start(&self) -> usize {
        self.first
    }

    /// The index of the next item; equals the number of items, including dropped ones.
    pub fn end(&self) -> usize {
        self.first + self.items.len()
    }

    /// How many items are kept.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// The item of that index; `None` if it was dropped or does not exist yet.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.items.get(at.checked_sub(self.first)?)
    }

    /// The mutable item at an index; `None` if it was dropped or does not exist.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.items.get_mut(at.checked_sub(self.first)?)
    }

    /// The oldest item that is kept.
    pub fn first(&self) -> Option<&T> {
        self.items.front()
    }

    /// The newest item; `None` if all were dropped.
    pub fn last(&self) -> Option<&T> {
        self.items.back()
    }

    /// The items that are kept, oldest first.
    pub fn iter(&self) -> std::collections::vec_deque::Iter<'_, T> {
        self.items.iter()
    }

    /// The items that are kept with their indices, oldest first.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> + ExactSizeIterator {
        (self.first..self.end()).zip(self.items.iter())
    }

    /// The items of the half-open index range that are kept.
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &T> {
        let place = |at: usize| at.clamp(self.first, self.end()) - self.first;
        let (from, to) = (place(range.start), place(range.end));
        self.items.range(from..to.max(from))
    }

    /// The items from an index on that are kept.
    pub fn from(&self, at: usize) -> impl DoubleEndedIterator<Item = &T> {
        self.range(at..usize::MAX)
    }

    /// The items that are kept, oldest first, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// The index of the first item for which `before` is false; it must be true for all items
    /// before it.
    pub fn partition_point(&self, before: impl FnMut(&T) -> bool) -> usize {
        self.first + self.items.partition_point(before)
    }

    /// Appends an item and returns its index.
    pub fn push(&mut self, item: T) -> usize {
        self.items.push_back(item);
        self.end() - 1
    }

    /// Removes the newest item.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop_back()
    }

    /// Removes all items from an index on. Returns them, oldest first.
    pub fn cut(&mut self, len: usize) -> VecDeque<T> {
        let len = len.saturating_sub(self.first).min(self.items.len());
        self.items.split_off(len)
    }

    /// Drops all items before an index. Returns them, oldest first.
    pub fn forget(&mut self, before: usize) -> Drain<'_, T> {
        let dropped = before.saturating_sub(self.first).min(self.items.len());
        self.first += dropped;
        self.items.drain(..dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(from: usize, to: usize) -> OffsetList<usize> {
        let mut list = OffsetList::default();
        (0..to).for_each(|item| assert_eq!(list.push(item), item));
        assert_eq!(list.forget(from).collect::<Vec<_>>(), (0..from).collect::<Vec<_>>());
        list
    }

    #[test]
    fn indexes_stay_as_they_are() {
        let mut list = list(3, 7);
        assert_eq!((list.start(), list.end(), list.count()), (3, 7, 4));
        assert_eq!(
            (list.get(2), list.get(3), list.get(6), list.get(7)),
            (None, Some(&3), Some(&6), None)
        );
        assert_eq!(list.range(0..5).collect::<Vec<_>>(), [&3, &4]);
        assert_eq!(list.from(6).collect::<Vec<_>>(), [&6]);
        assert_eq!((list.range(9..12).count(), list.range(0..2).count()), (0, 0));
        assert_eq!(list.partition_point(|item| *item < 5), 5);
        assert_eq!(list.numbered().next_back(), Some((6, &6)));
        assert_eq!(list.cut(5), [5, 6]);
        assert_eq!((list.push(9), list.end()), (5, 6));
    }

    #[test]
    fn no_more_is_forgotten_or_cut_than_there_is() {
        let mut list = list(3, 5);
        assert_eq!(list.forget(2).count(), 0);
        assert_eq!((list.start(), list.forget(9).count(), list.start()), (3, 2, 5));
        assert_eq!(list.push(7), 5);
        assert_eq!(list.cut(1), [7]);
        assert_eq!((list.start(), list.end(), list.pop()), (5, 5, None));
    }
}
