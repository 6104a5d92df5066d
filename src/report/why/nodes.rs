//! The causes on each node.

use super::{WhyDetail, names};
use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_debug::why::cause::{CauseDetail, Shortage};
use kubestep_debug::why::{NodeWhy, Reason, RejectedGroup, Why};
use kubestep_framework::resource::amount;

/// Groups that are listed in the short form.
const GROUPS: usize = 6;
/// Nodes of a group that are listed in the short form.
const NAMED: usize = 3;

/// All nodes in the wide form, otherwise the groups: first those that miss little, then those that
/// do not match.
pub(super) fn lines(why: &Why, detail: &WhyDetail) -> Vec<String> {
    if detail.wide {
        return why.nodes.iter().flat_map(node).collect();
    }
    let (others, near): (Vec<&RejectedGroup>, Vec<&RejectedGroup>) =
        why.groups.iter().partition(|g| g.mismatch);
    let mut lines = everywhere(why);
    for group in near.iter().take(GROUPS) {
        lines.extend(self::group(why, group));
    }
    lines.extend(rest(near.get(GROUPS..).unwrap_or_default(), detail));
    lines.extend(fragmented(why));
    let shown = others.iter().take(GROUPS);
    if near.is_empty() {
        lines.extend(shown.flat_map(|group| self::group(why, group)));
    } else if !others.is_empty() {
        lines.push(mismatched(&others));
        lines.extend(shown.map(|group| format!("  {}", folded(why, group))));
    }
    lines.extend(rest(others.get(GROUPS..).unwrap_or_default(), detail));
    lines
}

/// The heading of the nodes that do not match.
fn mismatched(groups: &[&RejectedGroup]) -> String {
    let nodes: usize = groups.iter().map(|group| group.nodes.len()).sum();
    let are_all_of = |plugin: &str| {
        groups.iter().flat_map(|group| &group.reasons).all(|reason| reason.plugin == plugin)
    };
    match (nodes, are_all_of("NodeResourcesFit"), are_all_of("NodeAffinity")) {
        (1, true, _) => "1 node has too little allocatable:".to_owned(),
        (_, true, _) => format!("{nodes} nodes have too little allocatable:"),
        (1, _, true) => "1 node does not match as labelled:".to_owned(),
        (_, _, true) => format!("{nodes} nodes do not match as labelled:"),
        (1, ..) => "1 node does not match as it is:".to_owned(),
        _ => format!("{nodes} nodes do not match as they are:"),
    }
}

fn rest(groups: &[&RejectedGroup], detail: &WhyDetail) -> Option<String> {
    let nodes: usize = groups.iter().map(|group| group.nodes.len()).sum();
    let (more, hint) = (count(nodes, "more node"), detail.hint(" lists them"));
    (nodes > 0).then(|| format!("{more} with other reasons{hint}"))
}

/// The reasons that all nodes share, with the details of the first node if they differ.
fn everywhere(why: &Why) -> Vec<String> {
    let line = |reason: &Reason| {
        let said = format!("On every node: {}: {}", reason.plugin, reason.text);
        match why.nodes.iter().find_map(|node| Some((node, own_words(node, reason)?))) {
            Some((node, words)) => format!("{said}; on {}: {words}", node.node),
            None => said,
        }
    };
    why.everywhere.iter().map(line).collect()
}

/// The node's own text for a reason, if it has more details than the reason's.
fn own_words(node: &NodeWhy, reason: &Reason) -> Option<String> {
    let mut causes = node.causes().filter(|(plugin, _)| *plugin == reason.plugin);
    let (_, cause) = causes.find(|(_, cause)| cause.gist() == reason.text)?;
    let words = cause.text();
    // Most start with the shared text.
    let shared = reason.text.strip_suffix(" is not met").unwrap_or(&reason.text);
    let own = words.strip_prefix(shared).unwrap_or(&words).trim_start_matches(": ");
    (!own.is_empty()).then(|| own.to_owned())
}

/// The reasons of a group that not all nodes share.
fn own<'a>(why: &'a Why, group: &'a RejectedGroup) -> impl Iterator<Item = &'a Reason> {
    group.reasons.iter().filter(|reason| !why.everywhere.contains(reason))
}

fn folded(why: &Why, group: &RejectedGroup) -> String {
    let reasons: Vec<&str> = own(why, group).map(|reason| reason.text.as_str()).collect();
    let nodes = match group.nodes.len() {
        1..=NAMED => names(&group.nodes, NAMED),
        many => count(many, "node"),
    };
    format!("{nodes}{}: {}", not_evaluated(why, group), reasons.join("; "))
}

