//! What is said to people who wait for a command to read its input.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::output;
use crate::source::Progress;

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between two looks at how far it is.
const STEP: Duration = Duration::from_millis(200);

/// Does `work`; where that takes long and a person looks on, a line on standard error says how
/// far it is, and goes away at the end.
pub(super) fn with_progress<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !output::stderr_is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        scope.spawn(move || tell(progress, &ended));
        let done = work();
        drop(working);
        done
    })
}

fn tell(progress: &Progress, ended: &Receiver<()>) {
    let mut wait = PATIENCE;
    let mut shown = 0;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let text = match progress.part() {
            Some(part) => format!("{:3.0} %  {progress}", part * 100.0),
            None => progress.to_string(),
        };
        (shown, wait) = (output::rewrite(&text, shown), STEP);
    }
    output::erase(shown);
}
