//! The model of the session that views draw: immutable, cheap to share, brought up to date after each change.
//!
//! Views never see the session itself, so a frame cannot wait for it or change it.

pub mod entry;
mod nodes;
mod pods;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use super::lines::DetailLine;
use crate::report::outline::{Outline, OutlineItem};
use kubestep_api::intern::Symbol;
pub use kubestep_api::words::span;
use kubestep_api::{Name, Time};
use kubestep_config::FeatureGates;
use kubestep_debug::Position as Frame;
use kubestep_debug::trace::Entry;
use kubestep_debug::why::preemption::BudgetState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::stopwatch::Spent;
use kubestep_live::scheduling::LeaderStatus;
use kubestep_live::{ComparedDecision, Outage};
pub use nodes::NodeList;
pub use pods::{PodPlace, PodRow};

/// Everything a view can show.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Changes whenever anything below does.
    pub revision: u64,
    /// Where the input came from, as a short name.
    pub source: String,
    /// The version of kube-scheduler that decides, if it is not the default one.
    pub scheduler: Option<String>,
    /// What there is to know of the live cluster behind it.
    pub live: Option<LiveModel>,
    /// The virtual time at the position.
    pub now: Time,
    /// The virtual clock when the session began.
    pub start: Time,
    /// Recorded cycles, oldest first.
    pub cycles: Vec<Arc<CycleRecord>>,
    /// Where the debugger stands; `None` before the first cycle.
    pub position: Option<CyclePosition>,
    /// A cycle, by its number, and a frame of it that are looked at while the debugger stands
    /// elsewhere.
    pub inspected: Option<(u64, Frame)>,
    /// Where the debugger stands beside a cycle, from the outside in: what was done that is no
    /// cycle, and the queue move, hint or event.
    pub other_events: Vec<String>,
    /// Whether the cycle at the position is not over there: its outcome is not known yet.
    pub under_way: bool,
    /// Whether the position is at the end of what was done so far.
    pub at_end: bool,
    /// Whether no pod can be tried until an event or a timer.
    pub idle: bool,
    /// Pods in the queues, by queue and place.
    pub queued: Vec<QueuedPod>,
    /// Pods held at Permit.
    pub waiting: Vec<WaitingPod>,
    /// Which pods are held at Permit, as `:hold` takes it.
    pub holds: Vec<String>,
    /// Nodes with their pods, in the cache's order.
    pub nodes: NodeList,
    /// What the names of the nodes share.
    pub node_names: super::names::CommonNameParts,
    /// Nominated pods with the node that keeps room for each, node by node.
    pub nominated: Vec<(Name, Arc<PodInfo>)>,
    /// All pods, sorted by namespace and name.
    pub pods: Vec<PodRow>,
    /// Queue moves, hints and events for people, oldest first, each with its place in the
    /// history; no cycles.
    pub events: Vec<(u32, Arc<Entry>)>,
    /// How many entries of the history have happened at the debugger's position.
    pub entries_reached: Option<usize>,
    /// What goes on, for the status line: a run, or playing.
    pub progress: Option<String>,
    /// How far the search for a change is, for the status line.
    pub searching: Option<String>,
    /// Why a pod is where it is.
    pub why: Option<FoldedOutline>,
    /// The pod groups, if the view on screen shows them.
    pub groups: Option<FoldedOutline>,
    /// Why a pod is where it is, for the pane beside the rows.
    pub answer: Option<WhyAnswer>,
    /// Why queued pods are pending, in one clause, as far as that was asked for at the position.
    pub causes: HashMap<NamespacedName, String>,
    /// The candidates of a cycle before it preempted.
    pub before_preemption: Option<Arc<BeforePreemption>>,
    /// Breakpoints and watches, by number.
    pub breakpoints: Vec<BreakpointRow>,
    /// The branch that is worked on; "" for the original.
    pub branch: String,
    /// Weights that are tried on the ranking.
    pub weights: kubestep_debug::preview::Weights,
    /// What the scheduler runs with.
    pub configuration: Configuration,
    /// The durations of plugins, if they are measured.
    pub times: TimesModel,
    /// What arguments can name, as of when something was typed that completes to it.
    pub names: Arc<ArgumentNames>,
    /// While the state at the position is being reached again: steps done, and all.
    pub going_back: Option<(usize, usize)>,
}

