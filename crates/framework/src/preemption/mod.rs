//! Preemption: which pods to evict so that a pod fits, on which node that does the least harm, and
//! how it is executed.
//!
//! A preemption attempt goes through these files in this order: [`eligibility`] (may the pod
//! preempt at all?), [`dry_run`] (which nodes, until enough candidates are found), for each node
//! [`victims`] (which pods to evict) with [`budgets`] (which disruption budgets that violates),
//! then [`extenders`] (which candidates they accept) and [`pick`] (the least harm). [`evaluator`]
//! connects these steps; the DefaultPreemption plugin calls it in PostFilter. [`executor`] evicts
//! the victims after the cycle. A pod group as a whole uses [`group_victims`] instead.
//!
//! Upstream: `pkg/scheduler/framework/preemption` and
//! `pkg/scheduler/framework/plugins/defaultpreemption`. What is random upstream is fixed here: the
//! search starts at the first node, and the last tie between candidates goes to the name that sorts
//! first.

use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::node::NodeInfo;
use crate::plugin::CycleContext;
use crate::pod::PodInfo;
use crate::preemption::victims::{VictimSearch, Victims};
use crate::record::Candidate;
use crate::status::Status;
use crate::status::node_statuses::NodeStatuses;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::FieldPath;
use kubestep_config::validation::Findings;

pub mod budgets;
pub mod dry_run;
pub mod eligibility;
pub mod evaluator;
pub mod executor;
pub mod extenders;
pub mod group_victims;
pub mod kept;
pub mod pick;
pub mod victims;

/// What a plugin that preempts decides itself. The defaults are those of upstream's evaluator;
/// DefaultPreemption also evicts asynchronously, preempts for groups and prefixes its messages.
/// Upstream: `Interface` in `pkg/scheduler/framework/preemption/preemption.go`.
pub trait PreemptionRules {
    /// The name of the plugin that preempts.
    fn plugin(&self) -> Symbol;

    /// The number of candidates among `nodes` nodes with which the search ends.
    fn candidates(&self, nodes: usize) -> usize;

    /// Whether upstream begins the search at a random node, as opposed to the first.
    fn starts_anywhere(&self) -> bool {
        true
    }

    /// Whether the victims are evicted in the background of the cycle, if the gate
    /// SchedulerAsyncPreemption is on.
    fn is_asynchronous(&self) -> bool {
        false
    }

    /// Whether pod groups of a profile with the plugin preempt as a whole.
    fn preempts_for_groups(&self) -> bool {
        false
    }

    /// What the plugin puts before its messages.
    fn message_prefix(&self) -> &'static str {
        ""
    }

    /// Why the cycle's pod is not eligible to preempt others; `None` if it is.
    fn rejection(
        &self,
        cx: &CycleContext<'_>,
        _state: &CycleState,
        statuses: &NodeStatuses,
    ) -> Option<&'static str> {
        eligibility::rejection(cx, statuses)
    }

    /// Which pods it may evict for the cycle's pod and why, in a sentence, from what PreFilter
    /// computed; `None` if only lower priority decides.
    fn victim_rule(&self, _cx: &CycleContext<'_>, _state: &CycleState) -> Option<String> {
        None
    }

    /// Whether only priorities decide who may be evicted, as [`PreemptionRules::select_victims`]
    /// does by default: what it finds on a node is then kept for pods that are alike.
    fn goes_by_priority(&self) -> bool {
        false
    }

    /// The victims on `node`; none if the pod fits without preemption.
    ///
    /// # Errors
    /// Why preemption does not help on this node.
    fn select_victims(
        &self,
        search: &VictimSearch<'_>,
        node: &NodeInfo,
    ) -> Result<Victims, Status> {
        let lower = |pod: &&Arc<PodInfo>| eligibility::may_preempt(search.cx.pod, pod);
        let potential: Vec<Arc<PodInfo>> = node.pods.iter().filter(lower).cloned().collect();
        if potential.is_empty() {
            return Err(Status::unresolvable("No preemption victims found for incoming pod"));
        }
        search.select_victims(node, potential)
    }
}

/// Victims to evict for a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct Preemption {
    /// The plugin that decided.
    pub plugin: Symbol,
    /// The node, by name.
    pub node: Name,
    /// The victims, in the order decided.
    pub victims: Vec<Arc<PodInfo>>,
    /// The candidate as recorded.
    pub candidate: Candidate,
    /// What the plugin puts before its messages.
    pub message_prefix: &'static str,
    /// Whether the victims are evicted in the background of the cycle, if the gate
    /// SchedulerAsyncPreemption is on.
    pub is_asynchronous: bool,
}

/// A candidate: a node and its victims.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeVictims {
    /// The node, by name.
    pub node: Name,
    /// The victims, the most important first; never empty.
    pub pods: Vec<Arc<PodInfo>>,
    /// Number of evictions that violate a disruption budget.
    pub pdb_violations: i64,
    /// Why the plugin may evict them, as [`Victims::reasons`].
    pub reasons: Vec<String>,
}

impl NodeVictims {
    /// The candidate as recorded.
    pub fn record(&self) -> Candidate {
        Candidate {
            node: self.node,
            victims: self.pods.iter().map(|pod| pod.key()).collect(),
            pdb_violations: self.pdb_violations,
            reasons: self.reasons.clone(),
        }
    }
}

/// The minimum of candidates, as the larger of a share of the nodes and a number: two arguments of
/// DefaultPreemption and of plugins like it. Upstream: `calculateNumCandidates` and
/// `validateMinCandidateNodes…` of DefaultPreemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnoughCandidates {
    /// `minCandidateNodesPercentage`: the share of nodes to search, 0 to 100.
    pub percentage: i32,
    /// `minCandidateNodesAbsolute`: the number of nodes to search at least.
    pub absolute: i32,
}

impl EnoughCandidates {
    /// How many candidates among `nodes` nodes are enough.
    pub fn of(self, nodes: usize) -> usize {
        // Upstream computes in 32 bits and lets them wrap.
        let nodes = i32::try_from(nodes).unwrap_or(i32::MAX);
        let share = nodes.wrapping_mul(self.percentage) / 100;
        usize::try_from(share.max(self.absolute).min(nodes)).unwrap_or(0)
    }

    /// Reports wrong values to `found`. `path` leads to the arguments.
    pub fn validate(self, found: &mut Findings, path: &FieldPath) {
        let EnoughCandidates { percentage, absolute } = self;
        let relative_path = path.field("minCandidateNodesPercentage");
        let absolute_path = path.field("minCandidateNodesAbsolute");
        found.percent(&relative_path, percentage);
        if absolute < 0 {
            found.invalid(&absolute_path, absolute, "not in valid range [0, inf)");
        }
        if percentage == 0 && absolute == 0 {
            let same = |other: &str| format!("cannot be zero at the same time as {other}");
            found.invalid(&relative_path, 0, &same("minCandidateNodesAbsolute"));
            found.invalid(&absolute_path, 0, &same("minCandidateNodesPercentage"));
        }
    }
}
