//! Waiting: the scheduler works and background tasks go on, until something is reached.

use super::WorkloadRun;
use crate::BenchError;
use crate::SECOND;
use crate::suite::operation::{Barrier, StageRequirement};
use crate::target::PodFilter;

/// How long pods are waited for, as upstream.
const PATIENCE: u64 = 600 * SECOND;

impl WorkloadRun<'_> {
    /// Lets the scheduler work until a time.
    pub(super) fn pass(&mut self, until: u64) -> Result<(), BenchError> {
        while self.target.now() < until {
            self.turn(until)?;
        }
        Ok(())
    }

    /// Lets the scheduler work for a moment, after what is due in the background.
    pub(super) fn turn(&mut self, until: u64) -> Result<(), BenchError> {
        let next = self.work_in_background()?;
        let limit = next.map_or(until, |next| next.min(until));
        self.target.turn(limit)
    }

    /// Waits for the pods of earlier operations that did not wait for theirs.
    pub(super) fn barrier(&mut self, barrier: &Barrier) -> Result<(), BenchError> {
        let mut namespaces = barrier.namespaces.clone();
        if namespaces.is_empty() {
            namespaces = self.namespaces.keys().cloned().collect();
        }
        for namespace in &namespaces {
            let Some(wanted) = self.namespaces.get(namespace).copied() else {
                return Err(format!("there is no namespace {namespace:?}").into());
            };
            let pods = PodFilter::new(namespace, &barrier.label_selector);
            self.wait(&pods, wanted, barrier.stage_requirement)?;
        }
        if barrier.stage_requirement == StageRequirement::Scheduled {
            // Nothing is left to be waited for in these.
            self.namespaces.iter_mut().for_each(|(namespace, wanted)| {
                if namespaces.contains(namespace) {
                    *wanted = 0;
                }
            });
        }
        Ok(())
    }

    /// Waits until so many of the pods are scheduled, or attempted.
    pub(super) fn wait(
        &mut self,
        pods: &PodFilter,
        wanted: usize,
        stage: StageRequirement,
    ) -> Result<(), BenchError> {
        let deadline = self.target.now() + PATIENCE;
        loop {
            let counts = self.target.count(pods)?;
            let reached = match stage {
                StageRequirement::Scheduled => counts.scheduled,
                StageRequirement::Attempted => counts.scheduled + counts.attempted,
            };
            if reached >= wanted {
                return Ok(());
            }
            if self.target.now() >= deadline {
                let stage =
                    if stage == StageRequirement::Scheduled { "scheduled" } else { "attempted" };
                let pending = counts.pending.map(|pod| format!("; {pod}")).unwrap_or_default();
                return Err(format!(
                    "{reached} of {wanted} pods in namespace {} are {stage} after {} s{pending}",
                    pods.namespaces.join(", "),
                    PATIENCE / SECOND,
                )
                .into());
            }
            // Counting costs as much as there are pods, and a turn schedules hardly more than one.
            for _ in 0..wanted - reached {
                let before = self.target.now();
                self.turn(deadline)?;
                // Once nothing can be scheduled, time passes in long steps.
                if self.target.now() >= deadline || self.target.now() > before + SECOND {
                    break;
                }
            }
        }
    }
}
