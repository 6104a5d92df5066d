//! The complete record of one scheduling cycle: the engine fills a [`CycleRecord`] while it runs,
//! and every view, report and test reads it.
//!
//! Recording is always on. Filter verdicts are columns of small numbers that share what did not
//! change since the cycle before.

pub mod certainty;
pub mod column;
pub mod intervention;
pub mod nodes;
pub mod scores;
pub mod shared_list;

use std::borrow::Cow;
use std::sync::Arc;

use crate::events::ClusterEvent;
use crate::node::NodeId;
use crate::opaque::OpaquePlugins;
use crate::pod::{NamespacedName, PodInfo};
use crate::record::certainty::Certainty;
use crate::record::column::Column;
use crate::record::intervention::Intervention;
use crate::record::nodes::NodeList;
use crate::record::scores::{EXTENDER_SCORE_SCALE, Scores, range};
use crate::record::shared_list::SharedList;
use crate::status::Status;
use crate::status::node_statuses::NodeStatuses;
use crate::tie_break::TieBreak;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Time, Uid};
use kubestep_config::ExtensionPoint;

/// A filter verdict as a number: an index into the record's [`VerdictTable`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VerdictId(pub u32);

impl VerdictId {
    /// The plugin passed the node.
    pub const PASS: VerdictId = VerdictId(0);
    /// The plugin skipped this cycle: it has no requirements for this pod.
    pub const SKIPPED: VerdictId = VerdictId(1);
    /// Not evaluated: enough feasible nodes were found first.
    pub const ENOUGH_FOUND: VerdictId = VerdictId(2);
    /// Not evaluated: a PreFilter plugin excluded the node.
    pub const NARROWED: VerdictId = VerdictId(3);
    /// Not evaluated: the nominated (or hinted) node was feasible and selected.
    pub const NOMINATED_TAKEN: VerdictId = VerdictId(4);
    /// Not evaluated: the cycle ended before or during Filter.
    pub const CYCLE_ENDED: VerdictId = VerdictId(5);
    /// Not evaluated: the pod's group was tried on other nodes.
    pub const OUTSIDE_PLACEMENT: VerdictId = VerdictId(6);
    /// The plugin is opaque: what it decides is unknown.
    pub const UNKNOWN: VerdictId = VerdictId(7);
    /// The first number that is the index of a status in the table.
    const FIRST_STATUS: u32 = 8;

    /// Whether the node was not evaluated.
    #[inline]
    pub fn is_not_evaluated(self) -> bool {
        (VerdictId::ENOUGH_FOUND.0..=VerdictId::OUTSIDE_PLACEMENT.0).contains(&self.0)
    }

    /// Whether the number identifies a status: a rejection or an error.
    #[inline]
    pub fn is_status(self) -> bool {
        self.0 >= VerdictId::FIRST_STATUS
    }
}

/// The distinct statuses behind the verdict numbers. It only grows, so that columns of different
/// cycles can be compared by number.
#[derive(Clone, Default, Debug)]
pub struct VerdictTable {
    statuses: Vec<Status>,
    index: hashbrown::HashMap<Status, u32>,
}

impl VerdictTable {
    /// The number of a status, assigned on first use.
    pub fn id_of(&mut self, status: &Status) -> VerdictId {
        if status.is_success() {
            return VerdictId::PASS;
        }
        if let Some(id) = self.index.get(status) {
            return VerdictId(*id);
        }
        let id = VerdictId::FIRST_STATUS + self.statuses.len() as u32;
        self.statuses.push(status.clone());
        self.index.insert(status.clone(), id);
        VerdictId(id)
    }

    /// The number of a status, if it was assigned before.
    pub fn find(&self, status: &Status) -> Option<VerdictId> {
        if status.is_success() {
            return Some(VerdictId::PASS);
        }
        self.index.get(status).map(|id| VerdictId(*id))
    }

    /// The status with that number; `None` for passes, skips and nodes that were not evaluated.
    pub fn get(&self, id: VerdictId) -> Option<&Status> {
        self.statuses.get(id.0.checked_sub(VerdictId::FIRST_STATUS)? as usize)
    }
}

/// The nodes of a cycle: slots in node order with their names. Shared between cycles while the set
/// of nodes stays the same.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct NodeNames {
    /// Slots in upstream's node order.
    pub order: Vec<NodeId>,
    /// Names by slot; empty where a slot is free.
    pub names: Vec<Name>,
}

