//! Values that many objects have in common, stored once.
//!
//! The pods of a controller differ in names and nodes, but hardly in containers, volumes or
//! tolerations. Decoding looks up such parts in a pool, so that a hundred thousand pods hold a few
//! hundred lists of containers, and the engine can detect equal parts by their address. A change
//! copies the part first and does not affect other objects.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of shards of a pool, each with a lock.
const SHARDS: usize = 16;
/// Number of entries at which a shard is first swept for values that are no longer used.
const FIRST_SWEEP: usize = 256;

/// A pool of values: equal ones are stored once.
pub struct InternPool<T> {
    hasher: OnceLock<DefaultHashBuilder>,
    shards: [Mutex<PoolShard<T>>; SHARDS],
}

struct PoolShard<T> {
    values: HashTable<(u64, Arc<T>)>,
    /// Entries at which to sweep.
    sweep_at: usize,
}

impl<T> PoolShard<T> {
    const fn new() -> PoolShard<T> {
        PoolShard { values: HashTable::new(), sweep_at: FIRST_SWEEP }
    }
}

/// A type that has a pool.
pub trait Poolable: Hash + PartialEq + Sized + 'static {
    /// The values that all users of the type share.
    fn pool() -> &'static InternPool<Self>;
}

impl<T> InternPool<T> {
    /// A pool without values, for a static.
    pub const fn new() -> InternPool<T> {
        let shards = [const { Mutex::new(PoolShard::new()) }; SHARDS];
        InternPool { hasher: OnceLock::new(), shards }
    }
}

impl<T: Hash + PartialEq> InternPool<T> {
    /// The pool's value that equals this one, added if there is none.
    pub fn share(&self, value: T) -> Arc<T> {
        let hash = self.hasher.get_or_init(DefaultHashBuilder::default).hash_one(&value);
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = shard.values.find(hash, |(_, known)| **known == value) {
            return found.clone();
        }
        if shard.values.len() >= shard.sweep_at {
            shard.values.retain(|(_, value)| Arc::strong_count(value) > 1);
            shard.sweep_at = (shard.values.len() * 2).max(FIRST_SWEEP);
        }
        let value = Arc::new(value);
        shard.values.insert_unique(hash, (hash, value.clone()), |(hash, _)| *hash);
        value
    }
}

impl<T> Default for InternPool<T> {
    fn default() -> InternPool<T> {
        InternPool::new()
    }
}

/// A list that objects share until one of them changes it. Behaves like a `Vec`.
pub struct SharedList<T>(Option<Arc<Vec<T>>>);

impl<T> SharedList<T>
where
    Vec<T>: Poolable,
{
    /// The list, shared with all equal ones.
    pub fn new(mut values: Vec<T>) -> SharedList<T> {
        if values.is_empty() {
            return SharedList(None);
        }
        values.shrink_to_fit();
        SharedList(Some(Vec::pool().share(values)))
    }

    /// Changes the list and shares the result.
    pub fn update(&mut self, change: impl FnOnce(&mut Vec<T>))
    where
        T: Clone,
    {
        let mut values = self.to_vec();
        change(&mut values);
        if values != **self {
            *self = SharedList::new(values);
        }
    }
}

impl<T> SharedList<T> {
    /// Whether both are the same list in memory, and therefore equal. Equal lists may be separate.
    pub fn is_same(&self, other: &SharedList<T>) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<T: 'static> Deref for SharedList<T> {
    type Target = Vec<T>;
    fn deref(&self) -> &Vec<T> {
        self.0.as_deref().unwrap_or(const { &Vec::new() })
    }
}

impl<T: Clone + 'static> DerefMut for SharedList<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> SharedList<T> {
        SharedList(self.0.clone())
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> SharedList<T> {
        SharedList(None)
    }
}

impl<T: PartialEq + 'static> PartialEq for SharedList<T> {
    fn eq(&self, other: &SharedList<T>) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl<T: PartialEq + 'static> PartialEq<Vec<T>> for SharedList<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        **self == *other
    }
}

impl<T: Hash + 'static> Hash for SharedList<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(values: Vec<T>) -> SharedList<T> {
        SharedList((!values.is_empty()).then(|| Arc::new(values)))
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> SharedList<T> {
        Vec::from_iter(values).into()
    }
}

