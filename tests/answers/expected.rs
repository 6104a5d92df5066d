//! Answers that are known to be wrong, by category and measure. The list can only shrink: what
//! is right now must be removed from it.

use crate::measure::Measure::{self, Found, Works};
use crate::report::Table;

/// Categories whose answers are wrong, with the measures.
const WRONG: &[(&str, &[Measure])] =
    &[("claim_access_mode", &[Found]), ("gang_too_large", &[Works])];

/// What differs from the list. Whether an answer that was wrong is right now is only told where
/// the clusters are those that the list was made for.
pub fn surprises(table: &Table, is_default: bool) -> Vec<String> {
    let mut surprises = Vec::new();
    for (category, row) in table {
        for (measure, (right, all)) in row {
            let known =
                WRONG.iter().any(|(name, wrong)| name == category && wrong.contains(measure));
            match (known, right == all) {
                (false, false) => {
                    surprises.push(format!("{category}: {measure:?}: {right} of {all} are right"));
                }
                (true, true) if is_default => {
                    surprises.push(format!("{category}: {measure:?} is right now: remove it here"));
                }
                _ => {}
            }
        }
    }
    surprises
}
