//! The score table: per node the total, how far it is from the best, a bar of what each plugin gave, and
//! raw → normalized → × weight of each plugin where these differ. Plugins that gave every node the same
//! are folded: they decide nothing.

mod columns;
mod legend;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use self::columns::steps;
use super::shared::{NAMES, tie_break_text};
use super::{OnEnter, View, ViewShape, shared};
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::glyph::{SHADES, VerdictSign};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::bar::{self, Segment, StyledParts};
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name};
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_debug::margin::Margin;
use kubestep_debug::preview;
use kubestep_framework::record::scores::MAX_NODE_SCORE;
use kubestep_framework::record::{CycleRecord, ScoreColumn};

/// Columns before the plugins: node, rank, total, margin, mark, bar.
const FIXED: usize = 6;
/// Cells of a bar where there is no room for more.
const LEAST_BAR: usize = 12;
/// Cells of a bar at most.
const MOST_BAR: usize = 40;
/// Nodes of a tie that the details list, of more.
const TIED_NAMED: usize = 3;

/// The rows of the score table.
pub struct ScoresView<'a> {
    model: &'a Model,
    cycle: Option<&'a Arc<CycleRecord>>,
    /// The plugins that scored, and the extenders behind them.
    scored: Vec<Cow<'a, ScoreColumn>>,
    /// Their places that are on show: those whose scores differ, or all.
    shown: Vec<usize>,
    /// The columns of these.
    plugins: Vec<GridColumn>,
    /// Those whose scores differ: what the bars are made of.
    differing: Vec<usize>,
    /// The highest sum of these, or a quarter of what they can give, if that is more.
    most: i64,
    bar: usize,
    /// The totals, under the weights that are tried.
    totals: Vec<i64>,
    /// The best total that is recorded.
    best: Option<i64>,
    /// Positions in `feasible`, best first; the chosen node before others with its total.
    order: Vec<usize>,
    /// By row: its rank; equal totals share one.
    ranks: Vec<usize>,
    /// The plugin at the debugger's position, and the node's place in `feasible`.
    front: Option<(usize, Option<usize>)>,
}

