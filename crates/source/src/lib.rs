//! Reads files with Kubernetes objects in all common formats and converts them to [`kubestep_api`]
//! objects.
//!
//! Supported are YAML with any number of documents, JSON, `v1` lists and typed lists (also as
//! `kubectl cluster-info dump` writes them into a folder), the export of kube-scheduler-simulator
//! and `kubestep capture`, and files of other tools (`foreign`); each may be compressed with gzip.
//! Either everything is understood, or a single error says where and what is wrong, and nothing is
//! used.
//!
//! Files are split into objects first (`yaml`, `json`), then the objects are decoded in parallel;
//! the result is in the order of appearance. Large JSON is never held as a whole: it is read, split
//! and decoded in chunks (`stream`).

pub mod api_versions;
mod auxiliary;
mod captured;
mod check;
mod error;
mod fields;
mod files;
mod filter;
pub mod fixtures;
mod foreign;
mod item;
mod json;
mod manifests;
mod piece;
mod progress;
mod reader;
pub mod recording;
mod shapes;
mod stream;
mod unpack;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

pub use auxiliary::Auxiliary;
pub use captured::{Captured, MissingKind};
pub use check::{NOTHING_PENDING, NOTHING_READ};
pub use error::{FileError, SourceError};
pub use fields::{FieldProblem, UnexpectedField};
pub use files::{Unreadable, below};
pub use filter::{Exclude, ExcludeError, Filter};
pub use foreign::Foreign;
pub use item::{AUXILIARY_FIELD, SNAPSHOT_FIELDS};
pub use manifests::{Manifest, manifests};
pub use progress::Progress;
pub use recording::Recording;

use files::FileText;
use item::{DecodedItem, SourceItem};
use kubestep_api::intern::Symbol;
use kubestep_api::{DecodeError, Object, ObjectKey, Time, admission};
use piece::Piece;
use reader::TextReader;

/// The path that stands for standard input.
pub const STDIN: &str = "-";

/// Objects of a YAML file whose fields are checked: YAML is slow to parse a second time, and
/// files with more of it are rarely written by people.
const CHECKED_YAML: usize = 1_000;

/// The position at which an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectOrigin {
    /// The file as it was named, `-` for standard input.
    pub file: Symbol,
    /// The document within the file, from 1.
    pub document: u32,
    /// The line in which the object starts, from 1.
    pub line: u32,
}

/// Prints `pods.yaml:12`, and the document if there are several.
impl fmt::Display for ObjectOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file == STDIN { "standard input" } else { &self.file };
        write!(f, "{file}:{}", self.line)?;
        if self.document > 1 { write!(f, " (document {})", self.document) } else { Ok(()) }
    }
}

/// An object and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The object: with namespace and uid, without defaults.
    pub object: Object,
    /// Where it was read.
    pub origin: ObjectOrigin,
}

/// The text of a scheduler configuration that came with the objects.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfigText {
    /// The text as it was read: YAML or JSON.
    pub text: String,
    /// Where it was read.
    pub origin: ObjectOrigin,
}

/// The result of reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadInput {
    /// The objects that the scheduler reads, in the order of appearance.
    pub objects: Vec<Loaded>,
    /// Number of skipped objects, by kind that the scheduler does not read.
    pub skipped: BTreeMap<Symbol, usize>,
    /// Number of objects that the filter excluded.
    pub filtered: usize,
    /// The first scheduler configuration among the objects.
    pub scheduler_config: Option<SchedulerConfigText>,
    /// How many objects in YAML have which API version and kind, of kinds whose versions came and
    /// went ([`api_versions::served`]).
    pub api_versions: BTreeMap<(Symbol, Symbol), usize>,
    /// Workloads whose pods are not in the input, as traces contain them.
    pub manifests: Vec<Manifest>,
    /// Files that other tools wrote.
    pub foreign: Vec<Foreign>,
    /// Objects that no scheduler reads, but that help to explain.
    pub auxiliary: Auxiliary,
    /// A capture's own description.
    pub captured: Captured,
    /// The changes after the lists, if the input is a recording.
    pub recording: Option<Recording>,
    /// When a live cluster was listed, if the input is one that is followed.
    pub listed_at: Option<Time>,
    /// Fields of objects that Kubernetes does not know, or that occur twice. An API server drops
    /// them, so there are none where objects come from one.
    pub unexpected_fields: Vec<UnexpectedFieldAt>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// A field that is probably a mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct UnexpectedFieldAt {
    /// The object that has the field.
    pub object: ObjectKey,
    /// The position of the field.
    pub origin: ObjectOrigin,
    /// The column in that line, from 1; 0 where unknown.
    pub column: usize,
    /// The field, and why it is unexpected.
    pub field: UnexpectedField,
}

