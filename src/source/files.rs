//! Finding and reading the files: folders, standard input, gzip, encodings.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{SourceError, help_for, plain};
use super::item::Item;
use super::{Origin, Progress, STDIN, add};
use crate::api::DecodeError;
use crate::intern::Symbol;

/// Folders within folders, at most.
const MAX_DEPTH: usize = 64;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file's text, ready to be cut into objects.
pub(super) struct File {
    /// As it was named.
    pub name: String,
    symbol: Symbol,
    pub text: String,
}

impl File {
    /// Unpacks and decodes a file's bytes.
    pub fn from_bytes(name: String, mut bytes: Vec<u8>) -> Result<File, Box<SourceError>> {
        if bytes.starts_with(&GZIP_MAGIC) {
            bytes = unpack(&name, &bytes)?;
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            let message = "is UTF-16 text".to_string();
            return Err(SourceError::of_file(&name, message, "save it as UTF-8"));
        }
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count();
            let message = format!("is not text: byte {valid} is not UTF-8");
            Box::new(SourceError {
                line,
                ..*SourceError::of_file(&name, message, "save it as UTF-8")
            })
        })?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len_utf8());
        }
        Ok(File { symbol: name.as_str().into(), name, text })
    }

    /// True if the name says that it is JSON and cannot be YAML's flow style.
    pub fn is_json(&self) -> bool {
        self.name.trim_end_matches(".gz").ends_with(".json")
    }

    pub fn origin(&self, item: &Item<'_>) -> Origin {
        Origin { file: self.symbol, document: item.document, line: item.line }
    }

    /// A decoder's error about an object, placed in the file.
    pub fn error(&self, item: &Item<'_>, error: DecodeError) -> Box<SourceError> {
        let (line, column) = item.place(error.position);
        SourceError {
            file: self.name.clone(),
            document: item.document,
            line,
            column,
            help: help_for(&error.path, &error.message).into(),
            object: error.object,
            path: error.path,
            message: plain(&error.message),
            snippet: None,
        }
        .with_snippet(&self.text)
    }
}

fn unpack(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Box<SourceError>> {
    let mut unpacked = Vec::with_capacity(bytes.len() * 4);
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut unpacked).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "is gzip data that is cut off".to_string(),
            _ => format!("is gzip data that is damaged: {error}"),
        };
        SourceError::of_file(name, message, "copy the file again; nothing of it was used")
    })?;
    Ok(unpacked)
}

/// Reads all files, in the order named; within a folder by name. No file is read twice.
pub(super) fn read_all(
    paths: &[PathBuf],
    progress: &Progress,
) -> Result<Vec<File>, Box<SourceError>> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == STDIN {
            found.push(path.clone());
        } else {
            let before = found.len();
            find(path, 0, &mut found)?;
            if found.len() == before {
                let message = "is a folder without .yaml, .yml or .json files".to_string();
                let help = "name the files themselves";
                return Err(SourceError::of_file(&path.display().to_string(), message, help));
            }
        }
    }
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    let mut files = Vec::with_capacity(found.len());
    for path in found {
        progress.check()?;
        let file = read_one(&path)?;
        add(&progress.bytes, file.text.len());
        files.push(file);
    }
    Ok(files)
}

fn find(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Box<SourceError>> {
    let name = path.display().to_string();
    let described = |error: std::io::Error| cannot_read(&name, &error);
    if !fs::metadata(path).map_err(described)?.is_dir() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(described)?.collect();
    let mut entries = entries.map_err(described)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to folders are not followed: they may lead back here.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            find(&path, depth + 1, found)?;
        } else if !path.is_dir() && has_known_extension(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn has_known_extension(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".yaml", ".yml", ".json"].iter().any(|extension| name.ends_with(extension))
}

fn read_one(path: &Path) -> Result<File, Box<SourceError>> {
    let name = path.display().to_string();
    let bytes = if name == STDIN {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    File::from_bytes(name.clone(), bytes.map_err(|error| cannot_read(&name, &error))?)
}

fn cannot_read(name: &str, error: &std::io::Error) -> Box<SourceError> {
    let (message, help) = match error.kind() {
        std::io::ErrorKind::NotFound => ("there is no such file".to_string(), "check the path"),
        std::io::ErrorKind::PermissionDenied => {
            ("may not be read".to_string(), "check the file's permissions")
        }
        _ => (format!("cannot be read: {error}"), "check the path"),
    };
    SourceError::of_file(name, message, help)
}
