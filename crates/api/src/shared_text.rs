//! Text that objects share and that is dropped with the last of them: for values of which a
//! cluster has ever new ones, such as annotations. Interned strings stay for good.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::intern::Symbol;
use crate::macros::text;
use crate::shared::pooled;
use crate::{Name, Pooled};

/// A text. Equal ones are stored once, as long as there is one; an empty one is not stored.
#[derive(Clone, PartialEq, Hash, Default)]
pub struct SharedText(Option<Pooled<Box<str>>>);

pooled!(Box<str>);

impl Eq for SharedText {}

impl Deref for SharedText {
    type Target = str;
    fn deref(&self) -> &str {
        self.0.as_deref().map_or("", |text| text)
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> SharedText {
        SharedText((!text.is_empty()).then(|| Pooled::new(text.into())))
    }
}

impl From<Symbol> for SharedText {
    fn from(text: Symbol) -> SharedText {
        SharedText::from(text.as_str())
    }
}

impl From<Name> for SharedText {
    fn from(name: Name) -> SharedText {
        SharedText::from(name.text().as_str())
    }
}

impl PartialEq<str> for SharedText {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SharedText {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedText, D::Error> {
        text(deserializer, |text| Ok::<_, std::convert::Infallible>(SharedText::from(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_stored_once_and_leave_nothing_behind() {
        let (one, two) = (SharedText::from("zone a"), SharedText::from("zone a"));
        assert!(std::ptr::eq(&*one, &*two));
        assert_ne!(one, SharedText::from("zone b"));
        assert_eq!(SharedText::from(""), SharedText::default());
        assert_eq!((one.to_string(), format!("{one:?}")), ("zone a".into(), "\"zone a\"".into()));
        assert_eq!(Symbol::known("text of no symbol"), None);
        let text: SharedText = serde_json::from_str("\"text of no symbol\"").unwrap();
        assert_eq!(text, "text of no symbol");
        assert_eq!(Symbol::known("text of no symbol"), None);
    }

    #[test]
    fn only_text_decodes() {
        let decode = crate::yaml::from_str::<SharedText>;
        assert_eq!(decode("'1'").ok(), Some("1".into()));
        assert!(decode("1").is_err() && decode("true").is_err());
    }
}
