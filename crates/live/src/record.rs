//! Writes a recording: the lists, then every change with its arrival time and the decisions of the
//! cluster's own scheduler. [`kubestep_source::recording`] defines the format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use hashbrown::HashMap;
use serde::Serialize;
use std::sync::Arc;

use crate::compare::ClusterDecision;
use crate::feed::{Delta, FeedEvent};
use crate::minimal::Minimal;
use crate::scheduler_events::SchedulerEvent;
use crate::snapshot::ClusterSnapshot;
use kubestep_api::{Name, Object, Pod, Time};
use kubestep_framework::pod::NamespacedName;
use kubestep_output::CleanStdout;
use kubestep_output::clean::escape_json;
use kubestep_output::file::{Links, NewFile};
use kubestep_source::recording::{RecordingHeader, RecordingLine, SCHEMA};
use kubestep_source::{Auxiliary, MissingKind};

/// A file or standard output, written line by line.
pub enum RecordingOutput {
    /// Standard output, uncompressed.
    Stdout(CleanStdout),
    /// A new file, uncompressed.
    Plain(BufWriter<NewFile>),
    /// A file compressed with gzip.
    Packed(Box<GzEncoder<NewFile>>),
}

impl RecordingOutput {
    /// Creates the file, compressed if its name ends in `.gz`. `-` is standard output.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, links: Links) -> io::Result<RecordingOutput> {
        if path.as_os_str() == kubestep_source::STDIN {
            return Ok(RecordingOutput::Stdout(CleanStdout));
        }
        let file = NewFile::create(path, links)?;
        Ok(match path.extension().is_some_and(|extension| extension == "gz") {
            true => RecordingOutput::Packed(Box::new(GzEncoder::new(file, Compression::default()))),
            false => RecordingOutput::Plain(BufWriter::new(file)),
        })
    }

    /// Checks whether the file could be created.
    ///
    /// # Errors
    /// As [`RecordingOutput::create`].
    pub fn check(path: &Path, links: Links) -> io::Result<()> {
        match path.as_os_str() == kubestep_source::STDIN {
            true => Ok(()),
            false => NewFile::check(path, links),
        }
    }

    /// Flushes everything written so far to the file, so that it can be read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            RecordingOutput::Stdout(_) => Ok(()),
            RecordingOutput::Plain(output) => output.get_mut().publish(),
            RecordingOutput::Packed(output) => output.get_mut().publish(),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// As [`RecordingOutput::publish`].
    pub fn finish(mut self) -> io::Result<()> {
        match self {
            RecordingOutput::Packed(output) => output.finish()?.publish(),
            _ => self.publish(),
        }
    }
}

impl Write for RecordingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RecordingOutput::Stdout(output) => output.write(bytes),
            RecordingOutput::Plain(output) => output.write(bytes),
            RecordingOutput::Packed(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            RecordingOutput::Stdout(output) => output.flush(),
            RecordingOutput::Plain(output) => output.flush(),
            // Ends the compressed block, so that it can be unpacked without what follows.
            RecordingOutput::Packed(output) => {
                output.flush().and_then(|()| output.get_mut().flush())
            }
        }
    }
}

/// Writes a recording: the lists first, then changes and decisions as they come.
pub struct Recorder<W> {
    out: W,
    /// The last reported version of each pod; a decision shows as the difference to the next one.
    pods: HashMap<NamespacedName, Arc<Pod>>,
    minimal: Minimal,
    /// What was written after the lists.
    pub counts: RecordingCounts,
}

/// How much a recording contains after its lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingCounts {
    /// Objects created, updated or deleted.
    pub changes: usize,
    /// Decisions of the cluster's scheduler.
    pub decisions: usize,
}

/// The kinds that could not be read although the server may serve them.
pub fn missing_kinds(snapshot: &ClusterSnapshot) -> Vec<MissingKind> {
    let missing = snapshot.missing.iter().filter(|missing| !missing.is_absent());
    let missing = missing.map(|missing| MissingKind {
        kind: missing.what(),
        reason: missing.why(),
        uncertain: missing.place.row.without.to_owned(),
    });
    missing.collect()
}

/// The header line for a snapshot.
pub fn header(snapshot: &ClusterSnapshot, context: &str, namespaces: &[String]) -> RecordingHeader {
    RecordingHeader {
        schema: SCHEMA.into(),
        record: "header".into(),
        kubestep: env!("CARGO_PKG_VERSION").into(),
        server_version: snapshot.server_version.clone(),
        context: context.into(),
        listed_at: Some(snapshot.taken_at),
        namespaces: namespaces.to_vec(),
        missing: missing_kinds(snapshot),
        ..RecordingHeader::default()
    }
}

