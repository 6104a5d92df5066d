//! Copies of the cluster along a session, from which any of its states is reached again by
//! doing the inputs after the copy once more.
//!
//! A copy shares what does not change after it, and still holds what changed since, so there
//! is a budget: when it is used up, the copy that is missed least goes. That is the one whose
//! neighbours are close in relation to how long ago it is; copies get sparser with age.

use std::sync::Arc;

use crate::sim::World;

/// Steps between two copies at first.
const INTERVAL: usize = 16;
/// Copies kept at least, whatever their size.
const FEWEST: usize = 8;

/// The copies of a session.
#[derive(Clone)]
pub(super) struct Checkpoints {
    /// Steps taken before each copy, rising, and the copy. The first is the loaded cluster.
    kept: Vec<(usize, Arc<World>)>,
    /// How much memory they may take, in bytes.
    budget: usize,
}

impl Checkpoints {
    /// Starts with the loaded cluster.
    pub fn new(loaded: &World, budget: usize) -> Checkpoints {
        Checkpoints { kept: vec![(0, Arc::new(loaded.clone()))], budget }
    }

    /// Changes the budget.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        self.thin();
    }

    /// The state after `step` is `world`: it is kept if the last copy is old enough.
    pub fn offer(&mut self, step: usize, world: &World) {
        let last = self.kept.last().map_or(0, |(step, _)| *step);
        if step >= last + INTERVAL {
            self.kept.push((step, Arc::new(world.clone())));
            self.thin();
        }
    }

    /// The newest copy that is not after `step`.
    pub fn before(&self, step: usize) -> Option<(usize, &Arc<World>)> {
        let at = self.kept.partition_point(|(kept, _)| *kept <= step);
        self.kept.get(at.checked_sub(1)?).map(|(step, world)| (*step, world))
    }

    /// Forgets the copies after `step`.
    pub fn truncate(&mut self, step: usize) {
        self.kept.retain(|(kept, _)| *kept <= step);
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
