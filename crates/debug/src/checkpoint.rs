//! Copies of the cluster along a session. Any state is reached by applying the inputs after the
//! nearest copy again.
//!
//! The distance is measured as work: a known cycle is one unit, because it is run again without its
//! matrices, and any other step is [`WHOLE`] units. Copies are made at even distances in work, not
//! in time. A copy shares with later ones what does not change, but holds what changed, so there is
//! a memory budget: when it is used up, the copy whose neighbors are closest to each other is
//! dropped. The longest way between two copies is therefore at most about twice that of evenly
//! spaced copies, and it alone bounds how long a jump takes, not how far back the jump goes. Only
//! the newest copies stay as close as they were made, because most steps back are there.
//!
//! When a person looks at the past, some more states are kept for a while: those right before the
//! state shown and some on the way to it. They count within the budget.

use std::collections::VecDeque;
use std::sync::Arc;

use kubestep_cluster::World;

/// Work of a step that is not a known cycle: about how many times longer it takes than one.
pub(super) const WHOLE: u32 = 8;
/// Initial work between two copies: a small part of the time that a step may take.
const INTERVAL: u32 = 256;
/// Copies that are kept whatever their size.
const FEWEST: usize = 8;
/// The newest copies, which stay as close as they were made.
const NEWEST: usize = 4;
/// States of the past that are kept while a person looks at them.
const VISITED: usize = 16;
/// The steps right before the state shown that are kept with it.
const CLOSE: usize = 4;
/// Steps between two states that are kept on the way to the state shown.
const ON_THE_WAY: usize = 32;

/// A copy of the cluster.
#[derive(Clone)]
struct Copy {
    /// The step after which it was made.
    step: usize,
    /// The work from the previous copy to this one.
    work: u32,
    world: Arc<World>,
}

impl Copy {
    fn new(step: usize, work: u32, world: &World) -> Copy {
        Copy { step, work, world: Arc::new(world.clone()) }
    }
}

/// The copies of a session.
#[derive(Clone)]
pub(super) struct Checkpoints {
    /// By step, ascending. The first is the loaded cluster, or the state at which the log begins.
    kept: Vec<Copy>,
    /// Work since the newest copy.
    since: u32,
    /// States that were restored, the oldest visit first.
    visited: VecDeque<Copy>,
    /// Copies after the step at which the session was cut. Dropping one takes long, so one goes
    /// with each copy that is made; until then they count as memory.
    leaving: Vec<Copy>,
    /// The memory budget of all copies, in bytes.
    budget: usize,
    /// Whether copies are made at all.
    wanted: bool,
}

impl Checkpoints {
    /// Starts with the loaded cluster.
    pub fn new(loaded: &World, budget: usize) -> Checkpoints {
        let kept = vec![Copy::new(0, 0, loaded)];
        let (visited, leaving) = (VecDeque::new(), Vec::new());
        Checkpoints { kept, since: 0, visited, leaving, budget, wanted: true }
    }

