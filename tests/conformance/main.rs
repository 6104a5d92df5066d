//! Comparison with recorded decisions of kube-scheduler, each scenario under the version that it
//! was recorded with.
//!
//! Prints a table for each version, `category passed/total`, and the first difference of each
//! failing scenario. All must agree.
//!
//! - `KUBESTEP_CONFORMANCE_DIR`: additional folders of such files, or of folders of them.
//! - `KUBESTEP_CONFORMANCE_ONLY`: `CATEGORY[/SCENARIO],…` to run a part.

mod compare;
mod config;
mod corpus;
#[path = "../why/explained.rs"]
mod explained;
mod extender;
#[path = "../why/rendered.rs"]
mod rendered;
mod scenario;
#[path = "../why/scored.rs"]
mod scored;
mod upgrade;

use std::any::Any;
use std::collections::BTreeSet;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use kubestep_config::KubeVersion;
use kubestep_framework::tie_break::TieBreak;
use rayon::prelude::*;
use serde_json::Value;

use corpus::{Category, Selection};

/// The categories of the default version in the repository.
const COMPLETE: &[&str] = &[
    "batching",
    "capacity_scheduling",
    "config",
    "coscheduling",
    "dra",
    "dra_gates",
    "events",
    "extenders",
    "fit",
    "fit_strategy",
    "gang",
    "images",
    "interpod",
    "node_affinity",
    "node_resource_topology",
    "node_resource_topology_cache",
    "node_resources_allocatable",
    "nominated",
    "pod_state",
    "ports_names",
    "preemption",
    "preemption_toleration",
    "priority_queue",
    "profiles",
    "qos_sort",
    "quantity",
    "recombined",
    "sampling",
    "soup",
    "spread_defaults",
    "taints",
    "topology_spread",
    "volumes",
];

/// Scenarios in which kube-scheduler made a random choice, and the tie break that makes the same
/// choice: with it every field agrees. All others agree under [`TieBreak::Upstream`].
const DRAWN: &[(&str, TieBreak, &str)] = &[
    (
        "events-11-0034",
        TieBreak::Seed(66),
        "one event moves several pods of one priority and time, in the order of a walk over a Go \
         map that began at the second slot",
    ),
    ("volumes-11-0031", TieBreak::Seed(66), "the same, of a walk that began at the third slot"),
    ("gang-35-0035", TieBreak::Seed(66), "the same, of four pods that a new node moves"),
];

/// The tie break of a scenario.
fn choice(name: &str) -> TieBreak {
    DRAWN.iter().find(|(drawn, ..)| *drawn == name).map_or(TieBreak::Upstream, |drawn| drawn.1)
}

#[test]
fn the_corpus_agrees() {
    let folders = corpus::all_folders();
    let selection = Selection::of_variable(&folders);
    let (mut compared, mut incomplete) = (0, Vec::new());
    for folder in &folders {
        let (more, problems) = check_folder(folder, &selection);
        compared += more;
        incomplete.extend(problems);
    }
    assert!(compared > 0, "there are no scenarios in {folders:?}");
    assert!(incomplete.is_empty(), "must be complete: {}", incomplete.join(", "));
}

#[test]
fn every_required_category_is_there() {
    let there = corpus::read_folder(&corpus::own_folder());
    let there: Vec<String> = there.into_iter().flatten().map(|category| category.name).collect();
    let missing: Vec<_> =
        COMPLETE.iter().filter(|name| !there.iter().any(|t| t == *name)).collect();
    assert!(missing.is_empty(), "not in the corpus: {missing:?}");
}

#[test]
fn every_version_before_is_there() {
    let folders = corpus::with_subfolders(&corpus::own_folder());
    let read = folders.iter().flat_map(|folder| corpus::read_folder(folder)).flatten();
    let there: BTreeSet<KubeVersion> = corpus::by_version(read.collect()).into_keys().collect();
    let proved: BTreeSet<KubeVersion> = KubeVersion::all().filter(|v| v.is_proved()).collect();
    assert_eq!(there, proved);
}

#[test]
fn what_was_drawn_is_in_the_corpus_and_needs_its_choice() {
    let folders = corpus::with_subfolders(&corpus::own_folder());
    let categories: Vec<Category> =
        folders.iter().flat_map(|folder| corpus::read_folder(folder)).flatten().collect();
    for (name, choice, _) in DRAWN {
        let found = categories
            .iter()
            .flat_map(|category| &category.scenarios)
            .find(|scenario| scenario.get("name").and_then(Value::as_str) == Some(*name));
        let agrees = |choice| scenario::compare(found.unwrap(), choice).is_ok();
        assert!(agrees(*choice), "{name} differs under {choice}");
        assert!(!agrees(TieBreak::Upstream), "{name} agrees without a choice: leave it out");
    }
}

