//! `apiVersion` and `kind` without decoding: the first lines or fields are enough for nearly all
//! documents.

use super::{Text, TypeMeta};
use crate::intern::Symbol;

/// The header, if it can be determined with certainty.
pub(super) fn scan(text: Text<'_>) -> Option<TypeMeta> {
    match text {
        Text::Json(json) => scan_json(json),
        Text::Yaml(yaml) => scan_yaml(yaml),
    }
}

/// Reads the unindented lines of a block mapping.
fn scan_yaml(yaml: &str) -> Option<TypeMeta> {
    let mut types = TypeMeta::default();
    for line in yaml.lines() {
        if let Some(value) = line.strip_prefix("kind:") {
            types.kind = yaml_scalar(value)?;
        } else if let Some(value) = line.strip_prefix("apiVersion:") {
            types.api_version = yaml_scalar(value)?;
        } else {
            continue;
        }
        if !types.kind.is_empty() && !types.api_version.is_empty() {
            return Some(types);
        }
    }
    (!types.kind.is_empty()).then_some(types)
}

/// A one-line scalar, optionally quoted and followed by a comment.
fn yaml_scalar(text: &str) -> Option<Symbol> {
    let text = text.split(" #").next().unwrap_or(text).trim();
    plain(text.trim_matches(['"', '\'']))
}

fn plain(text: &str) -> Option<Symbol> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_');
    (!text.is_empty() && text.chars().all(plain)).then(|| text.into())
}

/// Reads the first two fields, if they are the header: kubectl sorts fields by name.
fn scan_json(json: &str) -> Option<TypeMeta> {
    let mut types = TypeMeta::default();
    let mut rest = json.trim_start().strip_prefix('{')?;
    for _ in 0..2 {
        let (name, after) = json_string(rest)?;
        let (value, after) = json_string(after.trim_start().strip_prefix(':')?)?;
        match name {
            "kind" => types.kind = plain(value)?,
            "apiVersion" => types.api_version = plain(value)?,
            _ => return None,
        }
        rest = after.trim_start().strip_prefix([',', '}'])?;
    }
    (!types.kind.is_empty() && !types.api_version.is_empty()).then_some(types)
}

/// A string without escapes, and the text after it.
fn json_string(text: &str) -> Option<(&str, &str)> {
    let (string, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    (!string.contains('\\')).then_some((string, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_headers_are_read_only_where_they_lead() {
        let scan = |text| scan_json(text).map(|t| (t.api_version.as_str(), t.kind.as_str()));
        let pod = Some(("v1", "Pod"));
        assert_eq!(scan(r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#), pod);
        assert_eq!(scan("{\n  \"kind\" : \"Pod\",\n  \"apiVersion\" : \"v1\"\n}"), pod);
        assert_eq!(scan(r#"{"metadata":{},"kind":"Pod","apiVersion":"v1"}"#), None);
        assert_eq!(scan(r#"{"kind":"P\u006fd","apiVersion":"v1"}"#), None);
        assert_eq!(scan(r#"{"kind":1,"apiVersion":"v1"}"#), None);
        assert_eq!(scan(r#"{"kind""#), None);
    }

    #[test]
    fn yaml_headers_are_read_wherever_they_stand() {
        let scan = |text| scan_yaml(text).map(|t| (t.api_version.as_str(), t.kind.as_str()));
        assert_eq!(scan("# c\nmetadata:\n  kind: X\nkind: 'Pod' # p\n"), Some(("", "Pod")));
        assert_eq!(scan("kind: Pod\napiVersion: \"v1\"\n"), Some(("v1", "Pod")));
        assert_eq!(scan("kind: &anchor Pod\n"), None);
        assert_eq!(scan("metadata: {}\n"), None);
    }
}