/// Why the cycle did not evaluate the nodes of a group, if that is the same for all.
fn not_evaluated(why: &Why, group: &RejectedGroup) -> String {
    let mut reasons = why.nodes_of(group).map(|node| node.seen.why_not());
    let first = reasons.next().flatten();
    let shared = first.filter(|_| reasons.all(|other| other == first));
    shared.map(|why| format!(", not evaluated in the cycle: {why}")).unwrap_or_default()
}

/// A group with the details of its first node.
fn group(why: &Why, group: &RejectedGroup) -> Vec<String> {
    let (nodes, named) = (count(group.nodes.len(), "node"), names(&group.nodes, NAMED));
    let mut lines = vec![format!("{nodes} ({named}){}", not_evaluated(why, group))];
    let Some(nearest) = why.nodes_of(group).next() else { return lines };
    let of = if group.nodes.len() > 1 { format!(" (on {})", nearest.node) } else { String::new() };
    for (plugin, cause) in nearest.causes() {
        let (gist, words) = (cause.gist(), cause.text());
        if why.everywhere.iter().any(|reason| reason.plugin == plugin && reason.text == gist) {
            continue;
        }
        lines.push(match gist == words {
            true => format!("  {plugin}: {gist}"),
            false => format!("  {plugin}{of}: {words}"),
        });
    }
    let shared = why.everywhere.len();
    match (lines.len() - 1, why.ahead.is_empty()) {
        (0, _) => lines.push("  blocked only by the above".to_owned()),
        (own, true) if own + shared > 1 => lines.push(format!("  {}", fits_if(own + shared))),
        _ => {}
    }
    lines
}

/// That a node fits once so many causes, at least two, are resolved.
pub(super) fn fits_if(causes: usize) -> String {
    match causes {
        2 => "fits if both are resolved".to_owned(),
        causes => format!("fits if all {causes} are resolved"),
    }
}

/// The shortage of one resource, if it is all that the node is rejected for.
fn only_shortage(node: &NodeWhy) -> Option<&Shortage> {
    let mut causes = node.causes();
    let (_, only) = causes.next().filter(|_| causes.next().is_none())?;
    match &only.detail {
        CauseDetail::Shortage(shortage) => Some(shortage),
        _ => None,
    }
}

/// What the nodes have free together, if each has too little free of only one resource: the pod is
/// blocked by fragmentation. It is not where no node could take it, even an empty one.
fn fragmented(why: &Why) -> Option<String> {
    let short: Vec<&Shortage> = why.nodes.iter().map(only_shortage).collect::<Option<_>>()?;
    let first = short.first().filter(|_| short.len() > 1)?;
    let same = short.iter().all(|other| other.resource == first.resource);
    let free: i64 = short.iter().map(|shortage| shortage.free.max(0)).sum();
    let some_could = short.iter().any(|shortage| shortage.allocatable >= shortage.needed);
    (same && some_could && free >= first.needed && first.resource != "pods").then(|| {
        let resource = first.resource;
        let [free, needed] = [free, first.needed].map(|amount| amount::of(&resource, amount));
        format!(
            "Fragmented: {} have {free} {resource} free together, none {needed}.",
            count(short.len(), "node")
        )
    })
}

/// A node with all its causes.
fn node(node: &NodeWhy) -> Vec<String> {
    let verdict = match (node.fits(), node.eviction_could_help()) {
        (true, _) => "fits",
        (false, true) => "rejected",
        (false, false) => "rejected; preemption can't help",
    };
    let seen = node.seen.why_not().map(|why| format!(" (not evaluated: {why})"));
    let mut lines = vec![format!("{}: {verdict}{}", node.node, seen.unwrap_or_default())];
    for blocker in &node.blockers {
        let reasons: Vec<&str> = blocker.reasons.iter().map(|reason| reason.as_str()).collect();
        let nominated = if blocker.by_nominated { ", counting nominated pods" } else { "" };
        let reasons = reasons.join(", ");
        lines.push(format!("  {}: {} [{reasons}]{nominated}", blocker.plugin, blocker.code));
        lines.extend(blocker.causes.iter().map(|cause| format!("    {}", cause.text())));
    }
    lines
}

/// The verdict of one node, for `--node`.
pub(super) fn one(why: &Why, name: Name) -> Vec<String> {
    why.node(name).map_or_else(Vec::new, node)
}