/// Why a pod is where it is at the position.
#[derive(Clone, Debug)]
pub struct WhyAnswer {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The verdict first; empty if there is no such pod.
    pub lines: Vec<DetailLine>,
}

/// The candidate nodes of a cycle before it preempted.
#[derive(Clone, Debug, Default)]
pub struct BeforePreemption {
    /// The cycle, by its number.
    pub cycle: u64,
    /// The nodes with their pods.
    pub nodes: Vec<Arc<NodeInfo>>,
    /// The disruption budgets of each victim that has any.
    pub budgets: Vec<(NamespacedName, BudgetState)>,
}

/// Which names complete an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeededNames {
    /// Those of nodes, branches and plugins.
    Few,
    /// Those of pods too, of which there can be tens of thousands.
    WithPods,
}

/// What the arguments of commands can name.
#[derive(Clone, Debug, Default)]
pub struct ArgumentNames {
    /// Names of all nodes, for completion.
    pub nodes: Vec<Name>,
    /// The pods in the order of their names.
    pub pods: Vec<NamespacedName>,
    /// Names of all branches, for completion.
    pub branches: Vec<String>,
    /// The plugins of all profiles.
    pub plugins: Vec<String>,
    /// The taints of all nodes, as `key=value:Effect`.
    pub taints: BTreeSet<String>,
    /// The labels of all nodes as `key=value`, except kubernetes.io/hostname.
    pub labels: BTreeSet<String>,
    /// The resources that nodes offer.
    pub resources: BTreeSet<Symbol>,
}

/// What the scheduler runs with.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The version and feature gates of the scheduler.
    pub gates: FeatureGates,
    /// All of it, row by row.
    pub rows: Arc<Vec<kubestep_config::rows::Row>>,
}

/// A part of the model that a view draws, besides the recorded cycles and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPart {
    /// Only a recording: nothing can be stepped.
    Recording,
    /// The labels of the cycle's nodes, where the cluster at the position is known without a replay.
    CycleNodes,
    /// The same, and the candidates before the cycle preempted.
    Preemption,
    /// Nodes, nominations and pods at Permit.
    Nodes,
    Queues,
    Pods,
    Groups,
    Configuration,
    /// Breakpoints with the watched values.
    Breakpoints,
    /// Time spent by plugins.
    Times,
}

impl ModelPart {
    /// Whether it shows the cluster as it is at the debugger's position.
    pub fn shows_cluster(self) -> bool {
        use ModelPart::{CycleNodes, Preemption, Recording, Times};
        !matches!(self, Recording | CycleNodes | Preemption | Times)
    }
}

/// An outline of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineKind {
    /// Why a pod is where it is.
    Why,
    Groups,
}

/// An outline with what is folded away.
#[derive(Clone, Debug, Default)]
pub struct FoldedOutline {
    pub outline: Outline,
    /// The pod that it is about.
    pub pod: Option<NamespacedName>,
    /// The lines that are not as they were at first: folded if they were not.
    changed: BTreeSet<u64>,
}

impl FoldedOutline {
    /// An outline, folded as the one `before` it was.
    pub fn new(
        outline: Outline,
        before: Option<FoldedOutline>,
        pod: Option<NamespacedName>,
    ) -> FoldedOutline {
        FoldedOutline {
            outline,
            pod,
            changed: before.map(|before| before.changed).unwrap_or_default(),
        }
    }

    /// A number for a line, the same in later outlines of the same thing.
    pub fn key(item: &OutlineItem) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (item.depth, &item.id).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether what belongs to a line is folded away.
    pub fn is_folded(&self, item: &OutlineItem) -> bool {
        item.folded != self.changed.contains(&FoldedOutline::key(item))
    }

    /// Folds the line of that number, or unfolds it.
    pub fn toggle(&mut self, key: u64) {
        if !self.changed.remove(&key) {
            self.changed.insert(key);
        }
    }

    /// Unfolds the line of that id and those that it belongs to; the key of the line.
    pub fn reveal(&mut self, id: &str) -> Option<u64> {
        let items = &self.outline.items;
        let at = items.iter().position(|item| item.id == id)?;
        let mut unfold = vec![at];
        let mut depth = items[at].depth;
        for (above, item) in items[..at].iter().enumerate().rev() {
            if item.depth < depth {
                depth = item.depth;
                unfold.push(above);
            }
        }
        let folded = unfold.into_iter().map(|at| &items[at]).filter(|item| self.is_folded(item));
        let keys: Vec<u64> = folded.map(FoldedOutline::key).collect();
        let key = FoldedOutline::key(&items[at]);
        keys.into_iter().for_each(|key| self.toggle(key));
        Some(key)
    }

