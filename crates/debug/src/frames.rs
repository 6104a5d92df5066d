//! Positions within one stop of the timeline, and how steps move between them.
//!
//! A stop is a tree: a cycle ▸ its extension points ▸ plugins ▸ nodes. Before the points stands
//! the move by which its pod left the queue, after them the queue moves, hints and events that
//! followed. A stop that is no cycle has only those. A step *into* goes to the next frame in
//! reading order, whatever its depth; *over* to the next at most as deep as this one; *out* to
//! the next that is less deep. Backward is the same in reverse.
//!
//! The cluster is shown as it is once the frame has run: the stop as a whole has run to its end,
//! a plugin or node stands for its extension point.

use std::ops::Range;

use crate::trace::EntryId;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::CycleRecord;

/// A frame within a stop, from the outside in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// A queue move, hint or event beside the cycle; the fields below are `None` then.
    pub entry: Option<EntryId>,
    /// The extension point; `None`: the cycle as a whole.
    pub point: Option<ExtensionPoint>,
    /// The plugin at that point.
    pub plugin: Option<Symbol>,
    /// The node the plugin looks at.
    pub node: Option<NodeId>,
}

/// How deep a step may go: the frames that a step over or out may stop at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// Whole stops: cycles, and other things that were done.
    Cycle,
    /// Extension points; queue moves, hints and events.
    Point,
    /// Each plugin of an extension point.
    Plugin,
    /// Each node of a plugin at Filter or Score.
    Node,
}

/// What there is to step through at one stop.
#[derive(Clone, Debug, Default)]
pub struct Tree<'a> {
    /// The cycle, if the stop is one.
    pub record: Option<&'a CycleRecord>,
    /// Places in the history of what happened; the cycle itself is one of them.
    pub entries: Range<u32>,
    /// Which of them is the cycle.
    pub cycle: Option<EntryId>,
}

impl Position {
    /// The start of a stop.
    pub const START: Position = Position { entry: None, point: None, plugin: None, node: None };

    /// A frame of a cycle.
    pub fn new(point: ExtensionPoint, plugin: Option<Symbol>, node: Option<NodeId>) -> Position {
        Position { entry: None, point: Some(point), plugin, node }
    }

    /// A queue move, hint or event beside the cycle.
    pub fn of_entry(entry: EntryId) -> Position {
        Position { entry: Some(entry), ..Position::START }
    }

    /// How deep the frame is.
    pub fn depth(&self) -> Depth {
        match (self.point, self.plugin, self.node) {
            (None, _, _) if self.entry.is_some() => Depth::Point,
            (None, _, _) => Depth::Cycle,
            (_, None, _) => Depth::Point,
            (_, _, None) => Depth::Plugin,
            _ => Depth::Node,
        }
    }

    /// The frame around this one; the cycle is its own.
    pub fn parent(&self) -> Position {
        match self.depth() {
            Depth::Node => Position { node: None, ..*self },
            Depth::Plugin => Position { plugin: None, ..*self },
            _ => Position::START,
        }
    }

    /// The next frame in reading order that is at most as deep as `deepest`; `None` at the
    /// end of the cycle.
    pub fn next(&self, tree: &Tree, deepest: Depth) -> Option<Position> {
        if self.depth() < deepest
            && let Some(first) = children(tree, *self).first()
        {
            return Some(*first);
        }
        let mut frame = *self;
        while frame.depth() > Depth::Cycle {
            let siblings = children(tree, frame.parent());
            let next = siblings.iter().position(|other| *other == frame).map(|at| at + 1);
            if frame.depth() <= deepest
                && let Some(next) = next.and_then(|at| siblings.get(at))
            {
                return Some(*next);
            }
            frame = frame.parent();
        }
        None
    }

