//! A map in many pieces, for what a copy of the cluster should share with it: a piece is copied
//! when one side writes to it, so that a copy comes to hold only what changed since.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;

/// Pieces: so many that one of 10,000 entries holds a handful, so few that they are listed in a
/// moment.
const PIECES: usize = 1024;

/// A key that is a number, or made of some.
pub trait Spread: Copy + Eq + Hash {
    /// The number; different keys should mostly have different ones.
    fn number(self) -> u32;
}

impl Spread for Symbol {
    fn number(self) -> u32 {
        Symbol::number(self)
    }
}

impl Spread for NamespacedName {
    fn number(self) -> u32 {
        self.name.number() ^ self.namespace.number().rotate_left(16)
    }
}

/// The map. Its order means nothing.
#[derive(Clone, Debug)]
pub struct Shards<K, V> {
    /// None until there is an entry.
    pieces: Vec<Arc<HashMap<K, V>>>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Shards<K, V> {
        Shards { pieces: Vec::new(), len: 0 }
    }
}

impl<K: Spread, V> Shards<K, V> {
    /// Where a key belongs: numbers that follow each other lie far apart.
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

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Spread, V: Clone> Shards<K, V> {
    /// Sets the value of a key. Gives the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.pieces.is_empty() {
            // One empty piece stands for all until each is written to.
            let empty = Arc::new(HashMap::new());
            self.pieces = (0..PIECES).map(|_| empty.clone()).collect();
        }
        let piece = self.pieces.get_mut(Self::place(key))?;
        let before = Arc::make_mut(piece).insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    /// Takes the value of a key away.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // A piece that does not have it is not copied.
        self.get(key)?;
        let taken = Arc::make_mut(self.pieces.get_mut(Self::place(*key))?).remove(key);
        self.len -= usize::from(taken.is_some());
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Symbol {
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
        assert_eq!(map.values().sum::<usize>(), (0..3_000).sum::<usize>() - 7);
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