    /// The places of the lines that are not folded away.
    pub fn open(&self) -> Vec<usize> {
        self.outline.open(|item| self.is_folded(item))
    }
}

/// What plugins take at their points, as far as it is measured.
#[derive(Clone, Debug, Default)]
pub struct TimesModel {
    /// Whether anything is measured.
    pub is_on: bool,
    /// A row for each point and plugin, most time first.
    pub rows: Vec<TimesRow>,
    /// The cycle at the position, if it was measured.
    pub cycle: Option<u64>,
}

/// What a plugin takes at a point.
#[derive(Clone, Copy, Debug)]
pub struct TimesRow {
    /// In the whole session.
    pub all: Spent,
    /// In the cycle at the position.
    pub here: Option<Spent>,
}

/// A live cluster behind the session.
#[derive(Clone, Debug, Default)]
pub struct LiveModel {
    /// Whether this is a recording of one.
    pub recorded: bool,
    /// Whether updates of the cluster are held.
    pub frozen: bool,
    /// What is not followed at the moment.
    pub outage: Option<Outage>,
    /// Why no scheduler of the cluster is running, if none is.
    pub no_scheduler: Option<String>,
    /// Events that wait to be taken in.
    pub waiting: usize,
    /// The decisions of the cluster's scheduler beside ours, the oldest first.
    pub decisions: Vec<Arc<ComparedDecision>>,
    /// Whether a branch is on screen, which goes its own way.
    pub away: bool,
    /// The scheduler, if it schedules the live cluster.
    pub scheduling: Option<SchedulingModel>,
}

/// A scheduler of the live cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulingModel {
    /// The name of the context.
    pub context: String,
    /// Whether writes are sent with dryRun=All.
    pub dry_run: bool,
    /// Whether writes are allowed.
    pub leader_status: LeaderStatus,
    /// Why nothing is decided and updates are queued.
    pub held: Option<HoldReason>,
}

/// Why a live scheduler is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// A cycle is decided and what it wants written is not sent.
    Cycle,
    /// The user looks at the past.
    Past,
    /// The user works on a branch.
    Branch,
    /// It was stopped with all that comes.
    Frozen,
}

/// Where the debugger stands: a frame of a recorded cycle, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CyclePosition {
    /// Index into `Model::cycles`.
    pub cycle: usize,
    /// The frame in that cycle.
    pub frame: Frame,
}

/// A breakpoint or a watch.
#[derive(Clone, Debug, Default)]
pub struct BreakpointRow {
    /// Number of the breakpoint.
    pub id: u32,
    /// As it is written, without `break` or `watch`.
    pub text: String,
    /// The place of a breakpoint, as it is written; empty for a watch.
    pub place: String,
    /// Whether it is a watch.
    pub is_watch: bool,
    /// Whether it is switched on.
    pub enabled: bool,
    /// What a hit leads to.
    pub act: &'static str,
    /// Hits over the whole recording.
    pub hits: u64,
    /// Those up to the position, as the message of a hit counts them.
    pub so_far: u64,
    /// Cycles that could not be looked at, because their matrices are left out.
    pub unseen: usize,
    /// The watched value at the position.
    pub value: String,
    /// The value before the last change, and how often it changed.
    pub changes: Vec<String>,
    /// Why the condition could not be worked out.
    pub problem: Option<String>,
    /// What the last stop said.
    pub last: Option<String>,
}

/// A pod in a queue.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    pub info: Arc<PodInfo>,
    pub queue: QueueName,
    /// Cycles it has had.
    pub attempts: u32,
    /// When it entered this queue.
    pub since: Time,
    /// When it leaves by itself, if it does.
    pub until: Option<Time>,
    /// Plugins that rejected it last, or hold it.
    pub rejected_by: Vec<Symbol>,
    /// Why it is here, in the scheduler's words.
    pub reason: String,
    /// The node that it waits for, at Permit or in PreBind.
    pub waits_for: Option<Name>,
}

