//! What speaks against the nodes.

use super::names;
use crate::debug::why::{Group, NodeWhy, Reason, Why};
use crate::intern::Symbol;
use crate::words::count;

/// Groups that are told in the short form.
const GROUPS: usize = 6;
/// Nodes that are named of a group in the short form.
const NAMED: usize = 3;

/// All nodes in the wide form, else the groups: those that are near, then those that never match.
pub(super) fn lines(why: &Why, wide: bool) -> Vec<String> {
    if wide {
        return why.nodes.iter().flat_map(node).collect();
    }
    let (never, near): (Vec<&Group>, Vec<&Group>) = why.groups.iter().partition(|g| g.never);
    let mut lines = everywhere(why);
    let all_never = near.is_empty();
    for group in near.iter().take(GROUPS) {
        lines.extend(self::group(why, group));
    }
    lines.extend(rest(near.get(GROUPS..).unwrap_or_default()));
    if never.is_empty() {
        return lines;
    }
    let nodes: usize = never.iter().map(|group| group.nodes.len()).sum();
    if !all_never {
        lines.push(format!("{} can never match, whatever happens there:", count(nodes, "node")));
        lines.extend(never.iter().take(GROUPS).map(|group| format!("  {}", folded(why, group))));
    } else {
        lines.extend(never.iter().take(GROUPS).flat_map(|group| self::group(why, group)));
    }
    lines.extend(rest(never.get(GROUPS..).unwrap_or_default()));
    lines
}

fn rest(groups: &[&Group]) -> Option<String> {
    let nodes: usize = groups.iter().map(|group| group.nodes.len()).sum();
    let more = format!("{} with other reasons (-o wide tells them)", count(nodes, "more node"));
    (nodes > 0).then_some(more)
}

/// What every node has against it, with the words of the nearest one where each has its own.
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

/// The words in which a node says a reason, where they say more than the reason's.
fn own_words(node: &NodeWhy, reason: &Reason) -> Option<String> {
    let mut causes = node.causes().filter(|(plugin, _)| *plugin == reason.plugin);
    let (_, cause) = causes.find(|(_, cause)| cause.gist() == reason.text)?;
    let words = cause.words();
    // Most begin with what every node says.
    let own = words.strip_prefix(&*reason.text).unwrap_or(&words).trim_start_matches(": ");
    (!own.is_empty()).then(|| own.to_owned())
}

/// The reasons of a group that are not those of every node.
fn own<'a>(why: &'a Why, group: &'a Group) -> impl Iterator<Item = &'a Reason> {
    group.reasons.iter().filter(|reason| !why.everywhere.contains(reason))
}

fn folded(why: &Why, group: &Group) -> String {
    let reasons: Vec<&str> = own(why, group).map(|reason| reason.text.as_str()).collect();
    let nodes = match group.nodes.len() {
        1..=NAMED => names(&group.nodes, NAMED),
        many => count(many, "node"),
    };
    format!("{nodes}: {}", reasons.join("; "))
}

/// A group with the words of its nearest node.
fn group(why: &Why, group: &Group) -> Vec<String> {
    let mut lines =
        vec![format!("{} ({})", count(group.nodes.len(), "node"), names(&group.nodes, NAMED))];
    let Some(nearest) = group.nodes.first().and_then(|name| why.node(*name)) else { return lines };
    let of = if group.nodes.len() > 1 { format!(" (on {})", nearest.node) } else { String::new() };
    for (plugin, cause) in nearest.causes() {
        let (gist, words) = (cause.gist(), cause.words());
        if why.everywhere.iter().any(|reason| reason.plugin == plugin && reason.text == gist) {
            continue;
        }
        lines.push(match gist == words {
            true => format!("  {plugin}: {gist}"),
            false => format!("  {plugin}{of}: {words}"),
        });
    }
    if lines.len() == 1 {
        lines.push("  nothing else is in the way".to_owned());
    }
    lines
}

/// A node with all that speaks against it.
fn node(node: &NodeWhy) -> Vec<String> {
    let never = if node.never() { ", can never match" } else { "" };
    let verdict = if node.fits() { "fits".to_owned() } else { format!("refused{never}") };
    let seen = node.seen.why_not().map(|why| format!(" (not evaluated: {why})"));
    let mut lines = vec![format!("{}: {verdict}{}", node.node, seen.unwrap_or_default())];
    for blocker in &node.blockers {
        let reasons: Vec<&str> = blocker.reasons.iter().map(|reason| reason.as_str()).collect();
        let nominated = if blocker.by_nominated { ", with nominated pods counted in" } else { "" };
        let reasons = reasons.join(", ");
        lines.push(format!("  {}: {} [{reasons}]{nominated}", blocker.plugin, blocker.code));
        lines.extend(blocker.causes.iter().map(|cause| format!("    {}", cause.words())));
    }
    lines
}

/// One node alone.
pub(super) fn one(why: &Why, name: Symbol) -> Vec<String> {
    why.node(name).map_or_else(Vec::new, node)
}
