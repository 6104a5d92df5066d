//! A pseudo-terminal with a program: type, inspect the screen, wait for text.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// The longest wait for anything; only reached by a failing test.
const PATIENCE: Duration = Duration::from_secs(20);

/// More bytes than a frame has.
const LONGEST_FRAME: usize = 200_000;

/// The screen as a terminal would show it, and every byte that the program sent.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Seen {
    /// Whether a frame has begun and not ended: it may arrive in parts.
    fn is_within_frame(&self) -> bool {
        let recent = &self.bytes[self.bytes.len().saturating_sub(LONGEST_FRAME)..];
        let last = |mark: &[u8]| recent.windows(mark.len()).rposition(|bytes| bytes == mark);
        last(b"\x1b[?2026h") > last(b"\x1b[?2026l")
    }
}

/// A program in a pseudo-terminal; killed when dropped.
pub struct Terminal {
    seen: Arc<Mutex<Seen>>,
    writer: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

/// The program under test with arguments, in a plain environment with 256 colors.
pub fn kubestep(args: &[&str]) -> CommandBuilder {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kubestep"));
    command.args(args);
    plain_environment(&mut command);
    command
}

/// The machine's own settings do not reach the program.
pub fn plain_environment(command: &mut CommandBuilder) {
    for name in ["NO_COLOR", "COLORTERM", "COLORFGBG", "LC_ALL", "LC_CTYPE"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.env("KUBESTEP_CONFIG_DIR", "/nonexistent/kubestep");
}

impl Terminal {
    /// Starts `command` in a terminal of `width` × `height`.
    pub fn start(command: CommandBuilder, width: u16, height: u16) -> Terminal {
        let size = PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = vt100::Parser::new(at_least_one(height), at_least_one(width), 0);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let sink = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let mut seen = sink.lock().unwrap();
                seen.parser.process(&buffer[..read]);
                seen.bytes.extend_from_slice(&buffer[..read]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Terminal { seen, writer, master: pair.master, child }
    }

    pub fn send(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits until `wanted` is true for the screen. A frame counts once it is complete.
    pub fn wait(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        let is_seen = |seen: &Seen| !seen.is_within_frame() && wanted(seen.parser.screen());
        while !is_seen(&self.seen.lock().unwrap()) {
            assert!(start.elapsed() < PATIENCE, "no {what} on the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen contains `text`.
    pub fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    /// The text of the screen.
    pub fn text(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    /// Reads from the screen.
    pub fn screen<T>(&self, ask: impl FnOnce(&vt100::Screen) -> T) -> T {
        ask(self.seen.lock().unwrap().parser.screen())
    }

    /// Every byte sent so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.lock().unwrap().bytes.clone()
    }

    /// Whether the terminal has line editing and echo, as shells expect.
    fn is_cooked(&self) -> bool {
        let name = self.master.tty_name().unwrap();
        let stty = std::process::Command::new("stty").arg("-F").arg(name).arg("-a").output();
        let modes = String::from_utf8(stty.unwrap().stdout).unwrap();
        let modes: Vec<&str> = modes.split_whitespace().collect();
        modes.contains(&"icanon") && modes.contains(&"echo")
    }

    pub fn resize(&self, width: u16, height: u16) {
        let size = PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 };
        self.seen
            .lock()
            .unwrap()
            .parser
            .screen_mut()
            .set_size(at_least_one(height), at_least_one(width));
        self.master.resize(size).unwrap();
    }

    /// Sends a signal to the program.
    pub fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the program exits; returns the exit code once its output is read completely.
    pub fn exit_code(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The last output may still be on its way through the terminal.
                std::thread::sleep(Duration::from_millis(50));
                return status.exit_code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asserts that the terminal is in the state it had before the program.
    pub fn assert_restored(&self) {
        self.screen(|screen| {
            assert!(!screen.alternate_screen(), "still on the alternate screen");
            assert!(!screen.hide_cursor(), "the cursor is hidden");
            assert!(!screen.bracketed_paste(), "bracketed paste is on");
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        });
        assert!(self.is_cooked(), "the terminal is in raw mode");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
    }
}

fn at_least_one(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}
