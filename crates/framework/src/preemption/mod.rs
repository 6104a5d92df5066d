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

use crate::pod::PodInfo;
use crate::record::Candidate;
use kubestep_api::intern::Symbol;

pub mod budgets;
pub mod dry_run;
pub mod eligibility;
pub mod evaluator;
pub mod executor;
pub mod extenders;
pub mod group_victims;
pub mod pick;
pub mod victims;

/// The plugin that preempts. Preemptions carry its name, and a pod group preempts as a whole only
/// in a profile that has it.
pub const PLUGIN: &str = "DefaultPreemption";

/// A candidate: a node and its victims.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeVictims {
    /// The node.
    pub node: Symbol,
    /// The victims, the most important first; never empty.
    pub pods: Vec<Arc<PodInfo>>,
    /// Number of evictions that violate a disruption budget.
    pub pdb_violations: i64,
}

impl NodeVictims {
    /// The candidate as recorded.
    pub fn record(&self) -> Candidate {
        Candidate {
            node: self.node,
            victims: self.pods.iter().map(|pod| pod.key()).collect(),
            pdb_violations: self.pdb_violations,
        }
    }
}