    pub(crate) fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        self.thin();
    }

    /// Drops all copies and makes no more.
    pub fn give_up(&mut self) {
        (self.kept, self.visited, self.leaving) = Default::default();
        self.wanted = false;
    }

    /// Offers the state after `step`, which took that much work: it is kept if the newest copy is
    /// far enough back.
    pub fn offer(&mut self, step: usize, work: u32, world: &World) {
        self.since += work;
        if self.wanted && self.since >= INTERVAL {
            let work = std::mem::take(&mut self.since);
            self.kept.push(Copy::new(step, work, world));
            self.leaving.pop();
            self.thin();
        }
    }

    /// Offers the state after `step` that was restored, `left` steps before the state wanted.
    pub(crate) fn revisit(&mut self, step: usize, left: usize, world: &World) {
        if self.keeps(step, left) && self.at(step).is_none() {
            self.visited.push_back(Copy::new(step, 0, world));
            self.visited.drain(..self.visited.len().saturating_sub(VISITED));
            self.thin();
        }
    }

    /// Whether a restored state is kept, `left` steps before the state wanted.
    pub fn keeps(&self, step: usize, left: usize) -> bool {
        let on_the_way = step.is_multiple_of(ON_THE_WAY) && left / ON_THE_WAY < VISITED / 2;
        self.wanted && (left < CLOSE || on_the_way)
    }

    /// The copy made after exactly that step.
    pub fn at(&self, step: usize) -> Option<&Arc<World>> {
        let (at, world) = self.before(step)?;
        (at == step).then_some(world)
    }

    /// The nearest copy at or before `step`.
    pub fn before(&self, step: usize) -> Option<(usize, &Arc<World>)> {
        let at = self.kept.partition_point(|copy| copy.step <= step);
        let kept = at.checked_sub(1).and_then(|at| self.kept.get(at));
        let visited = self.visited.iter().filter(|copy| copy.step <= step);
        let nearest = visited.chain(kept).max_by_key(|copy| copy.step)?;
        Some((nearest.step, &nearest.world))
    }

    /// Takes the copies after `step` out.
    pub fn truncate(&mut self, step: usize) {
        let there = self.kept.partition_point(|copy| copy.step <= step);
        self.leaving.extend(self.kept.drain(there..));
        let visited = std::mem::take(&mut self.visited).into_iter();
        let (there, later): (VecDeque<Copy>, VecDeque<Copy>) =
            visited.partition(|copy| copy.step <= step);
        self.visited = there;
        self.leaving.extend(later);
        let last = self.kept.last().map_or(0, |copy| copy.step);
        // An upper bound; the next copy may only come a little early.
        self.since = u32::try_from(step - last).unwrap_or(u32::MAX).saturating_mul(WHOLE);
    }

    /// The step of the second copy, up to which the past can be dropped; `None` if only the newest
    /// copies would be left.
    pub fn second(&self) -> Option<usize> {
        self.kept.get(1).filter(|_| self.kept.len() > NEWEST + 1).map(|copy| copy.step)
    }

    /// Drops the copies before `step`; there must be a copy at `step`.
    pub fn forget(&mut self, step: usize) {
        self.kept.retain(|copy| copy.step >= step);
        self.visited.retain(|copy| copy.step >= step);
    }

    /// The oldest copy: the loaded cluster, or the state at which the recording begins.
    pub fn first(&self) -> Option<&World> {
        self.kept.first().map(|copy| copy.world.as_ref())
    }

    /// The number of copies, including restored states.
    pub fn count(&self) -> usize {
        self.kept.len() + self.visited.len()
    }

    /// Approximate memory of the copies, in bytes.
    pub fn bytes(&self) -> usize {
        let steps = |pair: &[Copy]| pair[1].world.copy_bytes(pair[1].step - pair[0].step);
        let kept: usize = self.kept.windows(2).map(steps).sum();
        let others = self.visited.iter().chain(&self.leaving);
        kept + others.map(|copy| copy.world.copy_bytes(ON_THE_WAY)).sum::<usize>()
    }

    fn thin(&mut self) {
        while !self.leaving.is_empty() && self.bytes() > self.budget {
            self.leaving.pop();
        }
        while self.kept.len() > FEWEST && self.bytes() > self.budget {
            let Some(at) = self.least_missed() else { return };
            let removed = self.kept.remove(at);
            if let Some(next) = self.kept.get_mut(at) {
                next.work += removed.work;
            }
        }
    }

    /// The copy, except the first and the newest, whose removal leaves the shortest gap.
    fn least_missed(&self) -> Option<usize> {
        let between = |at: &usize| self.kept[*at].work + self.kept[at + 1].work;
        (1..self.kept.len().saturating_sub(NEWEST)).min_by_key(between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;

    fn world() -> World {
        let (features, registry) = (FeatureGates::default(), kubestep_plugins::registry());
        let resolved = config::resolve(None, &features, &registry.descriptors()).unwrap();
        World::new(&resolved, features, &registry).unwrap()
    }

    #[test]
    fn copies_stay_within_the_budget_and_lie_evenly() {
        let world = world();
        let budget = 40 * world.copy_bytes(100_000);
        let mut copies = Checkpoints::new(&world, budget);
        for step in 1..=100_000 {
            // The first half of the steps are edits, not known cycles.
            copies.offer(step, if step < 50_000 { WHOLE } else { 1 }, &world);
            assert!(copies.bytes() <= budget, "{step}");
        }
        let works: Vec<u32> = copies.kept.iter().skip(1).map(|copy| copy.work).collect();
        let all: u32 = works.iter().sum::<u32>() + copies.since;
        assert_eq!(all, 49_999 * WHOLE + 50_001);
        let even = all as usize / works.len();
        assert!(
            works.iter().all(|work| *work as usize <= 2 * even + INTERVAL as usize),
            "{works:?}"
        );
        let newest = &works[works.len() - NEWEST + 1..];
        assert!(newest.iter().all(|work| *work == INTERVAL), "{works:?}");
    }

    #[test]
    fn what_was_cut_off_counts_until_it_is_dropped_bit_by_bit() {
        let world = world();
        let mut copies = Checkpoints::new(&world, usize::MAX);
        let offer = |copies: &mut Checkpoints, steps: std::ops::RangeInclusive<usize>| {
            steps.for_each(|step| copies.offer(step * INTERVAL as usize, INTERVAL, &world));
        };
        offer(&mut copies, 1..=20);
        copies.truncate(10 * INTERVAL as usize);
        assert_eq!((copies.kept.len(), copies.leaving.len()), (11, 10));
        assert!(copies.at(15 * INTERVAL as usize).is_none());
        offer(&mut copies, 11..=13);
        assert_eq!((copies.kept.len(), copies.leaving.len()), (14, 7));
        copies.set_budget(0);
        assert_eq!((copies.kept.len(), copies.leaving.len()), (FEWEST, 0));
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
        assert!((450 - ON_THE_WAY..=450).contains(&near), "{near}");
        copies.truncate(ON_THE_WAY - 1);
        assert_eq!(copies.before(500).map(|(step, _)| step), Some(0));
    }
}
