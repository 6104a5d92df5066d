//! The nodes with what is requested of them and what is left.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::extended::ExtendedResource;
use super::resource_use::{DRAWN, Reserved, ResourceUse, ResourceUses, reserved};
use super::shared::NAMES;
use super::{OnEnter, View, ViewShape, shared};
use crate::tui::glyph::{CORDONED, FOLDS, HATCH, SHADES, VerdictSign};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::{Load, StyledParts};
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::words::count;
use kubestep_api::{Labels, Name};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::resource::Resource;
use kubestep_framework::resource::amount;

fn labels(node: &NodeInfo) -> Option<&Labels> {
    node.node.as_ref().map(|n| &n.metadata.labels)
}

/// Taints as kubectl writes them.
pub fn taints(node: &NodeInfo) -> Vec<String> {
    let taints = node.node.as_ref().map(|n| n.spec.taints.as_slice()).unwrap_or_default();
    let text = |taint: &kubestep_api::Taint| match taint.value.is_empty() {
        true => format!("{}:{}", taint.key, taint.effect),
        false => format!("{}={}:{}", taint.key, taint.value, taint.effect),
    };
    taints.iter().map(text).collect()
}

/// That which is a number only: a node is rarely full of pods.
const PODS: usize = 2;
/// The column of the first of them.
const FIRST_DRAWN: usize = 2;
/// The first column after the drawn resources.
const FIRST_TRAILING: usize = FIRST_DRAWN + DRAWN.len();

/// From so many columns on, a share is a bar and a number.
const WITH_PERCENT: u16 = 90;
/// Cells of a bar without a number, with one where there is no room for more, and at most.
const LEAST_BAR: usize = 6;
const PERCENT_BAR: usize = 10;
const MOST_BAR: usize = 20;
/// Columns that a longer text leaves to the bars.
const MOST_PROSE: u16 = 40;

fn state(node: &NodeInfo) -> (&'static str, Scope) {
    match &node.node {
        None => ("! no object", VerdictSign::Error.scope()),
        Some(object) if object.spec.unschedulable => (CORDONED, VerdictSign::Unresolvable.scope()),
        Some(_) => ("open", Scope::Text),
    }
}

fn is_open(node: &NodeInfo) -> bool {
    node.node.as_ref().is_some_and(|object| !object.spec.unschedulable)
}

/// Nodes with the same value of a label.
struct LabelGroup {
    value: String,
    /// Their places in the model.
    nodes: Vec<usize>,
    uses: ResourceUses,
}

impl LabelGroup {
    fn key(&self) -> u64 {
        shared::key_of_text(&format!("group {}", self.value))
    }

    fn members<'a>(&self, model: &'a Model) -> impl Iterator<Item = &'a NodeInfo> {
        self.nodes.iter().filter_map(|at| model.nodes.get(*at)).map(|node| &**node)
    }
}

/// A line: a group by its number, or a node by its place in the model.
#[derive(Clone, Copy)]
enum NodesRow {
    Group(usize),
    Node(usize),
}

/// The rows of the nodes: one each, or by the value of a label.
pub struct NodesView<'a> {
    model: &'a Model,
    shape: ViewShape,
    reserved: Reserved,
    groups: Vec<LabelGroup>,
    /// Empty where every node is a row.
    rows: Vec<NodesRow>,
    /// Cells of a bar.
    bar: usize,
    /// Whether shares are said in percent, too.
    has_percent: bool,
    /// Columns of the widest ratio of each drawn resource.
    ratios: [usize; 3],
    extended: Vec<ExtendedResource>,
}

/// What a column trailing the drawn resources shows.
enum TrailingColumn<'a> {
    Extended(&'a ExtendedResource),
    Nominated,
    Taints,
}

