//! Finds tests: documents of kind `Test` and bundles with expectations, in files and folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};
use serde::Deserialize;
use serde_yaml::Value;

use kubestep_api::yaml;
use kubestep_debug::expect::{API_VERSION, KIND, Test, TestError, read, read_expect};
use kubestep_source::recording;
use kubestep_source::{Unreadable, below};

/// A test that was found.
pub(super) struct FoundTest {
    /// The file, as it was given or found.
    pub file: String,
    /// What it is called.
    pub name: String,
    /// The folder that its paths are relative to.
    pub folder: PathBuf,
    /// The test, or why it cannot be parsed.
    pub test: Result<Test, TestError>,
}

/// All tests below the paths: files in the order given, those of a folder by name. Other files in a
/// folder are skipped; a file that is given must contain a test.
///
/// # Errors
/// A path cannot be read, or a given file contains no test.
pub(super) fn all(paths: &[PathBuf]) -> Result<Vec<FoundTest>> {
    let mut cases = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let before = cases.len();
        let metadata = fs::metadata(path).with_context(|| name.clone())?;
        if metadata.is_dir() {
            let unreadable =
                |(path, error): Unreadable| Error::new(error).context(path.display().to_string());
            let found = below(path, may_be_test).map_err(unreadable)?;
            found.iter().try_for_each(|path| file(path, &mut cases))?;
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

fn may_be_test(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".yaml", ".yml", ".json", ".jsonl"].iter().any(|extension| name.ends_with(extension))
}

fn file(path: &Path, cases: &mut Vec<FoundTest>) -> Result<()> {
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    if let Some(found) = recording::expectations(path).with_context(|| name.clone())? {
        // A bundle without expectations is the input of other tests.
        let Some(expect) = found else { return Ok(()) };
        let input = path.file_name().map(PathBuf::from).into_iter().collect();
        let test = read_expect(&expect).map(|expect| Test { input, expect, ..Test::default() });
        cases.push(FoundTest { name: stem(path), file: name, folder, test });
        return Ok(());
    }
    if name.ends_with(".gz") || name.ends_with(".jsonl") {
        return Ok(());
    }
    let text = fs::read_to_string(path).with_context(|| name.clone())?;
    // A file that is not YAML belongs to something else, unless it contains our API version.
    if !text.contains(API_VERSION) {
        return Ok(());
    }
    let documents = yaml::documents(&text).with_context(|| name.clone())?;
    for (at, document) in documents.enumerate() {
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
            Err(error) => Err(TestError::Field(error.to_string())),
        };
        let own = test.as_ref().ok().and_then(|test| test.name.clone());
        let numbered = || match at {
            0 => stem(path),
            at => format!("{} {}", stem(path), at + 1),
        };
        let (file, folder, broken) = (name.clone(), folder.clone(), test.is_err());
        cases.push(FoundTest { name: own.unwrap_or_else(numbered), file, folder, test });
        if broken {
            // After a YAML error the rest cannot be parsed.
            break;
        }
    }
    Ok(())
}

/// The file's name without its folder and extension.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}
