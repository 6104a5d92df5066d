//! A candidate node before and after its victims are evicted: two bars for each resource, in which every
//! victim and the pod are segments, and what the disruption budgets still allow.

use std::sync::Arc;

use crate::tui::lines::DetailLine;
use crate::tui::model::BeforePreemption;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::{Segment, StyledParts, fill, segments};
use crate::tui::widget::grid::CellWriter;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::{Candidate, CycleRecord};
use kubestep_framework::resource::{Resource, amount};

/// Cells of a bar.
const WIDTH: usize = 32;
/// The series of the pods that stay, of the pod that comes, and of the first victim.
const STAYS: usize = 6;
const COMES: usize = 0;
const LEAVES: usize = 1;
/// Victims with a segment of their own; further ones share the last.
const DRAWN: usize = 5;

/// The bars of a candidate and what their segments are; nothing where the state before the cycle
/// is not known.
pub fn lines(
    cycle: &CycleRecord,
    candidate: &Candidate,
    before: &BeforePreemption,
) -> Vec<DetailLine> {
    let node = before.nodes.iter().find(|node| node.name == candidate.node);
    let (Some(node), Some(pod)) = (node, &cycle.info) else { return Vec::new() };
    let on_node = |victim: &NamespacedName| node.pods.iter().find(|pod| pod.key() == *victim);
    let victims: Vec<&Arc<PodInfo>> = candidate.victims.iter().filter_map(on_node).collect();
    let mut lines = vec![key(&victims, pod)];
    lines.extend(resource(node, &victims, pod, ("cpu", |amounts| amounts.milli_cpu)));
    lines.extend(resource(node, &victims, pod, ("memory", |amounts| amounts.memory)));
    lines.extend(budgets(candidate, before));
    lines
}

fn series(victim: usize) -> usize {
    LEAVES + victim.min(DRAWN - 1)
}

/// What the segments stand for.
fn key(victims: &[&Arc<PodInfo>], pod: &PodInfo) -> DetailLine {
    let mut parts = StyledParts::new();
    let mut add = |series: usize, words: String| {
        parts.push((fill(series).into(), Scope::of_series(series)));
        parts.push((format!(" {words}  "), Scope::Text));
    };
    add(COMES, pod.key().to_string());
    for (at, victim) in victims.iter().enumerate() {
        add(series(at), format!("{} (priority {})", victim.key(), victim.priority()));
    }
    add(STAYS, "stays".into());
    DetailLine::drawn("segments", parts)
}

type Amount = fn(&Resource) -> i64;

/// A resource of the node before and after.
fn resource(
    node: &NodeInfo,
    victims: &[&Arc<PodInfo>],
    pod: &PodInfo,
    (name, of): (&str, Amount),
) -> Vec<DetailLine> {
    let all = of(&node.allocatable);
    if all <= 0 {
        return Vec::new();
    }
    let request = |pod: &PodInfo| of(&pod.resource.resource);
    let leaves = victims.iter().enumerate().map(|(at, victim)| (request(victim), series(at)));
    let leaves: Vec<Segment> = leaves.collect();
    let left: i64 = leaves.iter().map(|(amount, _)| *amount).sum();
    let stays = (of(&node.requested).saturating_sub(left), STAYS);
    let before: Vec<Segment> = [stays].into_iter().chain(leaves).collect();
    let after = vec![stays, (request(pod), COMES)];
    let line = |label: &str, parts: Vec<Segment>| {
        let sum = parts.iter().map(|(amount, _)| *amount).sum();
        let mut out = CellWriter::default();
        segments(&parts, all, WIDTH, &mut out);
        let mut drawing: StyledParts = vec![("│".into(), Scope::Border)];
        drawing.extend(out.styled().map(|(text, scope)| (text.to_owned(), scope)));
        let amounts = format!("│ {} of {}", amount::of(name, sum), amount::of(name, all));
        drawing.push((amounts, Scope::Text));
        DetailLine::drawn(label, drawing)
    };
    vec![line(&format!("{name} now"), before), line("  then", after)]
}

/// What each disruption budget that covers a victim allows, and what is left of it.
fn budgets(candidate: &Candidate, before: &BeforePreemption) -> Vec<DetailLine> {
    let own = before.budgets.iter().filter(|(pod, _)| candidate.victims.contains(pod));
    let mut counted: Vec<(NamespacedName, i32, i32)> = Vec::new();
    for (_, budget) in own {
        match counted.iter_mut().find(|(name, ..)| *name == budget.name) {
            Some((.., evicted)) => *evicted += 1,
            None => counted.push((budget.name, budget.allowed, 1)),
        }
    }
    let line = |(name, allowed, evicted): (NamespacedName, i32, i32)| {
        let left = allowed.saturating_sub(evicted);
        let text = format!("{name} allows {allowed}, {evicted} evicted: {left} left");
        let scope = if left < 0 { Scope::VerdictFail } else { Scope::Text };
        DetailLine::field("budget", text).scoped(scope)
    };
    counted.into_iter().map(line).collect()
}
