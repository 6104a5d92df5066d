//! The rules. Each looks at all sources and gives its violations as `place: what is wrong`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::scan::Source;

/// A rule.
pub type Rule = fn(&[Source]) -> Vec<String>;

/// All rules about Rust sources.
pub const ALL: &[Rule] = &[
    files_say_what_they_are_for,
    files_are_short,
    functions_are_short,
    layers_import_one_way,
    engine_is_pure,
    nothing_panics_on_purpose,
    nothing_is_left_undone,
    plugins_have_tests,
];

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 70;
const FUNCTION_MEDIAN: usize = 12;

/// The program's layers, each with those it may import, and the names under which it has the
/// packages below it.
const LAYERS: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("output", &[]),
    ("intern", &[]),
    ("api", &["intern"]),
    ("config", &["intern", "api"]),
    ("engine", &["intern", "api", "config"]),
    ("trace", &["intern", "api", "config", "engine"]),
    ("source", &["words", "intern", "api", "config"]),
    ("fixtures", &[]),
    ("sim", &["words", "intern", "api", "config", "engine", "trace", "source"]),
    ("extender_client", &["intern", "api", "config", "engine", "sim"]),
    ("debug", &["words", "intern", "api", "config", "engine", "trace", "source", "sim"]),
    (
        "live",
        &[
            "words", "output", "intern", "api", "config", "engine", "trace", "source", "sim",
            "debug",
        ],
    ),
    (
        "report",
        &[
            "words", "output", "intern", "api", "config", "engine", "trace", "source", "sim",
            "debug", "live",
        ],
    ),
    (
        "tui",
        &[
            "words", "output", "intern", "api", "config", "engine", "trace", "source", "sim",
            "debug", "live", "report",
        ],
    ),
    (
        "cli",
        &[
            "words",
            "output",
            "intern",
            "api",
            "config",
            "engine",
            "extender_client",
            "trace",
            "source",
            "fixtures",
            "sim",
            "debug",
            "live",
            "report",
            "tui",
        ],
    ),
];

/// The packages without clock, chance and I/O.
const PURE: &[&str] = &["cel", "framework", "plugins", "scheduler"];

/// What they must not know: clocks, chance, the outside, and maps whose order is chance.
const IMPURE: &[&str] = &[
    "std::time",
    "Instant",
    "SystemTime",
    "rand",
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "tokio",
    "kube",
    "k8s_openapi",
    "ratatui",
    "crossterm",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "println!",
    "eprintln!",
];

const PANICS: &[&str] =
    &[".unwrap()", ".expect(", "panic!", "unreachable!", "assert!", "assert_eq!", "unsafe"];

/// Plugins whose behaviour a category of the corpus holds.
const IN_CORPUS: &[(&str, &str)] = &[
    ("default_preemption", "preemption"),
    ("image_locality", "images"),
    ("inter_pod_affinity", "interpod"),
    ("node_affinity", "node_affinity"),
    ("node_name", "ports_names"),
    ("node_ports", "ports_names"),
    ("node_resources", "fit_strategy"),
    ("node_volume_limits", "volumes"),
    ("pod_topology_spread", "topology_spread"),
    ("taint_toleration", "taints"),
    ("volume_binding", "volumes"),
    ("volume_restrictions", "volumes"),
    ("volume_zone", "volumes"),
    ("dynamic_resources", "dra"),
];

const UNDONE: &[&str] = &["todo!", "unimplemented!", "#[ignore", "allow(dead_code", "allow(unused"];

fn files_say_what_they_are_for(sources: &[Source]) -> Vec<String> {
    let silent = sources.iter().filter(|source| !source.text.starts_with("//! "));
    silent.map(|source| format!("{}: does not start with `//!`", source.path.display())).collect()
}

fn files_are_short(sources: &[Source]) -> Vec<String> {
    let lines = sources.iter().map(|source| (source, source.text.lines().count()));
    let long = lines.filter(|(_, lines)| *lines >= FILE_LINES);
    long.map(|(source, lines)| format!("{}: {lines} lines", source.path.display())).collect()
}

fn functions_are_short(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut lengths = Vec::new();
    for source in sources {
        let functions = source.functions();
        for function in functions.iter().filter(|function| function.lines > FUNCTION_LINES) {
            let (name, lines) = (&function.name, function.lines);
            let place = format!("{}:{}", source.path.display(), function.line);
            violations.push(format!("{place}: function {name} has {lines} lines"));
        }
        if !source.production.trim().is_empty() {
            lengths.extend(functions.iter().map(|function| function.lines));
        }
    }
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    if median >= FUNCTION_MEDIAN {
        violations.push(format!("src: the median function has {median} lines"));
    }
    violations
}

fn layers_import_one_way(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let layer = source.layer();
        if layer.is_empty() {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            violations.push(format!("{}: {layer} is no layer", source.path.display()));
            continue;
        };
        for (at, name) in crate_imports(&source.production) {
            let known = LAYERS.iter().any(|(layer, _)| *layer == name);
            if known && name != layer && !allowed.contains(&name.as_str()) {
                violations.push(format!("{}: {layer} imports {name}", source.place(at)));
            }
        }
    }
    violations
}

