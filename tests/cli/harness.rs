//! Runs the real program in an empty folder and compares its whole output with a file below
//! `tests/cli/`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use kubestep_output::golden;
use tempfile::TempDir;

use crate::schema;

/// A call of the program.
pub struct Call {
    folder: TempDir,
    stdin: Vec<u8>,
    files: Vec<(String, String)>,
}

/// Exit code and both outputs of a call.
pub struct CallOutput {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl CallOutput {
    /// The report of a run up to the utilization table.
    pub fn pods(&self) -> &str {
        self.stdout.split_once("\n\n").map_or(&self.stdout, |(pods, _)| pods)
    }
}

impl Call {
    /// In an empty folder.
    pub fn new() -> Call {
        Call { folder: TempDir::new().unwrap(), stdin: Vec::new(), files: Vec::new() }
    }

    /// Adds a text file.
    pub fn file(mut self, name: &str, text: &str) -> Call {
        self.files.push((name.into(), text.into()));
        self.bytes(name, text.as_bytes())
    }

    /// Adds a file with any bytes.
    pub fn bytes(self, name: &str, bytes: &[u8]) -> Call {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub fn stdin(mut self, text: &str) -> Call {
        self.stdin = text.as_bytes().to_vec();
        self
    }

    /// Runs it; the words of `line` are separated by spaces and grouped by quotation marks.
    pub fn run(&self, line: &str) -> CallOutput {
        self.run_with(line, &[])
    }

    /// Like [`Call::run`], with environment variables.
    pub fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> CallOutput {
        let mut command = Command::cargo_bin("kubestep").unwrap();
        command.current_dir(self.folder.path()).env_clear().write_stdin(self.stdin.clone());
        command.envs(variables.iter().copied());
        // Hides the kubeconfig of the person who runs the tests.
        command.env("HOME", self.folder.path());
        let output = command.args(words(line)).output();
        let output = output.unwrap();
        schema::check(&String::from_utf8_lossy(&output.stdout));
        CallOutput {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file that the program wrote.
    pub fn written(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs it and compares the output with `tests/cli/NAME.txt`, or rewrites that file with
    /// `UPDATE_GOLDEN`.
    pub fn says(&self, name: &str, line: &str) {
        compare(name, self.transcript(line));
    }

    /// Like [`Call::says`], with the folder's path removed from the output.
    pub fn says_where(&self, name: &str, line: &str) {
        let folder = self.folder.path().to_string_lossy();
        compare(name, self.transcript(line).replace(folder.as_ref(), "FOLDER"));
    }

    /// Like [`Call::says`], followed by a file that the program wrote.
    pub fn says_with(&self, name: &str, line: &str, written: &str) {
        let transcript = self.transcript(line);
        if written.ends_with(".jsonl") {
            let text = self.written(written);
            let is_recording = text.starts_with("{\"schema\":\"kubestep/recording/v1\"");
            let name = if is_recording { "kubestep/recording/v1" } else { "kubestep/trace/v1" };
            schema::check_lines(name, &text);
        }
        compare(name, format!("{transcript}# {written}\n{}", self.written(written)));
    }

    fn transcript(&self, line: &str) -> String {
        let said = self.run(line);
        let mut text = String::new();
        for (file, content) in &self.files {
            let _ = writeln!(text, "# {file}\n{}", content.trim_end());
        }
        let code = said.code.map_or_else(|| "none".into(), |code| code.to_string());
        let _ = writeln!(text, "$ kubestep {line}");
        let _ = write!(text, "# output\n{}# errors\n{}# exit {code}\n", said.stdout, said.stderr);
        text
    }
}

/// The words of a line; every second part between quotation marks is one word.
pub fn words(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split(' ').filter(|word| !word.is_empty()).collect(),
        _ => vec![part],
    });
    words.collect::<Vec<Vec<&str>>>().concat()
}

fn compare(name: &str, text: String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    golden::compare(&folder.join(format!("{name}.txt")), &text);
}