impl<'a, T: 'static> IntoIterator for &'a SharedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Clone + 'static> IntoIterator for &'a mut SharedList<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: Serialize + 'static> Serialize for SharedList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedList<T>
where
    Vec<T>: Poolable,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedList<T>, D::Error> {
        Vec::deserialize(deserializer).map(SharedList::new)
    }
}

/// A value that objects share until one of them changes it. Behaves like a `T`.
pub struct Pooled<T>(Arc<T>);

impl<T: Poolable> Pooled<T> {
    /// The value, shared with all equal ones.
    pub fn new(value: T) -> Pooled<T> {
        Pooled(T::pool().share(value))
    }

    /// Changes the value and shares the result.
    pub fn update(&mut self, change: impl FnOnce(&mut T))
    where
        T: Clone,
    {
        let mut value = T::clone(&self.0);
        change(&mut value);
        if value != *self.0 {
            *self = Pooled::new(value);
        }
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Clone for Pooled<T> {
    fn clone(&self) -> Pooled<T> {
        Pooled(self.0.clone())
    }
}

impl<T: Default> Default for Pooled<T> {
    fn default() -> Pooled<T> {
        T::default().into()
    }
}

impl<T: PartialEq> PartialEq for Pooled<T> {
    fn eq(&self, other: &Pooled<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl<T: Hash> Hash for Pooled<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl<T> From<T> for Pooled<T> {
    fn from(value: T) -> Pooled<T> {
        Pooled(Arc::new(value))
    }
}

impl<T: Serialize> Serialize for Pooled<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de> + Poolable> Deserialize<'de> for Pooled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pooled<T>, D::Error> {
        T::deserialize(deserializer).map(Pooled::new)
    }
}

/// Declares a pool for each type.
macro_rules! pooled {
    ($($type:ty),* $(,)?) => {$(
        impl crate::shared::Poolable for $type {
            fn pool() -> &'static crate::shared::InternPool<$type> {
                static POOL: crate::shared::InternPool<$type> = crate::shared::InternPool::new();
                &POOL
            }
        }
    )*};
}

pub(crate) use pooled;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Hash, Serialize, Deserialize)]
    struct Part(u32);

    pooled!(Part, Vec<Part>);

    fn list(numbers: &[u32]) -> SharedList<Part> {
        serde_json::from_str(&serde_json::to_string(numbers).unwrap()).unwrap()
    }

    #[test]
    fn equal_lists_are_kept_once_until_one_is_changed() {
        let (one, mut two) = (list(&[1, 2]), list(&[1, 2]));
        assert!(one.is_same(&two));
        assert!(!one.is_same(&list(&[2, 1])));
        two.push(Part(3));
        assert_eq!((one.len(), two.len()), (2, 3));
        assert_ne!(one, two);
        two.update(|parts| parts.truncate(2));
        assert!(one.is_same(&two));
    }

    #[test]
    fn the_empty_list_takes_nothing() {
        assert!(list(&[]).is_same(&SharedList::default()));
        assert_eq!(list(&[]), Vec::new());
        assert_eq!(size_of::<SharedList<Part>>(), 8);
        assert_eq!(serde_json::to_string(&list(&[7])).unwrap(), "[7]");
    }

    #[test]
    fn single_values_are_shared_too() {
        let decode = |text| serde_json::from_str::<Pooled<Part>>(text).unwrap();
        let (one, mut two) = (decode("5"), decode("5"));
        assert!(Arc::ptr_eq(&one.0, &two.0));
        two.0 = Arc::new(Part(5));
        assert_eq!(one, two);
        two.update(|part| part.0 = 6);
        assert_eq!((one.0.0, two.0.0), (5, 6));
    }

    #[test]
    fn values_that_nobody_has_any_more_are_dropped() {
        static POOL: InternPool<u64> = InternPool::new();
        let kept = POOL.share(0);
        for value in 1..(SHARDS * FIRST_SWEEP * 4) as u64 {
            drop(POOL.share(value));
        }
        let held: usize = POOL.shards.iter().map(|s| s.lock().unwrap().values.len()).sum();
        assert!(held <= SHARDS * FIRST_SWEEP, "{held}");
        assert!(Arc::ptr_eq(&kept, &POOL.share(0)));
    }
}
