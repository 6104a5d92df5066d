//! Signals that end the program, after the terminal is given back, and the
//! one that asks for a dump of the scheduler's cache and queues, as kube-scheduler has it.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Every signal that would end the program and can be caught: HUP, INT, QUIT, TRAP, ABRT, BUS,
/// USR1, ALRM, TERM, XCPU, XFSZ, VTALRM, PROF, SYS. PIPE is ignored by every Rust program.
const ENDING: [i32; 14] = {
    use signal_hook::consts::*;
    [
        SIGHUP, SIGINT, SIGQUIT, SIGTRAP, SIGABRT, SIGBUS, SIGUSR1, SIGALRM, SIGTERM, SIGXCPU,
        SIGXFSZ, SIGVTALRM, SIGPROF, SIGSYS,
    ]
};

/// The signal that came while nothing waited for signals; 0: none.
static EARLY: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// From now on a signal does not end the program at once but when [`Signals`] waits for it: while
/// the terminal is in another mode before there is an event loop. Without effect where signals
/// cannot be caught.
pub fn hold() {
    EARLY.get_or_init(|| {
        let early = Arc::new(AtomicUsize::new(0));
        for number in ENDING {
            let caught = signal_hook::flag::register_usize(number, early.clone(), number as usize);
            // It then ends the program, as it did before.
            drop(caught);
        }
        early
    });
}

/// Waits for the signals that end the program.
pub struct Signals(Vec<(i32, Signal)>);

impl Signals {
    /// Begins to listen; the program is no longer ended by these signals.
    pub fn new() -> io::Result<Signals> {
        let listen = |number| Ok((number, signal(SignalKind::from_raw(number))?));
        ENDING.into_iter().map(listen).collect::<io::Result<_>>().map(Signals)
    }

    /// The exit code for the first signal to come, 128 and its number.
    pub async fn exit_code(&mut self) -> i32 {
        poll_fn(|cx| {
            let early = EARLY.get().map_or(0, |early| early.load(Ordering::Relaxed));
            if early > 0 {
                return Poll::Ready(128 + early as i32);
            }
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(128 + *number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits for SIGUSR2, as kube-scheduler does to log its cache and queue.
pub struct DumpSignal(Signal);

impl DumpSignal {
    /// Begins to listen; the signal no longer ends the program.
    pub fn new() -> io::Result<DumpSignal> {
        Ok(DumpSignal(signal(SignalKind::user_defined2())?))
    }

    /// Returns when a dump is asked for.
    pub async fn requested(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