/// The modules named right behind `crate::`, groups included, with their offsets.
fn crate_imports(code: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        let rest = &code[at + start.len()..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if !rest.starts_with('{') {
            names.push((at, rest.chars().take_while(|c| is_word(*c)).collect()));
            continue;
        }
        let mut depth = 0;
        let mut item_starts = false;
        for (offset, c) in rest.char_indices() {
            match c {
                '{' => (depth, item_starts) = (depth + 1, depth == 0),
                '}' => depth -= 1,
                ',' => item_starts = depth == 1,
                c if is_word(c) && item_starts => {
                    let name = rest[offset..].chars().take_while(|c| is_word(*c)).collect();
                    names.push((at, name));
                    item_starts = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// Places where one of `words` stands by itself.
fn words<'a>(code: &'a str, words: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    words.iter().flat_map(move |word| {
        let alone = move |(at, _): &(usize, &str)| {
            let before = code[..*at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            let starts = !word.starts_with(is_word) || !before.is_some_and(is_word);
            let ends = !word.ends_with(is_word) || !after.is_some_and(is_word);
            starts && ends
        };
        code.match_indices(word).filter(alone)
    })
}

fn engine_is_pure(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let is_pure = |path: &Path| PURE.iter().any(|name| path.starts_with(format!("crates/{name}")));
    for source in sources.iter().filter(|source| is_pure(&source.path)) {
        for (at, word) in words(&source.production, IMPURE) {
            violations.push(format!("{}: the engine must not know {word}", source.place(at)));
        }
    }
    violations
}

fn nothing_panics_on_purpose(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        for (at, word) in words(&source.production, PANICS) {
            violations.push(format!("{}: {word} outside of tests", source.place(at)));
        }
    }
    violations
}

fn nothing_is_left_undone(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        for (at, word) in words(&source.code, UNDONE) {
            violations.push(format!("{}: {word}", source.place(at)));
        }
    }
    violations
}

/// Every plugin has tests in its file or folder, or a category of the corpus.
fn plugins_have_tests(sources: &[Source]) -> Vec<String> {
    let folder = Path::new("crates/plugins/src");
    // A plugin is known by its file or folder right below `plugins`.
    let entry = |source: &Source| {
        let rest = source.path.strip_prefix(folder).ok()?;
        let first = rest.iter().next()?.to_string_lossy();
        Some(first.trim_end_matches(".rs").to_owned())
    };
    let with = |wanted: fn(&Source) -> bool| -> BTreeSet<String> {
        sources.iter().filter(|source| wanted(source)).filter_map(entry).collect()
    };
    let mut untested = with(|source| source.production.contains("impl Plugin for"));
    for tested in with(|source| source.code.contains("#[test]")) {
        untested.remove(&tested);
    }
    untested.retain(|plugin| !IN_CORPUS.iter().any(|(covered, _)| covered == plugin));
    untested.iter().map(|plugin| format!("{}: no tests", folder.join(plugin).display())).collect()
}

/// The categories that [`IN_CORPUS`] names are there.
pub fn missing_categories(exists: impl Fn(&str) -> bool) -> Vec<String> {
    let files = IN_CORPUS.iter().map(|(_, name)| format!("tests/conformance/{name}.jsonl.gz"));
    files.filter(|file| !exists(file)).map(|file| format!("{file}: not there")).collect()
}

/// Places in any text that name the machine it was written on.
pub fn machine_paths(path: &Path, text: &str) -> Vec<String> {
    let roots = ["work", "root", "home", "tmp/k8s"].map(|root| format!("/{root}/"));
    let mut violations = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for root in roots.iter().filter(|root| line.contains(root.as_str())) {
            violations.push(format!("{}:{}: names {root}", path.display(), number + 1));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_seen_one_by_one_and_in_groups() {
        let names =
            |code| crate_imports(code).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names("use crate::api::{Pod, tui};"), ["api"]);
        assert_eq!(
            names("use crate::{api::{Pod, Node}, engine, tui::App};"),
            ["api", "engine", "tui"]
        );
    }

    #[test]
    fn a_wrong_import_is_reported_with_its_place() {
        let text =
            "//! Trace.\n\nuse crate::sim::World;\n#[cfg(test)]\nmod t { use crate::tui; }\n";
        let sources = [Source::new(Path::new("src/trace/x.rs"), text)];
        assert_eq!(layers_import_one_way(&sources), ["src/trace/x.rs:3: trace imports sim"]);
    }

    #[test]
    fn words_stand_alone() {
        let found: Vec<&str> =
            words("brand rand random", &["rand"]).map(|(_, word)| word).collect();
        assert_eq!(found, ["rand"]);
        let text = "//! X.\nfn a() { b.unwrap(); c.unwrap_or(1); debug_assert!(d) }\n";
        let sources = [Source::new(Path::new("crates/api/src/x.rs"), text)];
        assert_eq!(
            nothing_panics_on_purpose(&sources),
            ["crates/api/src/x.rs:2: .unwrap() outside of tests"]
        );
    }
}
