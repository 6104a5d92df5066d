//! An answer that goes on, line by line. A line counts only with its end: what a cut connection
//! leaves behind is dropped.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use crate::live::failure::Failure;

/// The longest line; an object cannot be larger than what etcd takes.
const LONGEST: usize = 64 << 20;

/// How it goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// Nothing came for a while.
    Quiet,
    /// The answer ended, maybe within a line.
    End,
}

/// What was read.
enum Read {
    More,
    Quiet,
    End,
}

/// The lines of an answer.
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that were handed out already.
    used: usize,
    /// The bytes of `buffer` in which no end of line was found.
    searched: usize,
}

impl Lines {
    /// The lines of `body`.
    pub fn new(body: Body) -> Lines {
        Lines { body, buffer: Vec::new(), used: 0, searched: 0 }
    }

    /// The next line, if it comes within `idle`.
    ///
    /// # Errors
    /// The connection broke, or a line has no end.
    pub async fn next(&mut self, idle: Duration) -> Result<Next<'_>, Failure> {
        let end = loop {
            let from = self.searched;
            match self.buffer[from..].iter().position(|byte| *byte == b'\n') {
                Some(at) => break from + at,
                None => self.searched = self.buffer.len(),
            }
            match self.read(idle).await? {
                Read::More => {}
                Read::Quiet => return Ok(Next::Quiet),
                Read::End => return Ok(Next::End),
            }
        };
        let start = std::mem::replace(&mut self.used, end + 1);
        self.searched = end + 1;
        Ok(Next::Line(&self.buffer[start..end]))
    }

    /// Reads on.
    async fn read(&mut self, idle: Duration) -> Result<Read, Failure> {
        self.buffer.drain(..self.used);
        self.searched -= self.used;
        self.used = 0;
        if self.buffer.len() > LONGEST {
            return Err(Failure::Malformed(format!("a line of more than {LONGEST} bytes")));
        }
        let Ok(next) = timeout(idle, self.body.frame()).await else { return Ok(Read::Quiet) };
        let Some(frame) = next else { return Ok(Read::End) };
        if let Ok(data) = frame.map_err(Failure::of_client)?.into_data() {
            self.buffer.extend_from_slice(&data);
        }
        Ok(Read::More)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut lines = Lines::new(Body::from(b"one\n\nthree\nfo".to_vec()));
            for expected in ["one", "", "three"] {
                let line = lines.next(Duration::from_secs(1)).await;
                assert_eq!(line, Ok(Next::Line(expected.as_bytes())));
            }
            assert_eq!(lines.next(Duration::from_secs(1)).await, Ok(Next::End));
        });
    }
}