impl QueuedPod {
    /// Where the pod is.
    pub fn place(&self) -> PodPlace {
        self.waits_for.map_or(PodPlace::Queue(self.queue), PodPlace::Waiting)
    }
}

/// A pod held at Permit.
#[derive(Clone, Debug)]
pub struct WaitingPod {
    pub info: Arc<PodInfo>,
    /// The node on which room is reserved.
    pub node: Name,
    /// The plugins that hold it, each with the moment its patience ends.
    pub plugins: Vec<(Symbol, Time)>,
}

/// Newest cycles whose pods are looked at.
const RECENT: usize = 200;

impl Model {
    /// The cycle on show: one that is inspected, or the newest up to the debugger's position.
    pub fn cycle(&self) -> Option<&Arc<CycleRecord>> {
        self.cycles.get(self.shown_cycle()?)
    }

    fn shown_cycle(&self) -> Option<usize> {
        match self.inspected {
            Some((number, _)) => {
                self.cycles.binary_search_by_key(&number, |cycle| cycle.cycle).ok()
            }
            None => self.position.map(|position| position.cycle),
        }
    }

    /// Whether the outcome of the cycle on show is not known yet: the debugger stands in it.
    pub fn is_under_way(&self) -> bool {
        self.under_way && self.inspected.is_none()
    }

    /// The live cluster that is followed; a recording is none, and a branch follows nothing.
    pub fn followed(&self) -> Option<&LiveModel> {
        self.live.as_ref().filter(|live| !live.recorded && !live.away)
    }

    /// The scheduler of the live cluster, if it is on screen.
    pub fn scheduling(&self) -> Option<&SchedulingModel> {
        self.followed()?.scheduling.as_ref()
    }

    /// What stands at the right of the breadcrumbs: input, version of kube-scheduler, branch, virtual
    /// time since the start.
    pub fn clock(&self) -> String {
        let branch = match self.branch.as_str() {
            "" => String::new(),
            name => format!(" [{name}]"),
        };
        let version = self.scheduler.as_ref().map(|version| format!(" as {version}"));
        let version = version.unwrap_or_default();
        format!("{}{version}{branch} +{}", self.source, span(self.now.0 - self.start.0))
    }

    /// One of the outlines, if it was made.
    pub fn outline(&self, kind: OutlineKind) -> Option<&FoldedOutline> {
        match kind {
            OutlineKind::Why => self.why.as_ref(),
            OutlineKind::Groups => self.groups.as_ref(),
        }
    }

    /// The decision of the cluster's own scheduler for the pod of a cycle.
    pub fn cluster_decision(&self, cycle: u64) -> Option<&ComparedDecision> {
        let decisions = &self.live.as_ref()?.decisions;
        decisions.iter().rev().find(|decision| decision.cycle == Some(cycle)).map(Arc::as_ref)
    }

    /// Whether a breakpoint that is switched on sits at a place. The place is worked out only if
    /// there are breakpoints at all.
    pub fn has_break(&self, place: impl FnOnce() -> Option<String>) -> bool {
        let mut set = self.breakpoints.iter().filter(|row| row.enabled && !row.is_watch).peekable();
        set.peek().is_some() && place().is_some_and(|place| set.any(|row| row.place == place))
    }

