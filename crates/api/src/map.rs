//! Small maps keyed by interned names: labels, annotations, resource lists.
//!
//! They are sorted by the key's text, so that the iteration order is the one that users expect, and
//! searched by comparing ids, which is faster than hashing for a handful of entries.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::Symbol;
use crate::{Name, Quantity, SharedText};

/// A map from names to `V`, sorted by the name's text; one allocation, none when empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SymbolMap<V> {
    entries: Box<[(Symbol, V)]>,
}

/// Labels or a node selector, by key.
pub type Labels = SymbolMap<Name>;
/// Annotations by key; equal texts are stored once.
pub type Annotations = SymbolMap<SharedText>;
/// Resource name → amount.
pub type ResourceList = SymbolMap<Quantity>;

impl<V> Default for SymbolMap<V> {
    fn default() -> Self {
        SymbolMap { entries: Box::default() }
    }
}

impl<V> SymbolMap<V> {
    /// A map without entries; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key`.
    pub fn get(&self, key: Symbol) -> Option<&V> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value of `key`, without interning it.
    pub fn get_str(&self, key: &str) -> Option<&V> {
        let at = self.entries.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// The value of `key`, mutable.
    pub fn get_mut(&mut self, key: Symbol) -> Option<&mut V> {
        self.entries.iter_mut().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key(&self, key: Symbol) -> bool {
        self.get(key).is_some()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries in the order of the keys' text.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Symbol, &V)> + ExactSizeIterator {
        self.entries.iter().map(|(name, value)| (*name, value))
    }

    /// Entries in the order of the keys' text, with mutable values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (Symbol, &mut V)> {
        self.entries.iter_mut().map(|(name, value)| (*name, value))
    }

    /// Keys in the order of their text.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = Symbol> + ExactSizeIterator {
        self.entries.iter().map(|(name, _)| *name)
    }

    /// Sets `key` and returns its former value.
    pub fn insert(&mut self, key: Symbol, value: V) -> Option<V> {
        match self.entries.binary_search_by(|(name, _)| name.cmp(&key)) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                let mut entries = std::mem::take(&mut self.entries).into_vec();
                entries.insert(at, (key, value));
                self.entries = entries.into_boxed_slice();
                None
            }
        }
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: Symbol) -> Option<V> {
        let at = self.entries.iter().position(|(name, _)| *name == key)?;
        let mut entries = std::mem::take(&mut self.entries).into_vec();
        let (_, value) = entries.remove(at);
        self.entries = entries.into_boxed_slice();
        Some(value)
    }
}

/// A later entry overrides an earlier one of the same name, as in Go's decoder.
impl<V> FromIterator<(Symbol, V)> for SymbolMap<V> {
    fn from_iter<I: IntoIterator<Item = (Symbol, V)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.0);
        entries.reverse();
        entries.dedup_by_key(|entry| entry.0);
        entries.reverse();
        SymbolMap { entries: entries.into_boxed_slice() }
    }
}

impl<'a, V: From<&'a str>, const N: usize> From<[(&'a str, &'a str); N]> for SymbolMap<V> {
    fn from(entries: [(&'a str, &'a str); N]) -> SymbolMap<V> {
        entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
    }
}

impl<V: fmt::Debug> fmt::Debug for SymbolMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Serialize> Serialize for SymbolMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(&key, value)?;
        }
        map.end()
    }
}

/// A key. Unlike in values, numbers and booleans in YAML are accepted as text, as in the API's
/// conversion to JSON.
pub struct Key(pub Symbol);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(text.into()))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl<'de, V: Deserialize<'de> + Default> Deserialize<'de> for SymbolMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de> + Default> Visitor<'de> for Entries<V> {
            type Value = SymbolMap<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SymbolMap<V>, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0).min(64));
                while let Some((key, value)) = map.next_entry::<Key, Option<V>>()? {
                    entries.push((key.0, value.unwrap_or_default()));
                }
                Ok(entries.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_by_text_and_changed_in_place() {
        let mut labels = Labels::from([("zone", "a"), ("app", "web")]);
        assert_eq!(labels.keys().map(|key| key.as_str()).collect::<Vec<_>>(), ["app", "zone"]);
        assert_eq!(labels.insert("mid".into(), "x".into()), None);
        assert_eq!(labels.insert("app".into(), "db".into()), Some("web".into()));
        assert_eq!(labels.remove("zone".into()), Some("a".into()));
        assert_eq!(labels.remove("zone".into()), None);
        assert_eq!(labels, Labels::from([("app", "db"), ("mid", "x")]));
        assert_eq!(labels.get("mid".into()), Some(&"x".into()));
        assert_eq!(labels.get_str("mid"), Some(&"x".into()));
        assert_eq!((labels.len(), labels.contains_key("zone".into())), (2, false));
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        let labels: Labels = serde_json::from_str(r#"{"a":"1","b":"2","a":"3"}"#).unwrap();
        assert_eq!(labels, Labels::from([("a", "3"), ("b", "2")]));
        assert_eq!(serde_json::to_string(&labels).unwrap(), r#"{"a":"3","b":"2"}"#);
    }

    #[test]
    fn values_must_be_text_but_keys_may_look_like_numbers() {
        let labels: Labels = crate::yaml::from_str("{1: a, true: b, c: null}").unwrap();
        assert_eq!(labels, Labels::from([("1", "a"), ("true", "b"), ("c", "")]));
        assert!(crate::yaml::from_str::<Labels>("{a: 1}").is_err());
        assert!(crate::yaml::from_str::<Labels>("{a: true}").is_err());
    }
}
