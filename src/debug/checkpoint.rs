//! Copies of the cluster along a session, from which any of its states is reached again by
//! doing the inputs after the copy once more.
//!
//! A copy shares what does not change after it, and still holds what changed since, so there
//! is a budget: when it is used up, the copy that is missed least goes. That is the one whose
//! neighbours are close in relation to how long ago it is; copies get sparser with age. Where
//! somebody looks around in the past, some states more are kept for a while.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sim::World;

/// Steps between two copies at first. A copy costs a fraction of a cycle, and so many are done
/// again before anybody notices.
const INTERVAL: usize = 32;
/// Copies kept at least, whatever their size.
const FEWEST: usize = 8;
/// States kept of where somebody looks around.
const VISITED: usize = 16;
/// The steps right before a wanted state that are kept with it.
const CLOSE: usize = 4;

/// The copies of a session.
#[derive(Clone)]
pub(super) struct Checkpoints {
    /// The step after which each copy was made, rising, and the copy. The first is the loaded
    /// cluster.
    kept: Vec<(usize, Arc<World>)>,
    /// States that were reached again, the oldest visit first.
    visited: VecDeque<(usize, Arc<World>)>,
    /// How much memory the kept ones may take, in bytes.
    budget: usize,
    /// Whether there are to be copies at all.
    wanted: bool,
}

impl Checkpoints {
    /// Starts with the loaded cluster.
    pub fn new(loaded: &World, budget: usize) -> Checkpoints {
        let kept = vec![(0, Arc::new(loaded.clone()))];
        Checkpoints { kept, visited: VecDeque::new(), budget, wanted: true }
    }

    /// Changes the budget.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        self.thin();
    }

    /// Gives up all copies, for good.
    pub fn give_up(&mut self) {
        (self.kept, self.visited, self.wanted) = (Vec::new(), VecDeque::new(), false);
    }

    /// The state after `step` is `world`: it is kept if the last copy is old enough.
    pub fn offer(&mut self, step: usize, world: &World) {
        let last = self.kept.last().map_or(0, |(step, _)| *step);
        if self.wanted && step >= last + INTERVAL {
            self.kept.push((step, Arc::new(world.clone())));
            self.thin();
        }
    }

    /// The state after `step` was reached again, `left` steps before the wanted one.
    pub fn revisit(&mut self, step: usize, left: usize, world: &World) {
        let on_the_way = step.is_multiple_of(INTERVAL) && left / INTERVAL < VISITED / 2;
        if self.wanted && (left < CLOSE || on_the_way) && self.at(step).is_none() {
            self.visited.push_back((step, Arc::new(world.clone())));
            self.visited.drain(..self.visited.len().saturating_sub(VISITED));
        }
    }

    /// The copy made after exactly that step.
    pub fn at(&self, step: usize) -> Option<&Arc<World>> {
        let (at, world) = self.before(step)?;
        (at == step).then_some(world)
    }

    /// The nearest copy that is not after `step`.
    pub fn before(&self, step: usize) -> Option<(usize, &Arc<World>)> {
        let at = self.kept.partition_point(|(kept, _)| *kept <= step);
        let kept = at.checked_sub(1).and_then(|at| self.kept.get(at));
        let visited = self.visited.iter().filter(|(visited, _)| *visited <= step);
        let nearest = visited.chain(kept).max_by_key(|(at, _)| *at)?;
        Some((nearest.0, &nearest.1))
    }

    /// Forgets the copies after `step`.
    pub fn truncate(&mut self, step: usize) {
        self.kept.retain(|(kept, _)| *kept <= step);
        self.visited.retain(|(visited, _)| *visited <= step);
    }

    fn thin(&mut self) {
        let Some((newest, world)) = self.kept.last() else { return };
        let (newest, most) = (*newest, (self.budget / world.copy_bytes().max(1)).max(FEWEST));
        while self.kept.len() > most {
            let Some(at) = least_missed(&self.kept, newest) else { return };
            self.kept.remove(at);
        }
    }
}

/// Which copy but the first and the last leaves the smallest gap for its age.
fn least_missed(kept: &[(usize, Arc<World>)], newest: usize) -> Option<usize> {
    let gap_for_age = |at: &usize| {
        let gap = kept[at + 1].0 - kept[at - 1].0;
        let age = newest - kept[*at].0 + INTERVAL;
        // In thousandths, so that it can be compared.
        gap * 1_000 / age
    };
    (1..kept.len().saturating_sub(1)).min_by_key(gap_for_age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, FeatureGates};
    use crate::engine::framework::registry::Registry;

    fn world() -> World {
        let (features, registry) = (FeatureGates::default(), Registry::in_tree());
        let resolved = config::resolve(None, &features, &registry.descriptors()).unwrap();
        World::new(&resolved, features, &registry).unwrap()
    }

    #[test]
    fn copies_stay_within_the_budget_and_get_sparser_with_age() {
        let world = world();
        let mut copies = Checkpoints::new(&world, 20 * world.copy_bytes());
        for step in 1..=20_000 {
            copies.offer(step, &world);
            assert!(copies.kept.len() <= 20, "{step}");
        }
        let kept: Vec<usize> = copies.kept.iter().map(|(step, _)| *step).collect();
        assert_eq!(kept[0], 0);
        assert!(kept.last().unwrap() + INTERVAL > 20_000, "{kept:?}");
        for pair in kept.windows(2).skip(1) {
            // However long ago, at most about half of that time has to be run again.
            let (gap, age) = (pair[1] - pair[0], 20_000 - pair[0]);
            assert!(gap <= age / 2 + 2 * INTERVAL, "{kept:?}");
        }
    }

    #[test]
    fn visited_states_are_found_and_do_not_pile_up() {
        let world = world();
        let mut copies = Checkpoints::new(&world, 0);
        for step in 1..=500 {
            copies.revisit(step, 500 - step, &world);
        }
        assert!(copies.visited.len() <= VISITED);
        assert!(copies.at(500).is_some() && copies.at(499).is_some());
        assert!(copies.at(300).is_none());
        let near = copies.before(450).map(|(step, _)| step).unwrap();
        assert!((450 - INTERVAL..=450).contains(&near), "{near}");
        copies.truncate(INTERVAL - 1);
        assert_eq!(copies.before(500).map(|(step, _)| step), Some(0));
    }
}