impl NodeNames {
    /// The name of the node in a slot.
    pub fn name(&self, node: NodeId) -> Name {
        self.names.get(node.index()).copied().unwrap_or_default()
    }
}

/// A plugin's answer at an extension point.
#[derive(Clone, PartialEq, Debug)]
pub struct PluginStatus {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// What the plugin answered.
    pub status: Status,
    /// PreFilter: the nodes it narrowed to, sorted; a record without its matrices has none.
    pub nodes: Option<Vec<Name>>,
    /// PostFilter: the node it nominated.
    pub nominated: Option<Name>,
}

impl PluginStatus {
    /// An answer that is only a status.
    pub fn new(plugin: Symbol, status: Status) -> PluginStatus {
        PluginStatus { plugin, status, nodes: None, nominated: None }
    }
}

/// One filter plugin on all nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterColumn {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// By slot: its verdict, run independently and without nominated pods.
    pub verdicts: Column<VerdictId>,
}

/// What Filter did, node by node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct FilterRecord {
    /// Every filter plugin of the profile on every node, in the order run. Empty when the
    /// cycle ended before Filter.
    pub plugins: SharedList<FilterColumn>,
    /// By slot: the verdict on the node, from the first plugin that failed, with nominated pods; or
    /// why the node was not evaluated.
    pub verdicts: Column<VerdictId>,
    /// The nodes evaluated, in order.
    pub evaluated: NodeList,
    /// The extenders that filtered, by name, in the order called.
    pub extenders: Vec<Symbol>,
    /// The nodes that passed the plugins and that extenders rejected, each status by the name of
    /// its extender.
    pub extender: Vec<(NodeId, Status)>,
}

impl FilterRecord {
    /// The rejection of a node by an extender.
    pub fn by_extender(&self, node: NodeId) -> Option<&Status> {
        self.extender.iter().find(|(rejected, _)| *rejected == node).map(|(_, status)| status)
    }
}

/// One score plugin on all feasible nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoreColumn {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// The factor of its scores in the total.
    pub weight: i64,
    /// The raw scores, by position in [`CycleRecord::feasible`].
    pub raw: Scores,
    /// The same after normalizing: 0 to 100.
    pub normalized: Scores,
}

impl ScoreColumn {
    /// The normalized score times the weight.
    pub fn weighted(&self, position: usize) -> Option<i64> {
        Some(self.normalized.get(position)? * self.weight)
    }
}

/// One extender on all feasible nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct ExtenderColumn {
    /// The extender, by name.
    pub extender: Symbol,
    /// The factor of its scores in the total.
    pub weight: i64,
    /// What it answered, 0 to 10, by position in [`CycleRecord::feasible`]; `None` for nodes that
    /// it did not name.
    pub scores: Vec<Option<i64>>,
}

impl ExtenderColumn {
    /// The score times the weight times [`EXTENDER_SCORE_SCALE`], as it counts in the total.
    pub fn weighted(&self, position: usize) -> Option<i64> {
        let score = self.scores.get(position).copied().flatten()?;
        Some(score.wrapping_mul(self.weight.wrapping_mul(EXTENDER_SCORE_SCALE)))
    }

    /// The same as the scores of a plugin: 0 to 100 where the extender counts to 10, and 0 for
    /// nodes that it did not name.
    pub fn as_plugin(&self) -> ScoreColumn {
        let raw: Vec<i64> = self.scores.iter().map(|score| score.unwrap_or(0)).collect();
        let normalized: Vec<i64> =
            raw.iter().map(|raw| raw.wrapping_mul(EXTENDER_SCORE_SCALE)).collect();
        let (plugin, weight) = (self.extender, self.weight);
        ScoreColumn { plugin, weight, raw: raw.into(), normalized: normalized.into() }
    }
}

