//! Earlier states of the cluster: the nearest copy before them, and what was done since, again.

use std::sync::Arc;

use super::Session;
use crate::debug::input;
use crate::sim::World;

impl Session {
    /// The cluster as it was after a step.
    pub fn world_at(&mut self, step: usize) -> Arc<World> {
        if let Some((_, world)) = self.restored.as_ref().filter(|(at, _)| *at == step) {
            return world.clone();
        }
        let world = Arc::new(self.restore(step));
        self.restored = Some((step, world.clone()));
        world
    }

    /// Whether the state after a step is there without work.
    pub fn has_world_at(&self, step: usize) -> bool {
        self.restored.as_ref().is_some_and(|(at, _)| *at == step)
    }

    fn restore(&self, step: usize) -> World {
        let last = self.timeline.steps().len() - 1;
        if step >= last {
            return self.world.clone();
        }
        let from = self.checkpoints.before(step);
        let (mut at, mut world) = match from {
            Some((at, world)) => (at, world.as_ref().clone()),
            None => return self.world.clone(),
        };
        while at < step {
            at += 1;
            let step = &self.timeline.steps()[at];
            if let Some(done) = &step.input {
                input::repeat(&mut world, done, &step.answers);
            }
        }
        world
    }
}
