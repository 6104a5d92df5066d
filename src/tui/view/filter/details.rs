//! The details of a cell of the filter matrix: what the verdict means, and all failures of the node.

use std::fmt::Write as _;

use crate::report;
use crate::tui::glyph::VerdictSign;
use crate::tui::lines::DetailLine;
use crate::tui::model::Model;
use crate::tui::theme::Scope;
use crate::tui::view::verdict;
use crate::tui::widget::bar::StyledParts;
use kubestep_framework::node::NodeId;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::Status;

/// The verdict of a plugin on a node.
pub fn plugin_verdict(cycle: &CycleRecord, who: &str, id: VerdictId) -> DetailLine {
    answered(who, verdict::of_id(cycle, id))
}

/// A verdict with its meaning.
pub fn answered(who: &str, verdict: VerdictSign) -> DetailLine {
    let (glyph, meaning) = (verdict.glyph(), verdict.meaning());
    DetailLine::text(format!("{glyph} {who}: {meaning}")).scoped(verdict.scope())
}

/// What the signs in narrow columns stand for: the words that are there where they fit.
pub fn legend() -> DetailLine {
    use VerdictSign::{Skip, Success, Unresolvable, Unschedulable};
    let signs = [Success, Unschedulable, Unresolvable, Skip];
    let signs = signs.map(|verdict| format!("{} {}", verdict.glyph(), verdict.word()));
    let unasked = VerdictSign::NotEvaluated.glyph();
    DetailLine::field(
        "signs",
        format!("{}, {unasked} not evaluated; Ctrl-w shows words", signs.join(", ")),
    )
}

/// What distinguishes the two kinds of rejections, and what the columns of plugins leave out.
pub fn rejections_legend(model: &Model, cycle: Option<&CycleRecord>) -> StyledParts {
    let is_other = |pod: &PodInfo| cycle.is_some_and(|cycle| cycle.pod != pod.key());
    let nominated = match model.nominated.iter().any(|(_, pod)| is_other(pod)) {
        true => " rejected, preemption can't help; plugins without nominated pods",
        false => " rejected, preemption can't help",
    };
    let kinds =
        [(VerdictSign::Unschedulable, " rejected  "), (VerdictSign::Unresolvable, nominated)];
    let parts = kinds
        .into_iter()
        .flat_map(|(verdict, words)| [(verdict.glyph(), verdict.scope()), (words, Scope::TextDim)]);
    parts.map(|(text, scope)| (text.to_owned(), scope)).collect()
}

/// The scheduler's own verdict with the plugin that gave it.
pub fn final_verdict(cycle: &CycleRecord, id: VerdictId) -> DetailLine {
    let by = cycle.verdicts.get(id).map(|s| format!(" by {}", s.plugin())).unwrap_or_default();
    let verdict = verdict::of_id(cycle, id);
    let explained = report::verdict::explain(cycle, id);
    let text = match explained.starts_with(verdict.meaning()) {
        true => explained,
        false => format!("{}{by}: {explained}", verdict.meaning()),
    };
    DetailLine::field("verdict", text).scoped(verdict.scope())
}

/// The verdict on a node that passed the plugins, but not the extenders.
pub fn rejected_by_extender(status: &Status) -> DetailLine {
    let verdict = verdict::of_code(status.code());
    let (meaning, reasons) = (verdict.meaning(), report::verdict::reasons(status));
    DetailLine::field("verdict", format!("{meaning} by {}: {reasons}", status.plugin()))
        .scoped(verdict.scope())
}

/// Every plugin that rejects the node, also those behind the first failure: each alone, as the
/// columns show it.
pub fn all_failures(model: &Model, cycle: &CycleRecord, node: NodeId) -> Vec<DetailLine> {
    let failing = cycle.filter.plugins.iter().filter_map(|column| {
        let id = report::verdict::of_plugin(cycle, column, node).filter(|id| id.is_status())?;
        Some((column.plugin, id))
    });
    let mut text = String::new();
    for (plugin, id) in failing {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{plugin}: {}", report::verdict::explain(cycle, id));
    }
    if text.is_empty() {
        return Vec::new();
    }
    let mut nominated = model.nominated_to(cycle.nodes.name(node));
    if nominated.any(|pod| pod.key() != cycle.pod) {
        text += " (without the capacity reserved for nominated pods)";
    }
    vec![DetailLine::field("all failures", text)]
}
