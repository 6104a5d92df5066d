//! The filter matrix: every plugin on every node, with the official verdict first.
//!
//! The scheduler stops at a node's first failure; the recording does not, so the columns behind it are
//! known too. Nodes it never asked are marked, with the reason in the details.
//!
//! Where words for all plugins do not fit, each gets a narrower column: a sign in every cell, and its
//! name over it, cut by one rule, word under word.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use super::cycle::filter_summary;
use super::shared::NAMES;
use super::{OnEnter, View, shared, verdict};
use crate::tui::command::Command;
use crate::tui::glyph::VerdictSign;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::{Cut, head};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, GridColumn, GridSource};
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column as Verdicts;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::Status;

/// Columns before the plugins: node, official verdict.
const FIXED: usize = 2;
/// Width of the official verdict.
const OFFICIAL: u16 = 9;
/// Width of a plugin's column with its name in one line.
const WIDEST: u16 = 12;
/// Least width of one that has a sign and a word in its cells.
const WORDS: u16 = 7;
/// Least width of one, with a sign in its cells.
const SIGNS: u16 = 4;
/// Words of a name over a column that is not as wide as it may be.
const NAME_LINES: usize = 3;

/// The rows of the filter matrix.
pub struct FilterView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
    /// By column: what the header says of all nodes.
    notes: Vec<String>,
    front: Option<Front>,
    /// Width of the plugins' columns.
    width: u16,
}

/// How far the debugger has walked through Filter: plugin by plugin, over the evaluated nodes of each.
struct Front {
    /// The plugin's place.
    plugin: usize,
    /// By slot, when the node is looked at; empty while no node is.
    turns: Vec<usize>,
    /// The turn of the node at the position.
    turn: usize,
}

impl Front {
    fn new(cycle: &CycleRecord, frame: Frame) -> Option<Front> {
        let at_filter = frame.point == Some(ExtensionPoint::Filter);
        let mut plugins = cycle.filter.plugins.iter();
        let plugin = plugins.position(|p| at_filter && Some(p.plugin) == frame.plugin)?;
        let Some(node) = frame.node else {
            return Some(Front { plugin, turns: Vec::new(), turn: 0 });
        };
        let mut turns = vec![0; cycle.nodes.names.len()];
        for (turn, evaluated) in cycle.filter.evaluated.iter().enumerate() {
            if let Some(slot) = turns.get_mut(evaluated.index()) {
                *slot = turn;
            }
        }
        let turn = turns.get(node.index()).copied().unwrap_or_default();
        Some(Front { plugin, turns, turn })
    }

    /// Whether who steps has not come to this cell yet.
    fn is_before(&self, plugin: usize, node: NodeId) -> bool {
        let turn = self.turns.get(node.index()).copied().unwrap_or(usize::MAX);
        plugin > self.plugin || plugin == self.plugin && turn > self.turn
    }
}

impl<'a> FilterView<'a> {
    /// The matrix of the cycle at the debugger's position, in `room` terminal columns.
    pub fn new(model: &'a Model, room: u16) -> FilterView<'a> {
        let cycle = model.cycle();
        let name_width = model.node_names.widest().min(NAMES);
        let columns = cycle.map_or(0, |c| c.filter.plugins.len() + c.filter.extenders.len());
        let plugins = columns.clamp(1, 1_000) as u16;
        // BackgroundTask marks, names and the official verdict, each column with a blank before it.
        let each = room.saturating_sub(3 + name_width + OFFICIAL) / plugins;
        let width = each.saturating_sub(1).clamp(SIGNS, WIDEST);
        let notes = cycle.map(|c| notes(c, width >= WORDS)).unwrap_or_default();
        let front = cycle.zip(model.stepped_frame()).and_then(|(c, frame)| Front::new(c, frame));
        FilterView { model, cycle, notes, front, width }
    }

    fn node(&self, row: usize) -> Option<NodeId> {
        self.cycle?.nodes.order.get(row).copied()
    }

    fn id(&self, row: usize, column: usize) -> Option<VerdictId> {
        let (cycle, node) = (self.cycle?, self.node(row)?);
        match column.checked_sub(FIXED) {
            None => cycle.filter.verdicts.get(node),
            Some(plugin) => cycle.filter.plugins.get(plugin)?.verdicts.get(node),
        }
    }

    /// The extender of a column.
    fn extender(&self, column: usize) -> Option<(&'a CycleRecord, usize)> {
        let cycle = self.cycle?;
        let at = column.checked_sub(FIXED + cycle.filter.plugins.len())?;
        (at < cycle.filter.extenders.len()).then_some((cycle, at))
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

/// A plugin's name over a narrow column: the beginnings of its words, one a line.
fn short_name(plugin: &str, width: u16) -> String {
    let mut words: Vec<String> = Vec::new();
    for letter in plugin.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            // Capitals in a row are one word.
            Some(word) if word.chars().all(char::is_uppercase) => word.push(letter),
            _ => words.push(letter.into()),
        }
    }
    let short = words.iter().take(NAME_LINES).map(|word| head(word, usize::from(width)));
    short.collect::<Vec<_>>().join("\n")
}

/// Per column, how many nodes are rejected; one pass over the compact columns.
fn notes(cycle: &CycleRecord, words: bool) -> Vec<String> {
    let filter = &cycle.filter;
    let count = |column: &Verdicts<VerdictId>| column.iter().filter(|id| id.is_status()).count();
    let official = note(count(&filter.verdicts) + filter.extender.len(), false, true);
    let plugins = filter.plugins.iter().map(|plugin| {
        let skipped = || plugin.verdicts.iter().all(|id| id == VerdictId::SKIPPED);
        let rejected = count(&plugin.verdicts);
        note(rejected, rejected == 0 && skipped(), words)
    });
    let extenders = filter.extenders.iter().map(|name| {
        let own = |(_, status): &&(NodeId, Status)| status.plugin() == *name;
        note(filter.extender.iter().filter(own).count(), false, words)
    });
    std::iter::once(official).chain(plugins).chain(extenders).collect()
}

/// How many nodes a column rejects, in words or in a narrow column.
fn note(rejected: usize, skipped: bool, words: bool) -> String {
    match (rejected, words) {
        (0, true) => if skipped { "skipped" } else { "all pass" }.to_owned(),
        (0, false) if skipped => VerdictSign::Skip.glyph().to_owned(),
        (0, false) => VerdictSign::Success.glyph().to_owned(),
        (n, true) => format!("✗ {n}"),
        (n @ 1..1_000, false) => format!("✗{n}"),
        (n, false) => format!("✗{}k", n / 1_000),
    }
}

impl GridSource for FilterView<'_> {
    fn rows(&self) -> usize {
        self.cycle.filter(|c| !c.filter.plugins.is_empty()).map_or(0, |c| c.nodes.order.len())
    }

