//! Counts by topology domain, as InterPodAffinity and PodTopologySpread keep them.
//!
//! Preemption and nominated pods try out changes on copies of such counts, node by node: a
//! copy shares the counts and carries only its own few changes.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use smallvec::SmallVec;

use crate::intern::Symbol;

/// A topology domain: a node label and a value of it.
pub type Domain = (Symbol, Symbol);

/// Counts as they are first made, in the order in which keys came up.
pub type CountMap<K> = IndexMap<K, i64, DefaultHashBuilder>;

/// Counts by key.
#[derive(Clone, Debug)]
pub struct Counts<K> {
    base: Arc<CountMap<K>>,
    changes: SmallVec<[(K, i64); 4]>,
    keys: usize,
    non_zero: usize,
}

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts { base: Arc::default(), changes: SmallVec::new(), keys: 0, non_zero: 0 }
    }
}

impl<K> From<CountMap<K>> for Counts<K> {
    fn from(base: CountMap<K>) -> Counts<K> {
        let non_zero = base.values().filter(|count| **count != 0).count();
        Counts { keys: base.len(), non_zero, base: Arc::new(base), changes: SmallVec::new() }
    }
}

impl<K: Copy + Eq + Hash> Counts<K> {
    /// The count of `key`; 0 if it was never counted.
    pub fn get(&self, key: K) -> i64 {
        self.changed(key).or_else(|| self.base.get(&key).copied()).unwrap_or(0)
    }

    fn changed(&self, key: K) -> Option<i64> {
        self.changes.iter().find(|(other, _)| *other == key).map(|(_, count)| *count)
    }

    /// Changes the count of `key` by `delta` and gives back the new count.
    pub fn add(&mut self, key: K, delta: i64) -> i64 {
        let known = self.base.contains_key(&key) || self.changed(key).is_some();
        let old = self.get(key);
        let new = old + delta;
        match self.changes.iter_mut().find(|(other, _)| *other == key) {
            Some(entry) => entry.1 = new,
            None => self.changes.push((key, new)),
        }
        self.keys += usize::from(!known);
        self.non_zero = self.non_zero + usize::from(new != 0) - usize::from(old != 0);
        new
    }

    /// Number of keys, those with count 0 included.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Whether every count is 0.
    pub fn is_all_zero(&self) -> bool {
        self.non_zero == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_changes_to_itself() {
        let original: Counts<u32> = CountMap::from_iter([(1, 5), (2, 0)]).into();
        let mut copy = original.clone();
        assert_eq!(copy.add(1, -5), 0);
        assert_eq!(copy.add(3, 2), 2);
        assert_eq!((original.get(1), copy.get(1), copy.get(3)), (5, 0, 2));
        assert_eq!((original.keys(), copy.keys()), (2, 3));
        assert_eq!(copy.add(3, -2), 0);
        assert!(copy.is_all_zero() && !original.is_all_zero());
    }
}
