//! The report on an upgrade, compared with the recordings of the same scenario under two versions:
//! it lists exactly the pods whose recorded outcomes differ, and the changes that it names, applied
//! to the older version, lead to what the newer one recorded.

use std::collections::{BTreeMap, BTreeSet};

use kubestep_config::{FeatureGates, KubeVersion};
use kubestep_debug::upgrade::{Aspect, OutcomeDifference, RunError, Upgrade, compare};
use kubestep_debug::{Session, trace::PodStates};
use rayon::prelude::*;
use serde_json::Value;

use crate::corpus::{self, Category, Selection};
use crate::scenario;

/// The most runs of one scenario.
const RUNS: usize = 300;

/// The recorded or computed outcome for a pod.
#[derive(Clone, Default, PartialEq, Debug)]
struct Outcome {
    /// The queue or node, and the nominated node.
    end: (String, String),
    /// Result, node and message of each attempt.
    attempts: Vec<[String; 3]>,
    /// The plugins that rejected it, in its queue.
    plugins: Vec<String>,
}

type Outcomes = BTreeMap<String, Outcome>;

#[test]
fn an_upgrade_is_explained_as_recorded() {
    let selection = Selection::of_variable(&corpus::all_folders());
    let (mut differing, mut pairs, mut failures) = (0, 0, Vec::new());
    for root in corpus::roots() {
        let folders = corpus::with_subfolders(&root).into_iter();
        let read = folders.flat_map(|folder| corpus::read_folder(&folder)).flatten();
        let versions = corpus::by_version(read.collect());
        for step in steps(&versions) {
            let results = step.check(&selection);
            pairs += results.len();
            differing += results.iter().filter(|result| **result == Ok(true)).count();
            failures.extend(results.into_iter().filter_map(Result::err));
        }
    }
    let agree = pairs - failures.len();
    crate::print(&[format!("upgrades {agree}/{pairs}, of which {differing} change something")]);
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

/// Two versions with their recordings.
struct Step<'a> {
    from: (KubeVersion, &'a [Category]),
    to: (KubeVersion, &'a [Category]),
    /// Of so many scenarios, one is compared.
    every: usize,
}

/// Each version with the next one, and the oldest with the newest; of the latter, which have many
/// differences, a part.
fn steps(versions: &BTreeMap<KubeVersion, Vec<Category>>) -> Vec<Step<'_>> {
    let all: Vec<_> = versions.iter().map(|(version, all)| (*version, all.as_slice())).collect();
    let next = all.windows(2).map(|pair| Step { from: pair[0], to: pair[1], every: 1 });
    let mut steps: Vec<Step<'_>> = next.collect();
    if let [first, _, .., last] = all.as_slice() {
        steps.push(Step { from: *first, to: *last, every: 4 });
    }
    steps
}

impl Step<'_> {
    /// The results for the scenarios that both versions recorded: whether something changes.
    fn check(&self, selection: &Selection) -> Vec<Result<bool, String>> {
        let (from, to) = (self.from.0, self.to.0);
        let older = scenarios(self.from.1, selection);
        let newer = scenarios(self.to.1, selection);
        let both = older.iter().filter_map(|(name, a)| Some((name, *a, *newer.get(name)?)));
        let pairs: Vec<_> =
            both.filter(|(_, a, b)| same_question(a, b)).step_by(self.every).collect();
        let named = |name: &str, result: Result<bool, String>| {
            result.map_err(|problem| format!("{from} to {to} {name}: {problem}"))
        };
        pairs.into_par_iter().map(|(name, a, b)| named(name, explained(a, b))).collect()
    }
}

fn scenarios<'a>(all: &'a [Category], selection: &Selection) -> BTreeMap<String, &'a Value> {
    let plain =
        all.iter().filter(|all| !["quantity", "config", "gang"].contains(&all.name.as_str()));
    let selected = plain.flat_map(|category| {
        let scenarios = category.scenarios.iter();
        scenarios
            .filter_map(|one| Some((one.get("name")?.as_str()?, one)))
            .filter(|(name, _)| selection.has(&category.name, name))
    });
    selected.map(|(name, scenario)| (name.to_owned(), scenario)).collect()
}

/// Whether two recordings are of the same input.
fn same_question(a: &Value, b: &Value) -> bool {
    ["objects", "steps", "config", "extenders"].iter().all(|field| a.get(field) == b.get(field))
}

/// Compares one scenario; whether something changes.
fn explained(a: &Value, b: &Value) -> Result<bool, String> {
    let (from, to) = (corpus::gates(a)?, corpus::gates(b)?);
    let (old, new) = (recorded(a), recorded(b));
    let run = |gates: FeatureGates| scenario::played(a, gates).map_err(RunError::Rejected);
    let upgrade = compare(from, to, &run, RUNS).map_err(|error| error.to_string())?;
    let found: BTreeSet<(String, Aspect)> =
        upgrade.pods.iter().map(|one| (one.pod.to_string(), one.aspect)).collect();
    let expected = differences(&old, &new);
    if found != expected {
        return Err(format!("found {found:?}, recorded {expected:?}"));
    }
    upgrade.pods.iter().try_for_each(|one| leads_there(one, (from, to), &run, &new, &upgrade))?;
    Ok(!upgrade.is_empty())
}

