//! The views, one file each: what a row is, what its cells say, and everything about the selected one.
//!
//! All views have the same shape, rows above (or left) and the details of the selected row below (or
//! right), so that every key means the same in each of them.

mod breakpoints;
mod configuration;
mod cycle;
#[cfg(test)]
mod drawn_tests;
pub(super) mod events;
mod filter;
mod funnel;
mod heat;
mod messages;
mod nodes;
mod outline;
mod pods;
mod preemption;
mod preemption_bars;
mod queues;
mod scores;
mod shape;
#[cfg(test)]
mod tests;
mod timeline;
mod times;
pub(super) mod verdict;
mod waiting;

use super::app::{Messages, Request, decision_lines};
use super::lines::Line;
use super::model::{Model, Position};
use super::theme::Scope;
use super::widget::bar::Parts;
use super::widget::grid::GridSource;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

pub use shape::Shape;

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

    /// A drawing of the whole above the rows, in so many columns; line by line.
    fn banner(&self, _width: u16) -> Vec<Parts> {
        Vec::new()
    }

    /// Everything about a cell.
    fn detail(&self, row: usize, column: usize) -> Vec<Line>;

    /// What remains when only the rows that matter most are shown.
    fn failures(&self) -> &'static str {
        "failures only"
    }

    /// Row, and where it matters column, of the debugger's position.
    fn current(&self) -> Option<(usize, Option<usize>)> {
        None
    }

    /// The node that a cell stands for.
    fn node_of(&self, _row: usize, _column: usize) -> Option<Symbol> {
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
    fn map_legend(&self, _map: usize) -> Parts {
        Vec::new()
    }

    /// The moment of the recording that a cell stands for.
    fn moment(&self, _row: usize, _column: usize) -> Option<Position> {
        None
    }

    /// Where one can run to from a cell.
    fn run_to(&self, row: usize, column: usize) -> Option<Target> {
        self.moment(row, column).map(Target::Moment)
    }

    /// The place that a breakpoint on a cell sits at, as it is written.
    fn place(&self, _row: usize, _column: usize) -> Option<String> {
        None
    }

    /// Where Enter leads.
    fn open(&self, _row: usize, _column: usize) -> Open {
        Open::Describe
    }
}

/// What one can run to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A moment of the recording.
    Moment(Position),
    /// The next cycle of a pod.
    NextOf(NamespacedName),
}

/// Where Enter leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A window with everything about the row.
    Describe,
    /// Another view.
    View(ViewId),
    /// A moment of the recording, shown in a view.
    Moment(Position, ViewId),
    /// Something that the session does.
    Ask(Request),
    /// The command line, with this typed already.
    Type(String),
    /// The same view with what belongs to the row folded or unfolded: the row's key.
    Fold(u64),
}

/// A full-screen view, chosen by its digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViewId {
    /// The cycle at the debugger's position: extension points and plugins.
    #[default]
    Cycle,
    /// All recorded cycles.
    Timeline,
    /// Active, backoff, unschedulable, gated and in-flight pods.
    Queues,
    /// Node × plugin.
    Filter,
    /// Node × score.
    Scores,
    /// Nodes of the cluster.
    Nodes,
    /// Pods of the cluster.
    Pods,
    /// Pods held at Permit.
    Waiting,
    /// Candidates and victims.
    Preemption,
    /// Queue moves and hints.
    Events,
    /// Breakpoints and watches.
    Breakpoints,
    /// The scheduler's configuration.
    Configuration,
    /// What was said.
    Messages,
    /// Why a pod is where it is.
    Why,
    /// The pod groups.
    Groups,
    /// What plugins take.
    Times,
}

impl ViewId {
    /// All views by digit.
    pub const ALL: [ViewId; 10] = [
        ViewId::Cycle,
        ViewId::Timeline,
        ViewId::Queues,
        ViewId::Filter,
        ViewId::Scores,
        ViewId::Nodes,
        ViewId::Pods,
        ViewId::Waiting,
        ViewId::Preemption,
        ViewId::Events,
    ];

    /// The views without a digit.
    pub const OTHERS: [ViewId; 6] = [
        ViewId::Breakpoints,
        ViewId::Configuration,
        ViewId::Times,
        ViewId::Messages,
        ViewId::Why,
        ViewId::Groups,
    ];

    /// All views: those with a digit first.
    pub fn every() -> impl Iterator<Item = ViewId> + Clone {
        ViewId::ALL.into_iter().chain(ViewId::OTHERS)
    }

