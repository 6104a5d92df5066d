//! All output of the program except the debugger's screen: text for standard output, messages for
//! standard error, files. Terminals get clean text only; clippy denies `println!` and the streams
//! themselves in all other packages.

pub mod clean;
pub mod cut;
pub mod document;
pub mod file;
#[cfg(feature = "testing")]
pub mod golden;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;

use clean::{clean, clean_colored, clean_lines};

/// Prints text to standard output. A reader that closes the pipe, as `head` does, is not an error.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    print_as_is(&clean_lines(text))
}

/// Prints a text with our own colours.
///
/// # Errors
/// Standard output cannot be written.
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

/// Standard output for incremental writing.
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

/// Prints one line on standard error; a line break in it is escaped.
pub fn line(text: impl Display) {
    write_stderr(&format!("{}\n", clean(&text.to_string())));
}

/// Prints several lines on standard error, such as an error with its help.
pub fn lines(text: impl Display) {
    write_stderr(&format!("{}\n", clean_lines(&text.to_string())));
}

/// Prints a question on standard error, without a line break.
pub fn ask(question: impl Display) {
    write_stderr(&clean(&question.to_string()));
}

/// Overwrites the present line on standard error, which uses `before` columns. Returns how many
/// columns it uses now.
pub fn rewrite(text: &str, before: usize) -> usize {
    let text = clean(text);
    write_stderr(&format!("\r{text:before$}"));
    text.chars().count()
}

/// Removes a line that [`rewrite`] wrote.
pub fn erase(before: usize) {
    if before > 0 {
        write_stderr(&format!("\r{:before$}\r", ""));
    }
}

/// Errors are ignored: without standard error there is no way to report them.
fn write_stderr(clean: &str) {
    let mut out = stderr().lock();
    let _written = out.write_all(cut::long_values(clean).as_bytes()).and_then(|()| out.flush());
}

/// Reports panics in clean text from now on.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| lines(panic_report(panic))));
}

fn panic_report(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => "\n  help: please report it, with the output of RUST_BACKTRACE=1".to_owned(),
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