    /// The frame before this one in reading order that is at most as deep as `deepest`;
    /// `None` at the start of the cycle.
    pub fn previous(&self, tree: &Tree, deepest: Depth) -> Option<Position> {
        if self.depth() == Depth::Cycle {
            return None;
        }
        if self.depth() > deepest {
            let mut frame = self.parent();
            while frame.depth() > deepest {
                frame = frame.parent();
            }
            return Some(frame);
        }
        let siblings = children(tree, self.parent());
        let at = siblings.iter().position(|other| other == self).unwrap_or(0);
        match at.checked_sub(1).and_then(|at| siblings.get(at)) {
            Some(before) => Some(last_within(tree, *before, deepest)),
            None => Some(self.parent()),
        }
    }

    /// The last frame of a cycle at most as deep as `deepest`.
    pub fn last(tree: &Tree, deepest: Depth) -> Position {
        last_within(tree, Position::START, deepest)
    }
}

/// The last frame in reading order within `frame`, itself if it has none.
fn last_within(tree: &Tree, frame: Position, deepest: Depth) -> Position {
    let mut frame = frame;
    while frame.depth() < deepest {
        match children(tree, frame).last() {
            Some(last) => frame = *last,
            None => break,
        }
    }
    frame
}

/// The frames directly within `frame`, in reading order.
pub fn children(tree: &Tree, frame: Position) -> Vec<Position> {
    let Some(record) = tree.record else {
        return match frame.depth() {
            Depth::Cycle => entries(tree.entries.clone()).collect(),
            _ => Vec::new(),
        };
    };
    let Range { start, end } = tree.entries;
    let cycle = tree.cycle.map_or(start, |id| id.0);
    let after = tree.cycle.map_or(start, |id| id.0 + 1);
    match frame.depth() {
        Depth::Cycle => entries(start..cycle)
            .chain(points(record).into_iter().map(|point| Position::new(point, None, None)))
            .chain(entries(after..end))
            .collect(),
        Depth::Point => frame
            .point
            .map(|point| plugins(record, point))
            .unwrap_or_default()
            .into_iter()
            .map(|plugin| Position { plugin: Some(plugin), ..frame })
            .collect(),
        Depth::Plugin => nodes(record, frame)
            .into_iter()
            .map(|node| Position { node: Some(node), ..frame })
            .collect(),
        Depth::Node => Vec::new(),
    }
}

/// Where a cycle begins, before anything is decided: its first point, itself if it has none.
pub fn beginning(record: &CycleRecord) -> Position {
    points(record).first().map_or(Position::START, |point| Position::new(*point, None, None))
}

/// The frame of the last plugin of a cycle, itself if none ran.
pub(crate) fn last_plugin(record: &CycleRecord) -> Position {
    let tree = Tree { record: Some(record), ..Tree::default() };
    last_within(&tree, Position::START, Depth::Plugin)
}

fn entries(ids: Range<u32>) -> impl Iterator<Item = Position> {
    ids.map(|id| Position::of_entry(EntryId(id)))
}

/// The extension points that a cycle reached, in order.
pub fn points(record: &CycleRecord) -> Vec<ExtensionPoint> {
    ExtensionPoint::ALL.into_iter().filter(|point| reaches(record, *point)).collect()
}

/// Whether plugins ran at a point.
pub fn reaches(record: &CycleRecord, point: ExtensionPoint) -> bool {
    match point {
        ExtensionPoint::Filter => !record.filter.plugins.is_empty(),
        ExtensionPoint::Score => !record.score.plugins.is_empty(),
        point => !record.answers(point).is_empty(),
    }
}

/// The plugins that ran at a point, in order.
pub fn plugins(record: &CycleRecord, point: ExtensionPoint) -> Vec<Symbol> {
    match point {
        ExtensionPoint::Filter => {
            record.filter.plugins.iter().map(|column| column.plugin).collect()
        }
        ExtensionPoint::Score => record.score.plugins.iter().map(|column| column.plugin).collect(),
        point => record.answers(point).iter().map(|answer| answer.plugin).collect(),
    }
}

/// The nodes that a plugin looked at: at Filter those evaluated, at Score those feasible.
fn nodes(record: &CycleRecord, frame: Position) -> Vec<NodeId> {
    match frame.point {
        Some(ExtensionPoint::Filter) if !skipped(record, frame.plugin) => {
            record.filter.evaluated.to_vec()
        }
        Some(ExtensionPoint::Score) => record.feasible.to_vec(),
        _ => Vec::new(),
    }
}

