//! The overview of one cycle: every extension point in order, its plugins under it, with the answer of each.
//!
//! ```text
//!   extension point              status    message
//!   PreFilter                    ✓ pass
//!     NodeResourcesFit           ✓ pass
//! ▶ Filter                       1/5 pass  1 of 5 nodes pass
//!     NodeResourcesFit           2/5 pass  Insufficient cpu (2), …
//! ```

use crate::report;
use std::fmt::Write as _;

use super::filter_counts::{FilterCounts, verdicts_on_nodes};
use super::{OnEnter, View, ViewId, ViewShape, funnel, shared, verdict};
use crate::tui::glyph::{FOLDS, VerdictSign};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::Truncation;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use indexmap::IndexMap;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_debug::certainty::is_uncertain;
use kubestep_framework::record::{CycleRecord, FilterColumn, PluginStatus, ScoreColumn, VerdictId};

/// A line: a point, or a plugin at the point above it.
struct CycleRow {
    point: ExtensionPoint,
    plugin: Option<Symbol>,
    verdict: VerdictSign,
    /// Of a filter plugin that rejects some nodes: how many pass, of how many.
    share: Option<(usize, usize)>,
    words: String,
    /// Of a line that stands for skipped plugins: how many, and whether they are folded.
    skipped: Option<(usize, bool)>,
}

impl CycleRow {
    fn new(
        (point, plugin): (ExtensionPoint, Option<Symbol>),
        verdict: VerdictSign,
        words: String,
    ) -> CycleRow {
        CycleRow { point, plugin, verdict, share: None, words, skipped: None }
    }

    /// The style of the line of a point: what did not run steps back.
    fn point_scope(&self) -> Scope {
        match self.verdict {
            VerdictSign::NotEvaluated => Scope::TextDim,
            _ => Scope::TextStrong,
        }
    }

    fn key(&self) -> u64 {
        let plugin = self.plugin.unwrap_or_default();
        let kind = if self.skipped.is_some() { "skipped" } else { "" };
        shared::key_of_text(&format!("{} {plugin}{kind}", self.point.name()))
    }
}

/// The rows of the overview.
pub struct CycleView<'a> {
    model: &'a Model,
    rows: Vec<CycleRow>,
    /// The row of the position; what comes after it has not happened yet for who steps.
    front: Option<usize>,
}

