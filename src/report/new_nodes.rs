//! Which new nodes would take pods, as text and as JSON: the answers of `explain --new-node` and
//! `run --new-node`.

use indexmap::IndexMap;
use serde_json::Value;

use crate::report::lines_shown;
use kubestep_api::words::count;
use kubestep_debug::new_node::{
    NearMiss, NewNode, NewNodes, NodeOffer, Supply, TemplateOrigin, UnmetPod,
};
use kubestep_output::clean::clean;

/// Instance types that are listed for each pool in the short form.
const TYPES: usize = 3;
/// Templates that are listed for all pending pods.
const OFFERS: usize = 8;
/// Pods that are named in a line.
const NAMED: usize = 3;

/// The answer for one pod, with a trailing newline. `is_wide`: with the verdict on every node.
pub fn text(answer: &NewNodes, is_wide: bool) -> String {
    finish(&lines(answer, is_wide))
}

/// The lines of the answer for one pod.
pub fn lines(answer: &NewNodes, is_wide: bool) -> Vec<String> {
    let mut lines = obstacles(answer);
    if answer.of == 0 {
        lines.push(
            "No new node is known: the input has no nodes to copy, no NodePools with instance \
             types and no node groups."
                .to_owned(),
        );
        return lines;
    }
    let sources = by_source(&answer.nodes);
    let (fitting, others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|(_, nodes)| nodes.iter().any(|node| node.is_available()));
    let (closed, rejected): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(_, nodes)| nodes.iter().any(|node| node.fits()));
    match fitting.is_empty() {
        true => lines.push("No new node that can be created now would take it.".to_owned()),
        false => lines.push(heading(answer)),
    }
    lines.extend(fitting.iter().flat_map(|(_, nodes)| of_source(answer, nodes)));
    if !closed.is_empty() {
        lines.push("These would take it, but cannot be created at present:".to_owned());
        lines.extend(closed.iter().filter_map(|(_, nodes)| self::closed(nodes)));
    }
    lines.extend(rejections(answer, &rejected));
    if is_wide {
        lines.push("Every node that was tried:".to_owned());
        lines.extend(answer.nodes.iter().flat_map(verdict));
    }
    if answer.tried < answer.of {
        lines.push(format!("Stopped after {} of {}.", answer.tried, count(answer.of, "node")));
    }
    lines.extend(answer.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

fn finish(lines: &[String]) -> String {
    lines.iter().map(|line| clean(line).into_owned() + "\n").collect()
}

fn heading(answer: &NewNodes) -> String {
    match answer.nodes.iter().any(|node| node.price.is_some()) {
        true => "New nodes that would take it, the cheapest of each pool first:".to_owned(),
        false => "New nodes that would take it:".to_owned(),
    }
}

/// What keeps the pod from every node.
fn obstacles(answer: &NewNodes) -> Vec<String> {
    let texts: Vec<String> = answer.obstacles().iter().map(|text| format!("  {text}")).collect();
    match texts.is_empty() {
        true => texts,
        false => {
            let heading = "A new node alone does not help; this has to be resolved first:";
            std::iter::once(heading.to_owned()).chain(texts).collect()
        }
    }
}

/// The nodes of each pool or group; all copies of existing nodes of one group are one.
fn by_source(nodes: &[NewNode]) -> IndexMap<String, Vec<&NewNode>> {
    let mut sources: IndexMap<String, Vec<&NewNode>> = IndexMap::new();
    for node in nodes {
        sources.entry(node.origin.source()).or_default().push(node);
    }
    sources
}

/// The fitting nodes of a pool: the cheapest of its first few instance types.
fn of_source(answer: &NewNodes, nodes: &[&NewNode]) -> Vec<String> {
    let mut types: IndexMap<String, Vec<&NewNode>> = IndexMap::new();
    for node in nodes.iter().filter(|node| node.is_available()) {
        types.entry(type_of(&node.origin)).or_default().push(node);
    }
    let mut lines = Vec::new();
    let shown = lines_shown(types.len(), TYPES);
    for (at, offerings) in types.values().take(shown).enumerate() {
        let Some(first) = offerings.first() else { continue };
        let mut parts = vec![match at {
            0 => format!("  {}", title(&first.origin)),
            _ => format!("    or {}", first.origin.details()),
        }];
        parts.extend(first.price.map(price));
        parts.extend(
            first
                .takes
                .map(|takes| format!("takes {takes} of {}", count(answer.pending, "pending pod"))),
        );
        parts.extend(match offerings.len() {
            1 => None,
            several => Some(format!("{} of that type", count(several - 1, "more offering"))),
        });
        lines.push(parts.join("; "));
        if at == 0 {
            lines.extend(remarks(first));
        }
    }
    if let more @ 1.. = types.len() - shown {
        lines.push(format!("    or {}", count(more, "more instance type")));
    }
    lines
}

fn type_of(origin: &TemplateOrigin) -> String {
    match origin {
        TemplateOrigin::NodePool { instance_type, .. } => instance_type.to_string(),
        origin => origin.id(),
    }
}

fn title(origin: &TemplateOrigin) -> String {
    match (origin, origin.details()) {
        (_, details) if details.is_empty() => origin.source(),
        (TemplateOrigin::Like { .. }, details) => format!("{} ({details})", origin.source()),
        (_, details) => format!("{}: {details}", origin.source()),
    }
}

fn price(price: f64) -> String {
    format!("{price:.4} an hour")
}

fn room(room: Option<usize>) -> Option<String> {
    room.map(|room| format!("room for {}", count(room, "such node")))
}

/// What is particular about the nodes of a pool.
fn remarks(node: &NewNode) -> Option<String> {
    let taints: Vec<String> =
        node.startup_taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    let startup = (!taints.is_empty())
        .then(|| format!("startup taint {}, which does not count", taints.join(", ")));
    let daemons = (!node.daemons.is_empty()).then(|| count(node.daemons.len(), "DaemonSet pod"));
    let parts: Vec<String> = daemons.into_iter().chain(startup).chain(room(node.room)).collect();
    (!parts.is_empty()).then(|| format!("    with {}", parts.join("; ")))
}

/// The first node of a pool that cannot be created, and why.
fn closed(nodes: &[&NewNode]) -> Option<String> {
    let first = nodes.iter().find(|node| node.fits())?;
    let why = first.closed.as_deref().unwrap_or_default();
    Some(format!("  {}: {why}", title(&first.origin)))
}

/// The pools that no node of fits: the nearest node of each, with the causes.
fn rejections(answer: &NewNodes, sources: &[(&String, &Vec<&NewNode>)]) -> Vec<String> {
    let mut lines = Vec::new();
    if !sources.is_empty() {
        lines.push("Rejected, the nearest node of each:".to_owned());
    }
    for (_, nodes) in sources {
        let Some(nearest) = nodes.first() else { continue };
        let more = match nodes.len() {
            1 => String::new(),
            all => format!(" ({} tried)", count(all, "node")),
        };
        lines.push(format!("  {}{more}", title(&nearest.origin)));
        lines.extend(causes(nearest).into_iter().map(|cause| format!("    {cause}")));
    }
    lines.extend(answer.near_misses.iter().map(near_miss));
    lines
}

/// What rejects a node; a single cause is marked, because the node misses by nothing else.
fn causes(node: &NewNode) -> Vec<String> {
    let mut lines = node.causes();
    if let [only] = lines.as_mut_slice() {
        only.push_str(" (the only cause)");
    }
    lines
}

fn near_miss(miss: &NearMiss) -> String {
    let NearMiss { pool, requirement, node, .. } = miss;
    let price = miss.price.map(|amount| format!(", {}", price(amount))).unwrap_or_default();
    format!(
        "  NodePool {pool} misses by its own requirement {requirement}: {node}{price} would fit"
    )
}

/// A node with its whole verdict.
fn verdict(node: &NewNode) -> Vec<String> {
    let closed = node.closed.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
    let price = node.price.map(|amount| format!("; {}", price(amount))).unwrap_or_default();
    let fits = if node.fits() { "fits" } else { "rejected" };
    let mut lines = vec![format!("  {}: {fits}{closed}{price}", title(&node.origin))];
    for blocker in &node.verdict.blockers {
        let reasons: Vec<&str> = blocker.reasons.iter().map(|reason| reason.as_str()).collect();
        lines.push(format!("    {}: {} [{}]", blocker.plugin, blocker.code, reasons.join(", ")));
        lines.extend(blocker.causes.iter().map(|cause| format!("      {}", cause.text())));
    }
    lines
}

/// The answer for all pending pods, with a trailing newline.
pub fn supply(supply: &Supply) -> String {
    let pending = supply.pending.len();
    if pending == 0 {
        return "No pod is pending: no new node is needed.\n".to_owned();
    }
    let mut lines = Vec::new();
    if !supply.plan.is_empty() {
        lines.push(plan_heading(supply));
        lines.extend(supply.plan.iter().map(|bought| {
            let price = bought.price.map(|amount| format!("; {}", price(amount)));
            let (nodes, pods) = (count(bought.count, "node"), names(&bought.pods));
            let price = price.unwrap_or_default();
            format!("  {nodes} of {}{price}; for {pods}", title(&bought.origin))
        }));
    }
    if !supply.offers.is_empty() {
        lines.push("Nodes of one kind alone:".to_owned());
        let shown = lines_shown(supply.offers.len(), OFFERS);
        lines.extend(supply.offers.iter().take(shown).map(|one| offer(one, pending)));
        let more = supply.offers.len() - shown;
        lines.extend(
            (more > 0).then(|| format!("  and {} (-o json lists them)", count(more, "more kind"))),
        );
    }
    let is_explained = |one: &&UnmetPod| {
        !one.reasons.is_empty() || one.nearest.is_some() || !one.near_misses.is_empty()
    };
    lines.extend(supply.unmet.iter().filter(is_explained).flat_map(unmet));
    let more = supply.unmet.iter().filter(|one| !is_explained(one)).count();
    lines.extend((more > 0).then(|| {
        format!("{} without a new node, not explained (-o json lists all)", count(more, "pod"))
    }));
    if supply.tried < supply.of {
        lines.push(format!("Stopped after {} of {}.", supply.tried, count(supply.of, "node")));
    }
    finish(&lines)
}

fn plan_heading(supply: &Supply) -> String {
    let nodes: usize = supply.plan.iter().map(|bought| bought.count).sum();
    let verb = if nodes == 1 { "takes" } else { "take" };
    let price = supply.price.map(|amount| format!(", {}", price(amount))).unwrap_or_default();
    let nodes = count(nodes, "new node");
    let pending = count(supply.pending.len(), "pending pod");
    match (supply.pending.len(), supply.unmet.len()) {
        (1, 0) => format!("{nodes} {verb} the pending pod{price}:"),
        (_, 0) => format!("{nodes} {verb} all {pending}{price}:"),
        (all, left) => format!("{nodes} {verb} {} of {pending}{price}:", all - left),
    }
}

fn offer(offer: &NodeOffer, pending: usize) -> String {
    let mut parts = vec![title(&offer.origin)];
    parts.extend(offer.price.map(price));
    parts.push(format!("one takes {} of {}", offer.takes.len(), count(pending, "pod")));
    if let (Some(nodes @ 2..), Some(pods)) = (offer.nodes, offer.pods) {
        let sum = offer.price.map(|price| format!(" for {:.4} an hour", price * nodes as f64));
        parts.push(format!("{nodes} take {pods}{}", sum.unwrap_or_default()));
    }
    parts.extend(offer.closed.clone().or(room(offer.room)));
    format!("  {}", parts.join("; "))
}

fn unmet(unmet: &UnmetPod) -> Vec<String> {
    let mut lines = vec![format!("No new node that can be created takes {}:", unmet.pod)];
    lines.extend(unmet.reasons.iter().map(|reason| format!("  {reason}")));
    if let Some(nearest) = &unmet.nearest {
        lines.push(format!("  {}", title(&nearest.origin)));
        lines.extend(nearest.causes.iter().map(|cause| format!("    {cause}")));
    }
    lines.extend(unmet.near_misses.iter().map(near_miss));
    lines
}

/// The first few pods, and the number of the rest.
fn names(pods: &[kubestep_framework::pod::NamespacedName]) -> String {
    let first: Vec<String> = pods.iter().take(NAMED).map(ToString::to_string).collect();
    match pods.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The answer as JSON: `newNodes` of `schema/explain.v1.json`.
pub fn value(answer: &NewNodes) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// The answer for all pods as JSON: `newNodes` of `schema/run.v1.json`.
pub fn supply_value(supply: &Supply) -> Value {
    serde_json::to_value(supply).unwrap_or_default()
}
