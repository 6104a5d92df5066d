//! Preemption: which pods would have to go so that a pod fits, where that hurts least, and
//! how it is carried out.
//!
//! One look for a place goes through these files in this order: [`eligibility`] (may the pod
//! preempt at all?), [`dry_run`] (which nodes, until enough candidates are found), for each
//! node [`victims`] (who must go) with [`budgets`] (whose disruption budget that breaks), then
//! [`extenders`] (which candidates they accept) and [`pick`] (the least harm). [`evaluator`]
//! holds it together; the DefaultPreemption plugin calls it in PostFilter. [`executor`]
//! evicts the victims when the cycle is over. A pod group as a whole goes through
//! [`group_victims`] in place of all that.
//!
//! Upstream: `pkg/scheduler/framework/preemption` and
//! `pkg/scheduler/framework/plugins/defaultpreemption`. What upstream leaves to chance is
//! fixed: the search starts at the first node, and the last tie between candidates goes to
//! the name that sorts first.

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

/// The plugin that preempts. Preemptions bear its name, and a pod group preempts as a whole only
/// in a profile that has it.
pub const PLUGIN: &str = "DefaultPreemption";

/// A node and the pods that would have to go there.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeVictims {
    /// The node.
    pub node: Symbol,
    /// Whom to evict, the most important first; never empty.
    pub pods: Vec<Arc<PodInfo>>,
    /// How many evictions violate a disruption budget.
    pub pdb_violations: i64,
}

impl NodeVictims {
    /// How the candidate is recorded.
    pub fn record(&self) -> Candidate {
        Candidate {
            node: self.node,
            victims: self.pods.iter().map(|pod| pod.key()).collect(),
            pdb_violations: self.pdb_violations,
        }
    }
}
