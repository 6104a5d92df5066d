//! Work on a thread of its own, so that keys are answered meanwhile: it reports its progress and ends
//! soon when it is asked to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work on a thread of its own, which a key can cancel.
pub(super) struct BackgroundTask<T> {
    progress: Arc<TaskProgress>,
    result: Receiver<T>,
}

/// How far the work is, and whether it is to end.
#[derive(Default)]
pub(super) struct TaskProgress {
    stop: AtomicBool,
    done: AtomicUsize,
    of: AtomicUsize,
}

/// Whether work is over.
pub(super) enum TaskState<T> {
    Running,
    Done(T),
    /// It ended without a result.
    Failed,
}

impl TaskProgress {
    /// Counts one more thing as done; gives whether to go on.
    pub fn count(&self) -> bool {
        self.done.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    /// Says how far the work is; gives whether to go on.
    pub fn go_on(&self, done: usize, of: usize) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(
        name: &str,
        work: impl FnOnce(&Arc<TaskProgress>) -> T + Send + 'static,
    ) -> io::Result<BackgroundTask<T>> {
        let (sender, result) = sync_channel(1);
        let progress = Arc::new(TaskProgress::default());
        let shared = progress.clone();
        // The result of a stopped task is dropped.
        let work = move || drop(sender.send(work(&shared)));
        kubestep_live::runtime::thread(name, work)?;
        Ok(BackgroundTask { progress, result })
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.progress.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopping(&self) -> bool {
        self.progress.stop.load(Ordering::Relaxed)
    }

    /// How much is done, of how much; of nothing while that is not known.
    pub fn progress(&self) -> (usize, usize) {
        (self.progress.done.load(Ordering::Relaxed), self.progress.of.load(Ordering::Relaxed))
    }

    /// The result, waiting for it no longer than `patience`.
    pub fn result(&self, patience: Duration) -> TaskState<T> {
        match self.result.recv_timeout(patience) {
            Ok(result) => TaskState::Done(result),
            Err(RecvTimeoutError::Timeout) => TaskState::Running,
            Err(RecvTimeoutError::Disconnected) => TaskState::Failed,
        }
    }
}
