//! The connections of a port: how many are allowed, how long one may be idle, and what happens when
//! the process runs out of file descriptors. A new caller can always be served: the connection that
//! has been idle the longest is closed for it.
//!
//! Upstream: `SecureServingInfo.Serve` in `staging/src/k8s.io/apiserver/pkg/server`, which has the
//! same timeouts but no limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Most connections at once if there are enough descriptors.
const MOST: usize = 256;
/// Connections may use one in this many descriptors; the rest is for the API server.
const SHARE: u64 = 4;
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that is closed may take to release its descriptor.
const CLOSING: Duration = Duration::from_millis(1);

/// How many connections are open, and how long they may be silent.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Most connections at once.
    pub connections: usize,
    /// Timeout of the TLS handshake.
    pub handshake: Duration,
    /// Timeout until the head of a request is complete, from the start or the last answer on.
    pub head: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = usize::try_from(descriptors / SHARE).unwrap_or(MOST);
        let time = Duration::from_secs(32);
        ConnectionLimits { connections: share.clamp(1, MOST), handshake: time, head: time }
    }
}

/// The connections that are open, so that silent ones can be closed.
pub(super) struct Connections {
    limit: usize,
    open: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    /// Keyed by a number that increases with each connection.
    rows: BTreeMap<u64, OpenConnection>,
    next: u64,
}

struct OpenConnection {
    task: AbortHandle,
    /// When it became idle, or its answer began.
    since: Instant,
    answered: bool,
}

/// A connection's entry in the table, removed when dropped.
pub(super) struct Slot {
    connections: Arc<Connections>,
    id: u64,
}

impl Connections {
    pub fn new(limit: usize) -> Arc<Connections> {
        Arc::new(Connections { limit, open: Mutex::default() })
    }

    /// Accepts connections forever. `converse` runs for each connection in a task of its own.
    pub async fn serve<S, F>(
        self: Arc<Self>,
        mut accept: impl AsyncFnMut() -> io::Result<S>,
        converse: impl Fn(S, Slot) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        // A reserved descriptor, released to accept one more caller when all others are used.
        let mut spare = spare_descriptor();
        loop {
            match accept().await {
                Ok(stream) => {
                    self.admit(|slot| converse(stream, slot));
                    spare = spare.or_else(spare_descriptor);
                }
                Err(error) => {
                    let closes = is_exhausted(&error) && self.table().close_one();
                    if is_exhausted(&error) && !closes {
                        spare = None;
                    }
                    // Meanwhile a connection closes, or callers accepted earlier are answered.
                    sleep(if closes { CLOSING } else { PAUSE }).await;
                }
            }
        }
    }

    fn admit<F>(self: &Arc<Self>, work: impl FnOnce(Slot) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut table = self.table();
        if table.rows.len() >= self.limit {
            table.close_one();
        }
        let id = table.next;
        table.next += 1;
        let task = tokio::spawn(work(Slot { connections: self.clone(), id })).abort_handle();
        table.rows.insert(id, OpenConnection { task, since: Instant::now(), answered: false });
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    /// Closes the connection that has been idle the longest; if all are being answered, the one
    /// whose answer began first. `false`: there is none.
    fn close_one(&mut self) -> bool {
        let oldest = self.rows.iter().min_by_key(|(_, row)| (row.answered, row.since));
        let id = oldest.map(|(id, _)| *id);
        let closed = id.and_then(|id| self.rows.remove(&id));
        closed.inspect(|row| row.task.abort()).is_some()
    }
}

/// Whether the process or the machine has no descriptor left.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn spare_descriptor() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Slot {
    /// Answers one request, during which the connection does not count as idle.
    pub(crate) async fn answering<T>(&self, work: impl Future<Output = T>) -> T {
        self.mark(true);
        let answer = work.await;
        self.mark(false);
        answer
    }

    fn mark(&self, answered: bool) {
        if let Some(row) = self.connections.table().rows.get_mut(&self.id) {
            (row.since, row.answered) = (Instant::now(), answered);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.table().rows.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    #[test]
    fn a_listener_without_descriptors_is_asked_again_after_a_pause() {
        let asked = AtomicUsize::new(0);
        let accept = async || {
            asked.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Errno::MFILE.into())
        };
        let serve = Connections::new(4).serve(accept, async |(), _slot| ());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { timeout(PAUSE * 4, serve).await.unwrap_err() });
        assert!((2..=5).contains(&asked.into_inner()), "the listener is not asked in a loop");
    }

    #[test]
    fn what_is_idle_makes_room_before_what_is_answered() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connections = Connections::new(2);
            let open = || connections.table().rows.keys().copied().collect::<Vec<_>>();
            connections.admit(|slot| async move { slot.answering(std::future::pending()).await });
            tokio::task::yield_now().await;
            for _ in 0..3 {
                connections.admit(|slot| async move {
                    let _open = slot;
                    std::future::pending().await
                });
            }
            assert_eq!(open(), [0, 3]);
            let closed = [(); 3].map(|()| connections.table().close_one());
            assert_eq!(closed, [true, true, false]);
            assert_eq!(open(), [0; 0]);
        });
    }
}