/// What the score phase did. All lists run parallel to [`CycleRecord::feasible`].
#[derive(Clone, Default, PartialEq, Debug)]
pub struct ScoreRecord {
    /// The answers of PreScore, in the order run.
    pub pre_score: SharedList<PluginStatus>,
    /// The plugins that scored, in the order run; skipped ones are absent.
    pub plugins: SharedList<ScoreColumn>,
    /// The extenders that scored, in the order called.
    pub extenders: Vec<ExtenderColumn>,
    /// Whether nodes were scored as an extender returned them: without their pods and images.
    pub as_returned: bool,
    /// The opaque plugins that score, with unknown scores.
    pub opaque: Vec<ScoreColumn>,
    /// Total scores, without those of opaque plugins.
    pub totals: Scores,
}

impl ScoreRecord {
    /// All that scored: plugins, opaque ones, whose scores are unknown, and extenders. Extenders
    /// without a weight only filter.
    pub fn columns(&self) -> impl Iterator<Item = Cow<'_, ScoreColumn>> {
        let extenders = self.extenders.iter().filter(|extender| extender.weight != 0);
        let extenders = extenders.map(|extender| Cow::Owned(extender.as_plugin()));
        self.plugins.iter().chain(&self.opaque).map(Cow::Borrowed).chain(extenders)
    }

    /// What the extenders add to the total of the node at a position; `None` if none scored it.
    pub fn by_extenders(&self, position: usize) -> Option<i64> {
        let scores = self.extenders.iter().filter_map(|column| column.weighted(position));
        scores.reduce(i64::wrapping_add)
    }

    /// Positions of the nodes with the highest total.
    pub fn tied_best(&self) -> Vec<usize> {
        let totals = self.totals.values();
        let Some((_, best)) = range(&totals) else { return Vec::new() };
        let places = totals.iter().enumerate();
        places.filter(|(_, total)| **total == best).map(|(at, _)| at).collect()
    }
}

/// A candidate of preemption, with the victims on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The node, by name.
    pub node: Name,
    /// The victims, in upstream's order.
    pub victims: Vec<NamespacedName>,
    /// Number of evictions that violate a disruption budget.
    pub pdb_violations: i64,
    /// Why the plugin may evict them, one fact each; empty if only lower priority decides.
    pub reasons: Vec<String>,
}

/// The pod group of a cycle, and how far it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupRecord {
    /// The pod group, by namespace and name.
    pub group: NamespacedName,
    /// How many pods have to be placed together; `None` for a group without such a quorum.
    pub min_count: Option<usize>,
    /// How many pods of the group exist.
    pub pods: usize,
    /// How many of them had a node before the cycle.
    pub scheduled_before: usize,
    /// How many found a node in this attempt of the group.
    pub placed: usize,
}

/// A set of nodes on which a pod group was tried.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementRecord {
    /// Its name, the value of the topology key; empty for all nodes.
    pub name: Name,
    /// How many nodes it has.
    pub nodes: usize,
    /// Number of pods of the group for which a node was found.
    pub placed: usize,
    /// Success if the group could start there, otherwise the reason.
    pub status: Status,
    /// Its score, if several placements were possible.
    pub total: Option<i64>,
}

/// The result of a cycle for the pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// The pod was bound to its node.
    Scheduled,
    /// It waits in its binding cycle.
    Waiting,
    /// Plugins or extenders rejected the pod.
    #[default]
    Unschedulable,
    /// A plugin, an extender or a write failed.
    SchedulerError,
    /// It was skipped, because it is being deleted or is already assumed.
    Dropped,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 5] = [
        Outcome::Scheduled,
        Outcome::Waiting,
        Outcome::Unschedulable,
        Outcome::SchedulerError,
        Outcome::Dropped,
    ];

    /// The name as in the pod's condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Scheduled => "Scheduled",
            Outcome::Waiting => "Waiting",
            Outcome::Unschedulable => "Unschedulable",
            Outcome::SchedulerError => "SchedulerError",
            Outcome::Dropped => "Dropped",
        }
    }
}

/// A summary of the lists that a record dropped to save memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OmittedLists {
    /// Number of feasible nodes.
    pub feasible: usize,
}

