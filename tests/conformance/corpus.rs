//! Reads the corpus: folders of `CATEGORY.jsonl.gz` (or `.jsonl`), one scenario per line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use kubestep_config::{FeatureGates, KubeVersion};
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

/// The folder in the repository and the additional ones.
pub fn roots() -> Vec<PathBuf> {
    let further = further_folders(std::env::var_os("KUBESTEP_CONFORMANCE_DIR"));
    std::iter::once(own_folder()).chain(further).collect()
}

/// The same with the folders in them.
pub fn all_folders() -> Vec<PathBuf> {
    roots().iter().flat_map(|root| with_subfolders(root)).collect()
}

/// The additional folders in `KUBESTEP_CONFORMANCE_DIR`, separated as in `PATH`.
fn further_folders(variable: Option<OsString>) -> Vec<PathBuf> {
    let folders = variable.iter().flat_map(std::env::split_paths);
    folders.filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// A folder and the folders in it, by name, as far as they hold files of the corpus.
pub fn with_subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut folders: Vec<PathBuf> = paths.filter(|path| has_scenarios(path)).collect();
    folders.sort();
    if has_scenarios(folder) || folders.is_empty() {
        folders.insert(0, folder.to_owned());
    }
    folders
}

fn has_scenarios(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().contains(".jsonl"))
}

/// The name of a scenario; a quantity is called by its text.
pub fn name(scenario: &Value) -> &str {
    scenario.get("name").or(scenario.get("in")).and_then(Value::as_str).unwrap_or("?")
}

/// The version that a scenario was recorded with; the default one where it names none.
pub fn version(scenario: &Value) -> Result<KubeVersion, String> {
    match scenario.get("kubeVersion").and_then(Value::as_str) {
        Some(text) => text.parse().map_err(|error| format!("kubeVersion: {error}")),
        None => Ok(KubeVersion::default()),
    }
}

/// The gates under which a scenario was recorded.
pub fn gates(scenario: &Value) -> Result<FeatureGates, String> {
    let set = scenario.get("featureGates").and_then(Value::as_object);
    let pairs = set.into_iter().flatten().map(|(name, on)| (name.as_str(), on == true));
    FeatureGates::of(version(scenario)?).with_pairs(pairs).map_err(|error| error.to_string())
}

/// The same categories for each version, the oldest first.
pub fn by_version(categories: Vec<Category>) -> BTreeMap<KubeVersion, Vec<Category>> {
    let mut versions: BTreeMap<KubeVersion, Vec<Category>> = BTreeMap::new();
    for category in categories {
        let mut split: BTreeMap<KubeVersion, Vec<Value>> = BTreeMap::new();
        for scenario in category.scenarios {
            // A version that is none fails when the scenario is run.
            split.entry(version(&scenario).unwrap_or_default()).or_default().push(scenario);
        }
        for (version, scenarios) in split {
            let name = category.name.clone();
            versions.entry(version).or_default().push(Category { name, scenarios });
        }
    }
    versions
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

    /// The selection of `KUBESTEP_CONFORMANCE_ONLY`.
    ///
    /// # Panics
    /// A part of it names no scenario of these folders.
    pub fn of_variable(folders: &[PathBuf]) -> Selection {
        let selection = Selection::new(std::env::var("KUBESTEP_CONFORMANCE_ONLY").ok().as_deref());
        if !selection.0.is_empty() {
            let read = folders.iter().flat_map(|folder| read_folder(folder)).flatten();
            let unmatched = selection.unmatched(&read.collect::<Vec<_>>());
            let message = "KUBESTEP_CONFORMANCE_ONLY names no scenario with";
            assert!(unmatched.is_empty(), "{message} {}", unmatched.join(", "));
        }
        selection
    }

    /// The parts that match no scenario.
    fn unmatched(&self, categories: &[Category]) -> Vec<String> {
        let matches = |(wanted, only): &&(String, Option<String>)| {
            let mut found = categories.iter().filter(|category| category.name == *wanted);
            found.any(|category| {
                let only = only.as_deref();
                only.is_none_or(|only| category.scenarios.iter().any(|one| name(one) == only))
            })
        };
        let unmatched = self.0.iter().filter(|part| !matches(part));
        unmatched
            .map(|(category, only)| match only {
                Some(only) => format!("{category}/{only}"),
                None => category.clone(),
            })
            .collect()
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
    fn parts_of_a_selection_that_match_nothing_are_named() {
        let scenarios = vec![serde_json::json!({"name": "t-1"})];
        let taints = [Category { name: "taints".into(), scenarios }];
        let unmatched = |text| Selection::new(Some(text)).unmatched(&taints);
        assert!(unmatched("taints,taints/t-1").is_empty());
        assert_eq!(unmatched("taints/t-2,typo,taints"), ["taints/t-2", "typo"]);
    }

    #[test]
    fn further_folders_are_separated_as_in_path() {
        let joined = std::env::join_paths(["a", "b"]).ok();
        assert_eq!(further_folders(joined), [PathBuf::from("a"), PathBuf::from("b")]);
        assert!(further_folders(None).is_empty() && further_folders(Some("".into())).is_empty());
    }
}
