//! An answer that goes on, line by line. A line counts only with its end: what a cut connection
//! leaves behind is dropped.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use crate::live::failure::Failure;

/// The longest line; an object cannot be larger than what etcd takes.
const LONGEST: usize = 64 << 20;

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

    /// The next line without its end; `None` at the end of the answer, also within a line.
    ///
    /// # Errors
    /// The connection broke, nothing came for `idle`, or a line has no end.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<&[u8]>, Failure> {
        let end = loop {
            let from = self.searched;
            match self.buffer[from..].iter().position(|byte| *byte == b'\n') {
                Some(at) => break from + at,
                None => self.searched = self.buffer.len(),
            }
            if !self.read(idle).await? {
                return Ok(None);
            }
        };
        let start = std::mem::replace(&mut self.used, end + 1);
        self.searched = end + 1;
        Ok(Some(&self.buffer[start..end]))
    }

    /// Reads on; `false` at the end.
    async fn read(&mut self, idle: Duration) -> Result<bool, Failure> {
        self.buffer.drain(..self.used);
        self.searched -= self.used;
        self.used = 0;
        if self.buffer.len() > LONGEST {
            return Err(Failure::Malformed(format!("a line of more than {LONGEST} bytes")));
        }
        let quiet = |_| Failure::Unreachable(format!("nothing was heard for {} s", idle.as_secs()));
        let Some(frame) = timeout(idle, self.body.frame()).await.map_err(quiet)? else {
            return Ok(false);
        };
        if let Ok(data) = frame.map_err(Failure::of_client)?.into_data() {
            self.buffer.extend_from_slice(&data);
        }
        Ok(true)
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
                let line = lines.next(Duration::from_secs(1)).await.unwrap().unwrap();
                assert_eq!(line, expected.as_bytes());
            }
            assert_eq!(lines.next(Duration::from_secs(1)).await, Ok(None));
        });
    }
}
