//! UIDs of objects. An API server generates a UUID for each object. Interned strings are never freed,
//! so a UUID is stored as its 128 bits.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::intern::Symbol;

/// The UID of an object. `Copy`, 16 bytes, equal exactly when the text is equal.
///
/// `Uid::default()` is the empty text: the object has no UID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Uid {
    /// The first half of a UUID; 0 if the text is not a UUID.
    high: u64,
    /// The second half, or the number of the interned text.
    low: u64,
}

impl Uid {
    /// No UID.
    pub const EMPTY: Uid = Uid { high: 0, low: 0 };

    /// The UID with this text. A text that is not a UUID in the API server's spelling, as in files
    /// that people wrote, is interned.
    pub fn new(text: &str) -> Uid {
        let interned = || Uid { high: 0, low: u64::from(Symbol::new(text).number()) };
        match Uuid::try_parse(text).map(|uuid| uuid.as_u64_pair()) {
            Ok((high @ 1.., low)) if (Uid { high, low }) == *text => Uid { high, low },
            _ => interned(),
        }
    }

    /// Whether there is no UID.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Uid::EMPTY
    }

    /// A hash: equal UIDs have the same number, different ones rarely do.
    pub fn number(self) -> u32 {
        (self.high ^ self.low) as u32
    }

    /// Calls `read` with the text.
    fn with_text<T>(self, read: impl FnOnce(&str) -> T) -> T {
        if self.high == 0 {
            return read(u32::try_from(self.low).map_or("", |id| Symbol::numbered(id).as_str()));
        }
        let mut text = [0; Hyphenated::LENGTH];
        read(Uuid::from_u64_pair(self.high, self.low).hyphenated().encode_lower(&mut text))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Uid {
        Uid::new(text)
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Uid {
        Uid::new(&text)
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        self.with_text(|text| text == other)
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// By text.
impl Ord for Uid {
    fn cmp(&self, other: &Uid) -> Ordering {
        match (self.high, other.high) {
            // The digits of a UUID's text are those of its number.
            (1.., 1..) => (self.high, self.low).cmp(&(other.high, other.low)),
            _ => self.with_text(|text| other.with_text(|other| text.cmp(other))),
        }
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Uid) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.high {
            0 => u32::try_from(self.low).map_or(Ok(()), |id| Symbol::numbered(id).fmt(f)),
            _ => self.with_text(|text| f.pad(text)),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| fmt::Debug::fmt(text, f))
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Uid, D::Error> {
        crate::macros::text(deserializer, |text| Ok::<_, std::convert::Infallible>(Uid::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UUID: &str = "0f2a9c54-6d3e-4b61-8a07-5c1f0e9d7b32";

    #[test]
    fn a_uuid_is_not_interned() {
        let uid = Uid::new(UUID);
        assert_eq!((uid.to_string().as_str(), uid.is_empty()), (UUID, false));
        assert_eq!(Symbol::known(UUID), None);
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let upper = UUID.to_uppercase();
        let plain = UUID.replace('-', "");
        let nil = Uuid::nil().to_string();
        let late = "00000000-0000-0000-8a07-5c1f0e9d7b32";
        let texts = ["mine", "", &upper, &plain, &nil, late];
        assert_eq!(texts.map(|text| Uid::new(text).to_string()), texts.map(str::to_owned));
        assert_eq!(texts.map(|text| Uid::new(text).is_empty()), texts.map(str::is_empty));
        assert_ne!(Uid::new(&upper), Uid::new(UUID));
    }

    #[test]
    fn json_has_the_text() {
        let json = serde_json::to_string(&[Uid::new(UUID), Uid::new("mine")]).unwrap();
        assert_eq!(json, format!("[\"{UUID}\",\"mine\"]"));
        let read: [Uid; 2] = serde_json::from_str(&json).unwrap();
        assert_eq!(read, [Uid::new(UUID), Uid::new("mine")]);
        assert!(serde_json::from_str::<Uid>("1").is_err());
    }

    proptest! {
        #[test]
        fn order_is_by_text(a in any::<u128>(), b in "[0-9a-f]{0,9}", c in any::<u128>()) {
            let texts = [Uuid::from_u128(a).to_string(), b, Uuid::from_u128(c).to_string()];
            for (left, right) in [(0, 1), (1, 2), (0, 2)] {
                let uids = (Uid::new(&texts[left]), Uid::new(&texts[right]));
                prop_assert_eq!(uids.0.cmp(&uids.1), texts[left].cmp(&texts[right]));
            }
        }
    }
}
