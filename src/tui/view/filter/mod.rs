//! The filter matrix: every plugin on every node, with the scheduler's own verdict first.
//!
//! The scheduler stops at a node's first failure; the recording does not, so the columns behind it are
//! known too. Nodes it never asked are marked, with the reason in the details.
//!
//! Where words for all plugins do not fit, each gets a narrower column: a sign in every cell, and its
//! name over it, cut by one rule, word under word.

mod details;
mod header;

use crate::report;
use std::cmp::Ordering;
use std::sync::Arc;

use self::details::{
    all_failures, answered, final_verdict, has_other_nominated, legend, nominated_legend,
    plugin_verdict, rejected_by_extender, rejections_legend,
};
use self::header::{ColumnNote, WORDS, headers, notes, reason_width};
use super::cycle::filter_summary;
use super::shared::NAMES;
use super::{OnEnter, View, ViewShape, shared, verdict};
use crate::report::verdict_groups::{VerdictGroup, groups_of};
use crate::tui::command::Command;
use crate::tui::glyph::{FOLDS, VerdictSign};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::Truncation;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{Labels, Name};
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{CycleRecord, FilterColumn, VerdictId};

/// Columns before the plugins: node, the scheduler's own verdict.
const FIXED: usize = 2;
/// Up to so many columns, reasons are in the details alone.
const NARROW: u16 = 90;
/// Columns that the reason gets before the names of plugins do.
const REASON: u16 = 36;
/// Width of the verdict.
const VERDICT: u16 = 9;
/// More rows than this are grouped by what was said of them.
const GROUPED_ABOVE: usize = 50;
/// Names of nodes that the details of a group list.
const NAMED: usize = 12;

/// The rows of the filter matrix.
pub struct FilterView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
    shape: ViewShape,
    /// By place of the plugin or extender: what the header says of all nodes.
    notes: Vec<ColumnNote>,
    front: Option<FilterFront>,
    /// The places of the plugins and extenders on show; skipped plugins are folded.
    shown: Vec<usize>,
    /// Of each of them, its name as the header has it, and its width.
    headers: Vec<(String, u16)>,
    /// Columns of the widest reason.
    reason: u16,
    /// Nodes of which the same was said, and the rows, where they are grouped.
    groups: Vec<VerdictGroup>,
    rows: Vec<FilterRow>,
}

/// A line: a group by its number, or a node.
#[derive(Clone, Copy)]
enum FilterRow {
    Group(usize),
    /// A node of the group above it.
    Member(NodeId),
    /// A node that no other has the same verdicts as.
    Single(NodeId),
}

impl FilterRow {
    fn node(self) -> Option<NodeId> {
        match self {
            FilterRow::Group(_) => None,
            FilterRow::Member(node) | FilterRow::Single(node) => Some(node),
        }
    }
}

/// How far the debugger has walked through Filter: plugin by plugin, over the evaluated nodes of each.
struct FilterFront {
    /// Index of the plugin among the filters.
    plugin: usize,
    /// By slot, when the node is looked at; empty while no node is.
    turns: Vec<usize>,
    /// The turn of the node at the position.
    turn: usize,
}

impl FilterFront {
    fn new(cycle: &CycleRecord, frame: Frame) -> Option<FilterFront> {
        let at_filter = frame.point == Some(ExtensionPoint::Filter);
        let mut plugins = cycle.filter.plugins.iter();
        let plugin = plugins.position(|p| at_filter && Some(p.plugin) == frame.plugin)?;
        let Some(node) = frame.node else {
            return Some(FilterFront { plugin, turns: Vec::new(), turn: 0 });
        };
        let mut turns = vec![0; cycle.nodes.names.len()];
        for (turn, evaluated) in cycle.filter.evaluated.iter().enumerate() {
            if let Some(slot) = turns.get_mut(evaluated.index()) {
                *slot = turn;
            }
        }
        let turn = turns.get(node.index()).copied().unwrap_or_default();
        Some(FilterFront { plugin, turns, turn })
    }

    /// Whether who steps has not come to this cell yet.
    fn is_before(&self, plugin: usize, node: NodeId) -> bool {
        let turn = self.turns.get(node.index()).copied().unwrap_or(usize::MAX);
        plugin > self.plugin || plugin == self.plugin && turn > self.turn
    }
}

