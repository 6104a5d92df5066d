//! The overview of one cycle: every extension point in order, its plugins under it, with the answer of each.
//!
//! ```text
//!   extension point              status    what it said
//!   PreFilter                    ✓ pass
//!     NodeResourcesFit           ✓ pass
//! ▶ Filter                       1/5 pass  1 of 5 nodes pass
//!     NodeResourcesFit           2/5 pass  Insufficient cpu (2), …
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use super::{OnEnter, View, ViewId, verdict};
use crate::tui::glyph::Verdict;
use crate::tui::lines::Line;
use crate::tui::model::{CyclePosition, Model, span};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};
use indexmap::IndexMap;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::record::{
    CycleRecord, FilterColumn, GroupRecord, Outcome, PluginStatus, ScoreColumn, VerdictId,
};

/// A line: a point, or a plugin at the point above it.
struct Row {
    point: ExtensionPoint,
    plugin: Option<Symbol>,
    verdict: Verdict,
    /// Of a filter plugin that rejects some nodes: how many pass, of how many.
    share: Option<(usize, usize)>,
    words: String,
}

/// See the module.
pub struct CycleView<'a> {
    model: &'a Model,
    rows: Vec<Row>,
    /// The row of the position; what comes after it has not happened yet for who steps.
    front: Option<usize>,
}

impl<'a> CycleView<'a> {
    /// The cycle at the debugger's position.
    pub fn new(model: &'a Model) -> CycleView<'a> {
        let rows = model.cycle().map(|cycle| rows(cycle)).unwrap_or_default();
        let front = model.stepped_frame().and_then(|frame| row_of(&rows, frame));
        CycleView { model, rows, front }
    }
}

/// The line of a frame: of its plugin, else of its point.
fn row_of(rows: &[Row], frame: Frame) -> Option<usize> {
    let point = frame.point?;
    let exact = rows.iter().position(|r| r.point == point && r.plugin == frame.plugin);
    exact.or_else(|| rows.iter().position(|r| r.point == point))
}

/// All lines of a cycle, in the order in which the points run.
fn rows(cycle: &CycleRecord) -> Vec<Row> {
    let mut rows = Vec::new();
    push_statuses(&mut rows, ExtensionPoint::PreFilter, &cycle.pre_filter);
    push_filter(&mut rows, cycle);
    push_statuses(&mut rows, ExtensionPoint::PostFilter, &cycle.post_filter);
    push_statuses(&mut rows, ExtensionPoint::PreScore, &cycle.score.pre_score);
    push_score(&mut rows, cycle);
    push_statuses(&mut rows, ExtensionPoint::Reserve, &cycle.reserve);
    push_statuses(&mut rows, ExtensionPoint::Permit, &cycle.permit);
    push_statuses(&mut rows, ExtensionPoint::PreBind, &cycle.pre_bind);
    push_statuses(&mut rows, ExtensionPoint::Bind, &cycle.bind);
    rows
}

fn push_statuses(rows: &mut Vec<Row>, point: ExtensionPoint, answers: &[PluginStatus]) {
    let at = rows.len();
    for answer in answers {
        let verdict = verdict::of_code(answer.status.code());
        let words = status_words(answer);
        rows.push(Row { point, plugin: Some(answer.plugin), verdict, share: None, words });
    }
    let verdict = worst(rows[at..].iter().map(|r| r.verdict));
    let words = if answers.is_empty() { "did not run".to_owned() } else { String::new() };
    rows.insert(at, Row { point, plugin: None, verdict, share: None, words });
}

fn status_words(answer: &PluginStatus) -> String {
    let mut words = answer.status.message();
    if let Some(nodes) = &answer.nodes {
        let names: Vec<&str> = nodes.iter().map(|n| n.as_str()).collect();
        let _ = write!(words, "narrowed to {} nodes: {}", nodes.len(), names.join(", "));
    }
    if let Some(node) = answer.nominated {
        let _ = write!(words, "nominated {node}");
    }
    words
}

/// The gravest answer of several; a skip weighs least.
fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let weight = |v: &Verdict| match v {
        Verdict::NotEvaluated => 0,
        Verdict::Skip => 1,
        Verdict::Success => 2,
        Verdict::Wait => 3,
        Verdict::Pending => 4,
        Verdict::Unschedulable => 5,
        Verdict::Unresolvable => 6,
        Verdict::Error => 7,
    };
    verdicts.max_by_key(weight).unwrap_or(Verdict::NotEvaluated)
}