#[test]
fn every_rejection_is_explained() {
    let folders = corpus::all_folders();
    let selection = Selection::of_variable(&folders);
    let read: Vec<Category> =
        folders.iter().flat_map(|folder| corpus::read_folder(folder)).flatten().collect();
    let mut failures = Vec::new();
    for (version, categories) in corpus::by_version(read) {
        let (explained, failed) = unexplained(&categories, &selection);
        print(&[format!("explained {version}: {explained} scenarios")]);
        failures.extend(failed.into_iter().map(|text| format!("{version} {text}")));
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

/// Categories without decisions, and gangs, of which one cycle schedules all pods in sequence.
const NOT_EXPLAINED: [&str; 3] = ["config", "gang", "quantity"];

/// The number of scenarios with a cause for every rejection, and what the others lack.
fn unexplained(categories: &[Category], selection: &Selection) -> (usize, Vec<String>) {
    let plain = categories.iter().filter(|c| !NOT_EXPLAINED.contains(&c.name.as_str()));
    let selected = plain.filter(|category| selection.has_category(&category.name));
    let (mut explained, mut failures) = (0, Vec::new());
    for category in selected {
        for (name, result) in run(category, selection, scenario::explain) {
            match result {
                Ok(()) => explained += 1,
                Err(problem) => failures.push(format!("{}/{name}: {problem}", category.name)),
            }
        }
    }
    (explained, failures)
}

/// Runs the selected scenarios of a folder and prints a table for each version. Returns the number
/// of scenarios compared, and the categories that do not agree completely.
fn check_folder(folder: &Path, selection: &Selection) -> (usize, Vec<String>) {
    let categories = match corpus::read_folder(folder) {
        Ok(categories) => categories,
        Err(error) => return (0, vec![error]),
    };
    let (mut compared, mut incomplete) = (0, Vec::new());
    for (version, categories) in corpus::by_version(categories) {
        let mut lines = vec![String::new(), format!("conformance {version}: {}", folder.display())];
        let selected = categories.iter().filter(|category| selection.has_category(&category.name));
        for category in selected {
            let (passed, total) = check_category(category, selection, &mut lines);
            compared += total;
            if passed < total {
                incomplete.push(format!("{version} {} {passed}/{total}", category.name));
            }
        }
        print(&lines);
    }
    (compared, incomplete)
}

/// Runs the selected scenarios of a category and adds its lines to the table. Returns how many
/// agree, and how many there are.
fn check_category(
    category: &Category,
    selection: &Selection,
    lines: &mut Vec<String>,
) -> (usize, usize) {
    let compare = match category.name.as_str() {
        "quantity" => compare::quantity,
        "config" => config::compare,
        _ => under_its_choice,
    };
    let results = run(category, selection, compare);
    let failed = |(name, result): &(String, Result<(), String>)| {
        result.as_ref().err().map(|text| format!("    {name}: {text}"))
    };
    let failures: Vec<_> = results.iter().filter_map(failed).collect();
    let (passed, total) = (results.len() - failures.len(), results.len());
    lines.push(format!("{} {passed}/{total}", category.name));
    lines.extend(failures);
    let drawn = DRAWN.iter().filter(|(drawn, ..)| results.iter().any(|(name, _)| name == drawn));
    lines.extend(drawn.map(|(name, choice, why)| format!("    {name} under {choice}: {why}")));
    (passed, total)
}

/// The test harness captures what is printed, but not what is written.
fn print(lines: &[String]) {
    #[expect(clippy::disallowed_methods, reason = "a test's own table")]
    let mut out = std::io::stdout().lock();
    let text = lines.join("\n") + "\n";
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Compares a scenario under its tie break.
fn under_its_choice(scenario: &Value) -> Result<(), String> {
    let name = scenario.get("name").and_then(Value::as_str).unwrap_or_default();
    scenario::compare(scenario, choice(name))
}

/// The selected scenarios of a category, with their results.
fn run(
    category: &Category,
    selection: &Selection,
    compare: fn(&Value) -> Result<(), String>,
) -> Vec<(String, Result<(), String>)> {
    let scenarios = category.scenarios.par_iter();
    let selected = scenarios.filter(|one| selection.has(&category.name, corpus::name(one)));
    selected.map(|one| (corpus::name(one).to_owned(), guarded(|| compare(one)))).collect()
}

/// A panic counts as a failure of that scenario.
fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let caught = panic::catch_unwind(AssertUnwindSafe(run));
    caught.unwrap_or_else(|payload| Err(format!("panic: {}", text_of(&*payload))))
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_with_its_text() {
        assert_eq!(guarded(|| panic!("out of {}", "luck")), Err("panic: out of luck".to_owned()));
        assert_eq!(guarded(|| Ok(())), Ok(()));
    }
}
