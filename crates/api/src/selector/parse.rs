//! kubectl's notation of label selectors: `app=web,tier in (front,back),!canary,level>3`.

use super::{Operator, Requirement, Selector, join_errors};

/// Why a text is no label selector in kubectl's notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label selector {text:?}: {reason}")]
pub struct ParseSelectorError {
    /// The text as written.
    pub text: String,
    /// The first error in it.
    pub reason: String,
}

/// Parses a selector; the empty text selects everything.
pub(super) fn parse(text: &str) -> Result<Selector, ParseSelectorError> {
    if text.trim().is_empty() {
        return Ok(Selector::Everything);
    }
    let requirements: Result<Vec<_>, _> = split_at_commas(text).map(requirement).collect();
    let describe = |reason| ParseSelectorError { text: text.to_owned(), reason };
    requirements.map(Selector::from_requirements).map_err(describe)
}

/// Splits at commas outside parentheses.
fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let (key, operator, values) = take_apart(text)?;
    Requirement::new(key.trim().into(), operator, values.into_iter().map(Into::into).collect(), "")
        .map_err(|errors| join_errors(&errors))
}

fn take_apart(text: &str) -> Result<(&str, Operator, Vec<&str>), String> {
    if text.is_empty() {
        return Err("a requirement is missing around a comma".into());
    }
    if let Some(key) = text.strip_prefix('!') {
        return Ok((key, Operator::DoesNotExist, Vec::new()));
    }
    // Two-character operators first: `a!=b` also contains `=`.
    let operators = [
        ("!=", Operator::NotEquals),
        ("==", Operator::Equals),
        ("=", Operator::Equals),
        (">", Operator::GreaterThan),
        ("<", Operator::LessThan),
    ];
    for (sign, operator) in operators {
        if let Some((key, value)) = text.split_once(sign) {
            return Ok((key, operator, vec![value.trim()]));
        }
    }
    match text.split_once(char::is_whitespace) {
        None => Ok((text, Operator::Exists, Vec::new())),
        Some((key, rest)) => set(key, rest.trim()),
    }
}

/// `in (a,b)` or `notin (a,b)`.
fn set<'a>(key: &'a str, rest: &'a str) -> Result<(&'a str, Operator, Vec<&'a str>), String> {
    let (operator, list) = if let Some(list) = rest.strip_prefix("notin") {
        (Operator::NotIn, list)
    } else if let Some(list) = rest.strip_prefix("in") {
        (Operator::In, list)
    } else {
        return Err(format!("{rest:?} after {key:?} is neither `in (…)` nor `notin (…)`"));
    };
    let values = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')'));
    let values = values.ok_or_else(|| format!("values of {key:?} must stand in parentheses"))?;
    Ok((key, operator, values.split(',').map(str::trim).collect()))
}
