//! The file of `kubestep run --trace`: one line of JSON per cycle, written during the run, so that
//! a long run does not keep the matrices of all its cycles.

use std::io::{BufWriter, Result, Write};
use std::sync::Arc;

use kubestep_api::words::count;
use kubestep_debug::trace::{History, json};
use kubestep_framework::record::{CycleRecord, Outcome};
use kubestep_output::document::json_line;
use kubestep_output::file::NewFile;

/// The file, and how much is written.
pub(super) struct TraceFile {
    file: BufWriter<NewFile>,
    full: bool,
    /// The number of cycles written.
    written: usize,
    /// The number of those written without their matrices.
    thin: usize,
}

impl TraceFile {
    /// An empty trace: summaries, or every verdict and score if `full`.
    pub fn new(file: NewFile, full: bool) -> TraceFile {
        TraceFile { file: BufWriter::new(file), full, written: 0, thin: 0 }
    }

    /// Writes the cycles that are complete, in order: a pod that waits at Permit delays the cycles
    /// after its own.
    pub fn catch_up(&mut self, history: &History) -> Result<()> {
        let complete = |record: &&Arc<CycleRecord>| record.outcome != Outcome::Waiting;
        let mut cycles = history.cycles_from(self.written).take_while(complete);
        cycles.try_for_each(|record| self.line(record))
    }

    /// Writes the rest. Returns a notice if the trace is incomplete.
    pub fn finish(mut self, history: &History) -> Result<Option<String>> {
        history.cycles_from(self.written).try_for_each(|record| self.line(record))?;
        self.file.flush()?;
        self.file.get_mut().publish()?;
        let lacks = format!(
            "--trace lacks the matrices of {}: they did not fit into --history-memory while a pod \
             waited",
            count(self.thin, "cycle")
        );
        Ok((self.thin > 0).then_some(lacks))
    }

    fn line(&mut self, record: &CycleRecord) -> Result<()> {
        self.written += 1;
        self.thin += usize::from(self.full && !record.is_whole());
        let line = match self.full {
            true => json::cycle(record),
            false => json::summary(record),
        };
        self.file.write_all(json_line(&line).as_bytes())
    }
}
