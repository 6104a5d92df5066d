//! A hash map in many pieces that copies of a cluster share: a piece is copied when one side writes
//! to it, so that a copy holds only what changed since.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::pod::NamespacedName;
use kubestep_api::{Name, Uid};

/// Number of pieces: with 10,000 entries each holds about ten, and the list of pieces is still fast
/// to copy.
const PIECES: usize = 1024;

/// A key that yields a number by which it is assigned to a piece.
pub trait ShardKey: Copy + Eq + Hash {
    /// The number; different keys should mostly have different ones.
    fn number(self) -> u32;
}

impl ShardKey for Name {
    fn number(self) -> u32 {
        Name::number(self)
    }
}

impl ShardKey for Uid {
    fn number(self) -> u32 {
        Uid::number(self)
    }
}

impl ShardKey for NamespacedName {
    fn number(self) -> u32 {
        self.name.number() ^ self.namespace.number().rotate_left(16)
    }
}

/// The map. Its order has no meaning.
#[derive(Clone, Debug)]
pub struct Shards<K, V> {
    /// Empty until there is an entry.
    pieces: Vec<Arc<HashMap<K, V>>>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Shards<K, V> {
        Shards { pieces: Vec::new(), len: 0 }
    }
}

impl<K: ShardKey, V: PartialEq> PartialEq for Shards<K, V> {
    fn eq(&self, other: &Shards<K, V>) -> bool {
        self.len == other.len && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<K: ShardKey, V> Shards<K, V> {
    /// The index of a key's piece; consecutive numbers are in pieces far apart.
    fn place(key: K) -> usize {
        (key.number().wrapping_mul(0x9E37_79B1) >> 22) as usize % PIECES
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.pieces.get(Self::place(*key))?.get(key)
    }

    /// Whether a key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The number of entries in all shards.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// All entries, by key.
    pub fn sorted(&self) -> Vec<(&K, &V)>
    where
        K: Ord,
    {
        let mut entries: Vec<(&K, &V)> = self.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| **key);
        entries
    }

    /// The keys whose values differ from those of `other`, each once, in no particular order. Pieces
    /// that both share are not looked into.
    pub fn differences(&self, other: &Shards<K, V>, same: impl Fn(&V, &V) -> bool) -> Vec<K> {
        let longest = if self.pieces.is_empty() { &other.pieces } else { &self.pieces };
        let mut found = Vec::new();
        for at in 0..longest.len() {
            let (own, others) = (self.pieces.get(at), other.pieces.get(at));
            if own.zip(others).is_some_and(|(own, others)| Arc::ptr_eq(own, others)) {
                continue;
            }
            let both = own.into_iter().flat_map(|piece| piece.iter());
            let changed = both
                .filter(|(key, value)| other.get(key).is_none_or(|others| !same(value, others)));
            found.extend(changed.map(|(key, _)| *key));
            let others = others.into_iter().flat_map(|piece| piece.keys());
            found.extend(others.filter(|key| !self.contains_key(key)));
        }
        found
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: ShardKey, V: Clone> Shards<K, V> {
    /// Sets the value of a key and returns the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.piece_mut(key).insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    /// The value of a key, to change it: the default one if it had none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.len += usize::from(!self.contains_key(&key));
        self.piece_mut(key).entry(key).or_default()
    }

    /// The piece of a key, to change it.
    fn piece_mut(&mut self, key: K) -> &mut HashMap<K, V> {
        if self.pieces.is_empty() {
            // All pieces share one empty map until each is written to.
            let empty = Arc::new(HashMap::new());
            self.pieces = (0..PIECES).map(|_| empty.clone()).collect();
        }
        Arc::make_mut(&mut self.pieces[Self::place(key)])
    }

    /// The value of a key, to change it, if it has one.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // A piece without the key is not copied.
        self.get(key)?;
        self.piece_mut(*key).get_mut(key)
    }

    /// Removes the value of a key and returns it.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // A piece without the key is not copied.
        self.get(key)?;
        let taken = Arc::make_mut(self.pieces.get_mut(Self::place(*key))?).remove(key);
        self.len -= usize::from(taken.is_some());
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Name {
        format!("shards-{number}").as_str().into()
    }

    #[test]
    fn it_is_a_map() {
        let mut map = Shards::default();
        assert!(map.is_empty() && map.get(&key(0)).is_none() && map.remove(&key(0)).is_none());
        for number in 0..3_000 {
            assert_eq!(map.insert(key(number), number), None);
        }
        assert_eq!(map.insert(key(7), 0), Some(7));
        assert_eq!((map.len(), map.iter().count()), (3_000, 3_000));
        assert_eq!(map.remove(&key(7)), Some(0));
        assert_eq!(map.remove(&key(7)), None);
        assert_eq!((map.len(), map.keys().count()), (2_999, 2_999));
        assert!(map.contains_key(&key(8)) && !map.contains_key(&key(7)));
        assert!(map.sorted().is_sorted_by_key(|(key, _)| key.to_string()));
        assert!(map.get_mut(&key(7)).is_none());
        *map.get_or_default(key(7)) += 5;
        *map.get_or_default(key(7)) += 1;
        *map.get_mut(&key(7)).unwrap() += 1;
        assert_eq!((map.len(), map.remove(&key(7))), (3_000, Some(7)));
        assert_eq!(map.values().sum::<usize>(), (0..3_000).sum::<usize>() - 7);
        let mut copy = map.clone();
        copy.insert(key(8), 0);
        assert_ne!(map, copy);
        copy.insert(key(8), 8);
        assert_eq!(map, copy);
    }

    #[test]
    fn differences_are_what_one_has_or_has_another_value_of() {
        let (mut map, empty) = (Shards::default(), Shards::default());
        for number in 0..3_000 {
            map.insert(key(number), number);
        }
        let mut copy = map.clone();
        let differences = |a: &Shards<Name, usize>, b: &Shards<Name, usize>| {
            let mut keys = a.differences(b, |a, b| a == b);
            keys.sort_unstable();
            keys
        };
        assert!(differences(&map, &copy).is_empty());
        copy.insert(key(1), 0);
        copy.remove(&key(2));
        copy.insert(key(3_000), 0);
        copy.insert(key(3), 3);
        let mut changed = [key(1), key(2), key(3_000)];
        changed.sort_unstable();
        assert_eq!(differences(&map, &copy), changed);
        assert_eq!(differences(&copy, &map), changed);
        assert_eq!(
            (differences(&map, &empty).len(), differences(&empty, &map).len()),
            (3_000, 3_000)
        );
    }

    #[test]
    fn a_copy_shares_what_did_not_change() {
        let mut map = Shards::default();
        for number in 0..3_000 {
            map.insert(key(number), number);
        }
        let copy = map.clone();
        map.insert(key(1), 0);
        map.remove(&key(2));
        let shared = map.pieces.iter().zip(&copy.pieces).filter(|(a, b)| Arc::ptr_eq(a, b));
        assert!(shared.count() >= PIECES - 2);
        assert_eq!((copy.get(&key(1)), copy.get(&key(2))), (Some(&1), Some(&2)));
        assert_eq!((map.get(&key(1)), map.get(&key(2))), (Some(&0), None));
        let fullest = map.pieces.iter().map(|piece| piece.len()).max();
        assert!(fullest < Some(20), "{fullest:?}");
    }
}
