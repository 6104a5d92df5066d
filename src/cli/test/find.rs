//! Finding tests: documents of kind `Test` and bundles with expectations, in files and folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_yaml::{Deserializer, Value};

use crate::debug::expect::{API_VERSION, KIND, Test, read, read_expect};
use crate::source::recording;

/// Folders within folders, at most.
const MAX_DEPTH: usize = 64;

/// A test that was found.
pub(super) struct Case {
    /// The file, as it was named or found.
    pub file: String,
    /// What it is called.
    pub name: String,
    /// What its paths are seen from.
    pub folder: PathBuf,
    /// The test, or why it cannot be read.
    pub test: Result<Test, String>,
}

/// All tests below the paths: files in the order named, those of a folder by name. What is in a
/// folder and is no test is passed over; a file that is named has to be one.
///
/// # Errors
/// A path cannot be read, or a file that is named holds no test.
pub(super) fn all(paths: &[PathBuf]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let before = cases.len();
        let metadata = fs::metadata(path).with_context(|| name.clone())?;
        if metadata.is_dir() {
            folder(path, 0, &mut cases)?;
            continue;
        }
        file(path, &mut cases)?;
        if cases.len() == before {
            bail!(
                "{name}: is neither a {KIND} of {API_VERSION} nor a bundle with expectations, as \
                 \"kubestep bundle --expect\" writes it"
            );
        }
    }
    Ok(cases)
}

fn folder(path: &Path, depth: usize, cases: &mut Vec<Case>) -> Result<()> {
    let named = || path.display().to_string();
    let entries: Result<Vec<_>, _> = fs::read_dir(path).with_context(named)?.collect();
    let mut entries = entries.with_context(named)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to folders are not followed: they may lead back here.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            folder(&path, depth + 1, cases)?;
        } else if !path.is_dir() && may_be_test(&path) {
            file(&path, cases)?;
        }
    }
    Ok(())
}

fn may_be_test(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".yaml", ".yml", ".json", ".jsonl"].iter().any(|extension| name.ends_with(extension))
}

fn file(path: &Path, cases: &mut Vec<Case>) -> Result<()> {
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    if let Some(found) = recording::expectations(path).with_context(|| name.clone())? {
        // Without expectations it is what other tests run on.
        let Some(expect) = found else { return Ok(()) };
        let input = path.file_name().map(PathBuf::from).into_iter().collect();
        let test = read_expect(&expect).map(|expect| Test { input, expect, ..Test::default() });
        cases.push(Case { name: stem(path), file: name, folder, test });
        return Ok(());
    }
    if name.ends_with(".gz") || name.ends_with(".jsonl") {
        return Ok(());
    }
    let text = fs::read_to_string(path).with_context(|| name.clone())?;
    // Whatever cannot be read as YAML is somebody else's, unless it says what it is.
    if !text.contains(API_VERSION) {
        return Ok(());
    }
    for (at, document) in Deserializer::from_str(&text).enumerate() {
        let value = Value::deserialize(document);
        let is_test = match &value {
            Ok(value) => value.get("kind").and_then(Value::as_str) == Some(KIND),
            Err(_) => text.contains(&format!("kind: {KIND}")),
        };
        if !is_test {
            continue;
        }
        let test = match value {
            Ok(value) => read(&value),
            Err(error) => Err(error.to_string()),
        };
        let own = test.as_ref().ok().and_then(|test| test.name.clone());
        let numbered = || match at {
            0 => stem(path),
            at => format!("{} {}", stem(path), at + 1),
        };
        let (file, folder, broken) = (name.clone(), folder.clone(), test.is_err());
        cases.push(Case { name: own.unwrap_or_else(numbered), file, folder, test });
        if broken {
            // What follows an error of YAML is anything.
            break;
        }
    }
    Ok(())
}

/// The file's name without its folder and what it ends in.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}
