//! UIDs of objects.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Name;

/// The UID of an object: a UUID that an API server generated, or a text that a person wrote. `Copy`,
/// 20 bytes, equal exactly when the text is equal, ordered by text.
///
/// `Uid::default()` is the empty text: the object has no UID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(Name);

impl Uid {
    /// No UID.
    pub const EMPTY: Uid = Uid(Name::EMPTY);

    /// Whether there is no UID.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Uid::EMPTY
    }

    /// A hash: equal UIDs have the same number, different ones rarely do.
    pub fn number(self) -> u32 {
        self.0.number()
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Uid {
        Uid(Name::new(text))
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Uid {
        Uid(Name::new(&text))
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_as_its_text() {
        let uuid = "0f2a9c54-6d3e-4b61-8a07-5c1f0e9d7b32";
        let uids = [uuid, "mine", ""].map(Uid::from);
        assert_eq!(format!("{} {:?}", uids[0], uids[1]), format!("{uuid} \"mine\""));
        assert_eq!(uids.map(Uid::is_empty), [false, false, true]);
        let json = serde_json::to_string(&uids).unwrap();
        assert_eq!(json, format!("[\"{uuid}\",\"mine\",\"\"]"));
        assert_eq!(serde_json::from_str::<[Uid; 3]>(&json).unwrap(), uids);
        assert!(serde_json::from_str::<Uid>("1").is_err());
    }
}