impl<'a> CycleView<'a> {
    /// The cycle at the debugger's position.
    pub fn new(model: &'a Model, shape: &ViewShape) -> CycleView<'a> {
        let rows = model.cycle().map(|cycle| rows(cycle)).unwrap_or_default();
        let frame = model.stepped_frame();
        // Who steps through skipped plugins sees each.
        let stands_on = frame.and_then(|frame| row_of(&rows, frame));
        let stands_on = stands_on.and_then(|row| rows.get(row)).map(|row| (row.point, row.verdict));
        let rows = folded(rows, |row| {
            shape.is_open(row.key()) || stands_on == Some((row.point, VerdictSign::Skip))
        });
        let front = frame.and_then(|frame| row_of(&rows, frame));
        CycleView { model, rows, front }
    }

    /// Whether a row comes after the step in which the debugger stands.
    fn is_future(&self, row: usize) -> bool {
        match self.front {
            Some(front) => row > front,
            None => self.model.is_under_way(),
        }
    }

    /// The plugin that decided why the pod has no node: at Filter that which fewest nodes pass.
    fn decisive(&self) -> Option<usize> {
        use VerdictSign::{Error, Unresolvable, Unschedulable, Wait};
        let rejects =
            |row: &CycleRow| matches!(row.verdict, Unschedulable | Unresolvable | Error | Wait);
        let cycle = self.model.cycle()?;
        let rows = self.rows.iter().enumerate();
        let failing = || rows.clone().filter(|(_, row)| row.plugin.is_some() && rejects(row));
        let at_filter = failing().filter(|_| cycle.feasible.is_empty());
        let passing = at_filter.filter_map(|(at, row)| Some((row.share?.0, at)));
        let whole_cycle = || failing().find(|(_, row)| row.share.is_none()).map(|(at, _)| at);
        passing.min().map(|(_, at)| at).or_else(whole_cycle)
    }
}

/// The rows with the skipped plugins of each point in one line, unless they `are_open` for that line.
fn folded(rows: Vec<CycleRow>, are_open: impl Fn(&CycleRow) -> bool) -> Vec<CycleRow> {
    let mut shown: Vec<CycleRow> = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while let Some(head) = rows.next() {
        let point = head.point;
        shown.push(head);
        let mut plugins = Vec::new();
        while let Some(row) = rows.next_if(|row| row.point == point) {
            plugins.push(row);
        }
        let is_skipped = |row: &CycleRow| row.verdict == VerdictSign::Skip;
        let names = plugins.iter().filter(|row| is_skipped(row)).filter_map(|row| row.plugin);
        let names: Vec<Symbol> = names.collect();
        if names.len() < 2 {
            shown.extend(plugins);
            continue;
        }
        let words: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let mut line = CycleRow::new((point, None), VerdictSign::Skip, words.join(", "));
        line.skipped = Some((names.len(), true));
        let open = are_open(&line);
        line.skipped = Some((names.len(), !open));
        if open {
            // They stand among the others, in the order in which they run.
            line.words = "shown above; Enter folds them".into();
        }
        shown.extend(plugins.into_iter().filter(|row| open || !is_skipped(row)));
        shown.push(line);
    }
    shown
}

/// The line of a frame: of its plugin, else of its point.
fn row_of(rows: &[CycleRow], frame: Frame) -> Option<usize> {
    let point = frame.point?;
    let exact = rows
        .iter()
        .position(|r| r.point == point && r.plugin == frame.plugin && r.skipped.is_none());
    exact.or_else(|| rows.iter().position(|r| r.point == point))
}

/// All lines of a cycle, in the order in which the points run.
fn rows(cycle: &CycleRecord) -> Vec<CycleRow> {
    let mut rows = Vec::new();
    push_statuses(&mut rows, ExtensionPoint::PreFilter, cycle);
    push_filter(&mut rows, cycle);
    push_statuses(&mut rows, ExtensionPoint::PostFilter, cycle);
    push_statuses(&mut rows, ExtensionPoint::PreScore, cycle);
    push_score(&mut rows, cycle);
    push_statuses(&mut rows, ExtensionPoint::Reserve, cycle);
    push_statuses(&mut rows, ExtensionPoint::Permit, cycle);
    push_statuses(&mut rows, ExtensionPoint::PreBind, cycle);
    push_statuses(&mut rows, ExtensionPoint::Bind, cycle);
    rows
}

fn push_statuses(rows: &mut Vec<CycleRow>, point: ExtensionPoint, cycle: &CycleRecord) {
    let (at, answers) = (rows.len(), cycle.answers(point));
    for answer in answers {
        let verdict = verdict::of_code(answer.status.code());
        let words = status_text(answer);
        rows.push(CycleRow::new((point, Some(answer.plugin)), verdict, words));
    }
    if !answers.is_empty() {
        let opaque = cycle.opaque.iter().flat_map(|opaque| &opaque.plugins);
        let opaque = opaque.filter(|plugin| plugin.points.contains(point));
        rows.extend(opaque.map(|plugin| {
            let words = "opaque: what it decides is unknown".to_owned();
            CycleRow::new((point, Some(plugin.name)), VerdictSign::Unknown, words)
        }));
    }
    let verdicts = || rows[at..].iter().map(|r| r.verdict);
    let verdict = match point {
        // The first success ends it: what was said before is overruled.
        ExtensionPoint::PostFilter if verdicts().any(|v| v == VerdictSign::Success) => {
            VerdictSign::Success
        }
        _ => worst(verdicts()),
    };
    let words = if answers.is_empty() { "did not run".to_owned() } else { String::new() };
    rows.insert(at, CycleRow::new((point, None), verdict, words));
}

fn status_text(answer: &PluginStatus) -> String {
    let mut words = answer.status.message();
    if let Some(nodes) = &answer.nodes {
        let names: Vec<String> = nodes.iter().map(|n| n.to_string()).collect();
        let _ = write!(words, "narrowed to {}: {}", count(nodes.len(), "node"), names.join(", "));
    }
    if let Some(node) = answer.nominated {
        let _ = write!(words, "nominated {node}");
    }
    words
}

/// The gravest answer of several; a skip weighs least.
fn worst(verdicts: impl Iterator<Item = VerdictSign>) -> VerdictSign {
    let weight = |v: &VerdictSign| match v {
        VerdictSign::NotEvaluated | VerdictSign::Unknown => 0,
        VerdictSign::Skip => 1,
        VerdictSign::Success => 2,
        VerdictSign::Wait => 3,
        VerdictSign::Pending => 4,
        VerdictSign::Unschedulable => 5,
        VerdictSign::Unresolvable => 6,
        VerdictSign::Error => 7,
    };
    verdicts.max_by_key(weight).unwrap_or(VerdictSign::NotEvaluated)
}

fn push_filter(rows: &mut Vec<CycleRow>, cycle: &CycleRecord) {
    let point = ExtensionPoint::Filter;
    let total = cycle.nodes.order.len();
    let evaluated = cycle.evaluated_nodes;
    let nodes = match total.saturating_sub(evaluated) {
        0 => format!("{total} nodes"),
        _ => format!("{evaluated} evaluated nodes"),
    };
    let (verdict, words) = match (cycle.filter.plugins.is_empty(), cycle.feasible.len()) {
        (true, _) => (VerdictSign::NotEvaluated, "did not run".to_owned()),
        (false, 0) => (VerdictSign::Unschedulable, format!("none of {nodes} passes")),
        (false, n) => (VerdictSign::Success, format!("{n} of {nodes} pass")),
    };
    let words = match cycle.filter.extender.len() {
        0 => words,
        n => format!("{words}, extenders rejected {n}"),
    };
    let share = (!cycle.filter.plugins.is_empty()).then(|| (cycle.feasible.len(), evaluated));
    rows.push(CycleRow { share, ..CycleRow::new((point, None), verdict, words) });
    let on_nodes = verdicts_on_nodes(cycle);
    for column in &cycle.filter.plugins {
        let (verdict, share, words) = filter_row(cycle, column, &on_nodes);
        rows.push(CycleRow {
            share,
            ..CycleRow::new((point, Some(column.plugin)), verdict, words)
        });
    }
}

/// What one filter plugin said over the evaluated nodes: how many pass, and its reasons. What it
/// would have said of the others is in the matrix.
pub(super) fn filter_summary(cycle: &CycleRecord, column: &FilterColumn) -> String {
    match filter_row(cycle, column, &verdicts_on_nodes(cycle)) {
        (_, Some((pass, of)), reasons) => format!("{pass}/{of} pass: {reasons}"),
        (_, None, words) => words,
    }
}

/// The same as a row has it: verdict, share of nodes that pass if not all do, words. `on_nodes` has
/// the verdicts on the nodes, by slot.
fn filter_row(
    cycle: &CycleRecord,
    column: &FilterColumn,
    on_nodes: &[Option<VerdictId>],
) -> (VerdictSign, Option<(usize, usize)>, String) {
    let counts = FilterCounts::of(cycle, column, on_nodes);
    let is_skipped = counts.is_skipped();
    let FilterCounts { reasons, rejected, asked, is_unknown, .. } = counts;
    match (asked, rejected) {
        _ if is_unknown => (VerdictSign::Unknown, None, "opaque: its verdicts are unknown".into()),
        (0, _) => (VerdictSign::NotEvaluated, None, "no node was evaluated".into()),
        _ if is_skipped => (VerdictSign::Skip, None, "nothing to check for this pod".into()),
        (n, 0) => (VerdictSign::Success, None, format!("{n} of {n} nodes pass")),
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
        let (all, fixed) = by_text.entry(report::verdict::explain(cycle, *id)).or_default();
        *all += count;
        if verdict::of_id(cycle, *id) == VerdictSign::Unresolvable {
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

/// The style of a share of nodes that pass. Some is neither good nor bad.
fn share_scope(pass: usize, of: usize) -> Scope {
    match (pass, of) {
        (0, _) => Scope::VerdictFail,
        (pass, of) if pass == of => Scope::VerdictPass,
        _ => Scope::Text,
    }
}

fn push_score(rows: &mut Vec<CycleRow>, cycle: &CycleRecord) {
    let point = ExtensionPoint::Score;
    let (verdict, words) = match (cycle.score.plugins.len(), cycle.feasible.len()) {
        (0, 1) => {
            (VerdictSign::NotEvaluated, "one node passed, so there was nothing to compare".into())
        }
        (0, _) => (VerdictSign::NotEvaluated, "did not run".to_owned()),
        _ => (VerdictSign::Success, score_text(cycle)),
    };
    rows.push(CycleRow::new((point, None), verdict, words));
    for column in &cycle.score.plugins {
        let (verdict, words) = (VerdictSign::Success, column_text(cycle, column));
        rows.push(CycleRow::new((point, Some(column.plugin)), verdict, words));
    }
    for column in &cycle.score.opaque {
        let words = format!("opaque: its scores are unknown, ×{}", column.weight);
        rows.push(CycleRow::new((point, Some(column.plugin)), VerdictSign::Unknown, words));
    }
}

fn score_text(cycle: &CycleRecord) -> String {
    let best = cycle.score.totals.iter().max().unwrap_or_default();
    let node = cycle.node.map(|n| format!(", {n} was chosen")).unwrap_or_default();
    let tie = match cycle.tied {
        0 => String::new(),
        n => format!(", {n} nodes tied{}", shared::tie_break_text(cycle)),
    };
    format!("best total {best}{tie}{node}")
}

fn column_text(cycle: &CycleRecord, column: &ScoreColumn) -> String {
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

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let names = self.rows.iter().filter_map(|row| row.plugin);
                let widest = names.map(|name| name.len() + 2).max().unwrap_or(0);
                GridColumn::fitted("extension point", 15, widest)
            }
            1 => {
                let share = |row: &CycleRow| row.share.map(|(pass, of)| share_text(pass, of).len());
                let widest = self.rows.iter().filter_map(share).max().unwrap_or(0);
                GridColumn::text("status", widest.max(8) as u16)
            }
            _ => GridColumn::prose_in(self, column, "message", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let future = self.is_future(row);
        let Some(row) = self.rows.get(row) else { return };
        match (column, row.plugin) {
            (0, None) => match row.skipped {
                Some((number, folded)) => {
                    let fold = FOLDS[usize::from(!folded)];
                    out.set(&format!("  {fold} {number} skipped"), Scope::VerdictSkip);
                }
                None => out.set(row.point.name(), row.point_scope()),
            },
            (0, Some(plugin)) => {
                out.set("  ", Scope::Text);
                out.text.push_str(&plugin);
            }
            (1, _) => match row.share {
                Some((pass, of)) => out.set(&share_text(pass, of), share_scope(pass, of)),
                None => out.verdict(row.verdict),
            },
            (_, None) if row.skipped.is_some() => {
                out.set(&row.words, Scope::TextDim);
                out.cut = Some(Truncation::List);
            }
            (_, None) => out.set(&row.words, row.point_scope()),
            (_, Some(_)) => out.set(&row.words, Scope::Text),
        }
        if future {
            out.scope = Scope::Future;
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.rows.get(row).map_or(0, CycleRow::key)
    }

    fn is_current(&self, row: usize) -> bool {
        self.front == Some(row)
    }

    fn is_failure(&self, row: usize) -> bool {
        use VerdictSign::{NotEvaluated, Skip, Success, Unknown};
        let passes = |verdict| matches!(verdict, Success | Skip | NotEvaluated | Unknown);
        self.rows.get(row).is_some_and(|row| !passes(row.verdict))
    }
}

impl View for CycleView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        let row = self.rows.get(row).filter(|row| row.skipped.is_none())?;
        let plugin = row.plugin.map(|plugin| format!("/{plugin}")).unwrap_or_default();
        Some(format!("{}{plugin}", row.point.name()))
    }

    fn title(&self) -> String {
        match self.model.cycle() {
            Some(cycle) if self.model.is_under_way() => {
                format!("Cycle {} of {}: under way", cycle.cycle, shared::pod_in_title(cycle.pod))
            }
            Some(cycle) => title(cycle),
            None => "Cycle".into(),
        }
    }

    fn dims_future(&self) -> bool {
        (0..self.rows.len()).any(|row| self.is_future(row))
    }

    fn banner(&self, width: u16) -> Vec<StyledParts> {
        let funnel = |cycle: &std::sync::Arc<CycleRecord>| {
            funnel::draw(cycle, self.model, usize::from(width))
        };
        self.model.cycle().map(funnel).into_iter().collect()
    }

    fn empty(&self) -> String {
        "No cycle yet: n runs the next one, c all of them; 2 shows the queues.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let (Some(cycle), Some(row)) = (self.model.cycle(), self.rows.get(row)) else {
            return Vec::new();
        };
        if row.skipped.is_some() {
            return vec![
                DetailLine::heading(format!(
                    "Skipped at {}: nothing to check for this pod",
                    row.point.name()
                )),
                DetailLine::text(&row.words),
                DetailLine::key("Enter", "shows a line for each, or folds them"),
            ];
        }
        let mut lines = vec![subject(row)];
        if !row.words.is_empty() {
            lines.push(DetailLine::text(&row.words));
        }
        if !self.model.is_under_way() {
            lines.extend(shared::outcome_lines(cycle));
        }
        lines.extend(super::live_decision_lines(self.model, cycle.cycle));
        lines
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        // At the start of a cycle that is over nothing is marked: what decided it is shown.
        self.model.frame()?;
        let decided = || self.decisive().filter(|_| !self.model.is_under_way());
        Some((self.front.or_else(decided).unwrap_or(0), None))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        let row = self.rows.get(row).filter(|row| row.skipped.is_none())?;
        self.model.at(Frame::new(row.point, row.plugin, None))
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        if let Some(row) = self.rows.get(row).filter(|row| row.skipped.is_some()) {
            return OnEnter::Fold(row.key());
        }
        match self.rows.get(row).map(|r| r.point) {
            Some(ExtensionPoint::Filter) => OnEnter::View(ViewId::Filter),
            Some(ExtensionPoint::Score) => OnEnter::View(ViewId::Scores),
            Some(ExtensionPoint::PostFilter) => OnEnter::View(ViewId::Preemption),
            _ => OnEnter::Describe,
        }
    }
}

fn subject(row: &CycleRow) -> DetailLine {
    let said = match row.share {
        Some((pass, of)) => share_text(pass, of),
        None => row.verdict.meaning().to_owned(),
    };
    match row.plugin {
        Some(plugin) => DetailLine::heading(format!("{plugin} at {}: {said}", row.point.name())),
        None => DetailLine::heading(format!("{}: {said}", row.point.name())),
    }
}

fn title(cycle: &CycleRecord) -> String {
    let outcome = cycle.outcome.as_str();
    let node = cycle.node.map(|n| format!(" on {n}")).unwrap_or_default();
    let group = cycle.group.as_ref().map(|group| format!(", group {}", group.group));
    let group = group.unwrap_or_default();
    let certainty = if is_uncertain(cycle) { ", uncertain" } else { "" };
    let pod = shared::pod_in_title(cycle.pod);
    format!("Cycle {} of {pod}: {outcome}{node}{group}{certainty}", cycle.cycle)
}