/// How much text is in memory at once, and how long an object may be.
#[derive(Clone, Copy, Debug)]
struct MemoryLimits {
    /// Bytes of text up to which a file is held as a whole.
    whole: usize,
    /// Bytes of text that one thread decodes at a time.
    chunk: usize,
    /// Longest text of one object, in bytes.
    object: usize,
}

const LIMITS: MemoryLimits = MemoryLimits { whole: 4 << 20, chunk: 1 << 20, object: 16 << 20 };

/// Reads files and folders; `-` is standard input.
pub fn read(
    paths: &[PathBuf],
    filter: &Filter,
    progress: &Progress,
) -> Result<ReadInput, Box<SourceError>> {
    let paths = files::find_all(paths)?;
    progress.total.store(files::total_size(&paths), Ordering::Relaxed);
    let mut reading = Reading::new(filter, progress, LIMITS);
    for path in paths {
        reading.file(files::open(&path, progress)?)?;
    }
    reading.finish()
}

/// Reads a text as if it were the file `name`: a built-in example, or a test's input.
pub fn read_text(
    name: &str,
    bytes: Vec<u8>,
    filter: &Filter,
) -> Result<ReadInput, Box<SourceError>> {
    read_bytes(name, &bytes, filter, LIMITS)
}

fn read_bytes(
    name: &str,
    bytes: &[u8],
    filter: &Filter,
    limits: MemoryLimits,
) -> Result<ReadInput, Box<SourceError>> {
    let progress = Progress::default();
    let mut reading = Reading::new(filter, &progress, limits);
    reading.file(TextReader::new(name.into(), bytes, &progress)?)?;
    reading.finish()
}

/// What has been read so far.
struct Reading<'a> {
    input: ReadInput,
    filter: &'a Filter,
    progress: &'a Progress,
    limits: MemoryLimits,
    /// The files that are held as a whole.
    files: Vec<FileText>,
}