impl<'a> ScoresView<'a> {
    /// The scores of the cycle at the debugger's position.
    pub fn new(model: &'a Model, shape: &ViewShape, room: u16) -> ScoresView<'a> {
        let cycle = model.cycle();
        let totals = cycle.map_or(Vec::new(), |c| preview::totals(c, &model.weights));
        let chosen = cycle.and_then(|cycle| chosen(cycle));
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(totals[*at]), Some(*at) != chosen, *at));
        let mut ranks: Vec<usize> = Vec::with_capacity(order.len());
        for (row, at) in order.iter().enumerate() {
            let tied = row > 0 && totals[order[row - 1]] == totals[*at];
            ranks.push(if tied { ranks[row - 1] } else { row + 1 });
        }
        let front = cycle.zip(model.stepped_frame()).and_then(|(c, frame)| front(c, frame));
        let scored = cycle.map_or(Vec::new(), |c| c.score.columns().collect());
        let at = front.map(|(plugin, _)| plugin);
        let differs = |place: &usize| scored.get(*place).is_some_and(|column| !is_equal(column));
        let has_bar = |place: &usize| {
            differs(place) && scored.get(*place).is_some_and(|it| !it.normalized.are_unknown())
        };
        let differing: Vec<usize> = (0..scored.len()).filter(has_bar).collect();
        let is_shown = |place: &usize| shape.unfolded || differs(place) || at == Some(*place);
        let shown: Vec<usize> = (0..scored.len()).filter(is_shown).collect();
        let weighted = |place: &usize| {
            let column: &ScoreColumn = scored.get(*place)?;
            Some((column, weight_of(model, column)))
        };
        let plugins = columns::of_plugins(shown.iter().filter_map(weighted));
        let mut view = ScoresView {
            model,
            cycle,
            scored,
            shown,
            plugins,
            differing,
            most: 0,
            bar: LEAST_BAR,
            totals,
            best: cycle.and_then(|cycle| cycle.score.totals.iter().max()),
            order,
            ranks,
            front,
        };
        let sum =
            |at: usize| view.segments(at).iter().map(|(amount, _)| amount.max(&0)).sum::<i64>();
        let most = view.order.iter().map(|at| sum(*at)).max().unwrap_or(0);
        // A point or two must not look like the whole score.
        let weights = view.differing.iter().filter_map(|place| view.scored.get(*place));
        let weights = weights.map(|column| view.weight(column).max(0)).sum::<i64>();
        view.most = most.max(weights.saturating_mul(MAX_NODE_SCORE) / 4);
        // Two columns are for the marks; the last one needs no blank behind it.
        let spare = u32::from(room).saturating_sub(view.width() + 1) as usize;
        view.bar = (LEAST_BAR + spare).min(MOST_BAR);
        view
    }

    /// What each plugin that makes a difference gave the node at that position in `feasible`.
    fn segments(&self, at: usize) -> Vec<Segment> {
        let segment = |(series, place): (usize, &usize)| {
            let plugin = self.scored.get(*place)?;
            let normalized = plugin.normalized.get(at).unwrap_or_default();
            Some((normalized.saturating_mul(self.weight(plugin)), series))
        };
        self.differing.iter().enumerate().filter_map(segment).collect()
    }

    /// What all columns take, each with the blank behind it.
    fn width(&self) -> u32 {
        (0..self.columns()).map(|column| u32::from(self.column(column).width.most()) + 1).sum()
    }

    /// The place of the plugin or extender of a column.
    fn place_of(&self, column: usize) -> Option<usize> {
        self.shown.get(column.checked_sub(FIXED)?).copied()
    }

    fn plugin(&self, column: usize) -> Option<&ScoreColumn> {
        self.scored.get(self.place_of(column)?).map(AsRef::as_ref)
    }

    fn total(&self, row: usize) -> i64 {
        let at = self.order.get(row);
        at.and_then(|at| self.totals.get(*at)).copied().unwrap_or_default()
    }

    /// The total that is recorded, where that is another.
    fn real_total(&self, row: usize) -> Option<i64> {
        let total = self.cycle?.score.totals.get(*self.order.get(row)?)?;
        (total != self.total(row)).then_some(total)
    }

    /// The plugin with the largest difference between the best node and the next one.
    pub fn decisive_plugin(&self) -> Option<Symbol> {
        let plugins = &self.cycle?.score.plugins;
        let (best, next) = (*self.order.first()?, self.order.get(1));
        let weighted = |plugin: &ScoreColumn, at: usize| {
            plugin.normalized.get(at).unwrap_or_default() * plugin.weight
        };
        let margin = |plugin: &&ScoreColumn| {
            next.map_or(0, |next| (weighted(plugin, best) - weighted(plugin, *next)).abs())
        };
        // Of equal margins the first.
        plugins.iter().rev().max_by_key(margin).map(|plugin| plugin.plugin)
    }

    fn weight(&self, plugin: &ScoreColumn) -> i64 {
        weight_of(self.model, plugin)
    }

    fn node_name(&self, row: usize) -> Option<Name> {
        let cycle = self.cycle?;
        Some(cycle.nodes.name(*cycle.feasible.get(*self.order.get(row)?)?))
    }

    /// Whether who steps has not come to this cell yet: plugin by plugin, over the feasible nodes of each.
    fn is_future(&self, plugin: usize, at: usize) -> bool {
        self.front.is_some_and(|(reached, node)| {
            plugin > reached || plugin == reached && node.is_none_or(|node| at > node)
        })
    }

    /// By how much the chosen node won, or by how much another one lost to it: the node at that
    /// position in `feasible`. Not while other weights are tried.
    fn margin(&self, at: usize) -> Option<String> {
        let cycle = self.cycle.filter(|_| self.model.weights.is_empty())?;
        let name = |at: usize| cycle.feasible.get(at).map(|node| cycle.nodes.name(*node));
        let chosen = chosen(cycle)?;
        let second = self.order.iter().copied().find(|other| *other != chosen)?;
        let other = if at == chosen { second } else { at };
        let margin = Margin::in_cycle(cycle, chosen, other)?;
        let short = |at| Some(self.short(name(at)?));
        let (winner, loser) = (short(chosen)?, short(other)?);
        Some(match (margin.by, at == chosen) {
            (0, _) if cycle.tied > 2 => {
                let tied = cycle.tied;
                format!("{tied} nodes have the same total: the tie-break chose {winner}")
            }
            (0, _) => {
                format!("{winner} and {loser} have the same total: the tie-break chose {winner}")
            }
            (by, true) => format!("{winner} won by {by} over {loser}: {margin}"),
            (by, false) => {
                let margin = Margin::in_cycle(cycle, other, chosen)?;
                format!("{loser} lost to {winner} by {by}: {margin}")
            }
        })
    }

    /// A node's name without what all names share, which the title has.
    fn short(&self, node: Name) -> String {
        self.model.node_names.short(&node.text()).to_owned()
    }

    fn tie_line(&self, cycle: &CycleRecord) -> Option<DetailLine> {
        if cycle.tied == 0 {
            return None;
        }
        let tied = cycle.tied_nodes();
        let names = tied.iter().take(TIED_NAMED).map(|id| cycle.nodes.name(*id));
        let named: Vec<String> = names.map(|name| self.short(name)).collect();
        let named = named.join(", ");
        let words = match tied.len().saturating_sub(TIED_NAMED) {
            0 => named,
            more => format!("{} nodes: {named} and {more} more", tied.len()),
        };
        let words = words + &tie_break_text(cycle);
        Some(DetailLine::field("tie", words).scoped(Scope::ScoreTie))
    }

    /// Points that the total of a row is below the highest one.
    fn behind(&self, row: usize) -> i64 {
        self.total(0).saturating_sub(self.total(row))
    }

    /// The fills of the bars with their plugins, and what the folded plugins gave every node.
    fn legend(&self, room: usize) -> Vec<StyledParts> {
        let name = |place: &usize| self.scored.get(*place).map(|column| column.plugin);
        let series: Vec<Symbol> = self.differing.iter().filter_map(name).collect();
        let folded = (0..self.scored.len()).filter(|place| !self.shown.contains(place));
        let folded = folded.filter_map(|place| self.scored.get(place));
        let equal = folded.map(|column| {
            let normalized = column.normalized.get(0).unwrap_or_default();
            (column.plugin, normalized * self.weight(column))
        });
        legend::with_equal(legend::series(&series, room), &equal.collect::<Vec<_>>(), room)
    }

    /// Whether a row's node is the chosen one, and whether its total is the best of several.
    fn is_chosen_or_tied(&self, row: usize) -> Option<(bool, bool)> {
        let cycle = self.cycle?;
        let at = *self.order.get(row)?;
        let chosen = cycle.node == Some(cycle.nodes.name(*cycle.feasible.get(at)?));
        Some((chosen, cycle.tied > 0 && cycle.score.totals.get(at) == self.best))
    }

    /// `chosen`, `tie`, or nothing. Of equal nodes the chosen one is the first row, so that it is seen that
    /// it is one of them.
    fn mark(&self, row: usize) -> Option<(&'static str, Scope)> {
        match self.is_chosen_or_tied(row)? {
            (true, _) => Some(("★ chosen", Scope::ScoreWinner)),
            (false, true) => Some(("= tie", Scope::ScoreTie)),
            (false, false) => None,
        }
    }
}

