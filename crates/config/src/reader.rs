//! Strict reading of a tree into typed values: collects all problems, each with the path of the
//! field and the expected type.
//!
//! The rules are those of the Go decoder that upstream uses: names match exactly, `null` and a
//! missing field are the same, unknown names are errors, numbers must fit their type.

use kubestep_api::intern::Symbol;

use super::argument_value::ArgumentValue;
use super::path::FieldPath;
use super::problem::Problem;
use super::suggest::closest;
use super::yaml_value::YamlValue;
use kubestep_api::{Duration, Name};

/// Collects problems while a tree is read.
pub struct Reader {
    /// The problems found so far.
    pub problems: Vec<Problem>,
    /// Whether `yes` and `off` are booleans, as in YAML 1.1, which upstream reads.
    pub yaml: bool,
}

/// The fields of a map that is being read.
pub struct Fields<'r, 'n> {
    reader: &'r mut Reader,
    path: &'r FieldPath,
    entries: &'n [(String, YamlValue)],
    known: Vec<&'static str>,
}

impl Reader {
    /// Starts to read a map; another type is a problem and is read as an empty map.
    pub fn fields<'r, 'n>(
        &'r mut self,
        node: &'n YamlValue,
        path: &'r FieldPath,
    ) -> Fields<'r, 'n> {
        let entries = match node {
            YamlValue::Map(entries) => entries.as_slice(),
            YamlValue::Null => &[],
            other => {
                self.expected(path, "a map of fields", other);
                &[]
            }
        };
        Fields { reader: self, path, entries, known: Vec::new() }
    }

    /// Reads a list, entry by entry.
    pub fn list<T>(
        &mut self,
        node: &YamlValue,
        path: &FieldPath,
        read: impl Fn(&mut Reader, &YamlValue, &FieldPath) -> T,
    ) -> Vec<T> {
        match node {
            YamlValue::List(list) => {
                let entries = list.iter().enumerate();
                entries.map(|(i, entry)| read(self, entry, &path.index(i))).collect()
            }
            YamlValue::Null => Vec::new(),
            other => {
                self.expected(path, "a list", other);
                Vec::new()
            }
        }
    }

    fn expected(&mut self, path: &FieldPath, what: &str, got: &YamlValue) {
        let problem = Problem::new(path, format!("expected {what}, got {}", got.describe()));
        self.problems.push(match (what, got) {
            ("text", YamlValue::Int(_) | YamlValue::Float(_) | YamlValue::Bool(_)) => {
                problem.help("put it in quotes")
            }
            ("a list", _) => problem.help("start each entry with a dash"),
            _ => problem,
        });
    }

    /// Reads a string; anything else is a problem, and the empty string.
    pub fn text(&mut self, node: &YamlValue, path: &FieldPath) -> String {
        match node {
            YamlValue::Text(text) => text.clone(),
            YamlValue::Null => String::new(),
            other => {
                self.expected(path, "text", other);
                String::new()
            }
        }
    }

    /// Reads a string and interns it.
    pub fn symbol(&mut self, node: &YamlValue, path: &FieldPath) -> Symbol {
        Symbol::from(self.text(node, path))
    }

    /// Reads a string as a name.
    pub fn name(&mut self, node: &YamlValue, path: &FieldPath) -> Name {
        Name::from(self.text(node, path))
    }

    /// Reads a boolean; anything else is a problem, and `false`.
    pub fn boolean(&mut self, node: &YamlValue, path: &FieldPath) -> bool {
        match node {
            YamlValue::Bool(value) => *value,
            YamlValue::Null => false,
            YamlValue::Text(text) if self.yaml && is_yaml_bool(text, "yes", "on", "y") => true,
            YamlValue::Text(text) if self.yaml && is_yaml_bool(text, "no", "off", "n") => false,
            other => {
                self.expected(path, "true or false", other);
                false
            }
        }
    }

    /// Reads a 64-bit integer.
    pub fn int64(&mut self, node: &YamlValue, path: &FieldPath) -> i64 {
        self.int(node, path, i64::MIN, i64::MAX)
    }

    /// Reads a 32-bit integer.
    pub(crate) fn int32(&mut self, node: &YamlValue, path: &FieldPath) -> i32 {
        self.int(node, path, i32::MIN.into(), i32::MAX.into()) as i32
    }

    fn int(&mut self, node: &YamlValue, path: &FieldPath, min: i64, max: i64) -> i64 {
        match node {
            YamlValue::Int(value) if (min..=max).contains(value) => *value,
            YamlValue::Null => 0,
            // When upstream decodes a YAML 1.0, it has already become 1.
            YamlValue::Float(value) if self.yaml && value.fract() == 0.0 && value.abs() < 1e15 => {
                self.int(&YamlValue::Int(*value as i64), path, min, max)
            }
            YamlValue::Int(_) | YamlValue::Float(_) => {
                self.expected(path, &format!("a whole number from {min} to {max}"), node);
                0
            }
            other => {
                self.expected(path, "a whole number", other);
                0
            }
        }
    }

    /// Reads a number, whole or not; anything else is a problem, and 0.
    pub fn float(&mut self, node: &YamlValue, path: &FieldPath) -> f32 {
        match node {
            YamlValue::Int(value) => *value as f32,
            YamlValue::Float(value) => *value as f32,
            YamlValue::Null => 0.0,
            other => {
                self.expected(path, "a number", other);
                0.0
            }
        }
    }