impl<'a> Reading<'a> {
    fn new(filter: &'a Filter, progress: &'a Progress, limits: MemoryLimits) -> Reading<'a> {
        Reading { input: ReadInput::default(), filter, progress, limits, files: Vec::new() }
    }

    fn file(&mut self, mut reader: TextReader<'_>) -> Result<(), Box<SourceError>> {
        let mut text = String::new();
        let mut more = true;
        while more && text.len() < recording::needed() {
            more = reader.read_more(&mut text)?;
        }
        if recording::looks_like(&text) {
            return self.recording(reader, text);
        }
        while more && text.len() < self.limits.whole {
            more = reader.read_more(&mut text)?;
        }
        let formats = foreign::candidates(&text);
        if !formats.is_empty() {
            reader.read_rest(&mut text, more)?;
            return self.foreign(FileText { name: reader.name, text }, &formats);
        }
        // Large JSON is written by programs: its fields are checked on request, because that costs a
        // third of the time. Large YAML is rare, and slow in any case.
        let is_json = json::looks_like(&text);
        if more && is_json {
            let file = Symbol::new(&reader.name);
            let found = stream::read(reader, text, self.limits, self.filter.strict)?;
            for stream::FoundObject { document, line, outcome } in found {
                self.take(ObjectOrigin { file, document, line }, outcome);
            }
            return Ok(());
        }
        if !is_json {
            reader.read_rest(&mut text, more)?;
        }
        self.whole(FileText { name: reader.name, text })
    }

    fn recording(&mut self, reader: TextReader<'_>, text: String) -> Result<(), Box<SourceError>> {
        let name = reader.name.clone();
        let recording::ReadRecording { objects, auxiliary, recording, warnings } =
            recording::read(reader, text, self.limits)?;
        if self.input.recording.is_some() {
            let message = "is a second recording".into();
            return Err(SourceError::of_file(&name, message, "name one of them"));
        }
        let file = Symbol::new(&name);
        for (line, object) in objects {
            self.take(
                ObjectOrigin { file, document: 1, line },
                DecodedItem::Object(object, Vec::new()),
            );
        }
        for object in auxiliary {
            let kind = object["kind"].as_str().unwrap_or_default().into();
            self.take(
                ObjectOrigin { file, document: 1, line: 1 },
                DecodedItem::Auxiliary(kind, object),
            );
        }
        self.input.warnings.extend(warnings);
        recording.describe(&mut self.input, file);
        Ok(())
    }

    fn whole(&mut self, file: FileText) -> Result<(), Box<SourceError>> {
        let checks_all = self.filter.strict || file.is_json();
        let checked = if checks_all { usize::MAX } else { CHECKED_YAML };
        self.items(&file, &split(&file)?, checked)?;
        self.files.push(file);
        Ok(())
    }

    /// Reads a file in the first of `formats` that it has, or else as ordinary input.
    fn foreign(
        &mut self,
        mut file: FileText,
        formats: &[&'static foreign::ForeignFormat],
    ) -> Result<(), Box<SourceError>> {
        for format in formats {
            (format.prepare)(&mut file.text);
            let Some(contents) = (format.read)(&file)? else { continue };
            // A program wrote it: there are no typos, but its own version's fields.
            self.items(&file, &contents.items, 0)?;
            let manifest = |value| Manifest { file: file.name.clone(), value };
            self.input.manifests.extend(contents.manifests.into_iter().map(manifest));
            self.input.auxiliary.provisioning.merge(contents.provisioning);
            self.input.foreign.push(format.about(&file.name, contents.notes));
            self.files.push(file);
            return Ok(());
        }
        self.whole(file)
    }

    /// Decodes the items of a file; the first `checked` are searched for unknown fields.
    fn items(
        &mut self,
        file: &FileText,
        items: &[SourceItem<'_>],
        checked: usize,
    ) -> Result<(), Box<SourceError>> {
        add(&self.progress.found, items.len());
        let outcomes = decode(&file.piece(), items, checked, self.progress)?;
        let name = Symbol::new(&file.name);
        for (item, outcome) in items.iter().zip(outcomes) {
            self.take(
                ObjectOrigin { file: name, document: item.document, line: item.line },
                outcome,
            );
        }
        Ok(())
    }

    fn take(&mut self, origin: ObjectOrigin, outcome: DecodedItem) {
        take(&mut self.input, self.filter, origin, outcome);
    }

    fn finish(mut self) -> Result<ReadInput, Box<SourceError>> {
        check::duplicates(&self.input.objects, &self.files)?;
        if self.filter.strict {
            check::strict(&self.input, &self.files)?;
        }
        finish(&mut self.input, self.filter);
        self.progress.is_read.store(true, Ordering::Relaxed);
        Ok(self.input)
    }
}

/// The text of one small file, such as a configuration or an edit.
///
/// # Errors
/// The file cannot be read, is not text, or is larger than one object may be.
pub fn read_whole(path: &Path) -> Result<String, FileError> {
    let not_text = |_| wrong(path, "is not text; save it as UTF-8".into());
    String::from_utf8(whole_file(path)?).map_err(not_text)
}

/// The bytes of one small file.
///
/// # Errors
/// The file cannot be read, or is larger than one object may be.
pub fn whole_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let limit = LIMITS.object as u64;
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    if bytes.len() as u64 > limit {
        return Err(wrong(
            path,
            format!("has more than {} MiB: is it the right file?", limit >> 20),
        ));
    }
    read.map(|_| bytes).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong(path, "there is no such file".into()),
        ErrorKind::IsADirectory => wrong(path, "is a folder; name the file in it".into()),
        _ => wrong(path, error.to_string()),
    })
}

