//! The answer to "why?" as an outline: the verdict, the causes with their nodes, the nodes that
//! miss the least, ledgers, queue, attempts and preemption.

use super::{WhyDetail, head, names, nodes, nominated, placement, preemption, queue, spread};
use crate::report::lines_shown;
use crate::report::outline::{LinkTarget, Outline, OutlineItem, Tone, with_colon};
use kubestep_api::words::count;
use kubestep_debug::why::{NodeWhy, PodLocation, RejectedGroup, Why};
use kubestep_framework::record::QueueName;

/// Nodes that are listed one by one, those that miss the least first.
const NEAR: usize = 20;
/// Nodes of a group that are listed.
const OF_GROUP: usize = 200;

/// The answer as nested lines, which begin with the verdict.
pub fn outline(why: &Why) -> Outline {
    let mut outline = Outline { title: format!("Why {}?", why.pod), items: Vec::new() };
    let mut head = head::lines(why);
    let first = if head.is_empty() { String::new() } else { head.remove(0) };
    let verdict = OutlineItem::heading("verdict", first).tone(tone(why));
    outline.items.push(verdict.clone());
    outline.section(verdict, head);
    // `section` adds the heading again, unless there are no lines.
    if outline.items.len() > 1 {
        outline.items.remove(0);
    }
    blockers(why, &mut outline);
    near(why, &mut outline);
    outline
        .section(OutlineItem::heading("nominated", "Nominated pods"), nominated::lines(why, true));
    outline.section(OutlineItem::heading("spread", "Spread ledgers"), spread::lines(why, true));
    let ranking = OutlineItem::heading("ranking", "Ranking of the nodes that fit").folded(true);
    outline.section(ranking, placement::lines(why, &WhyDetail::default()));
    outline.section(OutlineItem::heading("queue", "Queue"), queue::all_events(why));
    attempts(why, &mut outline);
    outline.items.extend(preemption::items(why));
    outline
}

/// The style of the verdict, by where the pod is.
fn tone(why: &Why) -> Tone {
    match &why.place {
        PodLocation::Bound { .. } | PodLocation::Ended { .. } => Tone::Good,
        PodLocation::Waiting { .. } => Tone::Waiting,
        PodLocation::Queue { queue } => Tone::Queued(queue.0),
        PodLocation::Unserved { .. } | PodLocation::Nowhere => Tone::Queued(QueueName::None),
    }
}

/// The causes by reason, with their nodes.
fn blockers(why: &Why, outline: &mut Outline) {
    let rejected: usize = why.groups.iter().map(|group| group.nodes.len()).sum();
    if rejected == 0 {
        return;
    }
    let heading = format!("Blocked on {}", count(rejected, "node"));
    outline.items.push(OutlineItem::heading("blockers", heading));
    for reason in &why.everywhere {
        let text = format!("on every node: {}: {}", reason.plugin, reason.text);
        outline.items.push(OutlineItem::new(1, text).tone(Tone::Bad));
    }
    why.groups.iter().for_each(|group| self::group(why, group, outline));
}

fn group(why: &Why, group: &RejectedGroup, outline: &mut Outline) {
    let own = group.reasons.iter().filter(|reason| !why.everywhere.contains(reason));
    let reasons: Vec<String> =
        own.map(|reason| format!("{}: {}", reason.plugin, reason.text)).collect();
    let reasons = match reasons.is_empty() {
        true => "blocked only by the above".to_owned(),
        false => reasons.join("; "),
    };
    let nodes = count(group.nodes.len(), "node");
    let tone = if group.mismatch { Tone::Dim } else { Tone::Bad };
    let line = OutlineItem::new(1, format!("{nodes}: {reasons}")).tone(tone);
    outline.items.push(OutlineItem { id: format!("group {reasons}"), ..line.folded(true) });
    let shown = lines_shown(group.nodes.len(), OF_GROUP);
    for name in group.nodes.iter().take(shown) {
        let Some(node) = why.node(*name) else { continue };
        let causes: Vec<String> = node.causes().map(|(_, cause)| cause.text()).collect();
        let text = format!("{name}: {}", causes.join("; "));
        outline.items.push(OutlineItem::new(2, text).to(verdict(why, node)));
    }
    let more = group.nodes.len() - shown;
    let rest = (more > 0).then(|| OutlineItem::new(2, format!("and {}", count(more, "more node"))));
    outline.items.extend(rest);
}

/// The link to the first rejection of a node.
fn verdict(why: &Why, node: &NodeWhy) -> LinkTarget {
    LinkTarget::Verdict(why.pod, node.node, node.blockers.first().map(|by| by.plugin))
}

/// The nodes that miss the least, with all causes of each.
fn near(why: &Why, outline: &mut Outline) {
    let near = why.nodes.iter().filter(|node| !node.fits() && !node.mismatches());
    let near: Vec<&NodeWhy> = near.take(NEAR).collect();
    if near.is_empty() {
        return;
    }
    outline
        .items
        .push(OutlineItem::heading("near", "Nearest nodes, the one that misses least first"));
    for node in near {
        let seen = node.seen.why_not().map(|why| format!(" (not evaluated: {why})"));
        let causes: Vec<_> = node.causes().collect();
        let shown = match causes.as_slice() {
            [(plugin, cause)] => format!("{plugin}: {}", cause.text()),
            [] => "rejected".to_owned(),
            causes => {
                let gists: Vec<String> = causes.iter().map(|(_, cause)| cause.gist()).collect();
                format!("{}: {}", nodes::fits_if(causes.len()), gists.join(" and "))
            }
        };
        let text = format!("{}: {shown}{}", node.node, seen.unwrap_or_default());
        let line = OutlineItem::new(1, text).folded(true).to(verdict(why, node));
        outline.items.push(OutlineItem { id: format!("near {}", node.node), ..line });
        for (plugin, cause) in causes.into_iter().filter(|_| node.causes().nth(1).is_some()) {
            let to = LinkTarget::Verdict(why.pod, node.node, Some(plugin));
            outline.items.push(OutlineItem::new(2, format!("{plugin}: {}", cause.text())).to(to));
        }
    }
}

fn attempts(why: &Why, outline: &mut Outline) {
    if why.attempts.is_empty() {
        return;
    }
    let heading = format!("Attempts: {}", why.attempts.len());
    outline.items.push(OutlineItem::heading("attempts", heading).folded(why.attempts.len() > 3));
    for attempt in why.attempts.iter().rev() {
        let node = attempt.node.map(|node| format!(" on {node}")).unwrap_or_default();
        let (number, cycle, outcome) = (attempt.attempt, attempt.cycle, attempt.outcome);
        let message = with_colon(&attempt.message);
        let text = format!("attempt {number}, cycle {cycle}: {outcome}{node}{message}");
        outline.items.push(OutlineItem::new(1, text).to(LinkTarget::Cycle(cycle)));
    }
}

/// Nodes, the first few by name.
pub(super) fn of_nodes<T: std::fmt::Display>(nodes: &[T]) -> String {
    format!("{} ({})", count(nodes.len(), "node"), names(nodes, 3))
}
