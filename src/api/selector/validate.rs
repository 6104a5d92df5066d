//! What the API allows as label keys and values (`apimachinery/pkg/api/validate/content`).

/// Why a label key is not one.
pub(super) fn label_key_error(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return Some("a qualified name has at most one '/'");
    }
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Some("prefix part must be a lowercase DNS subdomain");
    }
    if name.is_empty() {
        return Some("name part must be non-empty");
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes");
    }
    (!is_label_text(name)).then_some(
        "name part must consist of alphanumeric characters, '-', '_' or '.', \
         and must start and end with an alphanumeric character",
    )
}

/// Why a label value is not one.
pub(super) fn label_value_error(value: &str) -> Option<&'static str> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!value.is_empty() && !is_label_text(value)).then_some(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
         or '.', and must start and end with an alphanumeric character",
    )
}

fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_dns_subdomain(text: &str) -> bool {
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 253
        && text.split('.').map(str::as_bytes).all(|part| {
            part.first().is_some_and(plain)
                && part.last().is_some_and(plain)
                && part.iter().all(|b| plain(b) || *b == b'-')
        })
}
