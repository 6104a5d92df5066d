//! The views: a row of the table below and a file each, which says what a row is, what its cells show, and
//! everything about the selected one.
//!
//! All views have the same shape, rows above (or left) and the details of the selected row below (or
//! right), so that every key means the same in each of them.

mod breakpoints;
mod configuration;
mod cycle;
#[cfg(test)]
mod drawn_tests;
mod events;
mod extended;
mod filter;
mod filter_counts;
mod funnel;
mod heat;
#[cfg(test)]
mod look_tests;
mod messages;
mod nodes;
mod outline;
mod pods;
mod preemption;
mod preemption_bars;
mod queues;
mod resource_use;
#[cfg(test)]
mod room_tests;
mod scores;
mod shape;
mod shared;
#[cfg(test)]
mod tests;
mod timeline;
mod times;
pub(super) mod verdict;
mod waiting;

use super::command::Command;
use super::lines::DetailLine;
use super::messages::Messages;
use super::model::{CyclePosition, Model, ModelPart, OutlineKind};
use super::theme::Scope;
use super::widget::bar::StyledParts;
use super::widget::grid::GridSource;
use super::widget::tabs::{Tab, Tabs};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_live::{Agreement, ComparedDecision};

pub use super::view_id::ViewId;
pub use shape::ViewShape;

/// A view: rows, and what is to be said about them.
pub trait View: GridSource {
    /// Title above the rows.
    fn title(&self) -> String;
    /// What to say when there is no row, with what to do about it.
    fn empty(&self) -> String;
    /// What is folded, to stand behind the title.
    fn note(&self) -> Option<String> {
        None
    }

    /// Whether cells are dimmed because they come after the step in which the debugger stands.
    fn dims_future(&self) -> bool {
        false
    }

    /// What cells leave out on a narrow terminal.
    fn hidden_part(&self) -> Option<&'static str> {
        None
    }

    /// How much there is, where a row is not one thing.
    fn extent(&self) -> Option<String> {
        None
    }

    /// A drawing of the whole above the rows, in so many columns; line by line.
    fn banner(&self, _width: u16) -> Vec<StyledParts> {
        Vec::new()
    }

    /// Everything about a cell.
    fn detail(&self, row: usize, column: usize) -> Vec<DetailLine>;

    /// What the details say while there is no row.
    fn detail_without_rows(&self) -> Vec<DetailLine> {
        Vec::new()
    }

    /// What remains when only the rows that matter most are shown.
    fn failures(&self) -> &'static str {
        "failures only"
    }

    /// Row, and where it matters column, of the debugger's position.
    fn current(&self) -> Option<(usize, Option<usize>)> {
        None
    }

    /// The node that a cell stands for.
    fn node_of(&self, _row: usize, _column: usize) -> Option<Name> {
        None
    }

    /// The plugin whose scores a column shows.
    fn plugin_of(&self, _column: usize) -> Option<Symbol> {
        None
    }

    /// A row as one cell of the view's heat map with that number.
    fn map_cell(&self, _row: usize, _map: usize) -> (&'static str, Scope) {
        (" ", Scope::Text)
    }

    /// What the signs of that heat map mean.
    fn map_legend(&self, _map: usize) -> StyledParts {
        Vec::new()
    }

    /// The moment of the recording that a cell stands for.
    fn moment(&self, _row: usize, _column: usize) -> Option<CyclePosition> {
        None
    }

    /// Where one can run to from a cell.
    fn run_to(&self, row: usize, column: usize) -> Option<RunTarget> {
        self.moment(row, column).map(RunTarget::Position)
    }

    /// The location of a breakpoint on a cell, as `:break` takes it.
    fn location(&self, _row: usize, _column: usize) -> Option<String> {
        None
    }

    /// What Enter does at a row and column.
    fn open(&self, _row: usize, _column: usize) -> OnEnter {
        OnEnter::Describe
    }

    /// Where Enter leads while there is no row.
    fn open_empty(&self) -> Option<OnEnter> {
        None
    }
}