fn wrong(path: &Path, problem: String) -> FileError {
    FileError { file: path.to_owned(), problem }
}

/// Objects that already exist, as if they had been read from the file `name`.
pub fn of_objects(objects: Vec<Object>, name: &str, filter: &Filter) -> ReadInput {
    let mut input = ReadInput::default();
    let origin = ObjectOrigin { file: name.into(), document: 1, line: 1 };
    for object in objects {
        take(&mut input, filter, origin, DecodedItem::Object(object, Vec::new()));
    }
    finish(&mut input, filter);
    input
}

fn finish(input: &mut ReadInput, filter: &Filter) {
    input.warnings.extend(input.captured.sentences());
    match &mut input.recording {
        Some(recording) => recording.keep(filter),
        // It is not known yet how much of a recording is used.
        None => check::warn(input),
    }
}

fn split(file: &FileText) -> Result<Vec<SourceItem<'_>>, Box<SourceError>> {
    // YAML's flow style looks like JSON; what is not JSON may still be YAML.
    if json::looks_like(&file.text) {
        match json::split(file.piece()) {
            Err(error) if file.is_json() || yaml::split(file).is_err() => return Err(error),
            Err(_) => {}
            items => return items,
        }
    }
    yaml::split(file)
}

/// Decodes side by side; the first error in the order of appearance counts. The first
/// `checked` are searched for fields that are probably mistakes.
fn decode(
    piece: &Piece<'_>,
    items: &[SourceItem<'_>],
    checked: usize,
    progress: &Progress,
) -> Result<Vec<DecodedItem>, Box<SourceError>> {
    let outcomes: Vec<_> = items
        .par_iter()
        .enumerate()
        .map(|(at, item)| {
            progress.check()?;
            let outcome = item.decode(at < checked).map_err(|error| piece.error(item, error));
            add(&progress.decoded, 1);
            outcome
        })
        .collect();
    outcomes.into_iter().collect()
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

fn take(input: &mut ReadInput, filter: &Filter, origin: ObjectOrigin, outcome: DecodedItem) {
    match outcome {
        DecodedItem::Object(mut object, unexpected) => {
            admission::identify(&mut object);
            if filter.takes(&object) {
                let object_key = object.key();
                let at = |((line, column), field)| UnexpectedFieldAt {
                    object: object_key,
                    origin: ObjectOrigin { line: line as u32, ..origin },
                    column,
                    field,
                };
                input.unexpected_fields.extend(unexpected.into_iter().map(at));
                input.objects.push(Loaded { object, origin });
            } else {
                input.filtered += 1;
                check::note_filtered(input, &object);
            }
        }
        DecodedItem::InVersion(outcome, version) => {
            if let DecodedItem::Object(object, _) = &*outcome {
                let kind = Symbol::new(object.kind().as_str());
                *input.api_versions.entry((version, kind)).or_default() += 1;
            }
            take(input, filter, origin, *outcome);
        }
        DecodedItem::LeftOut(error) => input.warnings.push(skipped_warning(origin, &error)),
        DecodedItem::Unread(kind) => *input.skipped.entry(kind).or_default() += 1,
        DecodedItem::Auxiliary(kind, value) => {
            let taken = input.auxiliary.take(kind, value);
            if !taken.as_ref().is_ok_and(|is_all| *is_all) {
                *input.skipped.entry(kind).or_default() += 1;
            }
            input.warnings.extend(taken.err());
        }
        DecodedItem::SchedulerConfig(text) => match &input.scheduler_config {
            None => input.scheduler_config = Some(SchedulerConfigText { text, origin }),
            Some(first) => input.warnings.push(format!(
                "a second scheduler configuration at {origin} is not used: the one at {} is",
                first.origin
            )),
        },
        DecodedItem::Note(note, text) => input.captured.take(note, &text),
        DecodedItem::Nothing => {}
    }
}

fn skipped_warning(origin: ObjectOrigin, error: &DecodeError) -> String {
    let version = error.api_version;
    format!("{origin}: skipped: unknown schema in {version}: {error}")
}

#[cfg(test)]
mod tests;