/// The position in `feasible` of the chosen node.
fn chosen(cycle: &CycleRecord) -> Option<usize> {
    let node = cycle.node?;
    cycle.feasible.iter().position(|id| cycle.nodes.name(*id) == node)
}

/// The weight that a plugin has, or that is tried.
fn weight_of(model: &Model, plugin: &ScoreColumn) -> i64 {
    preview::weight_of(&model.weights, plugin.plugin).unwrap_or(plugin.weight)
}

/// Whether every node got the same. Those of an opaque plugin are unknown.
fn is_equal(column: &ScoreColumn) -> bool {
    if column.normalized.are_unknown() {
        return false;
    }
    let mut values = column.normalized.iter();
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// How far the debugger has walked through Score.
fn front(cycle: &CycleRecord, frame: Frame) -> Option<(usize, Option<usize>)> {
    let at_score = frame.point == Some(ExtensionPoint::Score);
    let mut plugins = cycle.score.plugins.iter();
    let plugin = plugins.position(|p| at_score && Some(p.plugin) == frame.plugin)?;
    let node = frame.node.and_then(|node| cycle.feasible.iter().position(|f| *f == node));
    Some((plugin, node))
}

impl GridSource for ScoresView<'_> {
    fn rows(&self) -> usize {
        self.order.len()
    }

    fn columns(&self) -> usize {
        FIXED + self.shown.len()
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::fitted("node", NAMES, self.model.node_names.widest().into()),
            1 => GridColumn::number("rank", 4),
            2 if !self.model.weights.is_empty() => GridColumn::number("total", 11),
            2 => GridColumn::number("total", 6),
            3 => GridColumn::number("behind", 6),
            4 => GridColumn::text("", 8),
            5 => GridColumn::text("what differs", self.bar as u16),
            _ => self.plugins.get(column - FIXED).cloned().unwrap_or_default(),
        }
    }

    fn header_lines(&self) -> u16 {
        let lines = self.plugins.iter().map(|column| column.title.split('\n').count() as u16);
        let noted = self.plugins.iter().any(|column| !column.note.is_empty());
        lines.max().unwrap_or(1) + u16::from(noted)
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(at) = self.order.get(row).copied() else { return };
        // Writing into a cell cannot fail.
        let _ = match (column, self.plugin(column)) {
            (0, _) => {
                let name = self.node_name(row).unwrap_or_default();
                out.write_str(&self.short(name))
            }
            (1, _) => write!(out, "{}", self.ranks[row]),
            (2, _) => {
                out.scope = Scope::TextStrong;
                match self.real_total(row) {
                    Some(real) => write!(out, "{real}→{}", self.total(row)),
                    None => write!(out, "{}", self.total(row)),
                }
            }
            (3, _) => match self.behind(row) {
                0 => Ok(()),
                behind => write!(out, "−{behind}"),
            },
            (4, _) => {
                let (text, scope) = self.mark(row).unwrap_or_default();
                out.set(text, scope);
                Ok(())
            }
            (5, _) => {
                bar::segments(&self.segments(at), self.most, self.bar, out);
                Ok(())
            }
            (_, Some(plugin)) if plugin.normalized.are_unknown() => {
                out.set(VerdictSign::Unknown.glyph(), VerdictSign::Unknown.scope());
                Ok(())
            }
            (_, Some(plugin)) => {
                let normalized = plugin.normalized.get(at).unwrap_or_default();
                out.scope = Scope::of_score(normalized);
                let raw = plugin.raw.get(at).unwrap_or_default();
                out.write_str(&steps(raw, normalized, normalized * self.weight(plugin)))
            }
            _ => Ok(()),
        };
        // Totals are known once the last plugin has scored.
        let undecided = (1..FIXED).contains(&column) && self.front.is_some();
        if undecided || self.place_of(column).is_some_and(|plugin| self.is_future(plugin, at)) {
            out.all(Scope::Future);
        }
    }

    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        match self.node_name(row).filter(|_| column == 0) {
            Some(name) => out.set(&name.text(), Scope::Text),
            None => self.cell(row, column, out),
        }
    }

    /// Of a plugin's scores, the normalized one counts.
    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        match column {
            3 => return Some(self.behind(row)),
            5 => return Some(self.segments(*self.order.get(row)?).iter().map(|s| s.0).sum()),
            _ => {}
        }
        let plugin = self.plugin(column)?;
        let normalized = self.order.get(row).and_then(|at| plugin.normalized.get(*at));
        Some(normalized.unwrap_or(i64::MIN))
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        let node = |c: &CycleRecord| c.feasible.get(*self.order.get(row)?).copied();
        self.cycle.and_then(|c| node(c)).map_or(0, |n| u64::from(n.0))
    }

    fn is_current(&self, row: usize) -> bool {
        self.model.inspected.is_none() && self.current().is_some_and(|(current, _)| current == row)
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        shared::labels_of(self.model, self.node_name(row)?)
    }
}

