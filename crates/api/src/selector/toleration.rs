//! Taints and tolerations (`api/core/v1/toleration.go`).

use crate::{Taint, Toleration, TolerationOperator};

/// Whether the toleration tolerates the taint: effect and key are equal or not set, and the
/// operator matches the values.
///
/// `comparisons` is the gate TaintTolerationComparisonOperators: without it `Lt` and `Gt` tolerate
/// nothing.
pub fn tolerates(toleration: &Toleration, taint: &Taint, comparisons: bool) -> bool {
    if !toleration.effect.is_unset() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    match toleration.operator {
        TolerationOperator::Equal => toleration.value == taint.value,
        TolerationOperator::Exists => true,
        TolerationOperator::Lt if comparisons => compare(toleration, taint, |a, b| a < b),
        TolerationOperator::Gt if comparisons => compare(toleration, taint, |a, b| a > b),
        TolerationOperator::Other(text) if text.is_empty() => toleration.value == taint.value,
        _ => false,
    }
}

/// Compares the taint's value with the toleration's; both must be decimal integers.
fn compare(toleration: &Toleration, taint: &Taint, holds: fn(i64, i64) -> bool) -> bool {
    match (decimal(&taint.value), decimal(&toleration.value)) {
        (Some(taint), Some(toleration)) => holds(taint, toleration),
        _ => false,
    }
}

/// Parses a decimal integer in canonical form: no plus, no leading zeros, no `-0`.
fn decimal(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// The first untolerated taint among those for which `considered` is true.
pub fn find_untolerated_taint<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    comparisons: bool,
    considered: impl Fn(&Taint) -> bool,
) -> Option<&'a Taint> {
    taints.iter().filter(|taint| considered(taint)).find(|taint| {
        !tolerations.iter().any(|toleration| tolerates(toleration, taint, comparisons))
    })
}
