//! By how much one node scored better than another, and which plugins made the difference.

use std::fmt;

use kubestep_api::intern::Symbol;
use kubestep_framework::record::CycleRecord;

/// Plugins that are named.
const NAMED: usize = 3;

/// The difference between two nodes' totals, plugin by plugin.
#[derive(Clone, PartialEq, Debug)]
pub struct Margin {
    /// Points of the first node beyond those of the second.
    pub by: i64,
    /// What differs: the plugin with the weighted scores of the first and the second node, the
    /// largest difference first.
    parts: Vec<(Symbol, i64, i64)>,
}

impl Margin {
    /// The margin of one total over another. `scores` are all plugins with the weighted scores of
    /// both nodes.
    pub fn new(by: i64, scores: impl Iterator<Item = (Symbol, i64, i64)>) -> Margin {
        let mut parts: Vec<_> = scores.filter(|(_, first, second)| first != second).collect();
        parts.sort_by_key(|(_, first, second)| std::cmp::Reverse((first - second).abs()));
        Margin { by, parts }
    }

    /// That of one feasible node over another in a cycle, by their positions in `feasible`.
    pub fn in_cycle(record: &CycleRecord, first: usize, second: usize) -> Option<Margin> {
        let total = |at: usize| record.score.totals.get(at);
        let scores = record.score.plugins.iter().map(|column| {
            let weighted =
                |at: usize| column.normalized.get(at).unwrap_or_default() * column.weight;
            (column.plugin, weighted(first), weighted(second))
        });
        let extenders = record.score.extenders.iter().map(|column| {
            let weighted = |at: usize| column.weighted(at).unwrap_or(0);
            (column.extender, weighted(first), weighted(second))
        });
        Some(Margin::new(total(first)? - total(second)?, scores.chain(extenders)))
    }
}

/// The parts: `+21 by NodeResourcesFit (94 against 73)`.
impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (plugin, first, second)) in self.parts.iter().take(NAMED).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let sign = if first < second { "−" } else { "+" };
            let points = (first - second).abs();
            write!(f, "{comma}{sign}{points} by {plugin} ({first} against {second})")?;
        }
        match self.parts.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_is_named_first_and_equal_scores_are_not() {
        let scores = [("A", 300, 300), ("B", 10, 14), ("C", 94, 73), ("D", 1, 0), ("E", 0, 2)];
        let margin = Margin::new(16, scores.into_iter().map(|(p, a, b)| (p.into(), a, b)));
        let expected = "+21 by C (94 against 73), −4 by B (10 against 14), −2 by E (0 against 2) \
                        and 1 more";
        assert_eq!(margin.to_string(), expected);
    }
}
