//! Reads a recording: complete lines are decoded in parallel, many at a time, and put in order. The
//! rest after the last complete line is dropped with a warning.

use std::path::Path;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    ObjectChange, RecordedChange, RecordedNote, Recording, RecordingHeader, SCHEMA, TimedNote,
};
use crate::error::SourceError;
use crate::item::{Expected, ItemText, SourceItem};
use crate::piece::{Piece, TextPosition};
use crate::reader::{TextReader, line_ends, too_large};
use crate::{MemoryLimits, Progress, add, files};
use kubestep_api::decode::{Decoded, Text, decode};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Object, ObjectKey, Time};

/// Every recording begins with this text.
const BEGIN: &str = "{\"schema\":\"kubestep/recording/";

/// The parts of a recording.
pub(crate) struct ReadRecording {
    /// The objects of the lists with their lines.
    pub objects: Vec<(u32, Object)>,
    /// The objects that no scheduler reads.
    pub auxiliary: Vec<Value>,
    pub recording: Recording,
    pub warnings: Vec<String>,
}

/// The fields of a line in the file.
#[derive(Deserialize)]
struct Raw<'a> {
    record: &'a str,
    #[serde(default)]
    at: Option<Time>,
    #[serde(default, borrow)]
    kind: Option<&'a str>,
    #[serde(default, borrow)]
    object: Option<&'a RawValue>,
    #[serde(default)]
    namespace: Symbol,
    #[serde(default)]
    name: Name,
    #[serde(default, borrow)]
    expect: Option<&'a RawValue>,
}

/// The fields of an event in the file.
#[derive(Deserialize)]
struct RawEvent {
    pod: String,
    uid: String,
    reporter: String,
    reason: String,
    message: String,
}

/// The fields of a notice in the file.
#[derive(Deserialize)]
struct RawNotice {
    serious: bool,
    text: String,
}

/// A line of a recording, by its field `record`.
enum ParsedLine {
    Header(Box<RecordingHeader>),
    Object(Object),
    Auxiliary(Value),
    Listed,
    Put(Time, Object),
    Delete(Time, ObjectKey),
    Note(Time, RecordedNote),
    Expect(String),
    End(Option<Time>),
    /// For other programs, or for a later version.
    Other,
}

type LineError = Box<SourceError>;

/// Whether a text with this beginning is a recording. Leading whitespace is not skipped.
pub(crate) fn looks_like(text: &str) -> bool {
    text.starts_with(BEGIN)
}

/// How many bytes [`looks_like`] needs.
pub(crate) fn needed() -> usize {
    BEGIN.len()
}

