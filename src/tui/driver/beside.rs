//! Work on a thread of its own, so that keys are answered meanwhile: it says how far it is, and
//! ends soon when it is told to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work under way.
pub(super) struct Beside<T> {
    told: Arc<Told>,
    result: Receiver<T>,
}

/// What both threads know.
#[derive(Default)]
pub(super) struct Told {
    stop: AtomicBool,
    done: AtomicUsize,
    of: AtomicUsize,
}

/// Whether work is over.
pub(super) enum Came<T> {
    /// It goes on.
    NotYet,
    /// This came of it.
    Result(T),
    /// It broke off without a result.
    Nothing,
}

impl Told {
    /// Says how far the work is; gives whether to go on.
    pub fn go_on(&self, done: usize, of: usize) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> Beside<T> {
    /// Begins.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(
        name: &str,
        work: impl FnOnce(&Told) -> T + Send + 'static,
    ) -> io::Result<Beside<T>> {
        let (sender, result) = sync_channel(1);
        let told = Arc::new(Told::default());
        let telling = told.clone();
        // Nobody waits any more for what was given up.
        let work = move || drop(sender.send(work(&telling)));
        kubestep_live::runtime::thread(name, work)?;
        Ok(Beside { told, result })
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.told.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopping(&self) -> bool {
        self.told.stop.load(Ordering::Relaxed)
    }

    /// How much is done, of how much; of nothing while that is not known.
    pub fn progress(&self) -> (usize, usize) {
        (self.told.done.load(Ordering::Relaxed), self.told.of.load(Ordering::Relaxed))
    }

    /// What came of it, waiting for that no longer than `patience`.
    pub fn result(&self, patience: Duration) -> Came<T> {
        match self.result.recv_timeout(patience) {
            Ok(result) => Came::Result(result),
            Err(RecvTimeoutError::Timeout) => Came::NotYet,
            Err(RecvTimeoutError::Disconnected) => Came::Nothing,
        }
    }
}
