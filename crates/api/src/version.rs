//! `resourceVersion`: a text that changes with every write.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::Symbol;
use crate::macros::text;

/// The version of an object.
///
/// Interned strings are never freed, and watching a cluster brings new versions all the time. API
/// servers use numbers, which need no interning; any other text is interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceVersion {
    /// A number, as API servers use.
    Number(u64),
    /// Any other text; empty if there is none.
    Text(Symbol),
}

impl ResourceVersion {
    /// The number, if it is one.
    pub fn number(self) -> Option<u64> {
        match self {
            ResourceVersion::Number(number) => Some(number),
            ResourceVersion::Text(_) => None,
        }
    }
}

impl Default for ResourceVersion {
    fn default() -> ResourceVersion {
        ResourceVersion::Text(Symbol::EMPTY)
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> ResourceVersion {
        // Only texts that are printed as they were written.
        let is_plain = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
        match text.parse() {
            Ok(number) if is_plain => ResourceVersion::Number(number),
            _ => ResourceVersion::Text(text.into()),
        }
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> ResourceVersion {
        ResourceVersion::Number(number)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceVersion::Number(number) => number.fmt(f),
            ResourceVersion::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResourceVersion, D::Error> {
        text(deserializer, |version| Ok::<_, std::convert::Infallible>(version.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_printed_as_it_was_written() {
        for text in ["", "0", "7", "18446744073709551615"] {
            let json = format!("{text:?}");
            let version: ResourceVersion = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&version).unwrap(), json);
        }
        for text in ["07", "+7", "7a", "-1", "18446744073709551616"] {
            assert_eq!(ResourceVersion::from(text), ResourceVersion::Text(text.into()));
        }
        assert_eq!(ResourceVersion::from("7"), 7.into());
        assert!(serde_json::from_str::<ResourceVersion>("7").is_err());
    }

    #[test]
    fn versions_in_numbers_leave_nothing_behind() {
        let version: ResourceVersion = serde_json::from_str("\"9000017\"").unwrap();
        assert_eq!(version.number(), Some(9_000_017));
        assert_eq!(Symbol::known("9000017"), None);
    }
}
