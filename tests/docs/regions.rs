//! What documents show of the program, made by the program: each region follows a mark in a comment.
//!
//! - `printed by: kubestep LINE` or `printed by: kubestep LINE; PART`: a `console` block;
//! - `kubestep render OPTIONS`: a `text` block with a picture of the screen;
//! - `table: NAME`, up to `end of table`: a table of [`super::tables`].
//!
//! The program runs in `docs/src/examples`.

use std::fs;

use crate::documents::{Document, top};
use crate::names::words;
use crate::{tables, updating};

const PRINTED: &str = "<!-- printed by: kubestep ";
const DRAWN: &str = "<!-- kubestep render ";
const TABLE: &str = "<!-- table: ";
const END_OF_TABLE: &str = "<!-- end of table -->\n";

/// The document with every region made again; adds the names of the tables that it has to `used`.
pub fn remake(document: &Document, used: &mut Vec<&'static str>) -> String {
    let mut made = String::new();
    let mut rest = document.text.as_str();
    while let Some(line) = rest.split_inclusive('\n').next() {
        made.push_str(line);
        rest = &rest[line.len()..];
        let Some((kind, options)) = mark(line) else { continue };
        let (start, end, content) = match kind {
            PRINTED => ("```console\n", "```\n", printed(options)),
            DRAWN => ("```text\n", "```\n", drawn(options)),
            _ => ("", END_OF_TABLE, table(options, used)),
        };
        let found = rest.find(start).zip(rest.find(start).and_then(|at| {
            let from = at + start.len();
            rest[from..].find(end).map(|at| from + at)
        }));
        let (from, to) = found.unwrap_or_else(|| panic!("{}: {line} has no block", document.name));
        made.push_str(&rest[..from + start.len()]);
        made.push_str(&content);
        rest = &rest[to..];
    }
    made
}

/// A mark's kind and what follows it.
fn mark(line: &str) -> Option<(&'static str, &str)> {
    let of = |kind: &'static str| {
        let options = line.trim_end().strip_prefix(kind)?.strip_suffix(" -->")?;
        Some((kind, options))
    };
    [PRINTED, DRAWN, TABLE].into_iter().find_map(of)
}

fn table(name: &str, used: &mut Vec<&'static str>) -> String {
    let (name, make) = tables::TABLES
        .iter()
        .find(|(table, _)| *table == name)
        .unwrap_or_else(|| panic!("there is no table {name}"));
    used.push(name);
    format!("\n{}\n\n", make().trim())
}

/// What the program prints for a line, or a part of it.
fn printed(options: &str) -> String {
    let (line, part) = options.split_once("; ").unwrap_or((options, ""));
    let text = output(line);
    let all: Vec<&str> = text.lines().collect();
    let (from, to) =
        part_of(&all, part).unwrap_or_else(|| panic!("kubestep {line}; {part}: {text}"));
    let before = if from > 0 { "…\n" } else { "" };
    let after = if to < all.len() { "…\n" } else { "" };
    format!("$ kubestep {line}\n{before}{}\n{after}", all[from..to].join("\n"))
}

/// The lines of `lines 2 to 5`, of `paragraph 3` or of `last paragraph`, and of these as many as
/// `, 4 lines` says. All lines if `part` is empty; `None` if there are no such lines.
fn part_of(all: &[&str], part: &str) -> Option<(usize, usize)> {
    let (part, most) = part.split_once(", ").unwrap_or((part, ""));
    let most: usize = most.strip_suffix(" lines").map_or(Ok(usize::MAX), str::parse).ok()?;
    let (from, to) = if part.is_empty() {
        (0, all.len())
    } else if let Some((from, to)) = part.strip_prefix("lines ").and_then(|p| p.split_once(" to "))
    {
        (from.parse::<usize>().ok()?.checked_sub(1)?, to.parse::<usize>().ok()?.min(all.len()))
    } else {
        let starts = (0..all.len()).filter(|at| *at == 0 || all[at - 1].is_empty());
        let starts: Vec<usize> = starts.filter(|at| !all[*at].is_empty()).collect();
        let number = match part.strip_prefix("paragraph ") {
            Some(number) => number.parse::<usize>().ok()?.checked_sub(1)?,
            None => (part == "last paragraph").then(|| starts.len().checked_sub(1))??,
        };
        let from = *starts.get(number)?;
        (from, (from..all.len()).find(|at| all[*at].is_empty()).unwrap_or(all.len()))
    };
    (from < to).then(|| (from, to.min(from.saturating_add(most))))
}

fn drawn(options: &str) -> String {
    let picture = output(&format!("render {options}"));
    assert!(picture.lines().all(|line| line.chars().count() <= 100), "wide: {picture}");
    picture
}

/// Standard output of the program in the folder of examples.
pub fn output(line: &str) -> String {
    let output = assert_cmd::Command::cargo_bin("kubestep")
        .unwrap()
        .env_clear()
        .current_dir(top("docs/src/examples"))
        .args(words(line))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "kubestep {line}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Blocks that show output without a mark.
pub fn unmarked(document: &Document) -> Vec<String> {
    let wanted = |language| match language {
        "console" => Some(PRINTED),
        "text" => Some(DRAWN),
        _ => None,
    };
    let blocks = document.blocks().into_iter();
    let unmarked = blocks
        .filter(|block| wanted(block.language).is_some_and(|mark| !block.before.starts_with(mark)));
    let name = &document.name;
    unmarked.map(|block| format!("{name}: no mark before: {}", block.text)).collect()
}

/// Where two texts begin to differ.
pub fn first_difference(is: &str, should: &str) -> String {
    let pair = is.lines().zip(should.lines()).find(|(is, should)| is != should);
    let (is, should) = pair.unwrap_or(("the end", "another end"));
    format!(
        "says {is:?}, the program {should:?}; UPDATE_GOLDEN=1 cargo test --test docs rewrites it"
    )
}

/// The pictures of the screen, each with what is rendered in it.
const PICTURES: &[(&str, &str)] = &[
    ("filter", "--demo tour --keys nnnn3jjjj --size 110x26"),
    ("scores", "--demo tour --keys nn4 --size 110x20"),
    ("why", "--demo spread-skew --keys cgw --size 110x26"),
    ("preemption", "--demo preemption-budget --keys n8 --size 110x20"),
];

const FOLDER: &str = "docs/src/images";

/// Pictures that differ from the program's, that no document shows, or that nothing draws.
pub fn pictures(documents: &[Document]) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, screen) in PICTURES {
        let file = format!("{FOLDER}/{name}.svg");
        let picture = output(&format!("render {screen} -o svg"));
        assert!(picture.starts_with("<svg"), "{screen}");
        if updating() {
            fs::write(top(&file), &picture).unwrap();
        }
        if fs::read_to_string(top(&file)).unwrap_or_default() != picture {
            violations.push(format!("{file} is not what the program draws"));
        }
        let shown = |document: &Document| document.text.contains(&format!("images/{name}.svg)"));
        if !documents.iter().any(shown) {
            violations.push(format!("no document shows {file}"));
        }
    }
    for entry in fs::read_dir(top(FOLDER)).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".svg").unwrap_or_default();
        if !PICTURES.iter().any(|(picture, _)| *picture == name) {
            violations.push(format!("{FOLDER}/{file} is drawn by nothing"));
        }
    }
    violations
}
