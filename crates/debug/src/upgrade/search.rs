//! The search for the changes that cause the differences.

use std::collections::BTreeMap;

use super::outcome::{Outcomes, of_pod, outcomes};
use super::{Aspect, CausingChanges, OutcomeDifference, RunVersion};
use kubestep_config::FeatureGates;
use kubestep_config::versions::VersionChange;
use kubestep_framework::pod::NamespacedName;

/// The largest size of which all sets are tried first. Larger causes are found by leaving out
/// changes, and are the smallest if no set between is one, too.
const TRIED_SIZE: usize = 2;

/// Runs with a part of the changes; each part runs once.
pub(super) struct CauseSearch<'a> {
    from: FeatureGates,
    to: FeatureGates,
    run: &'a RunVersion<'a>,
    /// The outcomes under the second version.
    goal: Outcomes,
    differences: Vec<(NamespacedName, Aspect)>,
    /// What is known of each set of changes that was applied.
    known: BTreeMap<Vec<VersionChange>, RunComparison>,
    limit: usize,
}

/// How a run compares with the second version.
#[derive(Clone, Default)]
struct RunComparison {
    /// Whether every outcome is the same.
    all: bool,
    /// For each difference, whether it is the same there.
    each: Vec<bool>,
}

impl<'a> CauseSearch<'a> {
    /// A search for the causes of `differences`, in about `limit` runs. `goal` are the outcomes
    /// under `to`. Without any change, nothing that differs is the same.
    pub(super) fn new(
        (from, to): (FeatureGates, FeatureGates),
        run: &'a RunVersion<'a>,
        limit: usize,
        goal: Outcomes,
        differences: &[OutcomeDifference],
    ) -> CauseSearch<'a> {
        let unchanged = RunComparison { all: false, each: vec![false; differences.len()] };
        let known = BTreeMap::from([(Vec::new(), unchanged)]);
        let differences = differences.iter().map(|one| (one.pod, one.aspect)).collect();
        CauseSearch { from, to, run, goal, differences, known, limit }
    }

    /// How many runs were made, that of the first version included.
    pub(super) fn runs(&self) -> usize {
        self.known.len()
    }

    /// The cause of each difference, in their order, from the changes between the versions.
    pub(super) fn causes(&mut self, changes: &[VersionChange]) -> Vec<CausingChanges> {
        let mut causes: Vec<Option<CausingChanges>> = vec![None; self.differences.len()];
        if causes.is_empty() {
            return Vec::new();
        }
        let needed = self.minimized(changes.to_vec(), |run| run.all);
        let sizes = 1..=TRIED_SIZE.min(needed.len());
        for set in sizes.flat_map(|size| combinations(&needed, size)) {
            if causes.iter().all(Option::is_some) || self.runs() >= self.limit {
                break;
            }
            self.assign(&set, true, &mut causes);
        }
        while let Some(at) = causes.iter().position(Option::is_none) {
            let set = self.minimized(needed.clone(), |run| run.each.get(at) == Some(&true));
            let smallest = self.try_smaller(&needed, set.len(), at, &mut causes);
            if causes[at].is_none() {
                self.assign(&set, smallest, &mut causes);
            }
            causes[at].get_or_insert(CausingChanges { changes: set, smallest: false });
        }
        causes.into_iter().flatten().collect()
    }

    /// Tries the sets that have fewer than `size` changes and were not tried before, until one explains
    /// the difference `at`. `false` if they are more than the limit of runs allows.
    fn try_smaller(
        &mut self,
        needed: &[VersionChange],
        size: usize,
        at: usize,
        causes: &mut [Option<CausingChanges>],
    ) -> bool {
        let sizes = TRIED_SIZE + 1..size;
        let sets = sizes.clone().map(|size| how_many(needed.len(), size));
        if sets.fold(self.runs(), usize::saturating_add) >= self.limit {
            return false;
        }
        for set in sizes.flat_map(|size| combinations(needed, size)) {
            if causes[at].is_some() {
                break;
            }
            self.assign(&set, true, causes);
        }
        true
    }

    /// Makes a set the cause of the differences that it explains and that have none yet.
    fn assign(
        &mut self,
        set: &[VersionChange],
        smallest: bool,
        causes: &mut [Option<CausingChanges>],
    ) {
        let run = self.compared(set);
        for (cause, _) in causes.iter_mut().zip(run.each).filter(|(_, same)| *same) {
            cause.get_or_insert_with(|| CausingChanges { changes: set.to_vec(), smallest });
        }
    }

    /// As few of `changes` as keep `holds` true, so that none can be left out alone. Past the limit
    /// of runs, what is left.
    fn minimized(
        &mut self,
        mut set: Vec<VersionChange>,
        holds: impl Fn(&RunComparison) -> bool,
    ) -> Vec<VersionChange> {
        let mut size = set.len().div_ceil(2).max(1);
        loop {
            let (before, mut at) = (set.len(), 0);
            while at < set.len() && self.runs() < self.limit {
                let end = (at + size).min(set.len());
                let rest = [&set[..at], &set[end..]].concat();
                match holds(&self.compared(&rest)) {
                    true => set = rest,
                    false => at = end,
                }
            }
            if self.runs() >= self.limit || (size == 1 && set.len() == before) {
                return set;
            }
            size = size.div_ceil(2);
        }
    }

    /// How a run with these changes applied to the first version compares with the second one. If
    /// the input cannot be opened so, nothing is the same.
    fn compared(&mut self, changes: &[VersionChange]) -> RunComparison {
        if let Some(known) = self.known.get(changes) {
            return known.clone();
        }
        let apply = |gates, change: &VersionChange| change.applied(gates, self.to);
        let run = (self.run)(changes.iter().fold(self.from, apply));
        let compared = run.map(|session| self.compare(&outcomes(&session))).unwrap_or_default();
        self.known.insert(changes.to_vec(), compared.clone());
        compared
    }

    fn compare(&self, outcomes: &Outcomes) -> RunComparison {
        let is_same = |(pod, aspect): &(NamespacedName, Aspect)| {
            of_pod(outcomes, *pod).is_same(of_pod(&self.goal, *pod), *aspect)
        };
        let each = self.differences.iter().map(is_same).collect();
        RunComparison { all: *outcomes == self.goal, each }
    }
}

/// How many sets of `size` items there are.
fn how_many(items: usize, size: usize) -> usize {
    (0..size).fold(1, |sets: usize, at| sets.saturating_mul(items.saturating_sub(at)) / (at + 1))
}

/// All sets of `size` items, in order.
fn combinations(items: &[VersionChange], size: usize) -> Vec<Vec<VersionChange>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let with = |(at, item): (usize, &VersionChange)| {
        let rest = combinations(&items[at + 1..], size - 1);
        rest.into_iter().map(|rest| [&[*item], &rest[..]].concat()).collect::<Vec<_>>()
    };
    items.iter().enumerate().flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config::KubeVersion;
    use kubestep_config::versions::changes;

    #[test]
    fn sets_are_counted_as_they_are_listed() {
        let all = changes(KubeVersion::OLDEST, KubeVersion::NEWEST);
        for (items, size) in [(6, 3), (7, 4), (5, 5), (4, 0), (3, 4)] {
            assert_eq!(how_many(items, size), combinations(&all[..items], size).len());
        }
        assert!(how_many(1000, 500) > 1 << 40);
    }
}