impl<'a> FilterView<'a> {
    /// The matrix of the cycle at the debugger's position, in `room` terminal columns.
    pub fn new(model: &'a Model, room: u16, shape: ViewShape) -> FilterView<'a> {
        let cycle = model.cycle();
        let notes = cycle.map(|c| notes(c)).unwrap_or_default();
        let front =
            cycle.zip(model.stepped_frame()).and_then(|(c, frame)| FilterFront::new(c, frame));
        let stands_on = front.as_ref().map(|front| front.plugin);
        let is_shown = |at: &usize| {
            shape.unfolded
                || stands_on == Some(*at)
                || notes.get(*at + 1).is_none_or(|n| !n.skipped)
        };
        let places = cycle.map_or(0, |c| c.filter.plugins.len() + c.filter.extenders.len());
        let shown: Vec<usize> = (0..places).filter(is_shown).collect();
        let names = shown.iter().filter_map(|at| Some(name_at(cycle?, *at)));
        let name_width = model.node_names.widest().min(NAMES);
        // Beside marks, names and the verdict, each column with a blank before it.
        let reason = cycle.map_or(0, |c| reason_width(c));
        let beside = if room > NARROW { reason.min(REASON) } else { 0 };
        let room = room.saturating_sub(3 + name_width + VERDICT);
        let headers = headers(names.collect(), room, beside);
        let groups = cycle.filter(|c| !shape.flat && c.nodes.order.len() > GROUPED_ABOVE);
        let groups = groups.map(|c| groups_of(c, &shown)).unwrap_or_default();
        let mut rows = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            if let [only] = group.nodes.as_slice() {
                rows.push(FilterRow::Single(*only));
                continue;
            }
            rows.push(FilterRow::Group(at));
            if shape.is_open(group.key) {
                rows.extend(group.nodes.iter().map(|node| FilterRow::Member(*node)));
            }
        }
        FilterView { model, cycle, shape, notes, front, shown, headers, reason, groups, rows }
    }

    /// The node of a row; of a group, one that stands for all.
    fn node(&self, row: usize) -> Option<NodeId> {
        match self.rows.get(row) {
            Some(FilterRow::Group(group)) => self.groups.get(*group)?.nodes.first().copied(),
            Some(row) => row.node(),
            None if self.groups.is_empty() => self.cycle?.nodes.order.get(row).copied(),
            None => None,
        }
    }

    fn group(&self, row: usize) -> Option<&VerdictGroup> {
        match self.rows.get(row)? {
            FilterRow::Group(group) => self.groups.get(*group),
            FilterRow::Member(_) | FilterRow::Single(_) => None,
        }
    }

    /// The row of a node, or that of the folded group it is in.
    fn row_of(&self, node: NodeId) -> Option<usize> {
        if self.groups.is_empty() {
            return self.cycle?.nodes.order.iter().position(|other| *other == node);
        }
        let exact = self.rows.iter().position(|row| row.node() == Some(node));
        let group = self.groups.iter().position(|group| group.nodes.contains(&node))?;
        let folded =
            || self.rows.iter().position(|row| matches!(row, FilterRow::Group(g) if *g == group));
        exact.or_else(folded)
    }

    /// The place of the plugin or extender of a column.
    fn place_of(&self, column: usize) -> Option<usize> {
        self.shown.get(column.checked_sub(FIXED)?).copied()
    }

    fn column_of(&self, place: usize) -> Option<usize> {
        self.shown.iter().position(|at| *at == place).map(|at| at + FIXED)
    }

    /// Whether a column's cells have words.
    fn has_words(&self, column: usize) -> bool {
        let width = column.checked_sub(FIXED).and_then(|at| self.headers.get(at));
        width.is_none_or(|(_, width)| *width >= WORDS)
    }

