//! The result of a run: placements, evictions, pending pods, utilization, and how many more pods
//! would fit. One type, and one file per output format.

pub mod csv;
pub mod json;
pub mod junit;
pub mod text;

use crate::report::disruption::DisruptionReport;
use crate::report::outcome::{self, Evicted, Pending, ScheduledPod};
use crate::report::pending::{self, NodeAllowance, PendingGroup};
use crate::report::usage::Usage;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::capacity::Capacity;
use kubestep_debug::certainty;
use kubestep_debug::new_node::Supply;

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunReport {
    /// The pods that were scheduled, in order.
    pub placed: Vec<ScheduledPod>,
    /// The pods that were evicted, in order.
    pub evicted: Vec<Evicted>,
    /// The pods without a node, by name.
    pub pending: Vec<Pending>,
    /// The same in groups of equal pods, for the text; empty before [`RunReport::with_causes`].
    pub groups: Vec<PendingGroup>,
    /// The number of scheduling cycles.
    pub cycles: u64,
    /// The utilization before the first cycle.
    pub before: Usage,
    /// The utilization after the last cycle.
    pub after: Usage,
    /// Drained and lost nodes; `None` if there are none.
    pub disruption: Option<DisruptionReport>,
    /// How many more pods would fit, if requested.
    pub capacity: Vec<Capacity>,
    /// The version and the feature gates that decided.
    pub gates: FeatureGates,
    /// Which new nodes would take the pending pods, if requested.
    pub new_nodes: Option<Supply>,
    /// The number of decisions that opaque plugins could have changed; `None` without such plugins.
    pub uncertain: Option<usize>,
    /// Notices about the input, one sentence each.
    pub notices: Vec<String>,
}

impl RunReport {
    /// The report of a session that was run; `before` is its utilization at the start.
    pub fn new(session: &Session, before: Usage) -> RunReport {
        RunReport {
            groups: Vec::new(),
            placed: outcome::placed(session),
            evicted: outcome::evicted(session),
            pending: outcome::pending(session),
            cycles: session.world().scheduler().cycles(),
            before,
            after: Usage::of(session.world()),
            disruption: DisruptionReport::new(session),
            capacity: Vec::new(),
            gates: *session.world().scheduler().features(),
            new_nodes: None,
            uncertain: uncertain(session),
            notices: Vec::new(),
        }
    }

    /// Groups equal pending pods, with the causes that take little time to find.
    pub fn with_causes(mut self, session: &mut Session) -> RunReport {
        self.groups = pending::groups(session, &self.pending);
        let mut allowed = NodeAllowance::default();
        pending::explain(session, &self.pending, &mut self.groups, &mut allowed);
        self
    }
}

fn uncertain(session: &Session) -> Option<usize> {
    let frameworks = session.world().scheduler().frameworks();
    let is_opaque = frameworks.values().any(|framework| framework.opaque().is_some());
    let cycles = session.history().cycles();
    is_opaque.then(|| cycles.filter(|record| certainty::is_uncertain(record)).count())
}
