//! What a verdict and a scheduler's message say, in words.

use std::borrow::Cow;

use kubestep_framework::node::NodeId;
use kubestep_framework::record::{CycleRecord, FilterColumn, VerdictId};
use kubestep_framework::status::Status;

/// What a plugin said of a node. Its column holds what it says without the nominated pods; where it
/// rejected the node only with them, the verdict on the node has that.
pub fn of_plugin(cycle: &CycleRecord, column: &FilterColumn, node: NodeId) -> Option<VerdictId> {
    let own = column.verdicts.get(node)?;
    let final_verdict = cycle.filter.verdicts.get(node).filter(|_| own == VerdictId::PASS);
    let by_it = |id: &VerdictId| {
        cycle.verdicts.get(*id).is_some_and(|status| status.plugin() == column.plugin)
    };
    Some(final_verdict.filter(by_it).unwrap_or(own))
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

/// The reasons out of the scheduler's message about a pod, the most frequent first:
/// `4 didn't match Pod's node affinity/selector, 1 had untolerated taint(s)`. Any other message as
/// it is.
pub fn brief(message: &str) -> Cow<'_, str> {
    let Some((_, reasons)) = message.split_once("nodes are available: ") else {
        return Cow::Borrowed(message);
    };
    let sentence = [". ", " preemption: "].iter().filter_map(|end| reasons.find(end)).min();
    let reasons = reasons[..sentence.unwrap_or(reasons.len())].trim_end_matches('.');
    let mut counted: Vec<(usize, String)> = Vec::new();
    for part in reasons.split(", ") {
        let number = part.split_once(' ').and_then(|(n, words)| Some((n.parse().ok()?, words)));
        match (number, counted.last_mut()) {
            (Some((number, words)), _) => {
                let words = words.strip_prefix("node(s) ").unwrap_or(words);
                counted.push((number, words.to_owned()));
            }
            // A comma within a reason.
            (None, Some((_, words))) => *words = format!("{words}, {part}"),
            (None, None) => return Cow::Borrowed(message),
        }
    }
    counted.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let words: Vec<String> = counted.iter().map(|(n, words)| format!("{n} {words}")).collect();
    Cow::Owned(words.join(", "))
}

/// The reasons of a status, each named.
pub fn reasons(status: &Status) -> String {
    let reasons: Vec<&str> = status.reasons().iter().map(|r| r.as_str()).collect();
    if reasons.is_empty() { status.code().as_str().to_owned() } else { reasons.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn a_message_is_its_reasons_with_the_most_frequent_first() {
        let message = "0/6 nodes are available: 1 node(s) had untolerated taint(s), 4 node(s) \
                       didn't match Pod's node affinity/selector, 1 Insufficient cpu. preemption: \
                       0/6 nodes are available: 6 Preemption is not helpful for scheduling.";
        let shown = "4 didn't match Pod's node affinity/selector, 1 had untolerated taint(s), \
                     1 Insufficient cpu";
        assert_eq!(brief(message), shown);
        let comma = "0/1 nodes are available: 1 node(s) had taints a, b that differ.";
        assert_eq!(brief(comma), "1 had taints a, b that differ");
        for other in ["waiting for scheduling gates: [a]", "0/0 nodes are available: odd", ""] {
            assert_eq!(brief(other), other);
        }
    }
}