impl<'a> NodesView<'a> {
    /// The nodes at the debugger's position, in `room` terminal columns.
    pub fn new(model: &'a Model, shape: ViewShape, room: u16) -> NodesView<'a> {
        let reserved = reserved(model);
        let groups = match &shape.group_by {
            Some(key) => groups(model, &reserved, key),
            None => Vec::new(),
        };
        let mut rows = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            rows.push(NodesRow::Group(at));
            // Groups are sorted by their sums, and only folded ones stay together.
            if shape.is_open(group.key()) && !shape.flat {
                rows.extend(group.nodes.iter().map(|node| NodesRow::Node(*node)));
            }
        }
        let has_percent = room >= WITH_PERCENT;
        let bar = if has_percent { PERCENT_BAR } else { LEAST_BAR };
        let ratios = ratio_widths(model, &reserved, &groups);
        let mut extended = ExtendedResource::of_nodes(model.nodes.iter().map(|node| &**node));
        for resource in &mut extended {
            groups.iter().for_each(|group| resource.widen(group.members(model)));
        }
        let mut view =
            NodesView { model, shape, reserved, groups, rows, bar, has_percent, ratios, extended };
        if has_percent {
            view.bar = (bar + view.spare(room) / 2).min(MOST_BAR);
        }
        view
    }

    /// Columns of `room` that are left beside all columns, where taints get no more than most need.
    fn spare(&self, room: u16) -> usize {
        let width = |column| usize::from(self.column(column).width.most().min(MOST_PROSE)) + 1;
        let marks = 1;
        let used: usize = (0..self.columns()).map(width).sum();
        usize::from(room).saturating_sub(marks + used)
    }

    /// Columns of the percentages behind a bar: used, and what is reserved for nominated pods.
    fn percent_width(&self) -> usize {
        match (self.has_percent, self.model.nominated.is_empty()) {
            (false, _) => 0,
            (true, true) => " 100%".len(),
            (true, false) => " 100% +100%".len(),
        }
    }

    fn percent(&self, load: Load) -> String {
        let reserved = match load.reserved {
            0 => String::new(),
            reserved => format!(" +{}%", reserved / 10),
        };
        let text = format!(" {:>3}%{reserved}", load.used / 10);
        format!("{text:<width$}", width = self.percent_width())
    }

    /// Pods are nominated only now and then: their column is there only while some are.
    fn trailing(&self, column: usize) -> TrailingColumn<'_> {
        let at = column.saturating_sub(FIRST_TRAILING);
        match self.extended.get(at) {
            Some(resource) => TrailingColumn::Extended(resource),
            None if at == self.extended.len() && !self.model.nominated.is_empty() => {
                TrailingColumn::Nominated
            }
            None => TrailingColumn::Taints,
        }
    }

    /// The nodes of a row: one, or those of a group.
    fn nodes_of(&self, row: usize) -> impl Iterator<Item = &NodeInfo> {
        let of_group = self.group(row).into_iter().flat_map(|group| group.members(self.model));
        self.node(row).into_iter().map(|node| &**node).chain(of_group)
    }

    fn row(&self, row: usize) -> NodesRow {
        self.rows.get(row).copied().unwrap_or(NodesRow::Node(row))
    }

    fn node(&self, row: usize) -> Option<&'a Arc<NodeInfo>> {
        match self.row(row) {
            NodesRow::Node(node) => self.model.nodes.get(node),
            NodesRow::Group(_) => None,
        }
    }

    fn group(&self, row: usize) -> Option<&LabelGroup> {
        match self.row(row) {
            NodesRow::Group(group) => self.groups.get(group),
            NodesRow::Node(_) => None,
        }
    }

    fn uses(&self, row: usize) -> Option<ResourceUses> {
        let of_node = || Some(ResourceUses::of(&self.reserved, self.node(row)?));
        self.group(row).map(|group| group.uses).or_else(of_node)
    }

    fn nominated(&self, row: usize) -> i64 {
        self.uses(row).map_or(0, |uses| uses.0[PODS].reserved)
    }

    /// A bar with the share in percent where there is room, and the amounts.
    fn draw_use(&self, row: usize, at: usize, out: &mut CellWriter) {
        let Some(of) = self.uses(row).map(|uses| uses.0[at]) else { return };
        if at == PODS {
            return out.set(&of.ratio(DRAWN[at]), Scope::Text);
        }
        of.load().draw(self.bar, out);
        out.part(&self.amounts(of, at), Scope::Text);
    }

    /// What stands beside a bar.
    fn amounts(&self, of: ResourceUse, at: usize) -> String {
        let percent = if self.has_percent { self.percent(of.load()) } else { String::new() };
        format!("{percent} {:>width$}", of.ratio(DRAWN[at]), width = self.ratios[at])
    }

    fn draw_name(&self, row: usize, out: &mut CellWriter) {
        if let Some(group) = self.group(row) {
            let open = usize::from(self.shape.is_open(group.key()) && !self.shape.flat);
            let text = format!("{} {} ({})", FOLDS[open], group.value, group.nodes.len());
            return out.set(&text, Scope::TextStrong);
        }
        let Some(node) = self.node(row) else { return };
        let indent = if self.groups.is_empty() { "" } else { "  " };
        out.set(indent, Scope::Text);
        out.text.push_str(self.model.node_names.short(&node.name.text()));
    }
}

