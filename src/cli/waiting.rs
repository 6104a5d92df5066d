//! What is said to people who wait for a command to read its input.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::source::Progress;

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between two looks at how far it is.
const STEP: Duration = Duration::from_millis(200);

/// Does `work`; where that takes long and a person looks on, a line on standard error says how
/// far it is, and goes away at the end.
pub(super) fn with_progress<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !stderr().is_terminal() {
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
        rewrite(&text, shown);
        (shown, wait) = (text.len(), STEP);
    }
    if shown > 0 {
        rewrite("", shown);
        rewrite("", 0);
    }
}

/// Writes over the line that is there. Where that cannot be done, nobody looks on.
fn rewrite(text: &str, before: usize) {
    let _written = write!(stderr(), "\r{text:before$}").and_then(|()| stderr().flush());
}
