//! Compares expectations with what happened.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::{Expect, PodExpect, VerdictExpect};
use crate::Session;
use kubestep_api::Pod;
use kubestep_api::glob::glob;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, VerdictId};

/// An expectation that is not met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetExpectation {
    /// The subject: `pod default/web: node`.
    pub about: String,
    /// The value in the test's `expect`.
    pub expected: String,
    /// The value after the run.
    pub found: String,
    /// Why, in the scheduler's words if it gave any; may be empty.
    pub why: String,
}

/// The expectations that are not met at the end of the session.
pub fn check(session: &Session, expect: &Expect) -> Vec<UnmetExpectation> {
    let mut checker = Checker { session, failures: Vec::new() };
    expect.pods.iter().for_each(|(name, expected)| checker.pods(name, expected));
    expect.verdicts.iter().for_each(|expected| checker.verdict(expected));
    let pods = &session.world().api().objects().pods;
    let pending = pods.values().filter(|pod| is_pending(pod)).count();
    checker.same("pods without a node", &expect.pending, &pending);
    checker.failures
}

fn is_pending(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty() && !pod.is_terminal()
}

struct Checker<'a> {
    session: &'a Session,
    failures: Vec<UnmetExpectation>,
}

impl Checker<'_> {
    fn fail(&mut self, about: &str, expected: impl ToString, found: impl ToString) {
        let (expected, found) = (expected.to_string(), found.to_string());
        let why = String::new();
        self.failures.push(UnmetExpectation { about: about.to_owned(), expected, found, why });
    }

    fn same<T: PartialEq + ToString>(&mut self, about: &str, expected: &Option<T>, found: &T) {
        if let Some(expected) = expected.as_ref().filter(|expected| *expected != found) {
            self.fail(about, expected.to_string(), found.to_string());
        }
    }

    /// Whether `found` matches the pattern.
    fn matches_pattern(&mut self, about: &str, pattern: &Option<String>, found: &str) {
        if let Some(pattern) = pattern.as_ref().filter(|pattern| !glob(pattern, found)) {
            self.fail(about, pattern, if found.is_empty() { "none" } else { found });
        }
    }

    /// Whether `found` contains the text.
    fn contains(&mut self, about: &str, text: &Option<String>, found: &str) {
        if let Some(text) = text.as_ref().filter(|text| !found.contains(text.as_str())) {
            self.fail(about, format!("…{text}…"), found);
        }
    }

    fn pods(&mut self, name: &str, expected: &PodExpect) {
        let pattern = if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
        let world = self.session.world();
        let all = world.api().objects().pods.iter();
        let named = all.filter(|(key, _)| glob(&pattern, &key.to_string()));
        let mut found: Vec<(NamespacedName, Arc<Pod>)> =
            named.map(|(key, pod)| (*key, pod.clone())).collect();
        found.sort_by_key(|(key, _)| *key);
        let about = format!("pod {name}");
        self.same(&format!("{about}: count"), &expected.count, &found.len());
        self.same(&format!("{about}: deleted"), &expected.deleted, &found.is_empty());
        if found.is_empty() && expected.deleted.is_none() && expected.count.is_none() {
            self.fail(&about, "a pod", "no pod of that name");
        }
        for (key, pod) in found {
            self.pod(key, &pod, expected);
        }
    }

    fn pod(&mut self, key: NamespacedName, pod: &Pod, expected: &PodExpect) {
        let about = |what: &str| format!("pod {key}: {what}");
        let world = self.session.world();
        let waits = world.scheduler().waiting().iter().any(|waiting| waiting.pod().key() == key);
        let message = self.last(key).map(|record| record.message.clone()).unwrap_or_default();
        let failed = self.failures.len();
        self.matches_pattern(&about("node"), &expected.node, &pod.spec.node_name.text());
        self.same(&about("pending"), &expected.pending, &is_pending(pod));
        self.same(&about("waiting"), &expected.waiting, &waits);
        self.matches_pattern(
            &about("nominated"),
            &expected.nominated,
            &pod.status.nominated_node_name.text(),
        );
        self.contains(&about("message"), &expected.message, &message);
        if let Some(plugins) = &expected.rejected_by {
            let found = rejected_by(self.session.world(), key);
            if plugins.iter().cloned().collect::<BTreeSet<_>>() != found {
                let found: Vec<String> = found.into_iter().collect();
                self.fail(&about("rejected by"), plugins.join(", "), found.join(", "));
            }
        }
        if self.failures.len() > failed {
            let why = self.why(key, pod, expected);
            self.failures.iter_mut().skip(failed).for_each(|failure| failure.why.clone_from(&why));
        }
    }

    /// Why a pod is where it is: the message of its last cycle, or its verdict on the expected
    /// node.
    fn why(&self, key: NamespacedName, pod: &Pod, expected: &PodExpect) -> String {
        let Some(record) = self.last(key) else {
            return "the pod had no cycle".to_owned();
        };
        let placed = !pod.spec.node_name.is_empty();
        match expected.node.as_ref().filter(|node| {
            placed && node.as_str() != pod.spec.node_name.text() && !node.contains(['*', '?'])
        }) {
            Some(node) => about_node(record, node),
            None => record.message.clone(),
        }
    }

    fn last(&self, pod: NamespacedName) -> Option<&Arc<CycleRecord>> {
        self.session.history().cycles_of(pod).next_back()
    }

    fn verdict(&mut self, expected: &VerdictExpect) {
        let about = format!("{} of pod {} on {}", expected.plugin, expected.pod, expected.node);
        let (namespace, name) = expected.pod.split_once('/').unwrap_or(("default", &expected.pod));
        let key = NamespacedName::new(namespace.into(), name.into());
        let found = match self.last(key) {
            Some(record) => verdict(record, expected),
            None => Err("the pod had no cycle".to_owned()),
        };
        let wanted = if expected.rejects { "rejects" } else { "passes" };
        match found {
            Err(problem) => self.fail(&about, wanted, problem),
            Ok(Some(reason)) if !expected.rejects => {
                self.fail(&about, wanted, format!("rejects: {reason}"));
            }
            Ok(None) if expected.rejects => self.fail(&about, wanted, "passes"),
            Ok(reason) => self.contains(&about, &expected.reason, &reason.unwrap_or_default()),
        }
    }
}

