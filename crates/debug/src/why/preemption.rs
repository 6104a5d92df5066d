//! Preemption: whether the pod may preempt, on which nodes, which pods, which criterion decides
//! between the candidates, and why other nodes are not candidates.

use indexmap::IndexMap;
use serde::Serialize;

use kubestep_api::intern::Symbol;
use kubestep_api::{Name, PreemptionPolicy, Time};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::preemption::NodeVictims;
use kubestep_framework::preemption::budgets::DisruptionBudgets;
use kubestep_framework::preemption::eligibility::terminating_victims;
use kubestep_framework::preemption::pick::{earliest_start, harm, highest_priority, pick};
use kubestep_framework::record::{Candidate, CycleRecord, PluginStatus};
use kubestep_scheduler::what_if::{PreemptionProbe, Probe};

/// Whether preemption would help the pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionWhy {
    /// The plugin that preempts.
    pub plugin: Symbol,
    /// Why the pod may not preempt, in the scheduler's words.
    pub rejection: Option<String>,
    /// Which pods the plugin may preempt and why, if that is not their priority alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The candidates, the best first.
    pub candidates: Vec<CandidateWhy>,
    /// The node that is, or would be, nominated.
    pub chosen: Option<Name>,
    /// The criterion that selected it.
    pub decided_by: Option<Criterion>,
    /// Why other nodes are not candidates.
    pub others: Vec<NoCandidate>,
}

/// A node where preemption would make the pod fit.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateWhy {
    /// Name of the node.
    pub node: Name,
    /// The pods that would be evicted there.
    pub victims: Vec<Victim>,
    /// The number of evictions that violate a disruption budget.
    pub budget_violations: i64,
    /// The highest priority among the victims.
    pub highest_priority: i64,
    /// When the first of the highest-priority victims started.
    pub earliest_start: Time,
    /// The criterion by which it loses against the selected candidate; `None` for that one.
    pub loses_by: Option<Criterion>,
    /// Why the plugin may preempt pods there, one fact each, if that is not their priority alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A pod that would be evicted.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Victim {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// `spec.priority` of the victim.
    pub priority: i32,
    /// The disruption budgets that cover it.
    pub budgets: Vec<BudgetState>,
}

/// A PodDisruptionBudget that covers a victim.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// Its namespace and name.
    pub name: NamespacedName,
    /// The number of disruptions it still allows.
    pub allowed: i32,
}

/// The criteria that candidates are compared by, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Criterion {
    /// The smaller number of violated disruption budgets.
    BudgetViolations,
    /// The lower highest priority of the victims.
    HighestPriority,
    /// The lower sum of the victims' priorities.
    PrioritySum,
    /// The smaller number of victims.
    VictimCount,
    /// The later start of the highest-priority victims.
    StartTime,
    /// The name that sorts first.
    Name,
    /// There is only one candidate.
    OnlyOne,
}

impl Criterion {
    const ORDER: [Criterion; 5] = [
        Criterion::BudgetViolations,
        Criterion::HighestPriority,
        Criterion::PrioritySum,
        Criterion::VictimCount,
        Criterion::StartTime,
    ];

    /// In words, as an attribute of the better candidate.
    pub fn as_str(self) -> &'static str {
        match self {
            Criterion::BudgetViolations => "fewer violated disruption budgets",
            Criterion::HighestPriority => "victims of lower priority",
            Criterion::PrioritySum => "a lower sum of victims' priorities",
            Criterion::VictimCount => "fewer victims",
            Criterion::StartTime => "victims that started most recently",
            Criterion::Name => "the name that sorts first",
            Criterion::OnlyOne => "the only candidate",
        }
    }
}

/// Nodes that are not candidates for the same reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoCandidate {
    /// The reason in words, the same for all these nodes.
    pub reason: String,
    /// Names of the nodes.
    pub nodes: Vec<Name>,
}

/// What preemption would do for a pod that fits nowhere.
pub(super) fn of(probe: &Probe, at: Time) -> Option<PreemptionWhy> {
    let found = probe.preemption()?;
    let budgets = DisruptionBudgets::new(probe.cx().objects);
    let best = pick(&found.candidates, at);
    let chosen = best.map(|best| best.node);
    let mut candidates: Vec<CandidateWhy> = found
        .candidates
        .iter()
        .map(|candidate| candidate_why(candidate, best, &budgets, at))
        .collect();
    candidates.sort_by_key(|candidate| {
        let lost = candidate.loses_by.map(|by| std::cmp::Reverse(by as u8));
        (lost.is_some(), lost, candidate.node)
    });
    Some(PreemptionWhy {
        plugin: found.plugin,
        rejection: found.rejection.map(|rejection| with_victims(rejection, probe)),
        decided_by: best.map(|_| decided_by(&candidates)),
        others: others(&found),
        rule: found.victim_rule,
        candidates,
        chosen,
    })
}

