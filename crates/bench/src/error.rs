//! Errors in a suite of workloads, for people.

use std::fmt;
use std::path::Path;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BenchError {
    /// `performance-config.yaml:12`, or a workload; "" if the message says it.
    pub place: String,
    /// What is wrong, in one sentence.
    pub message: String,
}

impl BenchError {
    /// An error in a line of a file; line 0 stands for the whole file.
    pub fn at(file: &Path, line: usize, message: impl Into<String>) -> BenchError {
        let place = match line {
            0 => file.display().to_string(),
            line => format!("{}:{line}", file.display()),
        };
        BenchError { place, message: message.into() }
    }

    /// The same error, of a part of `place`.
    #[must_use]
    pub fn within(self, place: &str) -> BenchError {
        let place = match self.place.as_str() {
            "" => place.to_owned(),
            inner => format!("{place}: {inner}"),
        };
        BenchError { place, ..self }
    }
}

impl From<String> for BenchError {
    fn from(message: String) -> BenchError {
        BenchError { place: String::new(), message }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.message),
            place => write!(f, "{place}: {}", self.message),
        }
    }
}