/// The nodes by the value of a label, with sums.
fn groups(model: &Model, reserved: &Reserved, key: &str) -> Vec<LabelGroup> {
    let mut groups: BTreeMap<Name, LabelGroup> = BTreeMap::new();
    let without = Name::new("without the label");
    for (at, node) in model.nodes.iter().enumerate() {
        let value = labels(node).and_then(|labels| labels.get_str(key)).copied();
        let value = value.unwrap_or(without);
        let group = groups.entry(value).or_insert_with(|| LabelGroup {
            value: value.to_string(),
            nodes: Vec::new(),
            uses: ResourceUses::default(),
        });
        group.nodes.push(at);
        group.uses.add(ResourceUses::of(reserved, node));
    }
    groups.into_values().collect()
}

/// Nodes whose amounts are measured; of more, so many of them in even steps.
const MEASURED: usize = 500;

fn ratio_widths(model: &Model, reserved: &Reserved, groups: &[LabelGroup]) -> [usize; 3] {
    let step = model.nodes.len().div_ceil(MEASURED).max(1);
    let nodes = model.nodes.iter().step_by(step).map(|node| ResourceUses::of(reserved, node));
    let mut widest = [0; 3];
    for uses in nodes.chain(groups.iter().map(|group| group.uses)) {
        for (at, widest) in widest.iter_mut().enumerate() {
            *widest = (*widest).max(uses.0[at].ratio(DRAWN[at]).len());
        }
    }
    // Those between the steps may have more digits.
    if step > 1 { widest.map(|width| width + 1) } else { widest }
}