fn push_filter(rows: &mut Vec<Row>, cycle: &CycleRecord) {
    let point = ExtensionPoint::Filter;
    let total = cycle.nodes.order.len();
    let (verdict, words) = match (cycle.filter.plugins.is_empty(), cycle.feasible.len()) {
        (true, _) => (Verdict::NotEvaluated, "did not run".to_owned()),
        (false, 0) => (Verdict::Unschedulable, format!("no node of {total} passes")),
        (false, n) => (Verdict::Success, format!("{n} of {total} nodes pass")),
    };
    let words = match cycle.filter.extender.len() {
        0 => words,
        n => format!("{words}, extenders rejected {n}"),
    };
    let share =
        (!cycle.filter.plugins.is_empty()).then(|| (cycle.feasible.len(), evaluated(cycle)));
    rows.push(Row { point, plugin: None, verdict, share, words });
    for column in &cycle.filter.plugins {
        let (verdict, share, words) = filter_row(cycle, column);
        rows.push(Row { point, plugin: Some(column.plugin), verdict, share, words });
    }
}

/// The nodes whose turn came.
fn evaluated(cycle: &CycleRecord) -> usize {
    cycle.filter.evaluated.len()
}

/// What one filter plugin said over all nodes: how many pass, and its reasons.
pub(super) fn filter_summary(cycle: &CycleRecord, column: &FilterColumn) -> String {
    match filter_row(cycle, column) {
        (_, Some((pass, of)), reasons) => format!("{pass}/{of} pass: {reasons}"),
        (_, None, words) => words,
    }
}

/// The same as a row has it: verdict, share of nodes that pass if not all do, words.
fn filter_row(
    cycle: &CycleRecord,
    column: &FilterColumn,
) -> (Verdict, Option<(usize, usize)>, String) {
    let mut reasons: IndexMap<VerdictId, usize> = IndexMap::new();
    let (mut rejected, mut skipped, mut asked) = (0, 0, 0);
    for node in &cycle.nodes.order {
        let Some(id) = column.verdicts.get(*node) else { continue };
        asked += usize::from(!id.is_not_evaluated());
        skipped += usize::from(id == VerdictId::SKIPPED);
        if id.is_status() {
            rejected += 1;
            *reasons.entry(id).or_default() += 1;
        }
    }
    match (asked, rejected) {
        (0, _) => (Verdict::NotEvaluated, None, "no node was evaluated".into()),
        (_, 0) if skipped == asked => (Verdict::Skip, None, "nothing to check for this pod".into()),
        (n, 0) => (Verdict::Success, None, format!("{n} of {n} nodes pass")),
        (n, r) => {
            let gravest = worst(reasons.keys().map(|id| verdict::of_id(cycle, *id)));
            (gravest, Some((n - r, n)), reasons_counted(cycle, &reasons))
        }
    }
}

/// Each reason once, with the number of nodes, the most frequent first. The same reason can be one
/// that preemption could end on some nodes and not on others.
fn reasons_counted(cycle: &CycleRecord, reasons: &IndexMap<VerdictId, usize>) -> String {
    let mut by_text: IndexMap<String, (usize, usize)> = IndexMap::new();
    for (id, count) in reasons {
        let (all, fixed) = by_text.entry(verdict::explain(cycle, *id)).or_default();
        *all += count;
        if verdict::of_id(cycle, *id) == Verdict::Unresolvable {
            *fixed += count;
        }
    }
    by_text.sort_by(|_, a, _, b| b.cmp(a));
    let words = |(text, (all, fixed)): (&String, &(usize, usize))| match fixed {
        0 => format!("{text} ({all})"),
        _ if fixed == all => format!("{text} ({all}, preemption can't help)"),
        _ => format!("{text} ({all}, preemption can't help on {fixed})"),
    };
    by_text.iter().map(words).collect::<Vec<_>>().join(", ")
}

fn share_text(pass: usize, of: usize) -> String {
    format!("{pass}/{of} pass")
}

/// The style of a share of nodes that pass.
fn share_scope(pass: usize, of: usize) -> Scope {
    match (pass, of) {
        (0, _) => Scope::VerdictFail,
        (pass, of) if pass == of => Scope::VerdictPass,
        (pass, of) => Scope::of_score((100 * pass / of) as i64),
    }
}