/// Why the pod may not preempt, with the victims that it waits for.
fn with_victims(rejection: &str, probe: &Probe) -> String {
    let cx = probe.cx();
    let victims: Vec<String> = match cx.pod.pod.spec.preemption_policy {
        Some(PreemptionPolicy::Never) => Vec::new(),
        _ => terminating_victims(&cx).map(|victim| victim.key().to_string()).collect(),
    };
    match victims.as_slice() {
        [] => rejection.to_owned(),
        names => format!("{rejection} It waits for {} to end.", names.join(", ")),
    }
}

/// The candidates of a recorded cycle, if the state before it is not available.
pub(super) fn recorded(record: &CycleRecord) -> Option<PreemptionWhy> {
    let chosen = record.preemption.as_ref()?.node;
    let recorded = |candidate: &Candidate| CandidateWhy {
        node: candidate.node,
        victims: candidate
            .victims
            .iter()
            .map(|pod| Victim { pod: *pod, priority: 0, budgets: Vec::new() })
            .collect(),
        budget_violations: candidate.pdb_violations,
        highest_priority: 0,
        earliest_start: record.time,
        loses_by: None,
        reasons: candidate.reasons.clone(),
    };
    let preempts = |answer: &&PluginStatus| answer.status.is_success();
    let plugin = record.post_filter.iter().find(preempts).map(|answer| answer.plugin);
    Some(PreemptionWhy {
        plugin: plugin.unwrap_or_default(),
        rejection: None,
        rule: rule(record),
        candidates: record.candidates.iter().map(recorded).collect(),
        chosen: Some(chosen),
        decided_by: None,
        others: Vec::new(),
    })
}

/// By which rule the cycle's victims were chosen.
fn rule(record: &CycleRecord) -> Option<String> {
    record.victim_rule.as_deref().map(str::to_owned)
}

/// With the facts by which the cycle decided.
pub(super) fn as_decided(mut found: PreemptionWhy, record: &CycleRecord) -> PreemptionWhy {
    found.rule = rule(record);
    let recorded: Vec<&Candidate> = record.candidates.iter().chain(&record.preemption).collect();
    for candidate in &mut found.candidates {
        if let Some(decided) = recorded.iter().find(|one| one.node == candidate.node) {
            candidate.reasons.clone_from(&decided.reasons);
        }
    }
    found
}

fn candidate_why(
    candidate: &NodeVictims,
    best: Option<&NodeVictims>,
    budgets: &DisruptionBudgets,
    at: Time,
) -> CandidateWhy {
    let victims = candidate.pods.iter().map(|pod| Victim {
        pod: pod.key(),
        priority: pod.priority(),
        budgets: budgets
            .of(&pod.pod)
            .map(|budget| BudgetState {
                name: NamespacedName::new(budget.metadata.namespace, budget.metadata.name),
                allowed: budget.status.disruptions_allowed,
            })
            .collect(),
    });
    CandidateWhy {
        node: candidate.node,
        victims: victims.collect(),
        budget_violations: candidate.pdb_violations,
        highest_priority: highest_priority(candidate),
        earliest_start: earliest_start(candidate, at),
        loses_by: best.and_then(|best| loses_by(best, candidate, at)),
        reasons: candidate.reasons.clone(),
    }
}

/// The criterion by which a candidate loses against the best; `None` for the best.
fn loses_by(best: &NodeVictims, other: &NodeVictims, at: Time) -> Option<Criterion> {
    if best.node == other.node {
        return None;
    }
    let figures = harm(best, at).into_iter().zip(harm(other, at));
    let differs = Criterion::ORDER.into_iter().zip(figures).find(|(_, (a, b))| a != b);
    Some(differs.map_or(Criterion::Name, |(criterion, _)| criterion))
}

/// The last criterion that eliminated a candidate.
fn decided_by(candidates: &[CandidateWhy]) -> Criterion {
    let last = candidates.iter().filter_map(|c| c.loses_by).max_by_key(|by| *by as u8);
    last.unwrap_or(Criterion::OnlyOne)
}

fn others(found: &PreemptionProbe) -> Vec<NoCandidate> {
    let mut reasons: IndexMap<String, Vec<Name>> = IndexMap::new();
    let pods = match found.victim_rule {
        Some(_) => "pods that it may preempt",
        None => "pods of lower priority",
    };
    for (node, status) in &found.others {
        let message = status.message();
        let reason = match message.as_str() {
            "No preemption victims found for incoming pod" => format!("no {pods}"),
            said if said.starts_with("No victims found on node ") => format!("no {pods}"),
            said => format!("even without all {pods}: {said}"),
        };
        reasons.entry(reason).or_default().push(*node);
    }
    if !found.unresolvable.is_empty() {
        let reason = "preemption can't help".to_owned();
        reasons.insert(reason, found.unresolvable.clone());
    }
    reasons.into_iter().map(|(reason, nodes)| NoCandidate { reason, nodes }).collect()
}
