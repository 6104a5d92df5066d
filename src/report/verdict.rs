//! What a verdict says, in words.

use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{CycleRecord, FilterColumn, VerdictId};
use kubestep_framework::status::Status;

/// What a plugin said of a node. Its column holds what it says without the nominated pods; where it
/// rejected the node only with them, the verdict on the node has that.
pub fn of_plugin(cycle: &CycleRecord, column: &FilterColumn, node: NodeId) -> Option<VerdictId> {
    let own = column.verdicts.get(node)?;
    let on_node = cycle.filter.verdicts.get(node).unwrap_or(VerdictId::PASS);
    Some(with_nominated(cycle, column.plugin, own, on_node))
}

/// The verdict of a plugin, from the one in its column and the one on the node.
pub fn with_nominated(
    cycle: &CycleRecord,
    plugin: Symbol,
    own: VerdictId,
    on_node: VerdictId,
) -> VerdictId {
    let is_by_it = || cycle.verdicts.get(on_node).is_some_and(|it| it.plugin() == plugin);
    if own == VerdictId::PASS && is_by_it() { on_node } else { own }
}

/// What a filter verdict says, in words.
pub fn explain(cycle: &CycleRecord, id: VerdictId) -> String {
    if let Some(status) = cycle.verdicts.get(id) {
        return reasons(status);
    }
    let words = match id {
        VerdictId::PASS => "the node passes",
        VerdictId::UNKNOWN => "unknown: kubestep does not have this plugin",
        VerdictId::SKIPPED => "the plugin has nothing to check for this pod",
        VerdictId::ENOUGH_FOUND => {
            "not evaluated: enough feasible nodes were found before this one"
        }
        VerdictId::OUTSIDE_PLACEMENT => "not evaluated: the pod's group was tried on other nodes",
        VerdictId::NARROWED => "not evaluated: PreFilter restricted the search to other nodes",
        VerdictId::NOMINATED_TAKEN => "not evaluated: the nominated node was feasible and taken",
        VerdictId::CYCLE_ENDED => "not evaluated: the cycle ended before this node's turn",
        _ => "unknown",
    };
    words.to_owned()
}

/// The reasons of a status, each named.
pub fn reasons(status: &Status) -> String {
    let reasons: Vec<&str> = status.reasons().iter().map(|r| r.as_str()).collect();
    if reasons.is_empty() { status.code().as_str().to_owned() } else { reasons.join("; ") }
}
