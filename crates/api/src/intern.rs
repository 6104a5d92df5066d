//! Interned strings: each key of a label, resource, namespace and reason is stored once and compared
//! as a `u32`. All layers share this table.
//!
//! A [`Symbol`] is only an identity: nothing may depend on its number, which differs from run to
//! run with the order of arrival. Ordering is by text. The table only grows, so it is for texts of
//! which a cluster has a limited number; names of objects and values of labels are
//! [`Name`](crate::Name)s.

use std::cmp;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Strings per chunk of the id → text table.
const CHUNK: usize = 1 << 14;
/// Maximum number of chunks: 2^16 × 2^14 = 2^30 distinct strings.
const CHUNKS: usize = 1 << 16;
/// Number of shards, each with a lock.
const SHARD_COUNT: usize = 64;
/// Bytes allocated at once for texts.
const BLOCK: usize = 1 << 14;

type Chunk = Box<[OnceLock<&'static str>]>;

/// Text by id. Reading takes no lock; a slot is written once, before its id is returned.
static TEXT: [OnceLock<Chunk>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
/// Text → id, in shards by hash: threads that decode input in parallel rarely contend for a lock.
static SHARDS: [Mutex<InternerShard>; SHARD_COUNT] =
    [const { Mutex::new(InternerShard::new()) }; SHARD_COUNT];
static HASHER: OnceLock<DefaultHashBuilder> = OnceLock::new();
/// The next id; 0 is the empty string.
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Bytes allocated for texts and for the id → text table.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// The strings with hashes of this shard.
struct InternerShard {
    ids: HashTable<u32>,
    /// The rest of the last block into which texts are copied.
    free: &'static mut [u8],
}

/// An interned string. `Copy`, four bytes, equal exactly when the text is equal.
///
/// `Symbol::default()` is the empty string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Symbol(u32);

impl Symbol {
    /// The symbol of the empty string, which is also the default.
    pub const EMPTY: Symbol = Symbol(0);

    /// The symbol of a text, which is stored for good if it is new.
    pub fn new(text: &str) -> Symbol {
        if text.is_empty() {
            return Symbol::EMPTY;
        }
        let hasher = HASHER.get_or_init(DefaultHashBuilder::default);
        let hash = hasher.hash_one(text);
        // The table within a shard uses the lowest and the highest bits.
        let shard = &SHARDS[(hash >> 32) as usize % SHARD_COUNT];
        // Interning leaves no inconsistent state behind, so a poisoned lock is still valid.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard.intern(text, hash, hasher)
    }

    /// The symbol of a text if it was interned before; otherwise nothing is interned.
    pub fn known(text: &str) -> Option<Symbol> {
        let hash = HASHER.get_or_init(DefaultHashBuilder::default).hash_one(text);
        let shard = SHARDS[(hash >> 32) as usize % SHARD_COUNT].lock();
        let shard = shard.unwrap_or_else(PoisonError::into_inner);
        let found = shard.ids.find(hash, |id| Symbol(*id).as_str() == text).map(|id| Symbol(*id));
        found.or_else(|| text.is_empty().then_some(Symbol::EMPTY))
    }

    /// A number that no other symbol has in this process. It differs between runs, so no order may
    /// depend on it.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The symbol with a number that [`Symbol::number`] gave.
    pub(crate) fn numbered(number: u32) -> Symbol {
        Symbol(number)
    }

    /// The text; comparing symbols needs none.
    pub fn as_str(self) -> &'static str {
        if self.0 == 0 {
            return "";
        }
        let (chunk, slot) = (self.0 as usize / CHUNK, self.0 as usize % CHUNK);
        TEXT[chunk].get().and_then(|c| c[slot].get()).copied().unwrap_or("")
    }
}

/// Number of interned strings.
pub fn count() -> usize {
    NEXT.load(Ordering::Relaxed) as usize - 1
}

/// Memory of the interned strings and of both tables, in bytes. It only grows.
pub fn bytes() -> usize {
    let tables = SHARDS
        .iter()
        .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).ids.allocation_size());
    ALLOCATED.load(Ordering::Relaxed) + tables.sum::<usize>()
}

impl InternerShard {
    const fn new() -> InternerShard {
        InternerShard { ids: HashTable::new(), free: &mut [] }
    }

