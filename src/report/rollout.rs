//! Rollouts: which pods were created and deleted, and how far each is. One type, with its text and
//! its JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::report::outcome::Pending;
use kubestep_api::words::{count, span};
use kubestep_api::{Name, Time};
use kubestep_cluster::World;
use kubestep_cluster::rollout::{PodCounts, Rollout, RolloutState, RolloutStep};
use kubestep_framework::pod::NamespacedName;

/// A rollout of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct RolloutReport {
    /// Kind, namespace and name: `Deployment shop/web`.
    pub workload: String,
    /// `maxSurge 1, maxUnavailable 0`.
    pub strategy: String,
    /// How many pods the workload should have.
    pub replicas: usize,
    /// How many of them should get the new template.
    pub to_update: usize,
    pub pods: PodCounts,
    /// How far it is.
    pub state: RolloutState,
    /// The pods that were created and deleted, in order; created ones with their node.
    pub steps: Vec<(RolloutStep, Option<Name>)>,
    /// The new pods without a node.
    pub pending: Vec<Pending>,
    started: Time,
    /// Whether a scheduling cycle or the clock may take it further.
    goes_on: bool,
}

impl RolloutReport {
    /// The report of a rollout; `pending` are the pending pods of the cluster, by name.
    pub fn new(world: &World, rollout: &Rollout, pending: &[Pending]) -> RolloutReport {
        let find = |pod: NamespacedName| {
            let found = pending.binary_search_by_key(&pod, |pending| pending.pod);
            found.ok().and_then(|at| pending.get(at)).cloned()
        };
        let node = |step: &RolloutStep| {
            let pod = world.api().objects().pod(step.pod)?;
            let is_there = step.deleted_from.is_none() && !pod.spec.node_name.is_empty();
            is_there.then_some(pod.spec.node_name)
        };
        RolloutReport {
            workload: rollout.workload().to_string(),
            strategy: rollout.strategy().to_string(),
            replicas: rollout.replicas(),
            to_update: rollout.to_update(),
            pods: rollout.counts(world.now()),
            state: rollout.state(),
            steps: rollout.steps().iter().map(|step| (*step, node(step))).collect(),
            pending: rollout.unplaced().filter_map(find).collect(),
            started: rollout.started(),
            goes_on: !world.scheduler().queue().is_idle() || world.next_disruption().is_some(),
        }
    }

    /// Whether it is under way or stuck.
    pub fn is_open(&self) -> bool {
        self.state == RolloutState::UnderWay
    }

    fn seconds(&self, at: Time) -> i64 {
        (at.0 - self.started.0) / 1_000_000
    }

    /// How far it is, as one line without a line end.
    pub fn outcome(&self) -> String {
        let updated = format!(
            "{} of {} updated and available",
            self.pods.updated_available,
            count(self.to_update, "pod")
        );
        match self.state {
            RolloutState::Complete(at) => {
                format!("complete after {}: {updated}", span(self.seconds(at) * 1_000_000))
            }
            RolloutState::Superseded => "superseded by the next rollout".into(),
            RolloutState::UnderWay => {
                let pending = self.pending.len();
                let pending = (pending > 0).then(|| format!(", {pending} pending"));
                let old = self.pods.old;
                let old = (old > 0).then(|| format!(", {} left", count(old, "old pod")));
                format!(
                    "{}: {updated}{}{}",
                    if self.goes_on { "under way" } else { "stuck" },
                    pending.unwrap_or_default(),
                    old.unwrap_or_default()
                )
            }
        }
    }
}

/// For people: the strategy, each step, and how far it is.
pub fn text(report: &RolloutReport) -> String {
    let pods = count(report.replicas, "pod");
    let mut text = format!("rollout of {}: {pods}, {}\n", report.workload, report.strategy);
    // Writing into a String cannot fail.
    for (number, (step, node)) in report.steps.iter().enumerate() {
        let number = number + 1;
        let _ = match (step.deleted_from, node) {
            (Some(node), _) if node.is_empty() => {
                writeln!(text, "{number:>4}. {} deleted", step.pod)
            }
            (Some(node), _) => writeln!(text, "{number:>4}. {} deleted from {node}", step.pod),
            (None, Some(node)) => writeln!(text, "{number:>4}. {} created, on {node}", step.pod),
            (None, None) => writeln!(text, "{number:>4}. {} created", step.pod),
        };
    }
    let _ = writeln!(text, "{}", report.outcome());
    for pending in &report.pending {
        let _ = writeln!(text, "      {} pending: {}", pending.pod, pending.reason);
    }
    text
}

/// As part of `schema/run.v1.json` and `schema/survive.v1.json`.
pub fn json(report: &RolloutReport) -> Value {
    let steps = report.steps.iter().map(|(step, node)| {
        let pod = step.pod.to_string();
        let after = report.seconds(step.at);
        match step.deleted_from {
            Some(node) => json!({"deleted": pod, "node": node, "afterSeconds": after}),
            None => json!({"created": pod, "node": node, "afterSeconds": after}),
        }
    });
    let pending = report
        .pending
        .iter()
        .map(|pending| json!({"pod": pending.pod.to_string(), "reason": pending.reason.as_str()}));
    let complete = match report.state {
        RolloutState::Complete(at) => Some(report.seconds(at)),
        _ => None,
    };
    json!({
        "workload": report.workload,
        "strategy": report.strategy,
        "replicas": report.replicas,
        "toUpdate": report.to_update,
        "updated": report.pods.updated,
        "updatedAvailable": report.pods.updated_available,
        "old": report.pods.old,
        "completeAfterSeconds": complete,
        "superseded": report.state == RolloutState::Superseded,
        "steps": steps.collect::<Vec<_>>(),
        "pending": pending.collect::<Vec<_>>(),
    })
}