/// Why the plugin rejects the node, `None` if it does not; or the error why that is unknown.
fn verdict(record: &CycleRecord, of: &VerdictExpect) -> Result<Option<String>, String> {
    let column = record.filter.plugins.iter().find(|column| column.plugin == of.plugin.as_str());
    let column = column.ok_or("the plugin is not a filter of the profile, or was not called")?;
    let node = record.nodes.order.iter().find(|id| record.nodes.name(**id) == of.node.as_str());
    let node = node.ok_or("there was no such node")?;
    match column.verdicts.get(*node) {
        Some(VerdictId::PASS | VerdictId::SKIPPED) => Ok(None),
        Some(id) if id.is_not_evaluated() => Err("the node was not evaluated".into()),
        Some(id) => Ok(record.verdicts.get(id).map(|status| status.message())),
        None => Err("the node was not evaluated".into()),
    }
}

/// The result of the cycle for a node: the plugin that rejects it, or its score and the best one.
fn about_node(record: &CycleRecord, node: &str) -> String {
    let slot = record.nodes.order.iter().find(|slot| record.nodes.name(**slot) == node);
    let Some(slot) = slot else { return format!("there was no node {node}") };
    if let Some(status) = record.filter.verdicts.get(*slot).and_then(|id| record.verdicts.get(id)) {
        return format!("{} rejects {node}: {}", status.plugin(), status.message());
    }
    let at = record.feasible.iter().position(|feasible| feasible == slot);
    let total = at.and_then(|at| record.score.totals.get(at));
    match (total, record.score.totals.iter().max()) {
        (Some(total), Some(best)) if total == best => {
            format!("{node} also has the best total, {best}: the tie was broken differently")
        }
        (Some(total), Some(best)) => format!("{node} has {total} points, the best node {best}"),
        _ => format!("{node} was not evaluated"),
    }
}

/// The plugins that rejected the pod last.
pub fn rejected_by(world: &World, pod: NamespacedName) -> BTreeSet<String> {
    let Some(queued) = world.scheduler().queue().get(pod) else { return BTreeSet::new() };
    let plugins = queued.unschedulable_plugins.iter().chain(&queued.pending_plugins);
    plugins.chain(queued.gating_plugin.iter()).map(ToString::to_string).collect()
}
