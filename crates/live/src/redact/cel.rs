//! Selectors of devices: string literals of an expression are renamed like the attributes they are
//! compared with; domains and versions are kept.

use super::Redactor;

/// Calls that depend on the characters of a string.
const TEXT_CALLS: &[&str] = &[
    ".startsWith(",
    ".endsWith(",
    ".contains(",
    ".matches(",
    ".lowerAscii(",
    ".upperAscii(",
    ".split(",
    ".replace(",
    ".substring(",
    ".indexOf(",
    ".lastIndexOf(",
    ".trim(",
    ".charAt(",
    ".find(",
    ".findAll(",
    ".size(",
    "size(",
    ".reverse(",
    ".join(",
];
/// What precedes a string literal that is not a name.
const KEPT_BEFORE: &[&str] = &["[", "quantity(", "semver(", "isQuantity(", "isSemver("];

impl Redactor {
    /// The expression with its string literals renamed.
    pub(super) fn expression(&mut self, text: &str) -> String {
        if TEXT_CALLS.iter().any(|call| text.contains(call)) {
            self.keeps_attributes = true;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(['"', '\'']) {
            let quote = if rest.as_bytes()[start] == b'"' { '"' } else { '\'' };
            let (before, quoted) = rest.split_at(start);
            self.note_attributes(before);
            out += before;
            let Some(end) = quoted[1..].find(quote).map(|end| end + 1) else {
                // Not a valid expression: dropped, because it may contain anything.
                return String::new();
            };
            let inside = &quoted[1..end];
            let stays = KEPT_BEFORE.iter().any(|call| out.trim_end().ends_with(call));
            let new = match stays || inside.contains('\\') {
                true => inside.to_owned(),
                false => self.attribute(inside),
            };
            out.push(quote);
            out += &new;
            out.push(quote);
            rest = &quoted[end + 1..];
        }
        self.note_attributes(rest);
        out + rest
    }

    /// Identifiers outside of string literals are attributes, which are kept.
    fn note_attributes(&mut self, code: &str) {
        let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        self.kept.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }

    /// The string value of a device's attribute.
    pub(super) fn attribute(&mut self, text: &str) -> String {
        match self.keeps_attributes || self.kept.contains(text) {
            true => text.to_owned(),
            false => self.name(text, "attribute"),
        }
    }
}
