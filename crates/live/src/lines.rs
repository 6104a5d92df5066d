//! A streamed answer, line by line. A line counts only once it is complete: the rest that a broken
//! connection leaves behind is dropped.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use crate::failure::RequestFailure;

/// The longest line; far above the largest object that etcd stores.
const LONGEST: usize = 64 << 20;

/// What a stream delivers next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextLine<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// No complete line arrived in time.
    Quiet,
    /// The server ended the response.
    End,
}

/// The result of one read.
enum ReadOutcome {
    More,
    Quiet,
    End,
}

/// The lines of an answer.
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were returned already.
    used: usize,
    /// Bytes of `buffer` that are known to contain no line end.
    searched: usize,
    /// When data was last received.
    received: Instant,
    /// When the present, incomplete line began.
    begun: Option<Instant>,
}

impl Lines {
    /// The lines of `body`.
    pub fn new(body: Body) -> Lines {
        let (received, begun) = (Instant::now(), None);
        Lines { body, buffer: Vec::new(), used: 0, searched: 0, received, begun }
    }

    /// For how long nothing was received.
    pub(crate) fn silence(&self) -> Duration {
        self.received.elapsed()
    }

    /// For how long the present line has been incomplete.
    pub fn unfinished(&self) -> Option<Duration> {
        self.begun.map(|begun| begun.elapsed())
    }

    /// The next line, if it is complete within `wait`.
    ///
    /// # Errors
    /// The connection broke, ended within a line, or a line is too long.
    pub async fn next(&mut self, wait: Duration) -> Result<NextLine<'_>, RequestFailure> {
        let until = Instant::now() + wait;
        let end = loop {
            let from = self.searched;
            match self.buffer[from..].iter().position(|byte| *byte == b'\n') {
                Some(at) => break from + at,
                None => self.searched = self.buffer.len(),
            }
            match self.read(until).await? {
                ReadOutcome::More => {}
                ReadOutcome::Quiet => return Ok(NextLine::Quiet),
                ReadOutcome::End => return Ok(NextLine::End),
            }
        };
        let start = std::mem::replace(&mut self.used, end + 1);
        self.searched = end + 1;
        self.begun = None;
        Ok(NextLine::Line(&self.buffer[start..end]))
    }

    /// Reads more data into `buffer`.
    async fn read(&mut self, until: Instant) -> Result<ReadOutcome, RequestFailure> {
        self.buffer.drain(..self.used);
        self.searched -= self.used;
        self.used = 0;
        if self.buffer.len() > LONGEST {
            return Err(RequestFailure::Malformed(format!("a line of more than {LONGEST} bytes")));
        }
        if !self.buffer.is_empty() {
            self.begun.get_or_insert(self.received);
        }
        let Ok(next) = timeout_at(until, self.body.frame()).await else {
            return Ok(ReadOutcome::Quiet);
        };
        match next {
            None if self.buffer.is_empty() => Ok(ReadOutcome::End),
            None => Err(RequestFailure::Unreachable("the answer ended within a line".into())),
            Some(frame) => {
                self.received = Instant::now();
                if let Ok(data) = frame.map_err(RequestFailure::of_client)?.into_data() {
                    self.buffer.extend_from_slice(&data);
                }
                Ok(ReadOutcome::More)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let whole = "one\n\nthree\n";
            for text in [whole.to_owned(), format!("{whole}fo")] {
                let mut lines = Lines::new(Body::from(text.clone().into_bytes()));
                for expected in ["one", "", "three"] {
                    let line = lines.next(Duration::from_secs(1)).await;
                    assert_eq!(line, Ok(NextLine::Line(expected.as_bytes())));
                    assert_eq!(lines.unfinished(), None);
                }
                let end = lines.next(Duration::from_secs(1)).await;
                assert_eq!(end.is_ok(), text == whole, "{end:?}");
            }
        });
    }
}
