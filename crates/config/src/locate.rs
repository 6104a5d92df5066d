//! Line and column of a field in a YAML or JSON text.
//!
//! The YAML reader reports positions only in its errors. So the text is read again by a visitor
//! that descends to the field and fails there; the position of that error is the field's. This is
//! done only if there is a problem to report.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::path::{FieldPath, PathStep};
use super::problem::Location;
use kubestep_api::yaml;

/// The location of `path` in the first document of `text`; for a field, of its name.
pub fn locate(text: &str, path: &FieldPath) -> Option<Location> {
    locate_nth(text, path, 0)
}

/// Like [`locate`], for the `nth` occurrence (from 0) of a repeated field.
pub(crate) fn locate_nth(text: &str, path: &FieldPath, nth: usize) -> Option<Location> {
    let found = Cell::new(false);
    let walk = LocateVisitor { steps: path.steps(), nth, found: &found };
    let document = yaml::documents(text).ok()?.next()?;
    let error = walk.deserialize(document).err()?;
    let location = error.location().filter(|_| found.get())?;
    Some(Location { line: location.line(), column: location.column() })
}

#[derive(Clone, Copy)]
struct LocateVisitor<'a> {
    steps: &'a [PathStep],
    nth: usize,
    found: &'a Cell<bool>,
}

impl LocateVisitor<'_> {
    fn stop<T, E: Error>(self) -> Result<T, E> {
        self.found.set(true);
        Err(E::custom("found"))
    }

    /// Visits a scalar: it is either the searched value, or nothing is below it.
    fn scalar<E: Error>(self) -> Result<(), E> {
        if self.steps.is_empty() { self.stop() } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for LocateVisitor<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LocateVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar()
    }
    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.scalar()
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.scalar()
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.scalar()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else { return self.stop() };
        let below = LocateVisitor { steps: rest, ..self };
        for index in 0.. {
            let here = *step == PathStep::Index(index);
            let more = if here { list.next_element_seed(below)? } else { skip(&mut list)? };
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else { return self.stop() };
        while let Some(here) =
            map.next_key_seed(Name { walk: self, step, last: rest.is_empty() })?
        {
            match here {
                true if self.nth > 0 && rest.is_empty() => self.nth -= 1,
                true => return map.next_value_seed(LocateVisitor { steps: rest, ..self }),
                false => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

fn skip<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<Option<()>, A::Error> {
    Ok(list.next_element::<IgnoredAny>()?.map(|_| ()))
}

/// Checks whether the name of a field is that of `step`.
struct Name<'a> {
    walk: LocateVisitor<'a>,
    step: &'a PathStep,
    last: bool,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        let here = matches!(self.step, PathStep::Field(step) | PathStep::Key(step) if step == name);
        if here && self.last && self.walk.nth == 0 {
            return self.walk.stop();
        }
        Ok(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, path: &FieldPath, nth: usize) -> Option<(usize, usize)> {
        locate_nth(text, path, nth).map(|location| (location.line, location.column))
    }

    #[test]
    fn fields_are_found_in_yaml() {
        let text = "a: 1\nlist:\n- x\n-   b:\n      c: [1, 2]\n";
        let list = FieldPath::root().field("list");
        assert_eq!(place(text, &list, 0), Some((2, 1)));
        assert_eq!(place(text, &list.index(0), 0), Some((3, 3)));
        assert_eq!(place(text, &list.index(1).field("b").field("c"), 0), Some((5, 7)));
        assert_eq!(place(text, &list.index(1).field("b").field("c").index(1), 0), Some((5, 14)));
        assert_eq!(place(text, &list.index(2), 0), None);
        assert_eq!(place(text, &list.field("x"), 0), None);
    }

    #[test]
    fn fields_are_found_in_json() {
        let text = "{\"a\": 1,\n  \"b\": {\"c\": true}}";
        let path = FieldPath::root().field("b").field("c");
        assert_eq!(place(text, &path, 0), Some((2, 9)));
    }

    #[test]
    fn the_second_of_two_equal_fields_is_found() {
        let path = FieldPath::root().field("a");
        assert_eq!(place("a: 1\nb: 2\na: 3\n", &path, 1), Some((3, 1)));
        assert_eq!(place("a: 1\nb: 2\na: 3\n", &path, 2), None);
    }

    #[test]
    fn a_broken_text_has_no_places() {
        assert_eq!(place("a: [1\nb: }", &FieldPath::root().field("b"), 0), None);
        assert_eq!(place("", &FieldPath::root().field("b"), 0), None);
    }
}
