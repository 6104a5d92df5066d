//! Finds and opens the input files: folders, standard input.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::SourceError;
use super::piece::{Piece, TextPosition};
use super::reader::{TextReader, cannot_read};
use super::{Progress, STDIN};

/// Deepest nesting of folders.
const MAX_DEPTH: usize = 64;

/// A file's text, before it is split into objects.
pub(super) struct FileText {
    /// The path as it was named.
    pub name: String,
    pub text: String,
}

impl FileText {
    /// Whether the name says that it is JSON, so that it is not YAML's flow style.
    pub(crate) fn is_json(&self) -> bool {
        self.name.trim_end_matches(".gz").ends_with(".json")
    }

    /// The text as one piece, from its first line.
    pub fn piece(&self) -> Piece<'_> {
        Piece { name: &self.name, text: &self.text, start: TextPosition::START }
    }
}

/// The files to read, in the order named; within a folder by name. No file is listed twice.
pub(super) fn find_all(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Box<SourceError>> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == STDIN {
            found.push(path.clone());
        } else {
            let before = found.len();
            find(path, &mut found)?;
            if found.len() == before {
                let message = "is a folder without .yaml, .yml or .json files".to_string();
                let help = "name the files themselves";
                return Err(SourceError::of_file(&path.display().to_string(), message, help));
            }
        }
    }
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(found)
}

/// The size of all files as stored, in bytes; 0 if one of them is a stream of unknown length.
pub(super) fn total_size(paths: &[PathBuf]) -> u64 {
    let size = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        metadata.map(|metadata| metadata.len())
    };
    paths.iter().map(size).sum::<Option<u64>>().unwrap_or(0)
}

fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Box<SourceError>> {
    let described = |(path, error): Unreadable| cannot_read(&path.display().to_string(), &error);
    let metadata = fs::metadata(path).map_err(|error| described((path.to_owned(), error)))?;
    match metadata.is_dir() {
        true => found.extend(below(path, has_known_extension).map_err(described)?),
        false => found.push(path.to_owned()),
    }
    Ok(())
}

/// A folder or file that cannot be read, and the error.
pub type Unreadable = (PathBuf, io::Error);

/// The files in a folder and its subfolders whose paths are `wanted`, sorted.
///
/// # Errors
/// A folder cannot be read.
pub fn below(folder: &Path, wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>, Unreadable> {
    let mut found = Vec::new();
    walk(folder, 0, wanted, &mut found)?;
    Ok(found)
}

fn walk(
    folder: &Path,
    depth: usize,
    wanted: fn(&Path) -> bool,
    found: &mut Vec<PathBuf>,
) -> Result<(), Unreadable> {
    let unreadable = |error| (folder.to_owned(), error);
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to folders are not followed: they may form a cycle.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            walk(&path, depth + 1, wanted, found)?;
        } else if !path.is_dir() && wanted(&path) {
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

/// Whether it is a device that may never end. A terminal ends, and `/dev/null` at once; both are
/// character devices too.
#[cfg(unix)]
fn is_endless(file: &fs::File) -> bool {
    use std::io::IsTerminal as _;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let Ok(metadata) = file.metadata() else { return false };
    let kind = metadata.file_type();
    let is_null = fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == metadata.rdev());
    kind.is_block_device() || kind.is_char_device() && !is_null && !file.is_terminal()
}

/// Devices are only files on Unix.
#[cfg(not(unix))]
fn is_endless(_file: &fs::File) -> bool {
    false
}

/// Opens a file; `-` is standard input.
pub(super) fn open<'p>(
    path: &Path,
    progress: &'p Progress,
) -> Result<TextReader<'p>, Box<SourceError>> {
    let name = path.display().to_string();
    if name == STDIN {
        return TextReader::new(name, std::io::stdin(), progress);
    }
    let file = fs::File::open(path).map_err(|error| cannot_read(&name, &error))?;
    if is_endless(&file) {
        let message = "is a device, not a file".to_owned();
        return Err(SourceError::of_file(&name, message, "name a file, or - for standard input"));
    }
    TextReader::new(name, file, progress)
}