/// Whether a filter plugin had nothing to say in this cycle.
fn skipped(record: &CycleRecord, plugin: Option<Symbol>) -> bool {
    plugin.is_none_or(|plugin| {
        let answer = record.pre_filter.iter().find(|answer| answer.plugin == plugin);
        answer.is_some_and(|answer| answer.status.is_skip())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::record::PluginStatus;
    use kubestep_framework::record::column::Column;
    use kubestep_framework::record::{FilterColumn, FilterRecord, VerdictId};
    use kubestep_framework::status::Status;

    fn record() -> CycleRecord {
        let column = |plugin: &str| FilterColumn {
            plugin: plugin.into(),
            verdicts: Column::filled(VerdictId::PASS, 2),
        };
        CycleRecord {
            pre_filter: vec![
                PluginStatus::new("A".into(), Status::SUCCESS),
                PluginStatus::new("B".into(), Status::skip()),
            ]
            .into(),
            filter: FilterRecord {
                plugins: vec![column("A"), column("B")].into(),
                evaluated: [NodeId(1), NodeId(0)].into(),
                ..FilterRecord::default()
            },
            bind: vec![PluginStatus::new("C".into(), Status::SUCCESS)].into(),
            ..CycleRecord::default()
        }
    }

    fn tree(record: &CycleRecord) -> Tree<'_> {
        Tree { record: Some(record), entries: 6..10, cycle: Some(EntryId(7)) }
    }

    fn show(frame: &Position) -> String {
        let mut text = String::from("cycle");
        if let Some(entry) = frame.entry {
            text = format!("entry {}", entry.0);
        }
        if let Some(point) = frame.point {
            text = format!("{point}");
        }
        if let Some(plugin) = frame.plugin {
            text = format!("{text}/{plugin}");
        }
        if let Some(node) = frame.node {
            text = format!("{text}/{}", node.0);
        }
        text
    }

    fn forward(deepest: Depth) -> Vec<String> {
        let record = record();
        let next = |frame: &Position| frame.next(&tree(&record), deepest);
        std::iter::successors(Some(Position::START), next).map(|frame| show(&frame)).collect()
    }

    fn backward(deepest: Depth) -> Vec<String> {
        let record = record();
        let previous = |frame: &Position| frame.previous(&tree(&record), deepest);
        let last = Position::last(&tree(&record), deepest);
        std::iter::successors(Some(last), previous).map(|frame| show(&frame)).collect()
    }

    #[test]
    fn stepping_into_visits_every_frame_in_reading_order() {
        let expected = [
            "cycle",
            "entry 6",
            "PreFilter",
            "PreFilter/A",
            "PreFilter/B",
            "Filter",
            "Filter/A",
            "Filter/A/1",
            "Filter/A/0",
            "Filter/B",
            "Bind",
            "Bind/C",
            "entry 8",
            "entry 9",
        ];
        assert_eq!(forward(Depth::Node), expected);
    }

    #[test]
    fn backward_is_forward_in_reverse_at_every_depth() {
        for deepest in [Depth::Cycle, Depth::Point, Depth::Plugin, Depth::Node] {
            let mut reversed = backward(deepest);
            reversed.reverse();
            assert_eq!(forward(deepest), reversed, "{deepest:?}");
        }
    }

    #[test]
    fn a_step_over_from_a_node_leaves_the_plugin_at_its_end() {
        let record = record();
        let at = |plugin: &str, node| Position {
            point: Some(ExtensionPoint::Filter),
            plugin: Some(plugin.into()),
            node,
            ..Position::START
        };
        let tree = tree(&record);
        let next = at("A", Some(NodeId(0))).next(&tree, Depth::Node);
        assert_eq!(next, Some(at("B", None)));
        let out = at("A", Some(NodeId(1))).next(&tree, Depth::Plugin);
        assert_eq!(out, Some(at("B", None)));
        let back = at("A", Some(NodeId(1))).previous(&tree, Depth::Plugin);
        assert_eq!(back, Some(at("A", None)));
    }
}