/// What one can run to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTarget {
    /// A position in the recording.
    Position(CyclePosition),
    /// The next cycle of a pod.
    NextCycleOf(NamespacedName),
}

/// What Enter does at a cell, as [`View::open`] answers.
#[derive(Clone, Debug, PartialEq)]
pub enum OnEnter {
    /// A window with everything about the row.
    Describe,
    View(ViewId),
    /// A position in the recording, inspected in a view.
    Inspect(CyclePosition, ViewId),
    /// A command for the session.
    Run(Command),
    /// The command line, with this typed already.
    Prompt(String),
    /// The same view with what belongs to the row folded or unfolded: the row's key.
    Fold(u64),
}

/// What the rows of a view are made of.
#[derive(Clone)]
pub struct ViewContext<'a> {
    pub model: &'a Model,
    /// The messages so far.
    pub messages: Messages,
    /// Terminal columns that the view may fill.
    pub width: u16,
    /// Lines that its rows get at least, with what stands above them.
    pub height: u16,
    /// What is folded, grouped, or drawn as a map.
    pub shape: ViewShape,
}

/// A row of the table of views. Tabs, keys, `:` commands, help and the reference are made from it.
pub struct ViewSpec {
    /// Its name on the command line and in key overrides.
    pub name: &'static str,
    /// The keys by default; the user's keymap can replace them.
    pub keys: &'static [&'static str],
    /// Its name on the first line.
    pub title: &'static str,
    /// What it draws of the model, besides the recorded cycles.
    pub part: ModelPart,
    /// The view that encloses it, where Esc leads.
    pub enclosing: Option<ViewId>,
    /// Makes the rows for the current model.
    rows: for<'a> fn(ViewContext<'a>) -> Box<dyn View + 'a>,
    /// One line of help.
    pub help: &'static str,
}

/// Makes the table of views, in the order of [`ViewId`].
macro_rules! views {
    ($($id:ident { $name:literal $key:literal $title:literal $part:ident in $enclosing:ident, $rows:expr, $help:literal })*) => {
        /// The table of views: those with a digit first.
        pub const VIEWS: &[(ViewId, ViewSpec)] = &[
            $((ViewId::$id, ViewSpec {
                name: $name,
                keys: &[$key],
                title: $title,
                part: ModelPart::$part,
                enclosing: enclosing!($enclosing),
                rows: $rows,
                help: $help,
            }),)*
        ];

        const _: () = {
            let mut row = 0;
            while row < VIEWS.len() {
                assert!(VIEWS[row].0 as usize == row, "the table has another order");
                row += 1;
            }
        };

        /// The row of a view; without one for each this does not compile.
        const fn row(view: ViewId) -> usize {
            match view {
                $(ViewId::$id => ViewId::$id as usize,)*
            }
        }
    };
}

/// `nothing`, or the name of a view.
macro_rules! enclosing {
    (nothing) => {
        None
    };
    ($id:ident) => {
        Some(ViewId::$id)
    };
}