    fn columns(&self) -> usize {
        FIXED + self.cycle.map_or(0, |c| c.filter.plugins.len() + c.filter.extenders.len())
    }

    fn column(&self, column: usize) -> GridColumn {
        let note = |at: usize| self.notes.get(at).cloned().unwrap_or_default();
        match column.checked_sub(FIXED) {
            None if column == 0 => {
                GridColumn::fitted("node", NAMES, self.model.node_names.widest().into())
            }
            None => GridColumn::text("verdict", OFFICIAL).with_note(note(0)),
            Some(plugin) => {
                let plugins = self.cycle.and_then(|c| c.filter.plugins.get(plugin));
                let extender = self.extender(column).map(|(c, at)| c.filter.extenders[at]);
                let name = plugins.map(|p| p.plugin).or(extender).unwrap_or_default();
                let column = match self.width {
                    WIDEST.. => GridColumn { cut: Cut::Middle, ..GridColumn::text(&name, WIDEST) },
                    width => GridColumn::text(&short_name(&name, width), width),
                };
                column.with_note(note(plugin + 1))
            }
        }
    }

    fn header_lines(&self) -> u16 {
        if self.width < WIDEST { NAME_LINES as u16 + 1 } else { 2 }
    }

    fn searched(&self, row: usize, column: usize, out: &mut CellOut) {
        match column {
            FIXED.. => out.verdict(self.verdict(row, column)),
            _ => self.cell(row, column, out),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let (Some(cycle), Some(node)) = (self.cycle, self.node(row)) else { return };
        let verdict = self.verdict(row, column);
        match column {
            0 => out.set(self.model.node_names.short(&cycle.nodes.name(node)), Scope::Text),
            FIXED.. if self.width < WORDS => out.set(verdict.glyph(), verdict.scope()),
            _ => out.verdict(verdict),
        }
        let future = |plugin| self.front.as_ref().is_some_and(|f| f.is_before(plugin, node));
        if column.checked_sub(FIXED).is_some_and(future) {
            out.scope = Scope::Future;
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.place(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.node(row).map_or(0, |n| u64::from(n.0))
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

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        let name = self.cycle?.nodes.name(self.node(row)?);
        shared::label_of(self.model, name, key)
    }
}

impl View for FilterView<'_> {
    fn place(&self, row: usize, column: usize) -> Option<String> {
        let cycle = self.cycle?;
        let plugin = column.checked_sub(FIXED).and_then(|at| cycle.filter.plugins.get(at));
        let plugin = plugin.map(|column| format!("/{}", column.plugin)).unwrap_or_default();
        Some(format!("Filter{plugin} node:{}", cycle.nodes.name(self.node(row)?)))
    }

    fn title(&self) -> String {
        match self.cycle {
            Some(cycle) => {
                let nodes = self.model.node_names.note();
                let evaluated = super::evaluated(cycle);
                format!("Filter of {} in cycle {}{evaluated}{nodes}", cycle.pod, cycle.cycle)
            }
            None => "Filter".into(),
        }
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
        let name = cycle.nodes.name(node);
        let mut lines = Vec::new();
        if let Some(plugin) = column.checked_sub(FIXED).and_then(|p| cycle.filter.plugins.get(p)) {
            let id = self.id(row, column).unwrap_or(VerdictId::CYCLE_ENDED);
            lines.push(said(cycle, &format!("{} on {name}", plugin.plugin), id));
            lines.push(DetailLine::text(verdict::explain(cycle, id)));
            lines.push(DetailLine::field("all nodes", filter_summary(cycle, plugin)));
        }
        if let Some((_, at)) = self.extender(column) {
            let (verdict, extender) = (self.verdict(row, column), cycle.filter.extenders[at]);
            lines.push(answered(&format!("{extender} on {name}"), verdict));
        }
        match (cycle.filter.by_extender(node), self.id(row, 1)) {
            (Some(status), _) => lines.push(rejected_by_extender(status)),
            (None, Some(id)) => lines.push(official(cycle, id)),
            (None, None) => {}
        }
        let failures = all_failures(cycle, node);
        if !failures.is_empty() {
            lines.extend(failures);
            lines.push(DetailLine::field("Enter", "exactly what blocks it: taint, label, amount"));
        }
        if self.width < WORDS && column < FIXED {
            lines.push(legend());
        }
        lines
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        let node = self.cycle.zip(self.node(row)).map(|(c, node)| (c.cycle, c.nodes.name(node)));
        node.map_or(OnEnter::Describe, |(cycle, node)| {
            OnEnter::Run(Command::ExplainNode(cycle, node))
        })
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let position = self.model.frame().filter(|f| f.point == Some(ExtensionPoint::Filter))?;
        let cycle = self.cycle?;
        let row = cycle.nodes.order.iter().position(|n| Some(*n) == position.node)?;
        let plugin = cycle.filter.plugins.iter().position(|p| Some(p.plugin) == position.plugin);
        Some((row, plugin.map(|p| p + FIXED)))
    }

    fn moment(&self, row: usize, column: usize) -> Option<CyclePosition> {
        let plugin = self.cycle?.filter.plugins.get(column.saturating_sub(FIXED))?.plugin;
        self.model.at(Frame::new(ExtensionPoint::Filter, Some(plugin), Some(self.node(row)?)))
    }
}

fn said(cycle: &CycleRecord, who: &str, id: VerdictId) -> DetailLine {
    answered(who, verdict::of_id(cycle, id))
}

fn answered(who: &str, verdict: VerdictSign) -> DetailLine {
    let (glyph, meaning) = (verdict.glyph(), verdict.meaning());
    DetailLine::text(format!("{glyph} {who}: {meaning}")).scoped(verdict.scope())
}

/// What the signs in narrow columns stand for: the words that are there where they fit.
fn legend() -> DetailLine {
    use VerdictSign::{Skip, Success, Unresolvable, Unschedulable};
    let signs = [Success, Unschedulable, Unresolvable, Skip];
    let signs = signs.map(|verdict| format!("{} {}", verdict.glyph(), verdict.word()));
    let unasked = VerdictSign::NotEvaluated.glyph();
    DetailLine::field(
        "signs",
        format!("{}, {unasked} not asked; Ctrl-w shows words", signs.join(", ")),
    )
}

/// The scheduler's own verdict with the plugin that gave it.
fn official(cycle: &CycleRecord, id: VerdictId) -> DetailLine {
    let by = cycle.verdicts.get(id).map(|s| format!(" by {}", s.plugin())).unwrap_or_default();
    let verdict = verdict::of_id(cycle, id);
    let explained = verdict::explain(cycle, id);
    let text = match explained.starts_with(verdict.meaning()) {
        true => explained,
        false => format!("{}{by}: {explained}", verdict.meaning()),
    };
    DetailLine::field("verdict", text).scoped(verdict.scope())
}

/// The verdict on a node that passed the plugins, but not the extenders.
fn rejected_by_extender(status: &Status) -> DetailLine {
    let verdict = verdict::of_code(status.code());
    let (meaning, reasons) = (verdict.meaning(), verdict::reasons(status));
    DetailLine::field("verdict", format!("{meaning} by {}: {reasons}", status.plugin()))
        .scoped(verdict.scope())
}

/// Every plugin that refuses the node, also those behind the first failure.
fn all_failures(cycle: &CycleRecord, node: NodeId) -> Vec<DetailLine> {
    let failing = cycle.filter.plugins.iter().filter_map(|column| {
        let id = column.verdicts.get(node).filter(|id| id.is_status())?;
        Some((column.plugin, id))
    });
    let mut text = String::new();
    for (plugin, id) in failing {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{plugin}: {}", verdict::explain(cycle, id));
    }
    match text.is_empty() {
        true => Vec::new(),
        false => vec![DetailLine::field("all failures", text)],
    }
}
