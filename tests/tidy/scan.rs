//! Reads Rust well enough to measure it: blanks out comments and literals, finds functions,
//! and knows which lines are tests.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// What makes an item part of the tests; literals are blanked out already.
const TEST_ITEMS: &[&str] = &["#[cfg(test)]", "#[cfg(any(test, feature =          ))]"];

/// A source file.
pub struct Source {
    /// From the top level.
    pub path: PathBuf,
    /// As written.
    pub text: String,
    /// The same length, with comments and the insides of literals blanked out.
    pub code: String,
    /// The same, with test items blanked out too.
    pub production: String,
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

impl Source {
    /// Reads a file's text.
    pub fn new(path: &Path, text: &str) -> Source {
        let code = blank_literals(text);
        let in_tests = below_root(path).is_none() || path.ends_with("tests.rs");
        let production = if in_tests { blank_all(&code) } else { blank_tests(&code) };
        Source { path: path.to_path_buf(), text: text.to_owned(), code, production }
    }

    /// The layer: the folder or file right below the program's `src`; empty for crate roots and in
    /// the other packages, whose layers Cargo guards.
    pub fn layer(&self) -> String {
        let first = self.path.strip_prefix("src").ok().and_then(|path| path.iter().next());
        let name = first.unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(".rs").to_owned();
        if matches!(name.as_str(), "lib" | "main") { String::new() } else { name }
    }

    /// The line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        line_of(&self.code, offset)
    }

    /// `path:line` of a byte offset.
    pub fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path.display(), self.line(offset))
    }

    /// The functions with a body, nested ones too.
    pub fn functions(&self) -> Vec<Function> {
        functions(&self.code)
    }
}

/// The path from a package's `src` on; `None` outside of packages' sources.
fn below_root(path: &Path) -> Option<&Path> {
    let package = match path.strip_prefix("crates") {
        Ok(rest) => rest.strip_prefix(rest.iter().next()?).ok()?,
        Err(_) => path,
    };
    package.strip_prefix("src").ok()
}

/// Files behind `#[cfg(test)] mod name;` are tests as well.
pub fn mark_test_modules(sources: &mut [Source]) {
    let mut prefixes = Vec::new();
    for source in sources.iter() {
        let folder = match source.path.file_name().and_then(|name| name.to_str()) {
            Some("mod.rs" | "lib.rs" | "main.rs") => source.path.with_file_name(""),
            _ => source.path.with_extension(""),
        };
        prefixes.extend(test_modules(&source.code).iter().map(|name| folder.join(name)));
    }
    for source in sources {
        let is_test = |prefix: &PathBuf| {
            source.path.starts_with(prefix) || source.path == prefix.with_extension("rs")
        };
        if prefixes.iter().any(is_test) {
            source.production = blank_all(&source.code);
        }
    }
}

/// Names of the modules in other files that are declared under `#[cfg(test)]`.
fn test_modules(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let items = TEST_ITEMS.iter().flat_map(|attribute| code.match_indices(attribute));
    for (at, attribute) in items {
        let rest = code[at + attribute.len()..].trim_start();
        let line = rest.split(';').next().unwrap_or_default();
        let Some(at) = line.rfind("mod ").filter(|at| is_visibility(&line[..*at])) else {
            continue;
        };
        let rest = &rest[at + "mod ".len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
        if rest[end..].starts_with(';') {
            names.push(&rest[..end]);
        }
    }
    names
}

/// Whether the text is nothing, `pub`, or `pub(…)`.
fn is_visibility(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == "pub" || (text.starts_with("pub(") && text.ends_with(')'))
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The text with spaces in the ranges; line breaks stay.
fn blank(text: &str, ranges: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in ranges.iter().cloned().flat_map(|range| range.into_iter()) {
        if bytes[byte] != b'\n' {
            bytes[byte] = b' ';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn blank_all(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// Blanks out comments and the insides of strings and characters.
fn blank_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(text, at);
        if let Some(end) = end {
            ranges.push(at..end);
        }
        at = end.unwrap_or(at + 1);
    }
    blank(text, &ranges)
}

/// Where the comment or literal that starts at `at` ends, if one does.
fn literal_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    let in_word = at > 0 && is_word(text.as_bytes()[at - 1]);
    match rest {
        [b'/', b'/', ..] => Some(at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(at + block_comment(rest)),
        [b'"', ..] => Some(at + quoted(rest)),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string(&rest[1..]).map(|len| at + 1 + len),
        [b'b', b'r', b'"' | b'#', ..] if !in_word => raw_string(&rest[2..]).map(|len| at + 2 + len),
        [b'\'', b'\\', ..] => Some(at + 3 + find(&rest[3..], b"'")? + 1),
        [b'\'', ..] => {
            // A lifetime has no closing quote after one character.
            let first = text[at + 1..].chars().next()?;
            let close = 1 + first.len_utf8();
            (rest.get(close) == Some(&b'\'')).then_some(at + close + 1)
        }
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of `#…"…"#…`; `None` when it is no raw string but a raw identifier.
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes.iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = hashes + 1;
    Some(body + find(&bytes[body..], &close)? + close.len())
}

/// Blanks out the items under `#[cfg(test)]` and `#[test]`.
fn blank_tests(code: &str) -> String {
    let mut ranges = Vec::new();
    for attribute in TEST_ITEMS.iter().chain(&["#[test]"]) {
        for (at, _) in code.match_indices(attribute) {
            ranges.push(at..item_end(code, at + attribute.len()));
        }
    }
    blank(code, &ranges)
}

/// Where the item that starts at `from` ends: at its `;`, or at its closing brace.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
        if byte == b'}' && depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = at == 0 || !is_word(code.as_bytes()[at - 1]);
        let name: String =
            code[at + 3..].bytes().take_while(|b| is_word(*b)).map(char::from).collect();
        let end = item_end(code, at);
        if starts_word && !name.is_empty() && code[..end].ends_with('}') {
            let line = line_of(code, at);
            found.push(Function { name, line, lines: line_of(code, end) - line + 1 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let text = r##"a /* b /* c */ d */ e "f\"g" h r#"i"j"# k 'l' '\'' &'m n // o"##;
        let code = blank_literals(text);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "e", "h", "k", "&'m", "n"]);
        assert_eq!(code.len(), text.len());
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let text = "trait T {\n    fn a();\n    fn b(x: [u8; 2]) {\n        '{';\n    }\n}\n";
        let found = functions(&blank_literals(text));
        assert_eq!(found, [Function { name: "b".into(), line: 3, lines: 3 }]);
    }

    #[test]
    fn tests_are_no_production_code() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new(Path::new("src/x/y.rs"), text);
        let words: Vec<&str> = source.production.split_whitespace().collect();
        assert_eq!(words, ["fn", "a()", "{}", "fn", "c()", "{}"]);
        assert_eq!(source.layer(), "x");
        assert_eq!(
            test_modules("#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod in_here {}"),
            ["tests"]
        );
    }
}
