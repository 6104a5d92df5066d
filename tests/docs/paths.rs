//! Paths of the repository that the documents for developers name in their text.

use std::collections::BTreeSet;
use std::fs;

use crate::documents::{Document, top};

/// The documents that are checked. Those of users name files of their own.
const FOR_DEVELOPERS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Folders whose files may be named by the end of their path, as `cycle/schedule_one.rs`.
const FOLDERS: [&str; 6] = [".ci", "crates", "docs", "fixtures", "src", "tests"];

/// Backticked paths without a file or folder. A module is named by its path from the package, as
/// `live::feed`, or by the end of it, as `driver::task`.
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
        let named = || is_in_package(&parts) || is_end(&parts.join("/"), paths);
        return (!parts.is_empty()).then(named);
    }
    let is_file = [".rs", ".md", ".toml"].iter().any(|end| token.ends_with(end));
    (is_file || token.contains('/')).then(|| top(token).exists() || is_end(token, paths))
}

/// Whether the path of a file or a folder ends like this.
fn is_end(token: &str, paths: &BTreeSet<String>) -> bool {
    let (path, module) = (format!("/{token}"), format!("/{token}.rs"));
    paths.iter().any(|known| known.ends_with(&path) || known.ends_with(&module))
}

/// Whether there is such a module in a package.
fn is_in_package(parts: &[&str]) -> bool {
    let path = format!("crates/{}/src/{}", parts[0], parts[1..].join("/"));
    let path = path.trim_end_matches('/');
    top(path).is_dir() || top(&format!("{path}.rs")).exists()
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