/// One scheduling cycle with its binding cycle.
#[derive(Clone, Default, Debug)]
pub struct CycleRecord {
    /// The number of the cycle, from 1.
    pub cycle: u64,
    /// The pod, by namespace and name.
    pub pod: NamespacedName,
    /// The UID of that pod.
    pub uid: Uid,
    /// The pod as it was popped; `None` in records that tests construct.
    pub info: Option<Arc<PodInfo>>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The profile's scheduler name.
    pub profile: Symbol,
    /// When the cycle ran.
    pub time: Time,
    /// The nodes of the snapshot.
    pub nodes: Arc<NodeNames>,
    /// The statuses that the verdict numbers identify.
    pub verdicts: Arc<VerdictTable>,
    /// The answers of PreFilter, in the order run.
    pub pre_filter: SharedList<PluginStatus>,
    /// The node hint of batching.
    pub node_hint: Option<Name>,
    /// The nominated node that was tried first.
    pub nominated_first: Option<Name>,
    /// What Filter answered about each node.
    pub filter: FilterRecord,
    /// The nodes that passed filters and extenders, in order.
    pub feasible: NodeList,
    /// PreScore and Score; empty when one node or none was feasible.
    pub score: ScoreRecord,
    /// The answers of PostFilter, in the order run.
    pub post_filter: Vec<PluginStatus>,
    /// The candidates of preemption.
    pub candidates: Vec<Candidate>,
    /// What the dry run of preemption found on the nodes that are no candidates, by slot: nodes
    /// that it did not try have no status of their own. `None` if it did not run.
    pub dry_run: Option<Arc<NodeStatuses>>,
    /// Which pods the plugin may evict for the pod and why, if that is not their priority alone.
    pub victim_rule: Option<Arc<str>>,
    /// The node where preemption decided to evict, with the victims.
    pub preemption: Option<Candidate>,
    /// The group whose cycle this was part of.
    pub group: Option<GroupRecord>,
    /// The placements on which the pod's group was tried, in that order.
    pub placements: Vec<PlacementRecord>,
    /// The index of the selected placement.
    pub placement: Option<usize>,
    /// The answers of Reserve, in the order run.
    pub reserve: SharedList<PluginStatus>,
    /// The answers of Permit, in the order run.
    pub permit: SharedList<PluginStatus>,
    /// The status that ended the wait at Permit, if the pod waited.
    pub permit_wait: Option<Status>,
    /// The answers of PreBind, in the order run.
    pub pre_bind: SharedList<PluginStatus>,
    /// The answers of Bind, in the order run.
    pub bind: SharedList<PluginStatus>,
    /// The answer of the extender that bound the pod instead of the Bind plugins, with its URL as
    /// the name.
    pub extender_bind: Option<PluginStatus>,
    /// The result for the pod.
    pub outcome: Outcome,
    /// The complete message, as written into the pod's condition.
    pub message: String,
    /// The selected node, by name; `None` if none was feasible.
    pub node: Option<Name>,
    /// The node nominated by this cycle.
    pub nominated_node: Option<Name>,
    /// Number of nodes that shared the best total; 0 if there were not several.
    pub tied: usize,
    /// How a tie is broken in this cycle, whether or not there was one.
    pub tie_break: TieBreak,
    /// Number of nodes evaluated, as upstream counts them: feasible nodes and rejections.
    pub evaluated_nodes: usize,
    /// Index in node order where the search started.
    pub start_index: usize,
    /// Set when the lists by node were dropped to save memory: verdicts, feasible nodes,
    /// scores, candidates, the dry run.
    pub omitted: Option<OmittedLists>,
    /// Whether a plugin received the list of nodes that it rejected, which it may keep.
    pub keeps_rejections: bool,
    /// The user's interventions that were in force.
    pub interventions: Vec<Intervention>,
    /// The opaque plugins of the profile, if it has some.
    pub opaque: Option<Arc<OpaquePlugins>>,
    /// The number of other pods that could have been popped instead, if an opaque plugin orders
    /// the queue.
    pub others_active: usize,
    /// The certainty of a record whose lists were dropped.
    pub stored_certainty: Option<Arc<Certainty>>,
}

impl CycleRecord {
    /// The answers at an extension point where each plugin answers once per cycle; empty for Filter
    /// and Score.
    pub fn answers(&self, point: ExtensionPoint) -> &[PluginStatus] {
        match point {
            ExtensionPoint::PreFilter => &self.pre_filter,
            ExtensionPoint::PostFilter => &self.post_filter,
            ExtensionPoint::PreScore => &self.score.pre_score,
            ExtensionPoint::Reserve => &self.reserve,
            ExtensionPoint::Permit => &self.permit,
            ExtensionPoint::PreBind => &self.pre_bind,
            ExtensionPoint::Bind => &self.bind,
            _ => &[],
        }
    }

