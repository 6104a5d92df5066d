//! The decisive cause of a pod that is pending, as one clause: the first sentence of the answer.

use super::preemption;
use crate::report::lines_shown;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_debug::message::brief;
use kubestep_debug::why::cause::{Cause, CauseDetail, Shortage, TermOwner};
use kubestep_debug::why::{
    NodeWhy, PodLocation, PodProblem, PreFilterRejection, ProblemKind, Reason, RejectedGroup, Why,
};

/// Reasons that are named; the others are counted.
const NAMED: usize = 2;
const ON_EVERY_NODE: &str = " on every node";

/// The cause; `None` if the pod has a node, has ended, or would get a node now without having
/// preempted for it.
pub fn cause(why: &Why) -> Option<String> {
    if matches!(why.place, PodLocation::Bound { .. } | PodLocation::Ended { .. }) {
        return None;
    }
    let decides =
        |problem: &&PodProblem| problem.blocking && problem.kind != ProblemKind::NoScheduler;
    let problem = why.problems.iter().find(decides).map(|problem| problem.text.clone());
    let ahead = || {
        let cause = why.ahead.iter().find_map(before_nodes)?;
        Some(cause + &earlier(why).unwrap_or_default())
    };
    problem.or_else(ahead).or_else(|| on_nodes(why)).or_else(|| preemption::awaited(why))
}

/// A rejection by PreFilter.
fn before_nodes(ahead: &PreFilterRejection) -> Option<String> {
    let causes: Vec<String> = ahead.causes.iter().map(|cause| cause.text()).collect();
    ahead.rejects().then(|| format!("{}: {}", ahead.plugin, causes.join("; ")))
}

/// What an earlier attempt found, where the last one did not come as far as the nodes.
fn earlier(why: &Why) -> Option<String> {
    let last = brief(&why.attempts.last()?.message);
    let failed = why.attempts.iter().rev().filter(|attempt| !attempt.message.is_empty());
    let other = failed.map(|attempt| (attempt.attempt, brief(&attempt.message)));
    let (number, reasons) = other.into_iter().find(|(_, reasons)| *reasons != last)?;
    Some(format!("; attempt {number}: {reasons}"))
}

/// What all nodes lack, then what each group lacks in addition, the nearest group first.
fn on_nodes(why: &Why) -> Option<String> {
    let nearest = why.groups.first()?;
    if why.fitting().next().is_some() {
        return None;
    }
    let shared = blocked(why, nearest, why.everywhere.iter().collect(), ON_EVERY_NODE);
    let of_group = |group| {
        let own = |reason: &&Reason| !why.everywhere.contains(reason);
        let is_all = why.groups.len() == 1 && why.nodes.len() > 1;
        let on = if is_all { ON_EVERY_NODE.to_owned() } else { on(group) };
        blocked(why, group, group.reasons.iter().filter(own).collect(), &on)
    };
    let groups = why.groups.iter().filter_map(of_group);
    let mut causes: Vec<String> = shared.into_iter().chain(groups).collect();
    let shown = lines_shown(causes.len(), NAMED);
    let more = causes.drain(shown..).count();
    causes.extend((more > 0).then(|| format!("and {}", count(more, "more reason"))));
    let causes = without_repetition(causes).join(", ");
    let preempts = preemption::of_pending(why).map(|words| format!("; {words}"));
    Some(causes + &preempts.unwrap_or_default())
}

/// What is before the first colon is said once: `claim a: held by other claims, too small`.
fn without_repetition(mut causes: Vec<String>) -> Vec<String> {
    let topic = causes.first().and_then(|first| Some(first.split_once(": ")?.0.to_owned() + ": "));
    for cause in causes.iter_mut().skip(1) {
        if let Some(rest) = topic.as_deref().and_then(|topic| cause.strip_prefix(topic)) {
            *cause = rest.to_owned();
        }
    }
    causes
}

