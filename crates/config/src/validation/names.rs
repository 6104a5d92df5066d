//! The syntax of label names, resource names and label values.
//!
//! Upstream: `staging/src/k8s.io/apimachinery/pkg/api/validate/content`,
//! `pkg/apis/core/v1/helper/helpers.go`.

const NAME: &str =
    "must be letters, digits, '-', '_' or '.', starting and ending with a letter or digit";
const SUBDOMAIN: &str = "must be lower case letters, digits, '-' or '.', each part starting and ending with a letter or digit";

/// Why `name` is not a qualified name (`name` or `example.com/name`); empty if it is one.
pub fn qualified_name(name: &str) -> Vec<String> {
    let (prefix, name) = match name.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => return vec![format!("a name {NAME}, with at most one prefix and '/' before it")],
    };
    let mut reasons = prefix.map(prefix_reasons).unwrap_or_default();
    if name.is_empty() {
        reasons.push("the name must not be empty".to_owned());
    } else if name.len() > 63 {
        reasons.push("the name must have at most 63 bytes".to_owned());
    }
    if !is_label_text(name) {
        reasons.push(format!("the name {NAME}"));
    }
    reasons
}

fn prefix_reasons(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["the prefix before '/' must not be empty".to_owned()];
    }
    let mut reasons = Vec::new();
    if prefix.len() > 253 {
        reasons.push("the prefix must have at most 253 bytes".to_owned());
    }
    if !prefix.split('.').all(is_dns_label) {
        reasons.push(format!("the prefix {SUBDOMAIN}"));
    }
    reasons
}

/// Why `value` is not a label value; empty if it is one.
pub fn label_value(value: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if value.len() > 63 {
        reasons.push("must have at most 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_label_text(value) {
        reasons.push(NAME.to_owned());
    }
    reasons
}

fn is_label_text(text: &str) -> bool {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    has_edges(text, |b| b.is_ascii_alphanumeric()) && text.as_bytes().iter().all(inner)
}

fn is_dns_label(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    has_edges(text, edge) && text.as_bytes().iter().all(|b| edge(b) || *b == b'-')
}

fn has_edges(text: &str, edge: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&edge) && bytes.last().is_some_and(&edge)
}

/// Whether a qualified name is that of an extended resource: its prefix is not Kubernetes' own.
pub(crate) fn is_extended_resource(name: &str) -> bool {
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names() {
        for good in ["cpu", "example.com/foo", "a-b_c.d", "A1", "x.y-z.io/Name"] {
            assert_eq!(qualified_name(good), [""; 0], "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "a b", "Ex.com/a", "a..b/c", "é"] {
            assert!(!qualified_name(bad).is_empty(), "{bad}");
        }
        assert_eq!(qualified_name(&"a".repeat(64)), ["the name must have at most 63 bytes"]);
        assert_eq!(qualified_name("/a"), ["the prefix before '/' must not be empty"]);
        assert_eq!(qualified_name("").len(), 2);
    }

    #[test]
    fn label_values() {
        assert_eq!(label_value(""), [""; 0]);
        assert_eq!(label_value("a.b-c_D9"), [""; 0]);
        assert_eq!(label_value("a!"), [NAME]);
        assert_eq!(label_value(&"-".repeat(64)).len(), 2);
    }

    #[test]
    fn extended_resources() {
        assert!(is_extended_resource("example.com/foo"));
        for bad in ["cpu", "x.kubernetes.io/foo", "requests.example.com/foo"] {
            assert!(!is_extended_resource(bad), "{bad}");
        }
        let long = format!("{}.com/a", ["b".repeat(60).as_str(); 4].join("."));
        assert!(qualified_name(&long).is_empty() && !is_extended_resource(&long));
    }
}
