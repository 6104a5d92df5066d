//! The first screen, where reading takes longer than a moment: what is read, how far it is, and
//! how to stop it. The work is done on another thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use anyhow::{Context, bail};
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use ratatui::Frame;
use ratatui::layout::Rect;

use super::app::LookOptions;
use super::layout::WidthTier;
use super::signals::Signals;
use super::terminal::TerminalScreen;
use super::text::{Truncation, fit};
use super::theme::{Scope, Theme};
use super::widget::Paint;
use kubestep_source::Progress;

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_millis(150);
/// The pause between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// Longest bar, in columns.
const BAR: u16 = 60;
/// The exit code of Ctrl-C: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

/// How waiting for the input ended.
#[derive(Debug, PartialEq, Eq)]
pub enum WaitOutcome<T> {
    /// The work is done.
    Done(T),
    /// The person left, or a signal came: the exit code.
    Left(i32),
}

/// Does `work`, which reads `source` and tells `progress` of it, and shows how far it is.
///
/// # Errors
/// The terminal cannot be used, the theme is broken, or the work ended without a result.
pub fn run<T: Send + 'static>(
    source: &str,
    appearance: &LookOptions,
    progress: &Arc<Progress>,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<WaitOutcome<T>> {
    let (sender, done) = sync_channel(1);
    let work = move || {
        // Nobody waits any more for what was stopped.
        let _sent = sender.send(work());
    };
    kubestep_live::runtime::thread("reading", work).context("cannot start a thread")?;
    match done.recv_timeout(PATIENCE) {
        Ok(value) => return Ok(WaitOutcome::Done(value)),
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => bail!("reading ended without a result"),
    }
    let theme = Theme::load(&appearance.library, &appearance.theme, appearance.depth)?.0;
    let runtime = kubestep_live::runtime::new()?;
    let draw = |frame: &mut Frame| {
        let tier = WidthTier::of(frame.area().width);
        render(
            frame,
            source,
            progress,
            &Paint { theme: &theme, charset: appearance.charset, tier },
        );
    };
    let waited = runtime.block_on(wait(&done, draw))?;
    if matches!(waited, WaitOutcome::Left(_)) {
        progress.cancel.store(true, Ordering::Relaxed);
    }
    Ok(waited)
}

async fn wait<T>(done: &Receiver<T>, draw: impl Fn(&mut Frame)) -> anyhow::Result<WaitOutcome<T>> {
    let mut signals = Signals::new()?;
    let mut screen = TerminalScreen::enter()?;
    let mut events = EventStream::new();
    loop {
        match done.try_recv() {
            Ok(value) => return Ok(WaitOutcome::Done(value)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => bail!("reading ended without a result"),
        }
        screen.draw(&draw)?;
        tokio::select! {
            biased;
            code = signals.exit_code() => return Ok(WaitOutcome::Left(code)),
            event = events.next() => {
                let Some(event) = event else { return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) };
                if let Some(code) = leaves(&event?) {
                    return Ok(WaitOutcome::Left(code));
                }
            }
            () = tokio::time::sleep(FRAME) => {}
        }
    }
}

/// The exit code, if that is how one leaves.
fn leaves(event: &Event) -> Option<i32> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    match (code, modifiers.contains(KeyModifiers::CONTROL)) {
        _ if *kind == KeyEventKind::Release => None,
        (KeyCode::Char('c'), true) => Some(INTERRUPTED),
        (KeyCode::Char('q') | KeyCode::Esc, false) => Some(0),
        _ => None,
    }
}

fn render(frame: &mut Frame, source: &str, progress: &Progress, paint: &Paint) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    paint.fill(buffer, area, Scope::Text);
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let room = usize::from(inner.width);
    let reading = format!("Reading {source}");
    let lines = [
        ("kubestep".into(), Scope::TextStrong),
        (String::new(), Scope::Text),
        (fit(&reading, room, Truncation::Middle).into_owned(), Scope::Text),
        (progress.part().map_or_else(String::new, |part| bar(part, inner.width)), Scope::Text),
        (progress.to_string(), Scope::Text),
        (String::new(), Scope::Text),
        ("q stops and leaves".into(), Scope::TextDim),
    ];
    for (y, (text, scope)) in (area.top()..).zip(lines) {
        paint.put(buffer, inner, inner.x, y, &text, scope);
    }
}

/// A progress bar with its percentage: `[#####-----]  50 %`.
fn bar(part: f64, columns: u16) -> String {
    let length = usize::from(columns.saturating_sub(8).min(BAR));
    let full = ((part * length as f64) as usize).min(length);
    let (full, empty) = ("#".repeat(full), "-".repeat(length - full));
    format!("[{full}{empty}] {:3.0} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_the_room_and_no_more() {
        assert_eq!(bar(0.5, 18), "[#####-----]  50 %");
        assert_eq!(bar(1.0, 18), "[##########] 100 %");
        assert_eq!(bar(0.0, 3), "[]   0 %");
    }

    #[test]
    fn q_escape_and_ctrl_c_leave() {
        let key = |code, modifiers| leaves(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(0));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(0));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(130));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(leaves(&Event::Resize(80, 24)), None);
    }
}
