//! The effect of another weight on a ranking. The normalized scores are recorded, so only the
//! totals are computed again.

use kubestep_api::intern::Symbol;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::tie_break::TieBreak;

/// Weights that differ from those of the configuration.
pub type Weights = Vec<(Symbol, i64)>;

/// The totals of a cycle under other weights, by position among its feasible nodes.
pub fn totals(record: &CycleRecord, weights: &[(Symbol, i64)]) -> Vec<i64> {
    let mut totals: Vec<i64> = record.score.totals.values().into_owned();
    for column in &record.score.plugins {
        let Some(weight) = weight_of(weights, column.plugin) else { continue };
        for (at, total) in totals.iter_mut().enumerate() {
            let normalized = column.normalized.get(at).unwrap_or_default();
            *total = total.saturating_add(normalized.saturating_mul(weight - column.weight));
        }
    }
    totals
}

/// The changed weight of a plugin, if any.
pub fn weight_of(weights: &[(Symbol, i64)], plugin: Symbol) -> Option<i64> {
    weights.iter().find(|(name, _)| *name == plugin).map(|(_, weight)| *weight)
}

/// The position of the node with the best total. Ties are broken as in the cycle; where upstream
/// breaks them at random, the first node is shown.
pub fn winner(record: &CycleRecord, totals: &[i64]) -> Option<usize> {
    let how = match record.tie_break {
        TieBreak::Upstream => TieBreak::First,
        how => how,
    };
    how.ranking(totals, record.cycle)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::edit::Edit;
    use crate::edit::tests::{NODES, bound, container, world};
    use kubestep_framework::record::scores::Scores;

    #[test]
    fn the_preview_is_what_a_cycle_with_that_weight_gives() {
        let pods = bound("q", "b", &container("resources: {requests: {cpu: 2}}"))
            + &format!("---\n{{kind: Pod, metadata: {{name: p}}, spec: {{{}}}}}\n", container(""));
        let original = world(&format!("{NODES}{pods}"));
        let record = original.clone().step().unwrap();
        for (plugin, weight) in [("NodeResourcesFit", 7), ("ImageLocality", 3), ("NodeAffinity", 1)]
        {
            let mut changed = original.clone();
            let edit: Edit = format!("weight {plugin}={weight}").parse().unwrap();
            edit.apply(&mut changed).unwrap();
            let mut session = Session::new(changed);
            session.run_cycle();
            let run = session.record().unwrap();
            let shown = totals(&record, &[(plugin.into(), weight)]);
            assert_eq!(Scores::from(shown.clone()), run.score.totals, "{plugin}");
            let winner = winner(&record, &shown).map(|at| record.nodes.name(record.feasible[at]));
            assert_eq!(winner, run.node, "{plugin}");
        }
        assert_eq!(Scores::from(totals(&record, &[])), record.score.totals);
    }
}