    /// The keys that show it, as they stand beside its name: a digit, or the view's own.
    pub fn keys(self) -> &'static str {
        match self {
            ViewId::Cycle => "0",
            ViewId::Timeline => "1",
            ViewId::Queues => "2",
            ViewId::Filter => "3",
            ViewId::Scores => "4",
            ViewId::Nodes => "5",
            ViewId::Pods => "6",
            ViewId::Waiting => "7",
            ViewId::Preemption => "8",
            ViewId::Events => "9",
            ViewId::Breakpoints => "B",
            ViewId::Configuration => "gc",
            ViewId::Messages => "M",
            ViewId::Why => "gw",
            ViewId::Groups => "gp",
            ViewId::Times => "gt",
        }
    }

    /// Whether it shows the cluster, as it is at the debugger's position.
    pub fn shows_cluster(self) -> bool {
        matches!(
            self,
            ViewId::Queues
                | ViewId::Nodes
                | ViewId::Pods
                | ViewId::Waiting
                | ViewId::Configuration
                | ViewId::Groups
                | ViewId::Breakpoints
        )
    }

    /// Its name in the first line.
    pub fn title(self) -> &'static str {
        match self {
            ViewId::Cycle => "Cycle",
            ViewId::Timeline => "Timeline",
            ViewId::Queues => "Queues",
            ViewId::Filter => "Filter",
            ViewId::Scores => "Scores",
            ViewId::Nodes => "Nodes",
            ViewId::Pods => "Pods",
            ViewId::Waiting => "Waiting",
            ViewId::Preemption => "Preemption",
            ViewId::Events => "Events",
            ViewId::Breakpoints => "Breakpoints",
            ViewId::Configuration => "Configuration",
            ViewId::Messages => "Messages",
            ViewId::Why => "Why",
            ViewId::Groups => "Groups",
            ViewId::Times => "Times",
        }
    }
}

/// The rows of a view over `model` and what was `said` so far, in `room` terminal columns, folded and
/// grouped as `shape` says.
pub fn source<'a>(
    view: ViewId,
    model: &'a Model,
    said: &Messages,
    room: u16,
    shape: Shape,
) -> Box<dyn View + 'a> {
    if let Some(map) = shape.map.filter(|map| *map < maps(view).len()) {
        let rows = source(view, model, said, room, shape.plain());
        return Box::new(heat::HeatView::new(model, rows, map, room));
    }
    match view {
        ViewId::Cycle => Box::new(cycle::CycleView::new(model, &shape)),
        ViewId::Timeline => Box::new(timeline::TimelineView(model)),
        ViewId::Queues => Box::new(queues::QueuesView(model)),
        ViewId::Filter => Box::new(filter::FilterView::new(model, room, shape)),
        ViewId::Scores => Box::new(scores::ScoresView::new(model, &shape, room)),
        ViewId::Nodes => Box::new(nodes::NodesView::new(model, shape, room)),
        ViewId::Pods => Box::new(pods::PodsView(model)),
        ViewId::Waiting => Box::new(waiting::WaitingView(model)),
        ViewId::Preemption => Box::new(preemption::PreemptionView::new(model)),
        ViewId::Events => Box::new(events::EventsView(model)),
        ViewId::Breakpoints => Box::new(breakpoints::BreakpointsView(model)),
        ViewId::Configuration => Box::new(configuration::ConfigurationView(model)),
        ViewId::Why | ViewId::Groups => Box::new(outline::OutlineView::new(model, view)),
        ViewId::Times => Box::new(times::TimesView(model)),
        ViewId::Messages => Box::new(messages::MessagesView(said.clone())),
    }
}

/// What the live cluster's scheduler decided beside a cycle of ours.
fn beside(model: &Model, cycle: u64) -> Vec<Line> {
    model.decision_beside(cycle).map(decision_lines).unwrap_or_default()
}

pub(super) use nodes::taints;

/// The names of a view's heat maps.
pub fn maps(view: ViewId) -> &'static [&'static str] {
    match view {
        ViewId::Nodes => &["cpu", "memory", "pods"],
        ViewId::Filter => &["verdict"],
        ViewId::Scores => &["score"],
        _ => &[],
    }
}

/// The key of a node label that has a short name; without any name, that of the zone.
pub fn label_key(name: &str) -> &str {
    match name {
        "" | "zone" => "topology.kubernetes.io/zone",
        "region" => "topology.kubernetes.io/region",
        "type" => "node.kubernetes.io/instance-type",
        "pool" => "node.kubernetes.io/pool",
        "arch" => "kubernetes.io/arch",
        key => key,
    }
}

/// The view that encloses another, where Esc leads.
pub fn enclosing(view: ViewId) -> Option<ViewId> {
    match view {
        ViewId::Timeline => None,
        ViewId::Filter | ViewId::Scores | ViewId::Preemption => Some(ViewId::Cycle),
        _ => Some(ViewId::Timeline),
    }
}
