//! The house rules, held by a test: sizes, layers, purity of the engine, and what must not
//! stand in the code. All violations are reported at once.

mod rules;
mod scan;

use std::fs;
use std::path::{Path, PathBuf};

use scan::Source;

/// The files below `folder` that end in one of `extensions`, sorted, as paths from the top level.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![top.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if extensions.contains(&extension.as_str()) {
                found.extend(path.strip_prefix(top).ok().map(Path::to_path_buf));
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(top.join(path)).unwrap_or_default()
}

fn sources() -> Vec<Source> {
    let paths =
        ["src", "crates", "tests", "benches"].iter().flat_map(|folder| files(folder, &["rs"]));
    let mut sources: Vec<Source> = paths.map(|path| Source::new(&path, &read(&path))).collect();
    scan::mark_test_modules(&mut sources);
    sources
}

fn report(violations: Vec<String>) {
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn the_code_keeps_the_house_rules() {
    let sources = sources();
    assert!(sources.len() > 50, "the sources were not found");
    let mut violations: Vec<String> = rules::ALL.iter().flat_map(|rule| rule(&sources)).collect();
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    violations.extend(rules::missing_categories(|file| top.join(file).exists()));
    report(violations);
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let folders = ["src", "crates", "tests", "benches", "themes", "fixtures", ".ci"];
    let extensions = ["rs", "yaml", "yml", "json", "md", "toml", "sh", ""];
    let mut paths: Vec<PathBuf> = folders.iter().flat_map(|f| files(f, &extensions)).collect();
    paths.extend(["README.md", "Cargo.toml", "Cargo.lock"].map(PathBuf::from));
    report(paths.iter().flat_map(|path| rules::machine_paths(path, &read(path))).collect());
}

#[test]
fn themes_are_documents() {
    let mut violations = Vec::new();
    for path in files("themes", &["yaml", "yml"]) {
        let document = kubestep_api::yaml::from_str::<serde_yaml::Value>(&read(&path));
        if !document.is_ok_and(|document| document.is_mapping()) {
            violations.push(format!("{}: is not a YAML mapping", path.display()));
        }
    }
    report(violations);
}
