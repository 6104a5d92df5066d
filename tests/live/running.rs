//! `kubestep schedule` as a child process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::control_plane::ControlPlane;

/// A running scheduler. It is killed when the test ends.
pub struct Running {
    child: Child,
    reported: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts one as the user with kube-scheduler's roles.
    pub fn start(plane: &ControlPlane, line: &str) -> Running {
        Running::start_on(&plane.kubeconfig("scheduler"), line)
    }

    /// Starts one on a cluster.
    pub fn start_on(kubeconfig: &Path, line: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubestep"));
        command.arg("schedule").args(line.split_whitespace()).env("KUBECONFIG", kubeconfig);
        Running::of(command)
    }

    /// Starts any program and reads its standard error.
    pub fn of(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let reported = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (child.stderr.take().unwrap(), reported.clone());
        let listener = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Running { child, reported, listener: Some(listener) }
    }

    /// Its output so far.
    pub fn output(&self) -> String {
        self.reported.lock().unwrap().clone()
    }

    /// Waits until its output contains the text.
    pub fn wait_for(&self, text: &str) {
        until(&format!("{text:?} in:\n{}", self.output()), || self.output().contains(text));
    }

    /// Waits until it holds the lease. Before that it may say that it is "not leading".
    pub fn wait_for_the_lease(&self) {
        self.wait_for("leading: scheduling");
    }

    /// Sends SIGTERM and returns its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.end()
    }

    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, reads its remaining output and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
        code
    }

    /// Kills it, as in a crash.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.output());
        }
    }
}

/// A plain HTTP request to a loopback port. Returns the whole response.
pub fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Waits for a condition, for ten minutes at most: backoffs and retries take long.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(600);
    while !done() {
        assert!(Instant::now() < end, "it did not come: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
