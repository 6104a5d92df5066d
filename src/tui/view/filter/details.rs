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

/// What distinguishes the two kinds of rejections.
pub fn rejections_legend() -> StyledParts {
    let unresolvable = sign_with(VerdictSign::Unresolvable, "rejected, preemption can't help");
    sign_with(VerdictSign::Unschedulable, "rejected").into_iter().chain(unresolvable).collect()
}

/// What a pass in the column of a plugin leaves out: the plugin alone was asked.
pub fn nominated_legend() -> StyledParts {
    sign_with(VerdictSign::Success, "passes without nominated pods")
}

fn sign_with(verdict: VerdictSign, words: &str) -> StyledParts {
    let words = format!(" {words}  ");
    vec![(verdict.glyph().to_owned(), verdict.scope()), (words, Scope::TextDim)]
}

/// Whether other pods than the cycle's are nominated to nodes.
pub fn has_other_nominated(model: &Model, cycle: &CycleRecord) -> bool {
    model.nominated.iter().any(|(_, pod)| pod.key() != cycle.pod)
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
