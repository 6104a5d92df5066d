//! Signals that end the program, upon which the terminal is given back before it goes, and the
//! one that asks for a dump of what the scheduler believes, as kube-scheduler has it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGTERM, SIGHUP and SIGINT.
pub struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The exit code for the first signal to come, 128 and its number.
    pub async fn exit_code(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        };
        128 + kind.as_raw_value()
    }
}

/// Waits for SIGUSR2.
pub struct DumpSignal(Signal);

impl DumpSignal {
    /// Begins to listen.
    pub fn new() -> io::Result<DumpSignal> {
        Ok(DumpSignal(signal(SignalKind::user_defined2())?))
    }

    /// Comes back when a dump is asked for.
    pub async fn asked(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
