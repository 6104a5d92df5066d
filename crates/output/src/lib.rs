//! Everything that leaves the program other than the debugger's screen: text for standard output,
//! messages for standard error, files. Terminals get clean text only, so there is no other way
//! to them: clippy denies `println!` and the streams themselves everywhere else.

pub mod clean;
pub mod cut;
pub mod document;
pub mod file;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;

use clean::{clean, clean_colored, clean_lines};

/// Prints text to standard output. A reader that has seen enough, as `head` does, is no error.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    print_as_is(&clean_lines(text))
}

/// Prints a text that has colours of our own.
///
/// # Errors
/// It cannot be written.
pub fn print_colored(text: &str) -> io::Result<()> {
    print_as_is(&clean_colored(text))
}

fn print_as_is(clean: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    match out.write_all(clean.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Standard output for what is written bit by bit.
#[derive(Debug)]
pub struct CleanStdout;

impl Write for CleanStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        stdout().write_all(clean_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stdout().flush()
    }
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    stderr().is_terminal()
}

/// Says a sentence on standard error; a line break in it is quoted.
pub fn line(text: impl Display) {
    say(&format!("{}\n", clean(&text.to_string())));
}

/// Says something on standard error that may have several lines, as an error with its help.
pub fn lines(text: impl Display) {
    say(&format!("{}\n", clean_lines(&text.to_string())));
}

/// Asks on standard error: the cursor stays behind the question.
pub fn ask(question: impl Display) {
    say(&clean(&question.to_string()));
}

/// Writes over the line on standard error, of which `before` columns are in use; gives how many
/// are in use then.
pub fn rewrite(text: &str, before: usize) -> usize {
    let text = clean(text);
    say(&format!("\r{text:before$}"));
    text.chars().count()
}

/// Removes a line that [`rewrite`] wrote.
pub fn erase(before: usize) {
    if before > 0 {
        say(&format!("\r{:before$}\r", ""));
    }
}

/// What cannot be said has nobody to hear it.
fn say(clean: &str) {
    let mut out = stderr().lock();
    let _written = out.write_all(cut::long_values(clean).as_bytes()).and_then(|()| out.flush());
}

/// From now on a panic is reported in clean text.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| lines(panic_report(panic))));
}

fn panic_report(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => "\n  help: please report it, with what RUST_BACKTRACE=1 adds".to_owned(),
    };
    format!("kubestep: internal error in thread {name}: {panic}{backtrace}")
}

#[expect(clippy::disallowed_methods, reason = "the one way to it")]
fn stdout() -> io::Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "the one way to it")]
fn stderr() -> io::Stderr {
    io::stderr()
}
