//! Threads that wait for a network, each with a runtime of its own, so that they cannot delay each
//! other.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;

/// Starts a thread that runs `work` in a new runtime.
///
/// # Errors
/// No thread can be started, or the runtime gets no file descriptor.
pub fn spawn<F>(name: &str, work: impl FnOnce() -> F + Send + 'static) -> io::Result<JoinHandle<()>>
where
    F: Future<Output = ()>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(work()))
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