/// Reads the recording that begins with `text`.
pub(crate) fn read(
    mut reader: TextReader<'_>,
    mut text: String,
    limits: MemoryLimits,
) -> Result<ReadRecording, LineError> {
    reader.may_be_cut();
    let mut building = RecordingBuilder::new(&reader.name);
    let mut more = true;
    while more {
        while more && text.len() < limits.whole {
            more = reader.read_more(&mut text)?;
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole == 0 && text.len() > limits.object {
            return Err(too_large(&reader.name, building.lines as usize + 1));
        }
        if whole == 0 && more {
            // The line is longer than a block and is not complete yet.
            more = reader.read_more(&mut text)?;
            continue;
        }
        let found = building.take(text.get(..whole).unwrap_or_default())?;
        add(&reader.progress().found, found);
        add(&reader.progress().decoded, found);
        text.drain(..whole);
    }
    // A last line without a line end may still be complete.
    if !text.trim().is_empty() && serde_json::from_str::<&RawValue>(&text).is_ok() {
        building.take(&text)?;
    }
    building.finish()
}

/// Reads the expectations in a file: `None` if it is not a recording, `Some(None)` if it is one
/// without expectations. They are in its second line.
///
/// # Errors
/// The file cannot be read, or its second line is not JSON.
pub fn expectations(path: &Path) -> Result<Option<Option<String>>, LineError> {
    let progress = Progress::default();
    let mut reader = files::open(path, &progress)?;
    reader.may_be_cut();
    let (mut text, mut more) = (String::new(), true);
    while more && text.len() < needed() {
        more = reader.read_more(&mut text)?;
    }
    if !looks_like(&text) {
        return Ok(None);
    }
    while more && text.matches('\n').take(2).count() < 2 {
        more = reader.read_more(&mut text)?;
    }
    let Some(second) = text.lines().nth(1) else { return Ok(Some(None)) };
    let start = TextPosition { line: 2, column: 0 };
    match parse(&Piece { name: &reader.name, text: second, start })? {
        ParsedLine::Expect(expect) => Ok(Some(Some(expect))),
        _ => Ok(Some(None)),
    }
}

/// A recording that is being read.
struct RecordingBuilder {
    file: String,
    /// Number of lines so far.
    lines: u32,
    read: ReadRecording,
    header: bool,
    listed: bool,
    ended: bool,
    /// The last complete record, in a few words.
    last: String,
}

impl RecordingBuilder {
    fn new(file: &str) -> RecordingBuilder {
        let recording = Recording::default();
        let (objects, auxiliary, warnings) = Default::default();
        let read = ReadRecording { objects, auxiliary, recording, warnings };
        let (header, listed, ended) = (false, false, false);
        RecordingBuilder {
            file: file.into(),
            lines: 0,
            read,
            header,
            listed,
            ended,
            last: String::new(),
        }
    }

    /// Decodes complete lines. Returns how many there were.
    fn take(&mut self, text: &str) -> Result<usize, LineError> {
        if text.is_empty() {
            return Ok(0);
        }
        let (file, before) = (&self.file, self.lines);
        let numbered = text.lines().zip(before + 1..);
        let lines: Vec<(&str, u32)> =
            numbered.filter(|(line, _)| !line.trim().is_empty()).collect();
        let parse = |(text, line): &(&str, u32)| {
            let start = TextPosition { line: *line, column: 0 };
            (*line, parse(&Piece { name: file, text, start }))
        };
        let parsed: Vec<(u32, Result<ParsedLine, LineError>)> =
            lines.par_iter().map(parse).collect();
        for (line, parsed) in parsed {
            self.lines = line;
            self.add(parsed?)?;
        }
        self.lines = before + line_ends(text.as_bytes()).max(1) as u32;
        Ok(lines.len())
    }

    fn add(&mut self, parsed: ParsedLine) -> Result<(), LineError> {
        let line = self.lines;
        let recording = &mut self.read.recording;
        match parsed {
            ParsedLine::Header(header) => {
                if self.header {
                    return Err(self.wrong("contains a second recording", "name one of them"));
                }
                recording.listed_at = header.listed_at.unwrap_or_default();
                recording.ended_at = recording.listed_at;
                recording.header = *header;
                self.header = true;
            }
            ParsedLine::Object(object) => {
                self.last = object.key().to_string();
                self.read.objects.push((line, object));
            }
            ParsedLine::Auxiliary(object) => self.read.auxiliary.push(object),
            ParsedLine::Listed => self.listed = true,
            ParsedLine::Put(at, object) => {
                self.last = format!("{} at {at}", object.key());
                self.change(at, ObjectChange::Put(object));
            }
            ParsedLine::Delete(at, key) => {
                self.last = format!("{key}, deleted at {at}");
                self.change(at, ObjectChange::Delete(key));
            }
            ParsedLine::Note(at, note) => recording.notes.push(TimedNote { at, line, note }),
            ParsedLine::Expect(text) => recording.expect = Some(text),
            ParsedLine::End(at) => {
                recording.ended_at = recording.ended_at.max(at.unwrap_or_default());
                self.ended = true;
            }
            ParsedLine::Other => {}
        }
        Ok(())
    }

    fn change(&mut self, at: Time, what: ObjectChange) {
        let recording = &mut self.read.recording;
        recording.ended_at = recording.ended_at.max(at);
        recording.changes.push(RecordedChange { at, line: self.lines, what });
    }

    fn wrong(&self, message: &str, help: &str) -> LineError {
        let error = SourceError::of_file(&self.file, message.into(), help);
        Box::new(SourceError { line: self.lines as usize, ..*error })
    }

    fn finish(mut self) -> Result<ReadRecording, LineError> {
        if !self.header {
            let message = "is truncated in its first line: nothing can be read";
            return Err(SourceError::of_file(&self.file, message.into(), "record it again"));
        }
        if !self.ended {
            let (file, lines) = (&self.file, self.lines);
            let last = match self.last.as_str() {
                "" => String::new(),
                last => format!(" ({last})"),
            };
            let part = match self.listed {
                true => "later changes are missing",
                false => {
                    "its initial lists are incomplete, so the cluster appears smaller than it was"
                }
            };
            self.read.warnings.push(format!(
                "{file} is truncated: its last complete record is line {lines}{last}; {part}"
            ));
        }
        Ok(self.read)
    }
}

fn parse(line: &Piece<'_>) -> Result<ParsedLine, LineError> {
    let text = line.text;
    let raw: Raw<'_> = serde_json::from_str(text).map_err(|e| line.syntax_error(1, 0, &e))?;
    let parsed = match raw.record {
        "header" => {
            let header: RecordingHeader =
                serde_json::from_str(text).map_err(|e| line.syntax_error(1, 0, &e))?;
            if header.schema != SCHEMA {
                let message =
                    format!("has schema {}, which this version cannot read", header.schema);
                let help = "use the version of kubestep that wrote it, or a newer one";
                return Err(SourceError::of_file(line.name, message, help));
            }
            Some(ParsedLine::Header(Box::new(header)))
        }
        "object" => object(line, &raw)?.map(ParsedLine::Object),
        "put" => raw.at.zip(object(line, &raw)?).map(|(at, object)| ParsedLine::Put(at, object)),
        "delete" => raw.at.zip(key(&raw)).map(|(at, key)| ParsedLine::Delete(at, key)),
        "event" => raw.at.zip(event(text)).map(|(at, note)| ParsedLine::Note(at, note)),
        "notice" => raw.at.zip(notice(text)).map(|(at, note)| ParsedLine::Note(at, note)),
        "auxiliary" => raw.object.and_then(value).map(ParsedLine::Auxiliary),
        "listed" => Some(ParsedLine::Listed),
        "expect" => raw.expect.map(|expect| ParsedLine::Expect(expect.get().to_owned())),
        "end" => Some(ParsedLine::End(raw.at)),
        _ => Some(ParsedLine::Other),
    };
    parsed.ok_or_else(|| {
        let message = format!("a {} record has no object or no time", raw.record);
        let error = SourceError::of_file(line.name, message, "was the file edited manually?");
        Box::new(SourceError { line: line.start.line as usize, ..*error })
    })
}

fn value(object: &RawValue) -> Option<Value> {
    serde_json::from_str(object.get()).ok().filter(Value::is_object)
}

fn event(text: &str) -> Option<RecordedNote> {
    let RawEvent { pod, uid, reporter, reason, message } = serde_json::from_str(text).ok()?;
    Some(RecordedNote::Event { pod, uid, reporter, reason, message })
}

fn notice(text: &str) -> Option<RecordedNote> {
    let RawNotice { serious, text } = serde_json::from_str(text).ok()?;
    Some(RecordedNote::Notice { serious, text })
}

fn key(raw: &Raw<'_>) -> Option<ObjectKey> {
    let kind = Kind::of("", raw.kind?)?;
    Some(ObjectKey { kind, namespace: raw.namespace, name: raw.name })
        .filter(|key| !key.name.is_empty())
}

fn object(line: &Piece<'_>, raw: &Raw<'_>) -> Result<Option<Object>, LineError> {
    let kind = raw.kind.and_then(|kind| Kind::of("", kind));
    let (Some(kind), Some(text)) = (kind, raw.object) else { return Ok(None) };
    let text = text.get();
    match decode(Text::Json(text), Some(kind)) {
        Ok(Decoded::Object(object)) => Ok(Some(object)),
        Ok(Decoded::Unread(_)) => Ok(None),
        Err(error) => {
            let column = text.as_ptr() as usize - line.text.as_ptr() as usize;
            let item = SourceItem {
                document: 1,
                line: line.start.line,
                content: ItemText::Json { text, column },
                expected: Expected::Kind(kind),
            };
            Err(line.error(&item, error))
        }
    }
}
