//! What is kept for each class of pods; of too many classes, the one unused for longest is dropped.

use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

/// The most classes, and about how much memory they may take, in bytes.
const CLASSES: usize = 512;
const BYTES: usize = 128 << 20;
/// Classes that are kept whatever their size.
const FEWEST: usize = 8;

/// Values by class. Copies share the values.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    entries: IndexMap<Arc<str>, RecentEntry<T>, DefaultHashBuilder>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct RecentEntry<T> {
    value: Arc<T>,
    /// The number of the last use.
    used: u64,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { entries: IndexMap::default(), uses: 0 }
    }
}

impl<T: Clone> Recent<T> {
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The value of a class, which is used now; `new` makes one. A value takes about `bytes` bytes.
    pub fn entry(&mut self, class: &str, bytes: usize, new: impl FnOnce() -> T) -> &mut T {
        self.uses += 1;
        let at = self.entries.get_index_of(class).unwrap_or_else(|| {
            self.make_room(bytes);
            let entry = RecentEntry { value: Arc::new(new()), used: 0 };
            self.entries.insert_full(class.into(), entry).0
        });
        let entry = &mut self.entries[at];
        entry.used = self.uses;
        Arc::make_mut(&mut entry.value)
    }

    /// The value of a class, if there is one.
    pub fn get(&self, class: &str) -> Option<&T> {
        self.entries.get(class).map(|entry| entry.value.as_ref())
    }

    /// The value of a class, if there is one, to change it.
    pub fn get_mut(&mut self, class: &str) -> Option<&mut T> {
        self.entries.get_mut(class).map(|entry| Arc::make_mut(&mut entry.value))
    }

    fn make_room(&mut self, bytes: usize) {
        let most = (BYTES / bytes.max(1)).clamp(FEWEST, CLASSES);
        while self.entries.len() >= most {
            let oldest = self.entries.values().enumerate().min_by_key(|(_, entry)| entry.used);
            let Some((at, _)) = oldest else { return };
            self.entries.swap_remove_index(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_unused_for_longest_goes_first() {
        let mut recent = Recent::default();
        for class in ["a", "b", "a", "c"] {
            *recent.entry(class, BYTES / 2, || 0) += 1;
        }
        let values =
            |recent: &mut Recent<i32>| ["a", "b"].map(|class| recent.get_mut(class).copied());
        assert_eq!(values(&mut recent), [Some(2), Some(1)]);
        for class in 0..FEWEST - 2 {
            recent.entry(&class.to_string(), BYTES / 2, || 0);
        }
        assert_eq!(values(&mut recent), [Some(2), None]);
        let mut copy = recent.clone();
        *copy.entry("a", 0, || 0) = 9;
        assert_eq!(recent.get_mut("a"), Some(&mut 2));
    }
}