    /// The plugin of a column.
    fn plugin(&self, column: usize) -> Option<&'a FilterColumn> {
        self.cycle?.filter.plugins.get(self.place_of(column)?)
    }

    fn id(&self, row: usize, column: usize) -> Option<VerdictId> {
        let (cycle, node) = (self.cycle?, self.node(row)?);
        match column {
            ..FIXED => cycle.filter.verdicts.get(node),
            _ => report::verdict::of_plugin(cycle, self.plugin(column)?, node),
        }
    }

    /// The extender of a column.
    fn extender(&self, column: usize) -> Option<(&'a CycleRecord, usize)> {
        let cycle = self.cycle?;
        let at = self.place_of(column)?.checked_sub(cycle.filter.plugins.len())?;
        (at < cycle.filter.extenders.len()).then_some((cycle, at))
    }

    /// How many plugins are folded.
    fn folded(&self) -> usize {
        let places = self.cycle.map_or(0, |c| c.filter.plugins.len() + c.filter.extenders.len());
        places - self.shown.len()
    }

    /// What decided about a node, in words.
    fn reason(&self, row: usize) -> String {
        let Some((cycle, node)) = self.cycle.zip(self.node(row)) else { return String::new() };
        match (cycle.filter.by_extender(node), self.id(row, 1)) {
            (Some(status), _) => report::verdict::reasons(status),
            (None, Some(VerdictId::PASS)) | (None, None) => String::new(),
            (None, Some(id)) => report::verdict::explain(cycle, id),
        }
    }

    fn group_lines(&self, group: &VerdictGroup, row: usize) -> Vec<DetailLine> {
        let Some(cycle) = self.cycle else { return Vec::new() };
        let mut lines = vec![DetailLine::heading(format!(
            "{} with the same verdicts",
            count(group.nodes.len(), "node")
        ))];
        lines.extend(self.id(row, 1).map(|id| final_verdict(cycle, id)));
        lines.extend(
            group.nodes.first().into_iter().flat_map(|node| all_failures(self.model, cycle, *node)),
        );
        let names: Vec<String> = group
            .nodes
            .iter()
            .take(NAMED)
            .map(|node| self.model.node_names.short(&cycle.nodes.name(*node).text()).to_owned())
            .collect();
        let more = match group.nodes.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        lines.push(DetailLine::field("nodes", names.join(", ") + &more));
        lines.push(DetailLine::key("Enter", "shows a row for each, or folds them; H draws a map"));
        lines
    }

    /// What a cell stands for.
    fn verdict(&self, row: usize, column: usize) -> VerdictSign {
        let Some((cycle, node)) = self.cycle.zip(self.node(row)) else {
            return VerdictSign::NotEvaluated;
        };
        if let Some((_, at)) = self.extender(column) {
            return by_extender(cycle, at, node);
        }
        match cycle.filter.by_extender(node) {
            Some(status) if column < FIXED => verdict::of_code(status.code()),
            _ => self
                .id(row, column)
                .map_or(VerdictSign::NotEvaluated, |id| verdict::of_id(cycle, id)),
        }
    }
}

/// What the extender at a position said of a node: nothing of one that plugins or an extender
/// before it had rejected.
fn by_extender(cycle: &CycleRecord, at: usize, node: NodeId) -> VerdictSign {
    let own = |name: Symbol| cycle.filter.extenders.iter().position(|extender| *extender == name);
    match cycle.filter.by_extender(node) {
        Some(status) => match own(status.plugin()).map_or(Ordering::Equal, |by| by.cmp(&at)) {
            Ordering::Less => VerdictSign::NotEvaluated,
            Ordering::Equal => verdict::of_code(status.code()),
            Ordering::Greater => VerdictSign::Success,
        },
        None if cycle.filter.verdicts.get(node) == Some(VerdictId::PASS) => VerdictSign::Success,
        None => VerdictSign::NotEvaluated,
    }
}

/// The name of the plugin or extender at a place.
fn name_at(cycle: &CycleRecord, at: usize) -> Symbol {
    let plugins = &cycle.filter.plugins;
    let extender = || cycle.filter.extenders.get(at - plugins.len()).copied();
    plugins.get(at).map(|plugin| plugin.plugin).or_else(extender).unwrap_or_default()
}