/// ` on 2 nodes`, or the name of the only one.
fn on(group: &RejectedGroup) -> String {
    match group.nodes.as_slice() {
        [only] => format!(" on {only}"),
        nodes => format!(" on {}", count(nodes.len(), "node")),
    }
}

/// `Insufficient cpu on 2 nodes (500m cpu short on node-0)`; `None` without reasons.
fn blocked(why: &Why, group: &RejectedGroup, reasons: Vec<&Reason>, on: &str) -> Option<String> {
    let reasons: Vec<&Reason> =
        reasons.into_iter().filter(|reason| !is_mirrored(why, group, reason)).collect();
    let (first, more) = reasons.split_first()?;
    let shortage_of = |reason| match on {
        ON_EVERY_NODE => shortage(why.nodes.iter(), reason),
        _ => shortage(why.nodes_of(group), reason),
    };
    let more = match more {
        [] => String::new(),
        [other] => match shortage_of(other) {
            Some((_, shortage)) => format!(" and {}", shortage.title()),
            None => format!(" and {}", other.text),
        },
        more => format!(" and {}", count(more.len(), "more reason")),
    };
    let Some((node, shortage)) = shortage_of(first) else {
        let says_so = more.is_empty() && says_where(why, first, on);
        return Some(match says_so {
            true => first.text.clone(),
            // After a negation it is "any".
            false
                if on == ON_EVERY_NODE && first.text.starts_with("cannot ") && more.is_empty() =>
            {
                format!("{} on any node", first.text)
            }
            false => format!("{}{more}{on}", first.text),
        });
    };
    let of_node = format!(" on {node}");
    let of_node = if of_node == on { "" } else { &of_node };
    let lack = shortage.lack().map(|lack| format!(" ({lack}{of_node})"));
    Some(format!("{}{more}{on}{}", shortage.title(), lack.unwrap_or_default()))
}

/// Whether the text of a reason says itself on which nodes it is one.
fn says_where(why: &Why, reason: &Reason, on: &str) -> bool {
    let is_of_reason = |(plugin, cause): &(Symbol, &Cause)| {
        *plugin == reason.plugin && cause.gist() == reason.text
    };
    let cause = || why.nodes.iter().flat_map(NodeWhy::causes).find(is_of_reason);
    reason.text.ends_with(" on any node")
        || on == ON_EVERY_NODE && cause().is_some_and(|(_, cause)| cause.names_no_node())
}

/// Whether the reason is another pod's anti-affinity term that the pod has as well: one rule of equal
/// pods, named once.
fn is_mirrored(why: &Why, group: &RejectedGroup, reason: &Reason) -> bool {
    let Some(node) = why.nodes_of(group).next() else { return false };
    let terms = || {
        node.causes().filter_map(|(_, cause)| match &cause.detail {
            CauseDetail::BlockedByPod(term) => Some((cause.gist(), term)),
            _ => None,
        })
    };
    let mut theirs =
        terms().filter(|(gist, it)| it.whose == TermOwner::Theirs && *gist == reason.text);
    theirs.any(|(_, theirs)| {
        terms().any(|(_, own)| own.whose == TermOwner::Own && own.term == theirs.term)
    })
}

/// If the reason is a shortage: the node whose allocatable amount comes nearest to the request; of
/// equal ones, the one that lacks the least.
fn shortage<'a>(
    nodes: impl Iterator<Item = &'a NodeWhy>,
    reason: &Reason,
) -> Option<(Name, &'a Shortage)> {
    let shortages = nodes.filter_map(|node| {
        let mut causes = node.causes().filter(|(plugin, _)| *plugin == reason.plugin);
        match &causes.find(|(_, cause)| cause.gist() == reason.text)?.1.detail {
            CauseDetail::Shortage(shortage) => Some((node.node, shortage)),
            _ => None,
        }
    });
    // Nodes that miss the least come first.
    shortages.min_by_key(|(_, shortage)| (shortage.needed - shortage.allocatable).max(0))
}
