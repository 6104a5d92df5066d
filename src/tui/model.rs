//! The picture of the session that views draw: immutable, cheap to share, made anew after each change.
//!
//! Views never see the session itself, so a frame cannot wait for it or change it.

use std::sync::Arc;

use crate::api::{Labels, Time};
use crate::config::ExtensionPoint;
use crate::engine::node::NodeId;
use crate::engine::pod::NamespacedName;
use crate::engine::record::{CycleRecord, HintRecord, QueueMove, QueueName};
use crate::intern::Symbol;

/// Everything a view can show.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Changes whenever anything below does.
    pub revision: u64,
    /// Where the input came from, as a short name.
    pub source: String,
    /// The virtual clock.
    pub now: Time,
    /// The virtual clock when the session began.
    pub start: Time,
    /// Recorded cycles, oldest first.
    pub cycles: Vec<Arc<CycleRecord>>,
    /// Where the debugger stands; `None` before the first cycle.
    pub position: Option<Position>,
    /// Whether the position is the newest there is.
    pub at_end: bool,
    /// Whether nothing is left to do until an event or a timer.
    pub idle: bool,
    /// Pods in the queues, by queue and place.
    pub queued: Vec<QueuedPod>,
    /// Pods held at Permit.
    pub waiting: Vec<WaitingPod>,
    /// Nodes in the cache's order.
    pub nodes: Vec<NodeRow>,
    /// Pods in order of appearance.
    pub pods: Vec<PodRow>,
    /// Queue moves, oldest first.
    pub moves: Vec<QueueMove>,
    /// What queueing hints said, oldest first.
    pub hints: Vec<HintRecord>,
}

/// Where the debugger stands, from the outside in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index into `Model::cycles`.
    pub cycle: usize,
    /// The extension point.
    pub point: Option<ExtensionPoint>,
    /// The plugin at the point.
    pub plugin: Option<Symbol>,
    /// The node the plugin looks at.
    pub node: Option<NodeId>,
}

/// A pod in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedPod {
    /// The pod.
    pub pod: NamespacedName,
    /// Which queue.
    pub queue: QueueName,
    /// Its priority.
    pub priority: i32,
    /// Cycles it has had.
    pub attempts: u32,
    /// When it entered this queue.
    pub since: Time,
    /// When it leaves by itself, if it does.
    pub until: Option<Time>,
    /// Plugins that refused it last.
    pub rejected_by: Vec<Symbol>,
    /// Why it is here, in the scheduler's words.
    pub reason: String,
    /// Its labels.
    pub labels: Labels,
}

/// A pod held at Permit.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingPod {
    /// The pod.
    pub pod: NamespacedName,
    /// The node kept for it.
    pub node: Symbol,
    /// The plugins that hold it, each with the moment its patience ends.
    pub plugins: Vec<(Symbol, Time)>,
    /// Resources kept for it on the node, as `cpu 500m, memory 1Gi`.
    pub held: String,
}

/// A node with what is used on it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// Its name.
    pub name: Symbol,
    /// Resource name, requested, allocatable, in the unit the resource is written in.
    pub resources: Vec<(Symbol, String, String)>,
    /// Requested share of the scarcest of cpu and memory, in percent.
    pub used_percent: u32,
    /// Pods on it.
    pub pods: usize,
    /// Taints as kubectl writes them.
    pub taints: Vec<String>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Its labels.
    pub labels: Labels,
}

/// A pod of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRow {
    /// Its name.
    pub pod: NamespacedName,
    /// Where it is: `on node-1`, `active`, `waiting`, `no profile` …
    pub place: String,
    /// The node it runs on.
    pub node: Option<Symbol>,
    /// Its priority.
    pub priority: i32,
    /// Requested resources as text.
    pub requests: String,
    /// Its labels.
    pub labels: Labels,
    /// The parts of its spec that the scheduler reads, a line each.
    pub summary: Vec<String>,
}

impl Model {
    /// The cycle at the debugger's position, else the newest.
    pub fn cycle(&self) -> Option<&Arc<CycleRecord>> {
        match self.position {
            Some(position) => self.cycles.get(position.cycle),
            None => self.cycles.last(),
        }
    }

    /// The newest cycle of a pod up to the position.
    pub fn last_cycle_of(&self, pod: NamespacedName) -> Option<&Arc<CycleRecord>> {
        self.cycles.iter().rev().find(|c| c.pod == pod)
    }

    /// The position as words, from the outside in.
    pub fn crumbs(&self) -> Vec<String> {
        let Some(position) = self.position else {
            return vec![self.source.clone(), "before the first cycle".into()];
        };
        let Some(cycle) = self.cycles.get(position.cycle) else { return Vec::new() };
        let mut crumbs = vec![format!("cycle {} {}", cycle.cycle, cycle.pod)];
        crumbs.extend(position.point.map(|p| p.name().to_owned()));
        crumbs.extend(position.plugin.map(|p| p.to_string()));
        crumbs.extend(position.node.map(|n| cycle.nodes.name(n).to_string()));
        crumbs
    }
}

/// A span of virtual time as people say it: `850ms`, `12.5s`, `4m05s`, `1h03m`.
pub fn span(microseconds: i64) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let micros = microseconds.unsigned_abs();
    let (seconds, millis) = (micros / 1_000_000, micros / 1_000 % 1_000);
    match seconds {
        0 if millis == 0 && micros > 0 => format!("{sign}{micros}µs"),
        0 if millis > 0 => format!("{sign}{millis}ms"),
        0..60 if millis >= 100 => format!("{sign}{seconds}.{}s", millis / 100),
        0..60 => format!("{sign}{seconds}s"),
        60..3_600 => format!("{sign}{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{sign}{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_speech() {
        let cases = [
            (0, "0s"),
            (7, "7µs"),
            (1_000, "1ms"),
            (850_000, "850ms"),
            (12_500_000, "12.5s"),
            (12_030_000, "12s"),
            (245_000_000, "4m05s"),
            (3_780_000_000, "1h03m"),
            (-2_000_000, "-2s"),
        ];
        for (micros, text) in cases {
            assert_eq!(span(micros), text);
        }
    }

    #[test]
    fn crumbs_name_the_position_from_the_outside_in() {
        let mut model = Model { source: "demo".into(), ..Model::default() };
        assert_eq!(model.crumbs(), ["demo", "before the first cycle"]);
        let pod = NamespacedName::new("default".into(), "web".into());
        model.cycles.push(Arc::new(CycleRecord { cycle: 3, pod, ..CycleRecord::default() }));
        model.position = Some(Position {
            cycle: 0,
            point: Some(ExtensionPoint::Filter),
            plugin: Some("NodeName".into()),
            node: None,
        });
        assert_eq!(model.crumbs(), ["cycle 3 default/web", "Filter", "NodeName"]);
    }
}