impl GridSource for FilterView<'_> {
    fn rows(&self) -> usize {
        let all = self.cycle.filter(|c| !c.filter.plugins.is_empty());
        match self.groups.is_empty() {
            true => all.map_or(0, |c| c.nodes.order.len()),
            false => all.map_or(0, |_| self.rows.len()),
        }
    }

    /// Behind the plugins is what decided, in words.
    fn columns(&self) -> usize {
        FIXED + self.shown.len() + 1
    }

    fn column(&self, column: usize) -> GridColumn {
        let note = |at: usize, words, room| {
            self.notes.get(at).map(|note| note.parts(words, room)).unwrap_or_default()
        };
        match (column, column.checked_sub(FIXED).and_then(|at| self.headers.get(at))) {
            (0, _) => {
                let names = usize::from(self.model.node_names.widest());
                match self.groups.is_empty() {
                    true => GridColumn::fitted("node", NAMES, names),
                    false => GridColumn::fitted("node", NAMES, (names + 2).max(14)),
                }
            }
            (1, _) => GridColumn::text("verdict", VERDICT).with_note(note(0, true, VERDICT)),
            (_, Some((name, width))) => {
                let place = self.place_of(column).map_or(0, |place| place + 1);
                let note = note(place, self.has_words(column), *width);
                GridColumn { cut: Truncation::Middle, ..GridColumn::text(name, *width) }
                    .with_note(note)
            }
            _ => GridColumn::prose_of("reason", 16, usize::from(self.reason))
                .shown_from(WidthTier::Standard),
        }
    }

    fn header_lines(&self) -> u16 {
        let lines = self.headers.iter().map(|(name, _)| name.split('\n').count());
        lines.max().unwrap_or(1) as u16 + 1
    }

    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        match column {
            0 => {
                let name = self.node_of(row, 0);
                name.into_iter().for_each(|name| out.set(&name.text(), Scope::Text));
            }
            _ if self.place_of(column).is_some() => out.verdict(self.verdict(row, column)),
            _ => self.cell(row, column, out),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let (Some(cycle), Some(node)) = (self.cycle, self.node(row)) else { return };
        let place = self.place_of(column);
        let verdict = || self.verdict(row, column);
        match (column, place, self.group(row)) {
            (0, _, Some(group)) => {
                let fold = FOLDS[usize::from(self.shape.is_open(group.key))];
                let nodes = count(group.nodes.len(), "node");
                out.set(&format!("{fold} {nodes}"), Scope::TextStrong);
            }
            (0, _, None) => {
                let member = matches!(self.rows.get(row), Some(FilterRow::Member(_)));
                let indent = if member { "  " } else { "" };
                out.set(indent, Scope::Text);
                out.text.push_str(self.model.node_names.short(&cycle.nodes.name(node).text()));
            }
            (1, ..) => out.verdict(verdict()),
            (_, Some(_), _) if self.has_words(column) => out.verdict(verdict()),
            (_, Some(_), _) => out.set(verdict().glyph(), verdict().scope()),
            (_, None, _) => out.set(&self.reason(row), Scope::TextDim),
        }
        let future = |plugin| self.front.as_ref().is_some_and(|f| f.is_before(plugin, node));
        let undecided = place.is_none() && column > 0 && self.model.is_under_way();
        if place.is_some_and(future) || undecided && self.front.is_some() {
            out.scope = Scope::Future;
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        match self.group(row) {
            Some(group) => group.key,
            None => self.node(row).map_or(0, |n| u64::from(n.0)),
        }
    }

    fn is_current(&self, row: usize) -> bool {
        self.model.inspected.is_none() && self.current().is_some_and(|(current, _)| current == row)
    }

    fn is_failure(&self, row: usize) -> bool {
        let rejected = |c: &CycleRecord, node| c.filter.by_extender(node).is_some();
        self.id(row, 1).is_some_and(VerdictId::is_status)
            || self.cycle.zip(self.node(row)).is_some_and(|(c, node)| rejected(c, node))
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        let name = self.cycle?.nodes.name(self.node(row)?);
        shared::labels_of(self.model, name)
    }
}

