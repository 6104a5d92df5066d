//! How a cycle went from all nodes to one, in a line: how many were evaluated, passed, were scored.

use crate::tui::glyph::{BLOCK, VerdictSign};
use crate::tui::model::Model;
use crate::tui::names::CommonNameParts;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;
use kubestep_api::words::count;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::{CycleRecord, Outcome};

/// Cells of the bar of all nodes.
const BAR: usize = 10;
/// The narrowest room in which the numbers have bars.
const WITH_BARS: usize = 90;

/// The stages of a cycle that are known at the debugger's position, in `width` columns.
pub fn draw(cycle: &CycleRecord, model: &Model, width: usize) -> StyledParts {
    let all = cycle.nodes.order.len();
    // What comes after the position is not known yet.
    let reached = model.stepped_frame().filter(|_| model.is_under_way());
    let is_over = |point: ExtensionPoint| match reached {
        None => !model.is_under_way(),
        Some(frame) => frame.point.is_some_and(|at| at.index() > point.index()),
    };
    let mut parts = StyledParts::new();
    let bars = width >= WITH_BARS;
    stage(&mut parts, (count(all, "node"), Scope::Text), bars.then_some((all, all)));
    let mut add = |words: String, nodes: usize| {
        let scope = if nodes == 0 { Scope::VerdictFail } else { Scope::Text };
        stage(&mut parts, (words, scope), bars.then_some((nodes, all)));
    };
    let narrowed = cycle.pre_filter.iter().filter_map(|said| Some(said.nodes.as_ref()?.len()));
    if let Some(nodes) = narrowed.min().filter(|_| is_over(ExtensionPoint::PreFilter)) {
        add(format!("prefilter {nodes}"), nodes);
    }
    if is_over(ExtensionPoint::Filter) && !cycle.filter.plugins.is_empty() {
        let (evaluated, passed) = (cycle.evaluated_nodes, cycle.feasible_count());
        if evaluated < all {
            add(format!("evaluated {evaluated}"), evaluated);
        }
        add(format!("filter {passed}"), passed);
    }
    if is_over(ExtensionPoint::Score) && !cycle.score.totals.is_empty() {
        let scored = cycle.score.totals.len();
        add(format!("scored {scored}"), scored);
    }
    if reached.is_none() && !model.is_under_way() {
        stage(&mut parts, end(cycle, &model.node_names), None);
    }
    parts
}

/// A stage with an arrow before it, and a bar of so many of all nodes.
fn stage(parts: &mut StyledParts, words: (String, Scope), share: Option<(usize, usize)>) {
    if !parts.is_empty() {
        parts.push((" ▸ ".into(), Scope::TextDim));
    }
    parts.push(words);
    if let Some((nodes, all)) = share.filter(|(nodes, _)| *nodes > 0) {
        let cells = (nodes * BAR).div_ceil(all.max(1));
        parts.push((format!(" {}", BLOCK.repeat(cells)), Scope::LoadLow));
    }
}

/// How a cycle ended, in a few words: the node, or what happens next.
fn end(cycle: &CycleRecord, names: &CommonNameParts) -> (String, Scope) {
    if let Some(words) = preempting(cycle) {
        return (words, Scope::VerdictPending);
    }
    let verdict = super::verdict::of_outcome(cycle.outcome);
    match (cycle.outcome, cycle.node) {
        (Outcome::Scheduled, Some(node)) => {
            (format!("★ {}", names.short(&node.text())), Scope::ScoreWinner)
        }
        (Outcome::Waiting, Some(node)) => {
            let node = node.text();
            let (sign, node) = (VerdictSign::Wait.glyph(), names.short(&node));
            (format!("{sign} waits at Permit for {node}"), verdict.scope())
        }
        (outcome, _) => (format!("{} {}", verdict.glyph(), outcome.as_str()), verdict.scope()),
    }
}

/// Which pods the cycle preempts, and on which node.
pub fn preempting(cycle: &CycleRecord) -> Option<String> {
    let taken = cycle.preemption.as_ref()?;
    let name = |pod: &kubestep_framework::pod::NamespacedName| match pod.namespace
        == cycle.pod.namespace
    {
        true => pod.name.to_string(),
        false => pod.to_string(),
    };
    let victims = match taken.victims.as_slice() {
        [] => return Some(format!("nominated to {}", taken.node)),
        [only] => name(only),
        [first, more @ ..] => format!("{} and {} more", name(first), more.len()),
    };
    Some(format!("preempting {victims} on {}", taken.node))
}