    fn intern(&mut self, text: &str, hash: u64, hasher: &DefaultHashBuilder) -> Symbol {
        if let Some(id) = self.ids.find(hash, |id| Symbol(*id).as_str() == text) {
            return Symbol(*id);
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        store(id, self.keep(text));
        self.ids.insert_unique(hash, id, |id| hasher.hash_one(Symbol(*id).as_str()));
        Symbol(id)
    }

    /// Copies the text to its final memory. Blocks save the allocator's cost for each string.
    fn keep(&mut self, text: &str) -> &'static str {
        if text.len() > BLOCK / 4 {
            ALLOCATED.fetch_add(text.len(), Ordering::Relaxed);
            return Box::leak(text.into());
        }
        if text.len() > self.free.len() {
            ALLOCATED.fetch_add(BLOCK, Ordering::Relaxed);
            self.free = Box::leak(vec![0; BLOCK].into_boxed_slice());
        }
        let (kept, free) = std::mem::take(&mut self.free).split_at_mut(text.len());
        self.free = free;
        kept.copy_from_slice(text.as_bytes());
        // Not an error: the bytes are those of a text.
        std::str::from_utf8(kept).unwrap_or_default()
    }
}

fn store(id: u32, text: &'static str) {
    let (chunk, slot) = (id as usize / CHUNK, id as usize % CHUNK);
    let chunk = TEXT[chunk].get_or_init(|| {
        ALLOCATED.fetch_add(CHUNK * size_of::<OnceLock<&str>>(), Ordering::Relaxed);
        (0..CHUNK).map(|_| OnceLock::new()).collect()
    });
    let _already_set = chunk[slot].set(text);
}

impl Deref for Symbol {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Symbol {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Symbol {
    fn from(text: &str) -> Symbol {
        Symbol::new(text)
    }
}

impl From<String> for Symbol {
    fn from(text: String) -> Symbol {
        Symbol::new(&text)
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Ord for Symbol {
    fn cmp(&self, other: &Symbol) -> cmp::Ordering {
        if self.0 == other.0 { cmp::Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Symbol) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A line break is written as `\n`: no API server accepts one in a name, and in a text for people it
/// would begin a line of its own.
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str().contains('\n') {
            false => f.pad(self.as_str()),
            true => f.pad(&self.as_str().replace('\n', "\\n")),
        }
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Symbol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Symbol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Symbol, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Symbol;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Symbol, E> {
                Ok(Symbol::new(text))
            }
        }
        // Not `deserialize_str`, for which YAML decoders convert `1` and `true` to text: the API
        // rejects such values unless they are quoted.
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_text_is_one_symbol() {
        assert_eq!(Symbol::new("zone-a"), Symbol::new("zone-a"));
        assert_ne!(Symbol::new("zone-a"), Symbol::new("zone-b"));
        assert_eq!(Symbol::new("zone-a").as_str(), "zone-a");
        assert_eq!(Symbol::default().as_str(), "");
        assert_eq!(Symbol::new(""), Symbol::EMPTY);
    }

    #[test]
    fn looking_a_text_up_does_not_intern_it() {
        assert_eq!(Symbol::known("never interned"), None);
        assert_eq!(Symbol::known("never interned"), None);
        let before = count();
        let interned = Symbol::new("interned for good");
        assert_eq!(Symbol::known("interned for good"), Some(interned));
        assert_eq!(Symbol::known(""), Some(Symbol::EMPTY));
        assert!(count() > before);
    }

    #[test]
    fn the_memory_of_new_strings_is_counted() {
        let (before, length) = (bytes(), 3 * BLOCK);
        let _large = Symbol::new(&"x".repeat(length));
        assert!(bytes() >= before + length);
        for i in 0..20_000 {
            Symbol::new(&format!("{i}-{}", "y".repeat(100)));
        }
        // The last blocks may have been there before.
        assert!(bytes() >= before + length + 20_000 * 100 - SHARD_COUNT * BLOCK);
    }

    #[test]
    fn order_is_by_text_not_by_arrival() {
        let (late, early) = (Symbol::new("order-z"), Symbol::new("order-a"));
        assert!(early < late);
    }

    #[test]
    fn threads_agree() {
        let ids: Vec<Vec<Symbol>> = std::thread::scope(|scope| {
            let run = || (0..1000).map(|i| Symbol::new(&format!("thread-{i}"))).collect();
            let handles: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        });
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(ids[0][999].as_str(), "thread-999");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the interner knows no layer above it")]
    fn only_text_decodes() {
        let decode = serde_yaml::from_str::<Symbol>;
        assert_eq!(decode("'1'").ok(), Some(Symbol::new("1")));
        assert!(decode("1").is_err());
        assert!(decode("true").is_err());
    }
}
