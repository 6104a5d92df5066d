//! What is read again and again, in a thread of its own, while a cluster is followed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::link::{KubeconfigTarget, Link};
use crate::runtime;

/// Reads something at intervals, until this is dropped.
pub struct Periodic<T> {
    latest: Arc<Mutex<Option<T>>>,
}

impl<T: Send + 'static> Periodic<T> {
    /// Starts the thread; without one, nothing is ever read. `read` gives `None` if there is
    /// nothing to learn from the server.
    pub fn start<F>(
        name: &'static str,
        target: KubeconfigTarget,
        every: Duration,
        read: F,
    ) -> Periodic<T>
    where
        F: AsyncFn(&Link) -> Option<T> + Send + 'static,
    {
        let latest: Arc<Mutex<Option<T>>> = Arc::default();
        let shared = Arc::downgrade(&latest);
        let work = move || async move {
            let Ok(link) = Link::new(target).await else { return };
            while shared.strong_count() > 0 {
                let new = read(&link).await;
                if let (Some(latest), Some(new)) = (shared.upgrade(), new) {
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
                }
                sleep(every).await;
            }
        };
        // Nothing of it is needed to follow the cluster.
        let _thread = runtime::spawn(name, work);
        Periodic { latest }
    }

    /// What was read since the last call.
    pub fn take(&self) -> Option<T> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