impl View for ScoresView<'_> {
    fn location(&self, row: usize, column: usize) -> Option<String> {
        let plugin = View::plugin_of(self, column).map(|plugin| format!("/{plugin}"));
        Some(format!("Score{} node:{}", plugin.unwrap_or_default(), self.node_name(row)?))
    }

    fn title(&self) -> String {
        match self.cycle {
            Some(cycle) => {
                let nodes = self.model.node_names.note();
                let evaluated = super::evaluated(cycle);
                let pod = shared::pod_in_title(cycle.pod);
                format!("Scores of {pod} in cycle {}{evaluated}{nodes}", cycle.cycle)
            }
            None => "Scores".into(),
        }
    }

    fn dims_future(&self) -> bool {
        self.front.is_some()
    }

    fn banner(&self, width: u16) -> Vec<StyledParts> {
        if self.order.is_empty() { Vec::new() } else { self.legend(width.into()) }
    }

    fn node_of(&self, row: usize, _column: usize) -> Option<Name> {
        self.node_name(row)
    }

    /// None for an extender's.
    fn plugin_of(&self, column: usize) -> Option<Symbol> {
        self.cycle?.score.plugins.get(self.place_of(column)?).map(|plugin| plugin.plugin)
    }

    fn map_cell(&self, row: usize, _map: usize) -> (&'static str, Scope) {
        if self.mark(row).is_some_and(|(_, scope)| scope == Scope::ScoreWinner) {
            return ("★", Scope::ScoreWinner);
        }
        let lowest = self.total(self.order.len().saturating_sub(1));
        let range = self.total(0).saturating_sub(lowest).max(1);
        let percent = self.total(row).saturating_sub(lowest).saturating_mul(100) / range;
        let step = usize::try_from(percent / 20).unwrap_or(0).min(SHADES.len() - 1);
        (SHADES[step], Scope::of_score(percent))
    }

    fn map_legend(&self, _map: usize) -> StyledParts {
        let lowest = self.total(self.order.len().saturating_sub(1));
        let mut parts = vec![(format!("total: {lowest} "), Scope::TextDim)];
        for (at, sign) in SHADES.iter().enumerate() {
            parts.push(((*sign).to_owned(), Scope::of_score(at as i64 * 20)));
        }
        parts.push((format!(" {}  ", self.total(0)), Scope::TextDim));
        parts.extend([("★".into(), Scope::ScoreWinner), (" chosen".into(), Scope::TextDim)]);
        parts
    }

    fn empty(&self) -> String {
        match self.cycle.map(|c| c.feasible.len()) {
            Some(0) => "No node passed Filter, so nothing was scored; 3 shows why.".into(),
            Some(1) => "One node passed Filter, so there was nothing to compare.".into(),
            Some(_) => "Score did not run in this cycle.".into(),
            None => "No cycle yet: n runs the next one.".into(),
        }
    }

    fn detail(&self, row: usize, column: usize) -> Vec<DetailLine> {
        let (Some(cycle), Some(node)) = (self.cycle, self.node_name(row)) else {
            return Vec::new();
        };
        let Some(at) = self.order.get(row).copied() else { return Vec::new() };
        let mark = match self.is_chosen_or_tied(row) {
            Some((true, true)) => ", ★ chosen of tie",
            Some((true, false)) => ", ★ chosen",
            Some((false, true)) => ", = tie",
            _ => "",
        };
        let (rank, total) = (self.ranks[row], self.total(row));
        let of = self.order.len();
        let mut lines: Vec<DetailLine> =
            self.margin(at).map(DetailLine::heading).into_iter().collect();
        let node = self.short(node);
        lines
            .push(DetailLine::heading(format!("{node}: total {total}, rank {rank} of {of}{mark}")));
        let chosen = self.plugin(column);
        lines.extend(
            chosen.map(|plugin| DetailLine::text(arithmetic(plugin, at, self.weight(plugin)))),
        );
        let scored = self.scored.iter();
        let sum: Vec<String> = scored.map(|p| term(p, at, self.weight(p))).collect();
        lines.push(DetailLine::field("total", format!("{} = {total}", sum.join(" + "))));
        lines.extend(self.tie_line(cycle));
        lines.push(DetailLine::key(
            "Enter",
            "each score's inputs and formula, beside the chosen node's",
        ));
        lines
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        // Enter on weights that are tried keeps them.
        if !self.model.weights.is_empty() {
            let edits = self.model.weights.iter().map(|(plugin, weight)| match weight {
                0 => format!("disable {plugin} at Score"),
                _ => format!("weight {plugin}={weight}"),
            });
            let line = edits.collect::<Vec<_>>().join(", and ");
            return OnEnter::Run(Command::WhatIf(WhatIfCommand::EditLine(line)));
        }
        let node = self.cycle.map(|c| c.cycle).zip(self.node_name(row));
        node.map_or(OnEnter::Describe, |(cycle, node)| {
            OnEnter::Run(Command::ExplainNode(cycle, node))
        })
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let position = self.model.frame().filter(|f| f.point == Some(ExtensionPoint::Score))?;
        let cycle = self.cycle?;
        let at = cycle.feasible.iter().position(|n| Some(*n) == position.node)?;
        let row = self.order.iter().position(|o| *o == at)?;
        let plugin = cycle.score.plugins.iter().position(|p| Some(p.plugin) == position.plugin);
        let column = plugin.and_then(|p| self.shown.iter().position(|shown| *shown == p));
        Some((row, column.map(|column| column + FIXED)))
    }

    fn moment(&self, row: usize, column: usize) -> Option<CyclePosition> {
        let cycle = self.cycle?;
        let place = self.place_of(column).unwrap_or(0);
        let plugin = cycle.score.plugins.get(place)?.plugin;
        let node = *cycle.feasible.get(*self.order.get(row)?)?;
        self.model.at(Frame::new(ExtensionPoint::Score, Some(plugin), Some(node)))
    }
}

fn arithmetic(plugin: &ScoreColumn, at: usize, weight: i64) -> String {
    let Some((raw, normalized)) = plugin.raw.get(at).zip(plugin.normalized.get(at)) else {
        return format!("{}: unknown, × weight {weight}", plugin.plugin);
    };
    let (name, weighted) = (plugin.plugin, normalized * weight);
    format!("{name}: raw {raw}, normalized {normalized}, × weight {weight} = {weighted}")
}

fn term(plugin: &ScoreColumn, at: usize, weight: i64) -> String {
    match plugin.normalized.get(at) {
        Some(normalized) => format!("{} {}", plugin.plugin, normalized * weight),
        None => format!("{} ?", plugin.plugin),
    }
}