/// Applies the changes that a difference names, and compares with the newer recording.
fn leads_there(
    difference: &OutcomeDifference,
    (from, to): (FeatureGates, FeatureGates),
    run: &dyn Fn(FeatureGates) -> Result<Session, RunError>,
    recorded: &Outcomes,
    upgrade: &Upgrade,
) -> Result<(), String> {
    let (name, cause) = (difference.pod.to_string(), &difference.cause);
    if cause.changes.is_empty() || cause.changes.iter().any(|one| !upgrade.changes.contains(one)) {
        return Err(format!("{name}: {:?} is no cause", cause.changes));
    }
    let gates = cause.changes.iter().fold(from, |gates, change| change.applied(gates, to));
    let got = computed(&run(gates).map_err(|error| error.to_string())?);
    let of = |all: &Outcomes| part(all.get(&name), difference.aspect);
    match of(&got) == of(recorded) {
        true => Ok(()),
        false => Err(format!("{name}: {:?} lead to {:?}", cause.changes, of(&got))),
    }
}

/// The part of an outcome that an aspect is about.
fn part(outcome: Option<&Outcome>, aspect: Aspect) -> Outcome {
    let outcome = outcome.cloned().unwrap_or_default();
    match aspect {
        Aspect::End => Outcome { end: outcome.end, ..Outcome::default() },
        Aspect::Message => {
            let last = outcome.attempts.last().map(|[_, _, message]| message.clone());
            let attempts = vec![[String::new(), String::new(), last.unwrap_or_default()]];
            Outcome { attempts, ..Outcome::default() }
        }
        Aspect::Attempts => outcome,
    }
}

/// The differences of two recordings.
fn differences(old: &Outcomes, new: &Outcomes) -> BTreeSet<(String, Aspect)> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let of = |name: &String| {
        let (a, b) = (old.get(name), new.get(name));
        let differs = |aspect| part(a, aspect) != part(b, aspect);
        let pending = [a, b].iter().all(|one| one.is_some_and(|one| is_queue(&one.end.0)));
        let mut aspects = Vec::new();
        aspects.extend(differs(Aspect::End).then_some(Aspect::End));
        let message = differs(Aspect::Message) && (pending || aspects.is_empty());
        aspects.extend(message.then_some(Aspect::Message));
        let attempts = aspects.is_empty() && differs(Aspect::Attempts);
        aspects.extend(attempts.then_some(Aspect::Attempts));
        aspects.into_iter().map(|aspect| (name.clone(), aspect)).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(of).collect()
}

fn is_queue(end: &str) -> bool {
    ["active", "backoff", "unschedulable"].contains(&end)
}

/// The outcomes of a recording: its cycles, and the state after its last step.
fn recorded(scenario: &Value) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let steps = scenario["expect"].as_array().map_or(&[][..], Vec::as_slice);
    for cycle in steps.iter().flat_map(|step| step["cycles"].as_array().into_iter().flatten()) {
        let text = |field: &str| cycle[field].as_str().unwrap_or_default().to_owned();
        let attempt = [text("result"), text("node"), text("message")];
        outcomes.entry(text("pod")).or_default().attempts.push(attempt);
    }
    let empty = Value::Null;
    add_state(&mut outcomes, steps.last().unwrap_or(&empty));
    outcomes
}

/// The same of a session at its end.
fn computed(session: &Session) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for record in session.history().cycles() {
        let node = record.node.map(|node| node.to_string()).unwrap_or_default();
        let attempt = [record.outcome.as_str().to_owned(), node, record.message.clone()];
        outcomes.entry(record.pod.to_string()).or_default().attempts.push(attempt);
    }
    let world = session.world();
    let state = PodStates::new(world.scheduler().queue(), world.api().objects(), Vec::new());
    add_state(&mut outcomes, &kubestep_debug::trace::json::state(&state));
    outcomes
}

fn add_state(outcomes: &mut Outcomes, state: &Value) {
    for queue in ["active", "backoff", "unschedulable"] {
        for entry in state[queue].as_array().into_iter().flatten() {
            let pod = outcomes.entry(entry["pod"].as_str().unwrap_or_default().into()).or_default();
            pod.end.0 = queue.to_owned();
            let plugins = entry["plugins"].as_array().into_iter().flatten();
            pod.plugins = plugins.filter_map(Value::as_str).map(str::to_owned).collect();
        }
    }
    let nodes = |field: &str| state[field].as_object().cloned().unwrap_or_default();
    for (pod, node) in nodes("placed") {
        outcomes.entry(pod).or_default().end.0 = format!("on {node}");
    }
    for (pod, node) in nodes("nominated") {
        outcomes.entry(pod).or_default().end.1 = node.to_string();
    }
}