fn push_score(rows: &mut Vec<Row>, cycle: &CycleRecord) {
    let point = ExtensionPoint::Score;
    let (verdict, words) = match (cycle.score.plugins.len(), cycle.feasible.len()) {
        (0, 1) => {
            (Verdict::NotEvaluated, "one node passed, so there was nothing to compare".into())
        }
        (0, _) => (Verdict::NotEvaluated, "did not run".to_owned()),
        _ => (Verdict::Success, score_words(cycle)),
    };
    rows.push(Row { point, plugin: None, verdict, share: None, words });
    for column in &cycle.score.plugins {
        let (verdict, words) = (Verdict::Success, column_words(cycle, column));
        rows.push(Row { point, plugin: Some(column.plugin), verdict, share: None, words });
    }
}

fn score_words(cycle: &CycleRecord) -> String {
    let best = cycle.score.totals.iter().max().copied().unwrap_or_default();
    let node = cycle.node.map(|n| format!(", {n} was chosen")).unwrap_or_default();
    let tie = match cycle.tie.len() {
        0 | 1 => String::new(),
        n => format!(", {n} nodes tied{}", tie_break_words(cycle)),
    };
    format!("best total {best}{tie}{node}")
}

/// How a tie was broken, where not as upstream does.
pub(super) fn tie_break_words(cycle: &CycleRecord) -> String {
    cycle.other_tie_break().map(|how| format!(" (broken by {how})")).unwrap_or_default()
}

fn column_words(cycle: &CycleRecord, column: &ScoreColumn) -> String {
    let range = (column.normalized.iter().min(), column.normalized.iter().max());
    let (Some(low), Some(high)) = range else { return String::new() };
    let best = column.normalized.iter().position(|n| n == high);
    let node = best.and_then(|at| cycle.feasible.get(at)).map(|n| cycle.nodes.name(*n));
    match (low == high, node) {
        (false, Some(node)) => format!("weight {}, {low} to {high}, most on {node}", column.weight),
        _ => format!("weight {}, {low} on every node", column.weight),
    }
}

impl GridSource for CycleView<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        3
    }

    fn column(&self, column: usize) -> Column {
        match column {
            0 => Column::name("extension point", 30, 36),
            1 => {
                let share = |row: &Row| row.share.map(|(pass, of)| share_text(pass, of).len());
                let widest = self.rows.iter().filter_map(share).max().unwrap_or(0);
                Column::text("status", widest.max(8) as u16)
            }
            _ => Column::prose("what it said", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let future = match self.front {
            Some(front) => row > front,
            None => self.model.is_under_way(),
        };
        let Some(row) = self.rows.get(row) else { return };
        match (column, row.plugin) {
            (0, None) => out.set(row.point.name(), Scope::TextStrong),
            (0, Some(plugin)) => {
                out.set("  ", Scope::Text);
                out.text.push_str(&plugin);
            }
            (1, _) => match row.share {
                Some((pass, of)) => out.set(&share_text(pass, of), share_scope(pass, of)),
                None => out.verdict(row.verdict),
            },
            (_, None) => out.set(&row.words, Scope::TextStrong),
            (_, Some(_)) => out.set(&row.words, Scope::Text),
        }
        if future {
            out.scope = Scope::Future;
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.place(row, 0))
    }

    fn is_current(&self, row: usize) -> bool {
        self.front == Some(row)
    }

    fn is_failure(&self, row: usize) -> bool {
        use Verdict::{NotEvaluated, Skip, Success};
        self.rows.get(row).is_some_and(|r| !matches!(r.verdict, Success | Skip | NotEvaluated))
    }
}

impl View for CycleView<'_> {
    fn place(&self, row: usize, _column: usize) -> Option<String> {
        let row = self.rows.get(row)?;
        let plugin = row.plugin.map(|plugin| format!("/{plugin}")).unwrap_or_default();
        Some(format!("{}{plugin}", row.point.name()))
    }

    fn title(&self) -> String {
        match self.model.cycle() {
            Some(cycle) if self.model.is_under_way() => {
                format!("Cycle {} of {}: under way", cycle.cycle, cycle.pod)
            }
            Some(cycle) => title(cycle),
            None => "Cycle".into(),
        }
    }

    fn empty(&self) -> String {
        "No cycle yet: n runs the next one, c all of them; 2 shows the queues.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let (Some(cycle), Some(row)) = (self.model.cycle(), self.rows.get(row)) else {
            return Vec::new();
        };
        let mut lines = vec![subject(row)];
        if !row.words.is_empty() {
            lines.push(Line::text(&row.words));
        }
        if !self.model.is_under_way() {
            lines.extend(outcome_lines(cycle));
        }
        lines.extend(super::live_decision_lines(self.model, cycle.cycle));
        lines
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        // At the start of a cycle nothing is marked, but the rows are shown from the top.
        self.model.frame()?;
        Some((self.front.unwrap_or(0), None))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        let row = self.rows.get(row)?;
        self.model.at(Frame::new(row.point, row.plugin, None))
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        match self.rows.get(row).map(|r| r.point) {
            Some(ExtensionPoint::Filter) => OnEnter::View(ViewId::Filter),
            Some(ExtensionPoint::Score) => OnEnter::View(ViewId::Scores),
            Some(ExtensionPoint::PostFilter) => OnEnter::View(ViewId::Preemption),
            _ => OnEnter::Describe,
        }
    }
}

