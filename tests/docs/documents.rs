//! The documents, and their fenced blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// Documents besides the README. The pages of the book are found below `docs/src`.
const TOP: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "fixtures/README.md",
    "packaging/README.md",
    "schema/README.md",
    "tests/conformance/README.md",
];

/// A Markdown file of the repository.
pub struct Document {
    /// Its path from the repository root, with slashes.
    pub name: String,
    pub text: String,
}

/// A fenced block, with the line above it.
pub struct Block<'a> {
    /// The text after the opening fence, such as `sh`.
    pub language: &'a str,
    /// The lines between the fences.
    pub text: &'a str,
    /// The last non-empty line before the fence.
    pub before: &'a str,
}

/// A path from the repository root.
pub fn top(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// All documents, sorted by name.
pub fn documents() -> Vec<Document> {
    let mut names: Vec<String> = TOP.iter().map(|name| (*name).to_owned()).collect();
    find("docs/src", &mut names);
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(top(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Document { name, text }
    };
    names.into_iter().map(read).collect()
}

fn find(folder: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(top(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            find(&name, names);
        } else if name.ends_with(".md") {
            names.push(name);
        }
    }
}

impl Document {
    /// The document of that name.
    pub fn find<'a>(documents: &'a [Document], name: &str) -> &'a Document {
        documents.iter().find(|document| document.name == name).unwrap()
    }

    /// Whether it is a page of the book.
    pub fn is_page(&self) -> bool {
        self.name.starts_with("docs/src/")
    }

    pub fn write(&self, text: &str) {
        fs::write(top(&self.name), text).unwrap();
    }

    /// Its fenced blocks, in order.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut open: Option<(&str, usize)> = None;
        let (mut at, mut before) = (0, "");
        for line in self.text.split_inclusive('\n') {
            if let Some(fence) = line.trim().strip_prefix("```") {
                match open.take() {
                    None => open = Some((fence, at + line.len())),
                    Some((language, from)) => {
                        blocks.push(Block { language, text: &self.text[from..at], before });
                        before = "";
                    }
                }
            } else if open.is_none() && !line.trim().is_empty() {
                before = line.trim();
            }
            at += line.len();
        }
        blocks
    }

    /// The text without fenced blocks.
    pub fn prose(&self) -> String {
        let mut fenced = false;
        let mut prose = String::new();
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                prose.push_str(line);
                prose.push('\n');
            }
        }
        prose
    }
}