views! {
    Cycle { "overview" "0" "Cycle" Recording in Timeline, |cx| Box::new(cycle::CycleView::new(cx.model, &cx.shape)),
        "The cycle: every extension point with each plugin's status" }
    Timeline { "timeline" "1" "Timeline" Recording in nothing, |cx| Box::new(timeline::TimelineView(cx.model)),
        "All recorded cycles; Enter inspects one, t goes there" }
    Queues { "queues" "2" "Queues" Queues in Timeline, |cx| Box::new(queues::QueuesView(cx.model)),
        "The scheduling queues, with reasons and time left" }
    Filter { "filters" "3" "Filter" CycleNodes in Cycle, |cx| Box::new(filter::FilterView::new(cx.model, cx.width, cx.shape)),
        "The filter matrix: every plugin on every node" }
    Scores { "scores" "4" "Scores" CycleNodes in Cycle, |cx| Box::new(scores::ScoresView::new(cx.model, &cx.shape, cx.width)),
        "The scores: raw, normalized, times weight, total, rank" }
    Nodes { "nodes" "5" "Nodes" Nodes in Timeline, |cx| Box::new(nodes::NodesView::new(cx.model, cx.shape, cx.width)),
        "The nodes with what is free on them" }
    Pods { "pods" "6" "Pods" Pods in Timeline, |cx| Box::new(pods::PodsView(cx.model)),
        "All pods of the cluster" }
    Waiting { "waiting" "7" "Waiting" Nodes in Timeline, |cx| Box::new(waiting::WaitingView(cx.model)),
        "Pods held at Permit, to allow or reject" }
    Preemption { "preemption" "8" "Preemption" Preemption in Cycle, |cx| Box::new(preemption::PreemptionView::new(cx.model, cx.shape)),
        "Preemption: candidate nodes, victims, budgets" }
    Events { "events" "9" "Events" Recording in Timeline, |cx| Box::new(events::EventsView(cx.model)),
        "Queue moves and each queueing hint's answer" }
    Breakpoints { "breakpoints" "B" "Breakpoints" Breakpoints in Timeline, |cx| Box::new(breakpoints::BreakpointsView(cx.model)),
        "Breakpoints and watches, with their hits and values" }
    Configuration { "configuration" "g c" "Configuration" Configuration in Timeline, |cx| Box::new(configuration::ConfigurationView(cx.model)),
        "Profiles, plugins in order, weights, arguments, extenders, gates" }
    Times { "times" "g t" "Times" Times in Timeline, |cx| Box::new(times::TimesView(cx.model)),
        "Time spent by plugin and extension point, nodes rejected by each" }
    Messages { "messages" "M" "Messages" Recording in Timeline, |cx| Box::new(messages::MessagesView(cx.messages)),
        "All messages: notices, warnings, errors, how often and when" }
    Why { "why-view" "g w" "Why" Recording in Timeline, |cx| Box::new(outline::OutlineView::new(cx.model, OutlineKind::Why)),
        "Why, as a view with folds; Enter goes to the node or cycle" }
    Groups { "groups" "g p" "Groups" Groups in Timeline, |cx| Box::new(outline::OutlineView::new(cx.model, OutlineKind::Groups)),
        "Pod groups: members, quorum, and the placements that were tried" }
}

impl ViewId {
    /// All views, in the table's order.
    pub fn all() -> impl Iterator<Item = ViewId> + Clone {
        VIEWS.iter().map(|(id, _)| *id)
    }

    /// The views with a digit, which are always on the first line.
    pub fn with_digit() -> impl Iterator<Item = ViewId> + Clone {
        ViewId::all().filter(|view| view.key().parse::<u8>().is_ok())
    }

    /// Its row of the table.
    pub fn spec(self) -> &'static ViewSpec {
        &VIEWS[row(self)].1
    }

    /// Its name on the first line.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// Its name in fewer letters, so that all with a digit fit into 80 columns.
    pub fn short(self) -> &'static str {
        match self {
            ViewId::Timeline => "Time",
            ViewId::Queues => "Queue",
            ViewId::Scores => "Score",
            ViewId::Waiting => "Wait",
            ViewId::Preemption => "Preempt",
            ViewId::Events => "Event",
            other => other.title(),
        }
    }

    /// The key beside its name: a digit, or `gc`.
    pub fn key(self) -> String {
        self.spec().keys.concat().replace(' ', "")
    }

    /// The rows for the current model.
    pub fn rows(self, context: ViewContext<'_>) -> Box<dyn View + '_> {
        if let Some(map) = context.shape.map.filter(|map| *map < self.maps().len()) {
            let (model, room) = (context.model, (context.width, context.height));
            let plain = ViewContext { shape: context.shape.plain(), ..context };
            return Box::new(heat::HeatView::new(model, (self.spec().rows)(plain), map, room));
        }
        (self.spec().rows)(context)
    }
}

impl ViewId {
    /// The names of its heat maps.
    pub fn maps(self) -> &'static [&'static str] {
        match self {
            ViewId::Nodes => &["cpu", "memory", "pods"],
            ViewId::Filter => &["verdict"],
            ViewId::Scores => &["score"],
            _ => &[],
        }
    }
}

