//! Holds the table of what shows each item of the behaviour reference
//! (`tests/conformance/COVERAGE.md`) to the files and to the ids in the code.

use std::collections::{BTreeMap, BTreeSet};

/// A row of the table.
pub struct Row {
    id: String,
    shown: Vec<String>,
    how: String,
}

/// The rows of a table, in order.
pub fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [id, shown, how] = cells.as_slice() else { return None };
        is_id(id).then(|| Row {
            id: (*id).to_owned(),
            shown: shown.split("; ").map(str::to_owned).collect(),
            how: (*how).to_owned(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// `FIT-003`: letters, a hyphen, three digits.
fn is_id(text: &str) -> bool {
    let Some((letters, digits)) = text.split_once('-') else { return false };
    !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_uppercase())
        && digits.len() == 3
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is wrong with the table itself; `exists` says whether a file is there.
pub fn violations(rows: &[Row], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert(&row.id) {
            violations.push(format!("{}: stands there twice", row.id));
        }
        let first = row.shown.first().map(String::as_str).unwrap_or_default();
        let told = ["n/a: ", "open: "].iter().find_map(|kind| first.strip_prefix(kind));
        match told {
            Some(reason) if reason.is_empty() || row.how != "–" => {
                violations.push(format!("{}: {first:?} as {:?}", row.id, row.how));
            }
            Some(_) => {}
            None => violations.extend(missing(row, &exists)),
        }
    }
    violations
}

/// What a row names that is not there.
fn missing(row: &Row, exists: &impl Fn(&str) -> bool) -> Vec<String> {
    let mut violations = Vec::new();
    if !["named", "words", "hand", "area"].contains(&row.how.as_str()) {
        violations.push(format!("{}: {:?} is no way to know", row.id, row.how));
    }
    let mut files = Vec::new();
    for shown in &row.shown {
        let file = shown.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        match (file, shown.strip_prefix("corpus: ")) {
            (Some(file), _) => files.push(file.to_owned()),
            (_, Some(categories)) => {
                let file = |category: &str| format!("tests/conformance/{category}.jsonl.gz");
                files.extend(categories.split(", ").map(file));
            }
            _ => violations.push(format!("{}: {shown:?} is neither file nor category", row.id)),
        }
    }
    let gone = files.iter().filter(|file| !exists(file));
    violations.extend(gone.map(|file| format!("{}: there is no {file}", row.id)));
    violations
}

/// Ids that a source names but the table does not.
pub fn unlisted(rows: &[Row], source: &str) -> BTreeSet<String> {
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        let (letters, digits) = row.id.split_once('-').unwrap_or_default();
        listed.entry(letters).or_default().insert(digits);
    }
    let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let ids = words.filter(|word| is_id(word));
    let unlisted = ids.filter(|id| {
        let (letters, digits) = id.split_once('-').unwrap_or_default();
        listed.get(letters).is_some_and(|known| !known.contains(digits))
    });
    unlisted.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_held_to_what_it_names() {
        let table = "| id | shown by | how |\n| --- | --- | --- |\n\
                     | FIT-001 | corpus: fit, gone; `src/a.rs` | words |\n\
                     | FIT-001 | n/a: metrics | – |\n\
                     | FIT-002 | open:  | – |\n\
                     | FIT-003 | `src/b.rs` | maybe |\n";
        let exists = |file: &str| ["src/a.rs", "tests/conformance/fit.jsonl.gz"].contains(&file);
        let expected = [
            "FIT-001: there is no tests/conformance/gone.jsonl.gz",
            "FIT-001: stands there twice",
            "FIT-002: \"open: \" as \"–\"",
            "FIT-003: \"maybe\" is no way to know",
            "FIT-003: there is no src/b.rs",
        ];
        assert_eq!(violations(&rows(table), exists), expected);
    }

    #[test]
    fn ids_of_the_code_are_looked_up() {
        let rows = rows("| FIT-001 | `src/a.rs` | hand |\n");
        let source = "// FIT-001, FIT-002…FIT-004; CVE-123, XFIT-009";
        let expected = ["FIT-002", "FIT-004"].map(str::to_owned);
        assert_eq!(unlisted(&rows, source), BTreeSet::from(expected));
    }
}