    /// How a tie was broken, if there was one and it was not broken as upstream does.
    pub fn other_tie_break(&self) -> Option<TieBreak> {
        (self.tied > 0 && self.tie_break != TieBreak::Upstream).then_some(self.tie_break)
    }

    /// The nodes that shared the best total, if there were several; none if lists were left out.
    pub fn tied_nodes(&self) -> Vec<NodeId> {
        let best = if self.tied > 0 { self.score.tied_best() } else { Vec::new() };
        best.into_iter().filter_map(|at| self.feasible.get(at).copied()).collect()
    }

    /// Number of feasible nodes.
    pub fn feasible_count(&self) -> usize {
        self.omitted.map_or(self.feasible.len(), |omitted| omitted.feasible)
    }

    /// How certain the decision is; `None` if the profile has no opaque plugin.
    pub fn certainty(&self) -> Option<Arc<Certainty>> {
        let kept = self.stored_certainty.clone().filter(|_| !self.is_whole());
        kept.or_else(|| Some(Arc::new(Certainty::of(self, self.opaque.as_ref()?))))
    }

    /// Whether no list was dropped.
    pub fn is_whole(&self) -> bool {
        self.omitted.is_none()
    }
}

/// The queue that a pod is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum QueueName {
    /// In no queue: new, bound, or deleted.
    None,
    /// Ready to be popped.
    Active,
    /// Waiting for its backoff to end.
    Backoff,
    /// Waiting for an event that could help.
    Unschedulable,
    /// Gated by a PreEnqueue plugin.
    Gated,
    /// In a scheduling or binding cycle.
    InFlight,
}

impl QueueName {
    /// All queues.
    pub const ALL: [QueueName; 6] = [
        QueueName::None,
        QueueName::Active,
        QueueName::Backoff,
        QueueName::Unschedulable,
        QueueName::Gated,
        QueueName::InFlight,
    ];

    /// The name for display.
    pub fn as_str(self) -> &'static str {
        match self {
            QueueName::None => "none",
            QueueName::Active => "active",
            QueueName::Backoff => "backoff",
            QueueName::Unschedulable => "unschedulable",
            QueueName::Gated => "gated",
            QueueName::InFlight => "in flight",
        }
    }
}

/// A pod that moved between queues, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueMove {
    /// When the pod moved.
    pub time: Time,
    /// The pod, by namespace and name.
    pub pod: NamespacedName,
    /// The queue that the pod left.
    pub from: QueueName,
    /// The queue that the pod entered.
    pub to: QueueName,
    /// The label of the event that moved it, as in upstream's metrics (`UnschedulablePodAdd`,
    /// `BackoffComplete`, `AssignedPodDelete`, …).
    pub event: Symbol,
    /// The plugin whose hint or PreEnqueue decided, if one did.
    pub plugin: Option<Symbol>,
    /// What determined the order in which pods were moved together; `None` for upstream's most
    /// likely order.
    pub order: Option<TieBreak>,
}

impl QueueMove {
    /// Where the pod was and where it is now: `created → active`, `in flight → done`.
    pub fn describe(&self) -> String {
        QueueMove::between(self.from, self.to, self.event)
    }

    /// The same for a pod that `event` moved.
    pub fn between(from: QueueName, to: QueueName, event: Symbol) -> String {
        let from = match from {
            QueueName::None => "created",
            queue => queue.as_str(),
        };
        let to = match (to, event.as_str()) {
            (QueueName::None, "Done") => "done",
            // As upstream, the label does not distinguish a deleted pod from a bound one.
            (QueueName::None, "UnschedulablePodDelete") => "deleted or bound",
            (QueueName::None, _) => "dropped",
            (queue, _) => queue.as_str(),
        };
        format!("{from} → {to}")
    }
}

/// The answer of one queueing hint about a cluster event and a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct HintRecord {
    /// When the hint ran.
    pub time: Time,
    /// The event that the hint judged.
    pub event: ClusterEvent,
    /// The pod that was judged.
    pub pod: NamespacedName,
    /// The plugin whose hint ran.
    pub plugin: Symbol,
    /// Its answer: `Queue`, `QueueSkip` or `Error`.
    pub answer: Symbol,
}
