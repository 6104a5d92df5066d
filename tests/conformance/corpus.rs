//! Reads the corpus: folders of `CATEGORY.jsonl.gz` (or `.jsonl`), one scenario per line.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

/// A file of the corpus.
pub struct Category {
    /// The file's name without extensions.
    pub name: String,
    /// The scenarios, one per line.
    pub scenarios: Vec<Value>,
}

/// The folder in the repository.
pub fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The additional folders in `KUBESTEP_CONFORMANCE_DIR`, separated as in `PATH`.
pub fn further_folders(variable: Option<OsString>) -> Vec<PathBuf> {
    let folders = variable.iter().flat_map(std::env::split_paths);
    folders.filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// The categories of a folder, by name.
pub fn read_folder(folder: &Path) -> Result<Vec<Category>, String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let mut categories = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| at(&error))? {
        let path = entry.map_err(|error| at(&error))?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = file_name.trim_end_matches(".gz");
        if let Some(name) = stem.strip_suffix(".jsonl") {
            categories.push(Category { name: name.to_owned(), scenarios: read_lines(&path)? });
        }
    }
    if categories.is_empty() {
        return Err(at(&"no *.jsonl.gz here"));
    }
    categories.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(categories)
}

fn read_lines(path: &Path) -> Result<Vec<Value>, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> =
        if zipped { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut scenarios = Vec::new();
    for (number, line) in BufReader::new(reader).lines().enumerate() {
        let at =
            |error: &dyn std::fmt::Display| format!("{}:{}: {error}", path.display(), number + 1);
        let line = line.map_err(|error| at(&error))?;
        if !line.trim().is_empty() {
            scenarios.push(serde_json::from_str(&line).map_err(|error| at(&error))?);
        }
    }
    Ok(scenarios)
}

/// The scenarios to run: all, or those named by `KUBESTEP_CONFORMANCE_ONLY` as
/// `CATEGORY[/SCENARIO]`, separated by commas.
pub struct Selection(Vec<(String, Option<String>)>);

impl Selection {
    /// Parses the variable's value.
    pub fn new(text: Option<&str>) -> Selection {
        let parts = text.unwrap_or_default().split(',').filter(|part| !part.is_empty());
        let pair = |part: &str| match part.split_once('/') {
            Some((category, scenario)) => (category.to_owned(), Some(scenario.to_owned())),
            None => (part.to_owned(), None),
        };
        Selection(parts.map(pair).collect())
    }

    /// Whether any scenario of a category is selected.
    pub fn has_category(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|(category, _)| category == name)
    }

    /// Whether a scenario is selected.
    pub fn has(&self, category: &str, scenario: &str) -> bool {
        let names = |(wanted, only): &(String, Option<String>)| {
            wanted == category && only.as_deref().is_none_or(|only| only == scenario)
        };
        self.0.is_empty() || self.0.iter().any(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_name_categories_and_scenarios() {
        let all = Selection::new(None);
        assert!(all.has_category("fit") && all.has("fit", "x"));
        let some = Selection::new(Some("fit,taints/t-1"));
        assert!(some.has("fit", "anything") && some.has("taints", "t-1"));
        assert!(!some.has("taints", "t-2") && !some.has_category("images"));
    }

    #[test]
    fn further_folders_are_separated_as_in_path() {
        let joined = std::env::join_paths(["a", "b"]).ok();
        assert_eq!(further_folders(joined), [PathBuf::from("a"), PathBuf::from("b")]);
        assert!(further_folders(None).is_empty() && further_folders(Some("".into())).is_empty());
    }
}
