//! The views by name, for commands and for the session that is shown in them.

/// A view that fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViewId {
    /// The cycle: every extension point with each plugin's status.
    Cycle,
    /// All recorded cycles; Enter inspects one, t goes there.
    Timeline,
    /// The scheduling queues, with reasons and time left.
    Queues,
    /// The filter matrix: every plugin on every node.
    Filter,
    /// The scores: raw, normalized, times weight, total, rank.
    Scores,
    /// The nodes with what is free on them.
    Nodes,
    /// All pods of the cluster.
    Pods,
    /// Pods held at Permit, to allow or reject.
    Waiting,
    /// Preemption: candidate nodes, victims, budgets.
    Preemption,
    /// Queue moves and each queueing hint's answer.
    Events,
    /// Breakpoints and watches, with their hits and values.
    Breakpoints,
    /// Profiles, plugins in order, weights, arguments, extenders, gates.
    Configuration,
    /// Time spent by plugin and extension point, nodes rejected by each.
    Times,
    /// All messages: notices, warnings, errors, how often and when.
    Messages,
    /// Why, as a view with folds; Enter goes to the node or cycle.
    Why,
    /// Pod groups: members, quorum, and the placements that were tried.
    Groups,
}

impl ViewId {
    /// Whether it shows one cycle.
    pub fn is_of_cycle(self) -> bool {
        matches!(self, ViewId::Cycle | ViewId::Filter | ViewId::Scores | ViewId::Preemption)
    }

    /// Whether `W` and `X` have a pod to ask about: the selected one, or that of the cycle.
    pub fn offers_why(self) -> bool {
        use ViewId::{Breakpoints, Configuration, Messages, Times};
        !matches!(self, Breakpoints | Configuration | Messages | Times)
    }

    /// Whether its rows are pods or cycles.
    pub fn lists_cycles(self) -> bool {
        matches!(self, ViewId::Timeline | ViewId::Queues | ViewId::Pods | ViewId::Waiting)
    }
}
