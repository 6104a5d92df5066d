//! Threads that wait for a network, each with a runtime of its own, so that they cannot delay each
//! other.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};

use crate::link::LinkError;

/// The stack of a thread: as large as that of a program's first thread.
const STACK: usize = 8 << 20;

/// A runtime for the thread that waits in it.
///
/// # Errors
/// There is no file descriptor for it.
pub fn new() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts a thread.
///
/// # Errors
/// The system gives no thread.
pub fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work)
}

/// Starts a thread that runs `work` in a new runtime.
///
/// # Errors
/// No thread can be started, or the runtime gets no file descriptor.
pub fn spawn<F>(name: &str, work: impl FnOnce() -> F + Send + 'static) -> io::Result<JoinHandle<()>>
where
    F: Future<Output = ()>,
{
    let runtime = new()?;
    thread(name, move || runtime.block_on(work()))
}

/// Where the work of a thread reports whether it could begin.
pub type StartReport<T> = mpsc::Sender<Result<T, LinkError>>;

/// Like [`spawn`], for work that has to connect first: waits until it reports that it has begun.
/// `purpose` is what errors name.
///
/// # Errors
/// No thread can be started, or the work reports an error.
pub fn begin<T, F>(
    name: &str,
    purpose: &str,
    work: impl FnOnce(StartReport<T>) -> F + Send + 'static,
) -> Result<(T, JoinHandle<()>), LinkError>
where
    T: Send + 'static,
    F: Future<Output = ()>,
{
    let failed = |error: io::Error| LinkError::Config {
        from: purpose.to_owned(),
        problem: error.to_string(),
    };
    let (begun, beginning) = mpsc::channel();
    let thread = spawn(name, move || work(begun)).map_err(failed)?;
    let ended = |_| failed(io::Error::other("the thread has ended"));
    Ok((beginning.recv().map_err(ended)??, thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_thread_has_its_name_and_a_runtime() {
        let (done, is_done) = mpsc::channel();
        let work = move || async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            done.send(thread::current().name().map(str::to_owned)).unwrap();
        };
        spawn("waiter", work).unwrap().join().unwrap();
        assert_eq!(is_done.recv().unwrap().as_deref(), Some("waiter"));
    }
}