impl GridSource for NodesView<'_> {
    fn rows(&self) -> usize {
        if self.groups.is_empty() { self.model.nodes.len() } else { self.rows.len() }
    }

    fn columns(&self) -> usize {
        FIRST_TRAILING + self.extended.len() + usize::from(!self.model.nominated.is_empty()) + 1
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let names = usize::from(self.model.node_names.widest());
                let groups = self.groups.iter().map(|group| width(&group.value) + 9).max();
                let indent = if self.groups.is_empty() { 0 } else { 2 };
                GridColumn::fitted("node", NAMES, (names + indent).max(groups.unwrap_or(0)))
            }
            1 => GridColumn::text("state", 11),
            4 => GridColumn::number(DRAWN[2], self.ratios[2].max(4) as u16),
            2..4 => {
                let all = self.bar + self.percent_width() + 1 + self.ratios[column - FIRST_DRAWN];
                GridColumn::text(
                    DRAWN[column - FIRST_DRAWN],
                    u16::try_from(all).unwrap_or(u16::MAX),
                )
            }
            _ => match self.trailing(column) {
                TrailingColumn::Extended(resource) => resource.column(),
                TrailingColumn::Nominated => GridColumn::number("nominated", 9),
                TrailingColumn::Taints => GridColumn::prose_in(self, column, "taints", 16),
            },
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        match (column, self.node(row)) {
            (0, _) => self.draw_name(row, out),
            (1, Some(node)) => {
                let (text, scope) = state(node);
                out.set(text, scope);
            }
            (2..=4, _) => self.draw_use(row, column - FIRST_DRAWN, out),
            (FIRST_TRAILING.., node) => match (self.trailing(column), node) {
                (TrailingColumn::Extended(resource), _) => {
                    out.set(&resource.ratio(self.nodes_of(row)), Scope::Text);
                }
                (TrailingColumn::Nominated, _) if self.nominated(row) > 0 => {
                    out.set(&self.nominated(row).to_string(), Scope::LoadReserved);
                }
                (TrailingColumn::Taints, Some(node)) => {
                    out.set(&taints(node).join(", "), Scope::Text)
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        match (column, self.node(row)) {
            (0, Some(node)) => out.text.push_str(&node.name.text()),
            // Nobody looks for a bar.
            (2..=3, _) => {
                let of = self.uses(row).map(|uses| uses.0[column - FIRST_DRAWN]);
                out.text.extend(of.map(|of| self.amounts(of, column - FIRST_DRAWN)));
            }
            _ => self.cell(row, column, out),
        }
    }

    /// Resources are sorted by how full they are, as their bars show it.
    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        if column >= FIRST_TRAILING {
            let TrailingColumn::Extended(resource) = self.trailing(column) else { return None };
            return Some(resource.fullness(self.nodes_of(row)));
        }
        let drawn = column.checked_sub(FIRST_DRAWN)?;
        Some(self.uses(row)?.0[drawn].load().used)
    }

    fn has_break(&self, row: usize) -> bool {
        self.model.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        match self.group(row) {
            Some(group) => group.key(),
            None => self.node(row).map_or(0, |n| u64::from(n.id.0)),
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        self.node(row).is_none_or(|n| !is_open(n) || !taints(n).is_empty())
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        labels(self.node(row)?)
    }
}

impl View for NodesView<'_> {
    fn hidden_part(&self) -> Option<&'static str> {
        (!self.has_percent).then_some("percentages")
    }

    fn location(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("node:{}", self.node(row)?.name))
    }

    fn title(&self) -> String {
        let nodes = self.model.node_names.note();
        let by = self.shape.group_by.as_ref().map(|key| format!(" by {key}")).unwrap_or_default();
        let reserved = match self.model.nominated.is_empty() {
            true => String::new(),
            false => format!(", {HATCH} nominated"),
        };
        format!("Nodes{by}: requested of allocatable{reserved}{nodes}")
    }

    fn empty(&self) -> String {
        "The cluster has no node.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        if let Some(group) = self.group(row) {
            return group_lines(group);
        }
        let Some(node) = self.node(row) else { return Vec::new() };
        let (text, scope) = match is_open(node) {
            true => ("open", Scope::TextStrong),
            false => state(node),
        };
        let mut lines = vec![DetailLine::text(format!("{}: {text}", node.name)).scoped(scope)];
        lines.extend(resource_lines(&node.requested, &node.allocatable));
        lines.extend(nominated_lines(self.model, node));
        let taints = taints(node);
        if !taints.is_empty() {
            lines.push(DetailLine::field("taints", taints.join(", ")));
        }
        lines.extend(labels(node).map(|l| DetailLine::field("labels", shared::labels_text(l))));
        lines.extend(pod_lines(node));
        lines
    }

    fn node_of(&self, row: usize, _column: usize) -> Option<Name> {
        self.node(row).map(|node| node.name)
    }

    fn map_cell(&self, row: usize, map: usize) -> (&'static str, Scope) {
        let uses = self.uses(row).unwrap_or_default();
        shade(uses.0.get(map).map_or(0, |of| of.load().used))
    }

    fn map_legend(&self, map: usize) -> StyledParts {
        let name = DRAWN.get(map).copied().unwrap_or_default();
        let mut parts = vec![(format!("{name} requested: "), Scope::TextDim)];
        for (label, within) in
            [("<20%", 0), ("<40%", 200), ("<67%", 400), ("<90%", 700), ("more", 900)]
        {
            let (sign, scope) = shade(within);
            parts.extend([(sign.to_owned(), scope), (format!(" {label}  "), Scope::TextDim)]);
        }
        parts
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        self.group(row).map_or(OnEnter::Describe, |group| OnEnter::Fold(group.key()))
    }

    /// The cycle that last put a pod there.
    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.model.start_of_last_cycle_on(self.node(row)?.name)
    }
}