/// The views on the first line: those with a digit, and the active one.
pub fn tab_views(active: ViewId) -> Vec<ViewId> {
    let other = Some(active).filter(|active| !ViewId::with_digit().any(|view| view == *active));
    ViewId::with_digit().chain(other).collect()
}

/// The first line's tabs while a view is active.
pub fn tabs(active: ViewId) -> Tabs {
    let views = tab_views(active);
    let at = views.iter().position(|view| *view == active).unwrap_or_default();
    let tab = |view: &ViewId| Tab { key: view.key(), title: view.title(), short: view.short() };
    Tabs { tabs: views.iter().map(tab).collect(), active: at }
}

/// A decision of the cluster's scheduler, and ours.
pub fn decision_lines(decision: &ComparedDecision) -> Vec<DetailLine> {
    let scope = match decision.verdict {
        Agreement::Same => Scope::VerdictPass,
        Agreement::Tie | Agreement::Opaque => Scope::VerdictWait,
        Agreement::Different => Scope::VerdictFail,
        Agreement::Untried | Agreement::Incomparable => Scope::VerdictSkip,
    };
    let cycle = decision.cycle.map(|number| format!(" (cycle {number})")).unwrap_or_default();
    let heading = format!("{}: {}", decision.pod, decision.verdict.as_str());
    let mut lines = vec![
        DetailLine::text(heading).scoped(scope),
        DetailLine::field("  the cluster", &decision.theirs),
    ];
    if decision.cycle.is_some() {
        lines.push(DetailLine::field("  ours", format!("{}{cycle}", decision.ours)));
    }
    if !decision.reason.is_empty() {
        lines.push(DetailLine::field("  where", &decision.reason));
    }
    if let Some(learned) = decision.learned.as_ref().filter(|learned| learned.is_spoken()) {
        let said = learned.lines().into_iter();
        lines.extend(said.map(|line| DetailLine::field("  learned", line)));
    }
    lines
}

/// What the live cluster's scheduler decided in place of a cycle of ours.
fn live_decision_lines(model: &Model, cycle: u64) -> Vec<DetailLine> {
    model.cluster_decision(cycle).map(decision_lines).unwrap_or_default()
}

pub(super) use nodes::taints;
pub(super) use timeline::strip;

/// `, evaluated 581 of 1000 nodes`, if a cycle did not evaluate all of them.
fn evaluated(cycle: &CycleRecord) -> String {
    match (cycle.evaluated_nodes, cycle.nodes.order.len()) {
        (evaluated, all) if evaluated < all => format!(", evaluated {evaluated} of {all}"),
        _ => String::new(),
    }
}

/// Short names of node labels, each with the label's key.
pub const LABEL_NAMES: [(&str, &str); 5] = [
    ("zone", "topology.kubernetes.io/zone"),
    ("region", "topology.kubernetes.io/region"),
    ("type", "node.kubernetes.io/instance-type"),
    ("pool", "node.kubernetes.io/pool"),
    ("arch", "kubernetes.io/arch"),
];

/// The key of a node label that has a short name; without any name, that of the zone.
pub fn label_key(name: &str) -> &str {
    let name = if name.is_empty() { "zone" } else { name };
    LABEL_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, key)| key)
}

/// The plugin whose scores differ the most between the chosen node and the next best; the one that
/// is tried already, if one is.
pub fn decisive_plugin(model: &Model) -> Option<kubestep_api::intern::Symbol> {
    if let Some((tried, _)) = model.weights.last() {
        return Some(*tried);
    }
    scores::ScoresView::new(model, &ViewShape::default(), u16::MAX).decisive_plugin()
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (at, (id, _)) in VIEWS.iter().enumerate() {
            assert_eq!(*id as usize, at);
        }
        assert_eq!(ViewId::with_digit().map(ViewId::key).collect::<String>(), "0123456789");
    }
}
