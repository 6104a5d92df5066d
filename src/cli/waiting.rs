//! Progress on standard error while a command reads its input or computes for long, which Ctrl-C
//! can stop.

use kubestep_source::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// With the value `lines`, progress is printed in lines that begin with `progress: `, for programs
/// that run this one.
pub(super) const PROGRESS_VARIABLE: &str = "KUBESTEP_PROGRESS";

/// How long no progress is shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// The interval between two updates of the progress.
const STEP: Duration = Duration::from_millis(200);

/// Runs `work`. If that takes long and standard error is a terminal, a line there shows the
/// progress and is removed at the end.
pub(super) fn with_progress<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    let words = || match progress.part() {
        Some(part) => format!("{:3.0} %  {progress}", part * 100.0),
        None => progress.to_string(),
    };
    with_words(&words, work)
}

/// The same with a progress in words.
pub(super) fn with_words<T>(words: &(dyn Fn() -> String + Sync), work: impl FnOnce() -> T) -> T {
    let in_lines = std::env::var_os(PROGRESS_VARIABLE).is_some_and(|form| form == "lines");
    if !in_lines && !kubestep_output::stderr_is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        scope.spawn(move || {
            if in_lines { print_progress(words, &ended) } else { show_progress(words, &ended) }
        });
        let done = work();
        drop(working);
        done
    })
}

fn show_progress(words: &(dyn Fn() -> String + Sync), ended: &Receiver<()>) {
    let mut wait = PATIENCE;
    let mut shown = 0;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        (shown, wait) = (kubestep_output::rewrite(&words(), shown), STEP);
    }
    kubestep_output::erase(shown);
}

fn print_progress(words: &(dyn Fn() -> String + Sync), ended: &Receiver<()>) {
    while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        kubestep_output::line(format!("progress: {}", words().trim_start()));
    }
}

/// The exit code of a program that was ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Steps that may take long: progress is shown, and Ctrl-C stops them.
#[derive(Default)]
pub(super) struct Steps {
    done: AtomicUsize,
    most: AtomicUsize,
    stopped: Arc<AtomicBool>,
    /// Whether Ctrl-C stops them.
    is_watched: bool,
}

impl Steps {
    /// From now on, if a person watches and reads the answer, the first Ctrl-C stops the steps and
    /// only the second ends the program.
    pub fn watch() -> Steps {
        let is_watched =
            kubestep_output::stdout_is_terminal() && kubestep_output::stderr_is_terminal();
        let steps = Steps { is_watched, ..Steps::default() };
        if is_watched {
            steps.stop_on_interrupt();
        }
        steps
    }

    /// What Ctrl-C does, to be appended to the progress; empty if it ends the program.
    pub fn and_interrupt(&self, does: &str) -> String {
        if self.is_watched { format!("; Ctrl-C {does}") } else { String::new() }
    }

    fn stop_on_interrupt(&self) {
        use signal_hook::consts::SIGINT;
        use signal_hook::flag::{register, register_conditional_shutdown};
        // The order matters: the first Ctrl-C finds the flag unset.
        let ends = register_conditional_shutdown(SIGINT, INTERRUPTED, self.stopped.clone());
        if ends.is_ok() {
            // If this fails, Ctrl-C ends the program as usual.
            let _stops = register(SIGINT, self.stopped.clone());
        }
    }

    /// Reports how many steps are done, and the upper bound. `false`: stop.
    pub fn go_on(&self, done: usize, most: usize) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
        !self.is_stopped()
    }

    /// Whether they were stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Runs `work`; `words` formats the progress from the steps done and the upper bound.
    pub fn show<T>(
        &self,
        words: impl Fn(usize, usize) -> String + Sync,
        work: impl FnOnce() -> T,
    ) -> T {
        let get = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        with_words(&|| words(get(&self.done), get(&self.most)), work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_stops_the_steps_and_not_the_program() {
        let steps = Steps::default();
        steps.stop_on_interrupt();
        assert!(steps.go_on(1, 3));
        signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
        assert!(!steps.go_on(2, 3) && steps.is_stopped());
    }
}