    /// The pods that a node keeps room for.
    pub fn nominated_to(&self, node: Name) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.nominated.iter().filter(move |(name, _)| *name == node).map(|(_, pod)| pod)
    }

    /// The node that keeps room for a pod.
    pub fn nomination_of(&self, pod: NamespacedName) -> Option<Name> {
        self.nominated.iter().find(|(_, info)| info.key() == pod).map(|(node, _)| *node)
    }

    /// The newest cycle of a pod up to the position that is over there.
    pub fn last_cycle_of(&self, pod: NamespacedName) -> Option<&Arc<CycleRecord>> {
        let past = self.past_cycles();
        let over = past.len() - usize::from(self.under_way && !past.is_empty());
        past[..over].iter().rev().find(|c| c.pod == pod)
    }

    /// Whether some pod is known to be pending: in a queue, or rejected by the last of its recent cycles.
    pub fn has_pending(&self) -> bool {
        let mut seen = HashSet::new();
        let recent = self.past_cycles().iter().rev().take(RECENT);
        let mut last = recent.filter(|cycle| seen.insert(cycle.pod));
        let under_way = self.is_under_way() || !self.idle;
        let rejected = |cycle: &Arc<CycleRecord>| cycle.outcome == Outcome::Unschedulable;
        under_way || !self.queued.is_empty() || last.any(rejected)
    }

    /// The cycles up to the position.
    pub fn past_cycles(&self) -> &[Arc<CycleRecord>] {
        let count = self.position.map_or(0, |position| position.cycle + 1);
        self.cycles.get(..count).unwrap_or(&self.cycles)
    }

    /// The position as words, from the outside in.
    pub fn crumbs(&self) -> Vec<String> {
        let Some(cycle) = self.cycle().filter(|_| self.inspected.is_some()) else {
            return self.position_crumbs();
        };
        let here = match self.position.and_then(|position| self.cycles.get(position.cycle)) {
            Some(cycle) => format!("the debugger stays at cycle {}", cycle.cycle),
            None => "the debugger stays before the first cycle".into(),
        };
        let shown = format!("inspecting cycle {} of {}", cycle.cycle, cycle.pod);
        vec![shown, format!("{here}; Esc returns, t goes there")]
    }

    fn position_crumbs(&self) -> Vec<String> {
        let Some(position) = self.position else {
            let mut crumbs = vec!["before the first cycle".to_owned()];
            crumbs.extend(self.other_events.iter().cloned());
            return crumbs;
        };
        let Some(cycle) = self.cycles.get(position.cycle) else { return Vec::new() };
        let mut crumbs = vec![format!("cycle {} {}", cycle.cycle, cycle.pod)];
        crumbs.extend(position.frame.point.map(|p| p.name().to_owned()));
        crumbs.extend(position.frame.plugin.map(|p| p.to_string()));
        crumbs.extend(position.frame.node.map(|n| cycle.nodes.name(n).to_string()));
        crumbs.extend(self.other_events.iter().cloned());
        crumbs
    }

    /// The frame on show: that which is inspected, or the debugger's.
    pub fn frame(&self) -> Option<Frame> {
        let inspected = self.inspected.map(|(_, frame)| frame);
        inspected.or(self.position.map(|position| position.frame))
    }

    /// The frame the debugger stands in, unless another cycle is inspected.
    pub fn stepped_frame(&self) -> Option<Frame> {
        self.position.filter(|_| self.inspected.is_none()).map(|position| position.frame)
    }

    /// A frame of the cycle on show, as a position.
    pub fn at(&self, frame: Frame) -> Option<CyclePosition> {
        let newest = || self.cycles.len().checked_sub(1);
        let cycle = self.shown_cycle().or_else(newest)?;
        Some(CyclePosition { cycle, frame })
    }

    /// The start of the newest cycle of a pod up to the position.
    pub fn start_of_last_cycle(&self, pod: NamespacedName) -> Option<CyclePosition> {
        let cycle = self.past_cycles().iter().rposition(|c| c.pod == pod)?;
        Some(CyclePosition { cycle, frame: Frame::START })
    }

    /// The start of the newest cycle up to the position that chose a node.
    pub fn start_of_last_cycle_on(&self, node: Name) -> Option<CyclePosition> {
        let cycle = self.past_cycles().iter().rposition(|c| c.node == Some(node))?;
        Some(CyclePosition { cycle, frame: Frame::START })
    }

    /// Whether `pod` is the one of the cycle the debugger stands in.
    pub fn is_current_pod(&self, pod: NamespacedName) -> bool {
        self.position.and_then(|p| self.cycles.get(p.cycle)).is_some_and(|c| c.pod == pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config::ExtensionPoint;

    #[test]
    fn crumbs_name_the_position_from_the_outside_in() {
        let mut model = Model { source: "demo".into(), ..Model::default() };
        assert_eq!(model.crumbs(), ["before the first cycle"]);
        let pod = NamespacedName::new("default".into(), "web".into());
        model.cycles.push(Arc::new(CycleRecord { cycle: 3, pod, ..CycleRecord::default() }));
        let frame = Frame::new(ExtensionPoint::Filter, Some("NodeName".into()), None);
        model.position = Some(CyclePosition { cycle: 0, frame });
        assert_eq!(model.crumbs(), ["cycle 3 default/web", "Filter", "NodeName"]);
    }
}