    /// Reads a duration such as `1m30s`; anything else is a problem, and no time.
    pub fn duration(&mut self, node: &YamlValue, path: &FieldPath) -> Duration {
        let parsed = match node {
            YamlValue::Text(text) => Duration::parse(text),
            YamlValue::Null => Some(Duration::default()),
            _ => None,
        };
        parsed.unwrap_or_else(|| {
            self.expected(path, "a duration such as 30s or 1m30s", node);
            Duration::default()
        })
    }

    /// Reads base64 and keeps it encoded, without line breaks.
    pub fn base64(&mut self, node: &YamlValue, path: &FieldPath) -> String {
        let mut text = self.text(node, path);
        text.retain(|c| c != '\n' && c != '\r');
        let body = text.trim_end_matches('=');
        let is_code = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
        let good = text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.chars().all(is_code);
        if !good {
            self.problems.push(Problem::new(path, "expected base64"));
        }
        text
    }
}

fn is_yaml_bool(text: &str, long: &str, middle: &str, short: &str) -> bool {
    [long, middle, short].iter().any(|word| text.eq_ignore_ascii_case(word))
}

impl<'n> Fields<'_, 'n> {
    /// The value of a field as written, including `null`.
    pub fn raw(&mut self, name: &'static str) -> Option<&'n YamlValue> {
        self.known.push(name);
        self.entries.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Reads a field; `None` if it is missing or `null`.
    pub fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader, &YamlValue, &FieldPath) -> T,
    ) -> Option<T> {
        let value = self.raw(name).filter(|value| **value != YamlValue::Null)?;
        Some(read(self.reader, value, &self.path.field(name)))
    }

    /// Reads a field; the zero value if it is missing or `null`.
    pub(crate) fn or_zero<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader, &YamlValue, &FieldPath) -> T,
    ) -> T {
        self.get(name, read).unwrap_or_default()
    }

    /// Reads a field of any type; `None` where it is absent or `null`.
    pub fn value<T: ArgumentValue>(&mut self, name: &'static str) -> Option<T> {
        self.get(name, T::read)
    }

    /// Reads a list of things; `None` where the field is absent or `null`.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&mut Reader, &YamlValue, &FieldPath) -> T,
    ) -> Option<Vec<T>> {
        self.get(name, |reader, node, path| reader.list(node, path, read))
    }

    /// Reports every field that was not read as unknown.
    pub fn finish(self) {
        for (name, _) in self.entries.iter().filter(|(name, _)| !self.known.contains(&&**name)) {
            let problem = Problem::new(&self.path.field(name), format!("unknown field {name:?}"));
            let help = match closest(name, self.known.iter().copied()) {
                Some(other) => format!("did you mean {other:?}?"),
                None => format!("known fields: {}", self.known.join(", ")),
            };
            self.reader.problems.push(problem.help(help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(read: impl FnOnce(&mut Reader, &FieldPath)) -> Vec<String> {
        let mut reader = Reader { problems: Vec::new(), yaml: true };
        read(&mut reader, &FieldPath::root().field("x"));
        reader.problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn wrong_values_are_reported_with_what_was_expected() {
        let text = YamlValue::Text("sixteen".into());
        let reported = problems(|reader, path| {
            reader.int32(&text, path);
            reader.int32(&YamlValue::Int(1 << 40), path);
            reader.int64(&YamlValue::Float(1.5), path);
            reader.boolean(&text, path);
            reader.text(&YamlValue::Int(5), path);
            reader.float(&text, path);
            reader.duration(&YamlValue::Int(5), path);
            reader.base64(&YamlValue::Text("a?".into()), path);
            reader.list(&text, path, Reader::text);
            reader.fields(&text, path).finish();
        });
        assert_eq!(
            reported,
            [
                "x: expected a whole number, got the text \"sixteen\"",
                "x: expected a whole number from -2147483648 to 2147483647, got the number 1099511627776",
                "x: expected a whole number from -9223372036854775808 to 9223372036854775807, \
             got the number 1.5",
                "x: expected true or false, got the text \"sixteen\"",
                "x: expected text, got the number 5; put it in quotes",
                "x: expected a number, got the text \"sixteen\"",
                "x: expected a duration such as 30s or 1m30s, got the number 5",
                "x: expected base64",
                "x: expected a list, got the text \"sixteen\"; start each entry with a dash",
                "x: expected a map of fields, got the text \"sixteen\"",
            ]
        );
    }

    #[test]
    fn good_values_are_read() {
        let reported = problems(|reader, path| {
            assert_eq!(reader.int32(&YamlValue::Float(16.0), path), 16);
            assert!(reader.boolean(&YamlValue::Text("Yes".into()), path));
            assert!(!reader.boolean(&YamlValue::Text("off".into()), path));
            assert_eq!(reader.base64(&YamlValue::Text("YWJj\nZA==".into()), path), "YWJjZA==");
            assert_eq!(reader.int64(&YamlValue::Null, path), 0);
        });
        assert_eq!(reported, [""; 0]);
    }

    #[test]
    fn unknown_fields_are_reported_with_what_was_meant() {
        let node = YamlValue::Map(vec![
            ("wieght".into(), YamlValue::Null),
            ("zzz".into(), YamlValue::Null),
        ]);
        let reported = problems(|reader, path| {
            let mut fields = reader.fields(&node, path);
            assert_eq!(fields.get("weight", Reader::int32), None);
            assert_eq!(fields.or_zero("name", Reader::text), "");
            fields.finish();
        });
        assert_eq!(
            reported,
            [
                "x.wieght: unknown field \"wieght\"; did you mean \"weight\"?",
                "x.zzz: unknown field \"zzz\"; known fields: weight, name",
            ]
        );
    }
}
