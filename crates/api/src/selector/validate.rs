//! Valid label keys and values (`apimachinery/pkg/api/validate/content`).

/// A reason with a regular expression and examples, in upstream's format.
macro_rules! explained {
    ($reason:literal, $regex:literal, $($example:literal),+) => {
        concat!(
            $reason, " (e.g. ", explained!(@examples $($example),+),
            "regex used for validation is '", $regex, "')"
        )
    };
    (@examples $first:literal $(, $more:literal)*) => {
        concat!("'", $first, "', " $(, " or '", $more, "', ")*)
    };
}

const NAME: &str = explained!(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character",
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    "MyName",
    "my.name",
    "123-abc"
);
const VALUE: &str = explained!(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    "MyValue",
    "my_value",
    "12345"
);
const SUBDOMAIN: &str = explained!(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character",
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "example.com"
);

/// Why a label key is invalid; all reasons joined.
pub(super) fn label_key_error(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        let form = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
        return Some(format!("a valid label key {NAME}{form}"));
    }
    let mut reasons = Vec::new();
    match prefix {
        Some("") => reasons.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > 253 {
                reasons.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !is_dns_subdomain(prefix) {
                reasons.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
        None => {}
    }
    match name.len() {
        0 => reasons.push("name part must be non-empty".to_owned()),
        64.. => reasons.push("name part must be no more than 63 bytes".to_owned()),
        _ => {}
    }
    if !is_label_text(name) {
        reasons.push(format!("name part {NAME}"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Why a label value is invalid; all reasons joined.
pub(super) fn label_value_error(value: &str) -> Option<String> {
    let mut reasons = Vec::new();
    if value.len() > 63 {
        reasons.push("must be no more than 63 bytes");
    }
    if !value.is_empty() && !is_label_text(value) {
        reasons.push(VALUE);
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Whether a text consists of letters, digits and inner dashes, underscores and dots.
pub fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Whether a text is dot-separated labels of lower-case letters, digits and inner dashes.
pub fn is_dns_subdomain(text: &str) -> bool {
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.split('.').map(str::as_bytes).all(|part| {
        part.first().is_some_and(plain)
            && part.last().is_some_and(plain)
            && part.iter().all(|b| plain(b) || *b == b'-')
    })
}