impl View for FilterView<'_> {
    fn location(&self, row: usize, column: usize) -> Option<String> {
        let cycle = self.cycle?;
        if self.group(row).is_some() {
            return None;
        }
        let plugin =
            self.plugin(column).map(|column| format!("/{}", column.plugin)).unwrap_or_default();
        Some(format!("Filter{plugin} node:{}", cycle.nodes.name(self.node(row)?)))
    }

    fn title(&self) -> String {
        match self.cycle {
            Some(cycle) => {
                let nodes = self.model.node_names.note();
                let evaluated = super::evaluated(cycle);
                let pod = shared::pod_in_title(cycle.pod);
                format!("Filter of {pod} in cycle {}{evaluated}{nodes}", cycle.cycle)
            }
            None => "Filter".into(),
        }
    }

    fn note(&self) -> Option<String> {
        let folded = self.folded();
        (folded > 0).then(|| format!("{folded} skipped (O)"))
    }

    fn banner(&self, _width: u16) -> Vec<StyledParts> {
        let mut legend = match self.notes.iter().any(|note| note.has_unresolvable()) {
            true => rejections_legend(),
            false => StyledParts::new(),
        };
        if self.cycle.is_some_and(|cycle| has_other_nominated(self.model, cycle)) {
            legend.extend(nominated_legend());
        }
        if legend.is_empty() { Vec::new() } else { vec![legend] }
    }

    fn dims_future(&self) -> bool {
        self.front.is_some()
    }

    fn empty(&self) -> String {
        match self.cycle {
            Some(cycle) if cycle.nodes.order.is_empty() => "The cluster has no node.".into(),
            Some(_) => "Filter did not run in this cycle: it ended before; 0 shows where.".into(),
            None => "No cycle yet: n runs the next one.".into(),
        }
    }

    fn detail(&self, row: usize, column: usize) -> Vec<DetailLine> {
        let (Some(cycle), Some(node)) = (self.cycle, self.node(row)) else { return Vec::new() };
        if let Some(group) = self.group(row) {
            return self.group_lines(group, row);
        }
        let name = cycle.nodes.name(node);
        let mut lines = Vec::new();
        if column < FIXED {
            lines.push(DetailLine::heading(name));
        }
        if let Some(plugin) = self.plugin(column) {
            let id = self.id(row, column).unwrap_or(VerdictId::CYCLE_ENDED);
            lines.push(plugin_verdict(cycle, &format!("{} on {name}", plugin.plugin), id));
            let nominated = match plugin.verdicts.get(node) == Some(id) {
                true => "",
                false => " (with the capacity reserved for nominated pods)",
            };
            let explained = report::verdict::explain(cycle, id);
            lines.push(DetailLine::text(format!("{explained}{nominated}")));
            let whole = cycle.evaluated_nodes >= cycle.nodes.order.len();
            let label = if whole { "all nodes" } else { "evaluated" };
            lines.push(DetailLine::field(label, filter_summary(cycle, plugin)));
        }
        if let Some((_, at)) = self.extender(column) {
            let (verdict, extender) = (self.verdict(row, column), cycle.filter.extenders[at]);
            lines.push(answered(&format!("{extender} on {name}"), verdict));
        }
        match (cycle.filter.by_extender(node), self.id(row, 1)) {
            (Some(status), _) => lines.push(rejected_by_extender(status)),
            (None, Some(id)) => lines.push(final_verdict(cycle, id)),
            (None, None) => {}
        }
        let failures = all_failures(self.model, cycle, node);
        if !failures.is_empty() {
            lines.extend(failures);
            lines.push(DetailLine::key("Enter", "exactly what blocks it: taint, label, amount"));
        }
        if !self.has_words(FIXED) && column < FIXED {
            lines.push(legend());
        }
        lines
    }

    fn node_of(&self, row: usize, _column: usize) -> Option<Name> {
        let node = self.node(row).filter(|_| self.group(row).is_none())?;
        Some(self.cycle?.nodes.name(node))
    }

    fn map_cell(&self, row: usize, _map: usize) -> (&'static str, Scope) {
        let verdict = self.verdict(row, 1);
        (verdict.glyph(), verdict.scope())
    }

    fn map_legend(&self, _map: usize) -> StyledParts {
        use VerdictSign::{NotEvaluated, Success, Unresolvable, Unschedulable};
        let mut parts = vec![("verdict: ".to_owned(), Scope::TextDim)];
        for (verdict, words) in [
            (Success, "passes"),
            (Unschedulable, "rejected"),
            (Unresolvable, "preemption can't help"),
            (NotEvaluated, "not evaluated"),
        ] {
            parts.push((verdict.glyph().to_owned(), verdict.scope()));
            parts.push((format!(" {words}  "), Scope::TextDim));
        }
        parts
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        if let Some(group) = self.group(row) {
            return OnEnter::Fold(group.key);
        }
        let node = self.cycle.zip(self.node(row)).map(|(c, node)| (c.cycle, c.nodes.name(node)));
        node.map_or(OnEnter::Describe, |(cycle, node)| {
            OnEnter::Run(Command::ExplainNode(cycle, node))
        })
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let position = self.model.frame().filter(|f| f.point == Some(ExtensionPoint::Filter))?;
        let cycle = self.cycle?;
        let row = self.row_of(position.node?)?;
        let plugin = cycle.filter.plugins.iter().position(|p| Some(p.plugin) == position.plugin);
        Some((row, plugin.and_then(|place| self.column_of(place))))
    }

    fn moment(&self, row: usize, column: usize) -> Option<CyclePosition> {
        if self.group(row).is_some() {
            return None;
        }
        let plugin = self.plugin(column.max(FIXED))?.plugin;
        self.model.at(Frame::new(ExtensionPoint::Filter, Some(plugin), Some(self.node(row)?)))
    }
}
