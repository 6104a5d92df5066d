//! Links between documents: the file and the heading must exist.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::documents::{Document, top};

/// The target of a link: a file and a heading in it, each possibly empty.
struct Link {
    target: String,
    anchor: String,
}

/// The links in a document's prose, including images. Code is ignored.
fn links(document: &Document) -> Vec<Link> {
    let prose = document.prose();
    let outside: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let rest = outside.split("](").skip(1);
    let targets = rest.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let link = |target: &str| {
        let (target, anchor) = target.split_once('#').unwrap_or((target, ""));
        Link { target: target.to_owned(), anchor: anchor.to_owned() }
    };
    targets.map(link).collect()
}

/// Broken links. URLs are not tried.
pub fn violations(documents: &[Document]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut count = 0;
    for document in documents {
        for link in links(document) {
            count += 1;
            if let Err(problem) = check(document, &link, documents) {
                let Link { target, anchor } = &link;
                violations.push(format!("{}: ({target}#{anchor}): {problem}", document.name));
            }
        }
    }
    assert!(count > 50, "{count} links were found");
    violations
}

fn check(document: &Document, link: &Link, documents: &[Document]) -> Result<(), String> {
    if link.target.contains("://") {
        return Ok(());
    }
    let folder = Path::new(&document.name).parent().unwrap();
    let path = match link.target.as_str() {
        "" => document.name.clone(),
        target => plain(&folder.join(target)),
    };
    if !top(&path).exists() {
        return Err("there is no such file".into());
    }
    if document.is_page() && !path.starts_with("docs/src/") {
        return Err("a page of the book links only within the book".into());
    }
    let named = documents.iter().find(|other| other.name == path);
    match (link.anchor.as_str(), named) {
        ("", _) => Ok(()),
        (anchor, Some(other)) if anchors(other).contains(anchor) => Ok(()),
        (anchor, _) => Err(format!("there is no heading #{anchor}")),
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts.to_string_lossy().into_owned()
}

/// The anchors that code hosts and mdBook generate for a document's headings.
fn anchors(document: &Document) -> BTreeSet<String> {
    let prose = document.prose();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Pages that are missing in the book's table of contents.
pub fn missing_in_the_contents(documents: &[Document]) -> Vec<String> {
    let contents = Document::find(documents, "docs/src/SUMMARY.md");
    let named: BTreeSet<String> =
        links(contents).into_iter().map(|link| format!("docs/src/{}", link.target)).collect();
    let pages = documents.iter().filter(|document| document.is_page());
    let missing = pages.filter(|page| page.name != contents.name && !named.contains(&page.name));
    missing.map(|page| format!("{} does not name {}", contents.name, page.name)).collect()
}
