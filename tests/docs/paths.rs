//! Paths of the repository that the documents for developers name in their text.

use std::collections::BTreeSet;
use std::fs;

use crate::documents::{Document, top};

/// The documents that are checked. Those of users name files of their own.
const FOR_DEVELOPERS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Folders whose files may be named by the end of their path, as `cycle/schedule_one.rs`.
const FOLDERS: [&str; 6] = [".ci", "crates", "docs", "fixtures", "src", "tests"];

/// Backticked paths without a file or folder. A module is named by its path from the package or
/// from the program, as `live::feed`.
pub fn violations(documents: &[Document]) -> Vec<String> {
    let mut paths = BTreeSet::new();
    FOLDERS.iter().for_each(|folder| collect(folder, &mut paths));
    let (mut violations, mut count) = (Vec::new(), 0);
    for name in FOR_DEVELOPERS {
        let prose = Document::find(documents, name).prose();
        for token in prose.split('`').skip(1).step_by(2) {
            let Some(exists) = exists(token, &paths) else { continue };
            count += 1;
            if !exists {
                violations.push(format!("{name}: `{token}` does not exist"));
            }
        }
    }
    assert!(count > 40, "only {count} paths were found");
    violations
}

/// Whether what `token` names exists; `None` if it is not a path or a module.
fn exists(token: &str, paths: &BTreeSet<String>) -> Option<bool> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    if !token.chars().all(is_plain) {
        return None;
    }
    if token.contains("::") {
        let is_module = |part: &&str| !part.starts_with(|c: char| c.is_ascii_uppercase());
        let parts: Vec<&str> = token.split("::").take_while(is_module).collect();
        return (!parts.is_empty()).then(|| is_in_tree(&parts));
    }
    let is_file = [".rs", ".md", ".toml"].iter().any(|end| token.ends_with(end));
    (is_file || token.contains('/')).then(|| {
        let end = format!("/{token}");
        top(token).exists() || paths.iter().any(|path| path.ends_with(&end))
    })
}

/// Whether there is such a module, in a package or in the program.
fn is_in_tree(parts: &[&str]) -> bool {
    let (first, rest) = (parts[0], parts[1..].join("/"));
    [format!("crates/{first}/src/{rest}"), format!("src/{first}/{rest}")].iter().any(|path| {
        let path = path.trim_end_matches('/');
        top(path).is_dir() || top(&format!("{path}.rs")).exists()
    })
}

fn collect(folder: &str, paths: &mut BTreeSet<String>) {
    for entry in fs::read_dir(top(folder)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("{folder}/{name}");
        if top(&path).is_dir() {
            collect(&path, paths);
        }
        paths.insert(path);
    }
}