fn subject(row: &Row) -> Line {
    let said = match row.share {
        Some((pass, of)) => share_text(pass, of),
        None => row.verdict.meaning().to_owned(),
    };
    match row.plugin {
        Some(plugin) => Line::heading(format!("{plugin} at {}: {said}", row.point.name())),
        None => Line::heading(format!("{}: {said}", row.point.name())),
    }
}

fn title(cycle: &CycleRecord) -> String {
    let outcome = cycle.outcome.as_str();
    let node = cycle.node.map(|n| format!(" on {n}")).unwrap_or_default();
    let group = cycle.group.as_ref().map(|group| format!(", group {}", group.group));
    let group = group.unwrap_or_default();
    format!("Cycle {} of {}: {outcome}{node}{group}", cycle.cycle, cycle.pod)
}

/// How a cycle ended, with the pod's whole message.
pub(super) fn outcome_lines(cycle: &Arc<CycleRecord>) -> Vec<Line> {
    let scope = match cycle.outcome {
        Outcome::Scheduled => Scope::VerdictPass,
        Outcome::Waiting => Scope::VerdictWait,
        Outcome::Unschedulable => Scope::VerdictFail,
        Outcome::SchedulerError => Scope::VerdictError,
        Outcome::Dropped => Scope::VerdictSkip,
    };
    let mut lines = vec![Line::field("outcome", cycle.outcome.as_str()).scoped(scope)];
    if !cycle.message.is_empty() {
        lines.push(Line::field("message", &cycle.message));
    }
    lines.extend(cycle.group.as_ref().map(group_line));
    let named = [
        ("node", cycle.node),
        ("nominated", cycle.nominated_node),
        ("tried first", cycle.nominated_first),
    ];
    lines.extend(named.iter().filter_map(|(l, n)| n.map(|n| Line::field(l, n))));
    if let Some(status) = &cycle.permit_wait {
        let ended = if status.is_success() { "allowed".to_owned() } else { status.message() };
        lines.push(Line::field("permit wait", ended));
    }
    lines.push(Line::field("attempt", cycle.attempt));
    lines.push(Line::field("profile", cycle.profile));
    let evaluated = format!(
        "{} of {} nodes, starting at node {}",
        cycle.evaluated_nodes,
        cycle.nodes.order.len(),
        cycle.start_index
    );
    lines.push(Line::field("evaluated", evaluated));
    lines
}

/// The pod group of a cycle and how far it was from its quorum.
fn group_line(group: &GroupRecord) -> Line {
    let GroupRecord { group, pods, scheduled_before, placed, min_count } = group;
    let found = scheduled_before + placed;
    let text = match min_count {
        None => format!("{group}, without a quorum: {found} of {pods} pods have a node"),
        Some(needed) => format!(
            "{group}, quorum {needed}: {found} of {pods} pods have a node \
             ({placed} found one in this attempt)"
        ),
    };
    let short = min_count.is_some_and(|needed| found < needed);
    Line::field("group", text).scoped(if short { Scope::VerdictFail } else { Scope::Text })
}

/// Time since the session's start.
pub(super) fn since_start(model: &Model, time: kubestep_api::Time) -> String {
    format!("+{}", span(time.0 - model.start.0))
}
