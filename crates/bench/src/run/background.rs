//! What goes on while other operations run: churn, and the paced deletion of pods.

use std::collections::VecDeque;

use super::WorkloadRun;
use crate::BenchError;
use crate::SECOND;
use crate::manifest::NewObject;
use crate::suite::operation::{Churn, ChurnMode, DeletePods};
use crate::target::PodFilter;

/// Upstream's default for the interval of churn, in milliseconds.
const CHURN_MILLIS: u64 = 500;

/// Work that is done a bit at a time.
pub(super) struct Task {
    /// When it does the next bit.
    due: u64,
    /// Nanoseconds between two bits.
    interval: u64,
    work: TaskWork,
}

enum TaskWork {
    /// Creates each of the objects, until that was done often enough.
    Create { objects: Vec<NewObject>, left: Option<usize> },
    /// Creates and deletes by turns, in the places of a ring.
    Recreate { rings: Vec<CopyRing>, at: usize },
    /// Deletes pods of a namespace.
    Delete { namespace: String, pods: VecDeque<String> },
}

/// An object, and the names of its copies that exist.
struct CopyRing {
    object: NewObject,
    names: Vec<Option<String>>,
}

impl WorkloadRun<'_> {
    /// Does what is due. Returns when more is.
    pub(super) fn work_in_background(&mut self) -> Result<Option<u64>, BenchError> {
        let now = self.target.now();
        let mut tasks = std::mem::take(&mut self.tasks);
        let mut done = Ok(());
        for task in &mut tasks {
            while task.due <= now && done.is_ok() && !task.work.is_over() {
                done = self.bit(&mut task.work);
                task.due += task.interval;
            }
        }
        tasks.retain(|task| !task.work.is_over());
        let next = tasks.iter().map(|task| task.due).min();
        self.tasks = tasks;
        done.map(|()| next)
    }

    fn bit(&mut self, work: &mut TaskWork) -> Result<(), BenchError> {
        match work {
            TaskWork::Create { objects, left } => {
                self.target.create(objects.clone())?;
                *left = left.map(|left| left - 1);
            }
            TaskWork::Recreate { rings, at } => {
                for CopyRing { object, names } in rings {
                    let place = *at % names.len();
                    names[place] = match names[place].take() {
                        Some(name) => {
                            self.target.delete(object, &name)?;
                            None
                        }
                        None => self.target.create(vec![object.clone()])?.pop(),
                    };
                }
                *at += 1;
            }
            TaskWork::Delete { namespace, pods } => {
                let next: Vec<String> = pods.pop_front().into_iter().collect();
                self.target.delete_pods(namespace, &next, false)?;
            }
        }
        Ok(())
    }

    /// Begins to create, or to create and delete, at intervals.
    pub(super) fn churn(&mut self, at: usize, churn: &Churn) -> Result<(), BenchError> {
        let namespace = churn.namespace.clone().unwrap_or_else(|| format!("namespace-{at}"));
        self.require_namespace(&namespace)?;
        let mut objects = Vec::new();
        for path in &churn.template_paths {
            objects.push(NewObject::new(self.templates.get(path)?.object(0, 1)?, &namespace));
        }
        let work = match churn.mode {
            Some(ChurnMode::Recreate) => {
                let ring = |object| CopyRing { object, names: vec![None; churn.number.max(1)] };
                TaskWork::Recreate { rings: objects.into_iter().map(ring).collect(), at: 0 }
            }
            _ => TaskWork::Create { objects, left: (churn.number > 0).then_some(churn.number) },
        };
        let millis = match churn.interval_milliseconds {
            0 => CHURN_MILLIS,
            millis => millis,
        };
        self.begin_task(millis * 1_000_000, work);
        Ok(())
    }

    pub(super) fn delete_pods(&mut self, delete: &DeletePods) -> Result<(), BenchError> {
        let which = PodFilter::new(&delete.namespace, &delete.label_selector);
        let pods = self.target.pod_names(&which)?;
        if delete.delete_pods_per_second == 0 {
            return self.target.delete_pods(&delete.namespace, &pods, false);
        }
        let interval = SECOND / u64::from(delete.delete_pods_per_second);
        let end = self.target.now() + interval * pods.len() as u64;
        let namespace = delete.namespace.clone();
        self.begin_task(interval, TaskWork::Delete { namespace, pods: pods.into() });
        if delete.skip_wait_to_completion {
            return Ok(());
        }
        self.pass(end)?;
        self.work_in_background().map(drop)
    }

    /// Begins a task, which does its first bit after one interval.
    fn begin_task(&mut self, interval: u64, work: TaskWork) {
        self.tasks.push(Task { due: self.target.now() + interval, interval, work });
    }
}

impl TaskWork {
    fn is_over(&self) -> bool {
        match self {
            TaskWork::Create { left, .. } => *left == Some(0),
            TaskWork::Recreate { .. } => false,
            TaskWork::Delete { pods, .. } => pods.is_empty(),
        }
    }
}