/// Where a fuller shade begins, in thousandths; the upper ones are where bars change their color.
const EDGES: [i64; SHADES.len() - 1] = [200, 400, 667, 900];

/// A cell of a map for something that is so full, in thousandths.
fn shade(thousandths: i64) -> (&'static str, Scope) {
    let step = EDGES.iter().take_while(|edge| thousandths >= **edge).count();
    (SHADES[step], Scope::of_load(thousandths))
}

fn group_lines(group: &LabelGroup) -> Vec<DetailLine> {
    let mut lines =
        vec![DetailLine::heading(format!("{}: {}", group.value, count(group.nodes.len(), "node")))];
    for (name, of) in DRAWN.iter().zip(group.uses.0) {
        let show = |value| amount::of(name, value);
        let free = of.allocatable.saturating_sub(of.requested);
        let text = format!(
            "{} requested of {}, {} free",
            show(of.requested),
            show(of.allocatable),
            show(free)
        );
        lines.push(DetailLine::field(name, text));
    }
    lines.push(DetailLine::key("Enter", "shows its nodes, or folds them; O shows those of all"));
    lines
}

/// Each resource: requested, allocatable, free.
fn resource_lines(used: &Resource, all: &Resource) -> Vec<DetailLine> {
    let mut lines = Vec::new();
    for (name, allocatable) in amount::parts(all) {
        let requested = used.amount(name.into());
        let show = |amount| amount::of(name, amount);
        let free = show(allocatable.saturating_sub(requested));
        let text = format!("{} requested of {}, {free} free", show(requested), show(allocatable));
        lines.push(DetailLine::field(name, text));
    }
    lines
}

/// The nominated pods, and what that leaves to pods of a lower priority.
fn nominated_lines(model: &Model, node: &NodeInfo) -> Vec<DetailLine> {
    let mut free = node.allocatable.clone();
    free.accumulate(&node.requested, -1);
    let mut lines = Vec::new();
    for pod in model.nominated_to(node.name) {
        let request = &pod.resource.resource;
        free.accumulate(request, -1);
        let (key, priority) = (pod.key(), pod.priority());
        let text = format!("{key} (priority {priority}): {} reserved", amount::resources(request));
        lines.push(DetailLine::field("nominated", text).scoped(VerdictSign::Wait.scope()));
    }
    if !lines.is_empty() {
        let text = format!("{} for pods of a lower priority", amount::resources(&free));
        lines.push(DetailLine::field("then free", text));
    }
    lines
}

/// Pods whose requests are listed.
const LISTED: usize = 20;

/// How many pods there are, and the largest with what they request.
fn pod_lines(node: &NodeInfo) -> Vec<DetailLine> {
    let mut pods: Vec<&Arc<PodInfo>> = node.pods.iter().collect();
    pods.sort_by_key(|pod| {
        let request = &pod.resource.resource;
        (Reverse((request.milli_cpu, request.memory)), pod.key())
    });
    let more = pods.len().saturating_sub(LISTED);
    pods.truncate(LISTED);
    let names: Vec<String> = pods.iter().map(|pod| pod.key().to_string()).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let of = format!("{} of {}", node.pods.len(), node.allocatable.allowed_pods);
    let mut lines = vec![DetailLine::field("pods", of)];
    lines.extend(names.iter().zip(&pods).map(|(name, pod)| {
        let blank = " ".repeat(widest - width(name));
        let request = amount::resources(&pod.resource.resource);
        DetailLine::text(format!("  {name}{blank}  {request}"))
    }));
    lines.extend((more > 0).then(|| DetailLine::text(format!("  and {more} more"))));
    lines
}
