//! Owns the terminal while the interface runs, and gives it back in every case: quit, error, panic on
//! any thread, signal, suspend.
//!
//! One flag says whether the terminal is ours; the code that clears it first restores. All output passes a gate
//! that the flag closes, so a draw still running when another thread panics cannot write over the shell.

use std::io::{self, BufWriter, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{MoveTo, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal};

use super::sanitize;
use crate::tui::action_error::ActionError;

/// Exit code after a panic, as of a Rust program.
pub const PANIC_EXIT_CODE: i32 = 101;

/// Bytes collected before a write: a full frame of a large terminal fits, so it leaves in one piece.
const BUFFER_BYTES: usize = 64 * 1024;

/// Most that is copied: base64 makes it 100,000 bytes, where several terminals stop.
const CLIPBOARD_BYTES: usize = 74_994;

/// Whether the terminal is in our hands. Held while writing, so that giving it back waits for the write.
static OWNED: Mutex<bool> = Mutex::new(false);
static PANIC_HOOK: Once = Once::new();

fn owned() -> MutexGuard<'static, bool> {
    // A flag has no half-made state, so a poisoned lock is still sound.
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the screen, whose cells are clean")]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// Standard output while the terminal is ours, nothing afterwards.
#[derive(Debug)]
pub struct TerminalOutput(());

impl Write for TerminalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match *owned() {
            true => stdout().write(bytes),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match *owned() {
            true => stdout().flush(),
            false => Ok(()),
        }
    }
}

/// The terminal in raw mode on the alternate screen; restored when dropped.
pub struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<TerminalOutput>>>,
    mouse: bool,
}

impl TerminalScreen {
    /// Takes the terminal over. The panic hook is set once for the process.
    pub fn enter() -> io::Result<TerminalScreen> {
        PANIC_HOOK.call_once(restore_on_panic);
        // The theme decides about colours; crossterm's own NO_COLOR would erase attributes too.
        crossterm::style::force_color_output(true);
        claim(false)?;
        let output = BufWriter::with_capacity(BUFFER_BYTES, TerminalOutput(()));
        let terminal = Terminal::new(CrosstermBackend::new(output)).inspect_err(|_| restore())?;
        Ok(TerminalScreen { terminal, mouse: false })
    }

    /// Draws one frame as one synchronized update, so that no half-drawn screen is seen.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            render(frame);
            sanitize::scrub(frame.buffer_mut());
        })?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        io::Write::flush(self.terminal.backend_mut())
    }

    /// Forgets what is on the screen, so that the next draw writes every cell.
    ///
    /// By way of a resize: ratatui's own `clear` asks the terminal where its cursor is, and the answer would
    /// arrive among the keys, late or never.
    pub fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Gives the terminal back, stops the whole job as the terminal's own Ctrl-Z would, and takes the
    /// terminal over again when the shell continues it.
    ///
    /// The signal goes to the process group: stopping only this process would leave a parent such as
    /// `cargo run` in the foreground and the shell waiting. Where nothing could continue the job (no job
    /// control), the system ignores the signal and we come back at once.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        let stopped = std::process::Command::new("sh").args(["-c", "kill -s TSTP 0"]).status();
        claim(self.mouse)?;
        self.clear()?;
        stopped.map(drop)
    }

    /// Gives the terminal to `other`, an editor for example, until that is done with it.
    pub fn lend<T>(&mut self, other: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let done = other();
        claim(self.mouse)?;
        self.clear()?;
        Ok(done)
    }

    /// Hands text to the terminal's clipboard (OSC 52), which also works over ssh; says how many bytes, or
    /// why not. Terminals do not answer, so success is theirs to show.
    pub fn copy(&mut self, text: &str) -> io::Result<Result<usize, ActionError>> {
        if text.len() > CLIPBOARD_BYTES {
            let size = text.len();
            return Ok(Err(format!(
                "{size} bytes are more than terminals take ({CLIPBOARD_BYTES})"
            )
            .into()));
        }
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))?;
        Ok(Ok(text.len()))
    }

    /// Reports mouse events, or leaves the mouse to the terminal so that text can be selected.
    pub fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        match on {
            true => execute!(self.terminal.backend_mut(), EnableMouseCapture),
            false => execute!(self.terminal.backend_mut(), DisableMouseCapture),
        }
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Raw mode and alternate screen. On failure everything done so far is undone.
fn claim(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    *owned() = true;
    let mut out = stdout();
    let entered = execute!(out, EnterAlternateScreen, EnableBracketedPaste, MoveTo(0, 0));
    let entered =
        entered.and_then(|()| if mouse { execute!(out, EnableMouseCapture) } else { Ok(()) });
    entered.inspect_err(|_| restore())
}

/// Gives the terminal back, once: later calls do nothing until it is claimed again.
pub fn restore() {
    let mut owned = owned();
    if !std::mem::take(&mut *owned) {
        return;
    }
    // Errors are of no use here: the terminal may be closed, and there is nowhere to say so.
    let _ = execute!(
        stdout(),
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

/// A panic on any thread ends the program: left alone, the interface would keep drawing over the shell
/// after the terminal was restored.
fn restore_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        print(panic);
        std::process::exit(PANIC_EXIT_CODE);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_swallows_output_once_the_terminal_is_given_back() {
        // Tests never claim the terminal, so the gate is closed; the bytes count as written.
        let mut out = BufWriter::new(TerminalOutput(()));
        assert_eq!(out.write(b"\x1b[2J").unwrap(), 4);
        out.flush().unwrap();
    }

    #[test]
    fn restoring_what_is_not_ours_does_nothing() {
        restore();
        assert!(!*owned());
    }
}