impl<W: Write> Recorder<W> {
    /// Starts a recording with its header.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W, header: &RecordingHeader) -> io::Result<Recorder<W>> {
        let (pods, minimal, counts) = Default::default();
        let mut recorder = Recorder { out, pods, minimal, counts };
        recorder.line(header)?;
        Ok(recorder)
    }

    /// Writes the objects that no scheduler reads; they come before the lists are ended.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn auxiliary(&mut self, auxiliary: &Auxiliary) -> io::Result<()> {
        let mut objects = auxiliary.objects()?.into_iter();
        objects.try_for_each(|object| self.line(&RecordingLine::Auxiliary { object }))
    }

    /// Writes the lists. Returns the number of objects.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn lists<'a>(&mut self, objects: impl Iterator<Item = &'a Object>) -> io::Result<usize> {
        let mut count = 0;
        for object in objects {
            self.note(object);
            let (kind, object) = (object.kind().as_str(), self.minimal.json(object)?);
            self.line(&RecordingLine::Object { kind, object })?;
            count += 1;
        }
        self.line(&RecordingLine::Listed { objects: count })?;
        Ok(count)
    }

    /// Writes an event of a feed that arrived at `at`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn take(&mut self, at: Time, event: &FeedEvent) -> io::Result<()> {
        match event {
            FeedEvent::Delta(Delta::Put(object)) => self.put(at, object),
            FeedEvent::Delta(Delta::Delete { kind, key }) => {
                self.pods.remove(key);
                self.counts.changes += 1;
                let (namespace, name) = (key.namespace.as_str().into(), key.name.text().into());
                self.line(&RecordingLine::Delete { at, kind: kind.as_str(), namespace, name })
            }
            FeedEvent::Notice(notice) => {
                let (serious, text) = (notice.serious, notice.text.clone());
                self.line(&RecordingLine::Notice { at, serious, text })
            }
        }
    }

    fn put(&mut self, at: Time, object: &Object) -> io::Result<()> {
        self.counts.changes += 1;
        let kind = object.kind().as_str();
        let object_json = self.minimal.json(object)?;
        self.line(&RecordingLine::Put { at, kind, object: object_json })?;
        let before = self.note(object);
        let Object::Pod(pod) = object else { return Ok(()) };
        let Some(theirs) = ClusterDecision::between(before.as_deref(), pod) else { return Ok(()) };
        self.counts.decisions += 1;
        self.line(&decision(at, object, theirs))
    }

    /// Writes an event that a scheduler reported about a pod.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn scheduler_event(&mut self, at: Time, event: SchedulerEvent) -> io::Result<()> {
        let SchedulerEvent { pod, uid, reporter, reason, message } = event;
        self.line(&RecordingLine::Event { at, pod, uid, reporter, reason, message })
    }

    /// Writes the end marker and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end(mut self, at: Option<Time>) -> io::Result<W> {
        let changes = self.counts.changes;
        self.line(&RecordingLine::End { at, changes })?;
        Ok(self.out)
    }

    /// The output, to be flushed.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    fn note(&mut self, object: &Object) -> Option<Arc<Pod>> {
        let Object::Pod(pod) = object else { return None };
        self.pods.insert(NamespacedName::of(object), pod.clone())
    }

    /// Writes one line of JSON.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = escape_json(serde_json::to_string(line)?);
        text.push('\n');
        self.out.write_all(text.as_bytes())
    }
}

fn decision(at: Time, pod: &Object, theirs: ClusterDecision) -> RecordingLine {
    let uid = pod.metadata().uid.to_string();
    let pod = NamespacedName::of(pod).to_string();
    let named = |node: Name| Some(node.to_string()).filter(|n| !n.is_empty());
    match theirs {
        ClusterDecision::Bound(node) => RecordingLine::Decision {
            at,
            pod,
            uid,
            node: named(node),
            nominated: None,
            message: None,
        },
        ClusterDecision::Rejected { message, nominated } => {
            let (nominated, message) = (named(nominated), Some(message));
            RecordingLine::Decision { at, pod, uid, node: None, nominated, message }
        }
    }
}

#[cfg(test)]
#[path = "record/tests.rs"]
mod tests;
