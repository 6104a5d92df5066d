//! The variables of conditions: their names, when they are known, and their values.
//!
//! A value is computed when an expression uses it, so that a condition costs only what it uses.

use ::cel::common::types::{CelBool, CelDouble, CelInt, CelString};
use ::cel::common::value::{CowVal, Val};
use ::cel::context::VariableResolver;

use crate::breakpoint::location::POINTS;
use crate::breakpoint::values::{AmountValue, Amounts, CelRecord, HasFields, LabelMap, OwnAmounts};
use crate::ledger::NodeAmounts;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Node};
use kubestep_cluster::START;
use kubestep_config::ExtensionPoint;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::{CycleRecord, Outcome, QueueMove, QueueName};
use kubestep_framework::status::Code;

/// What must be known for a variable to have a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// The pod: always known.
    Pod,
    /// The scheduling cycle that the hit lies in, such as its number.
    Cycle,
    /// A message: the plugin's if the breakpoint is at a plugin, else the cycle's.
    Message,
    /// The status of a plugin, on a node if it gives one per node.
    Answer,
    /// A plugin's score of a node.
    Score,
    /// The total score of a node.
    Total,
    /// The node that a status or score is about, or that the cycle selected.
    Node,
    /// A move between queues.
    Move,
    /// The watched value, now and before; at watches only.
    Watch,
}

/// A variable of conditions.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name in a condition, such as `node`.
    pub name: &'static str,
    /// When it is known.
    pub reach: Reach,
    /// What it holds, for `:help` and the reference of breakpoints.
    pub help: &'static str,
}

const fn variable(name: &'static str, reach: Reach, help: &'static str) -> Variable {
    Variable { name, reach, help }
}

/// All variables. `message`, `plugin` and `seconds` are known at several reaches.
#[rustfmt::skip]
pub const VARIABLES: &[Variable] = &[
    variable("pod", Reach::Pod, "the pod: name, namespace, uid, labels, priority, scheduler, requests"),
    variable("seconds", Reach::Pod, "virtual time since the start, in seconds"),
    variable("cycle", Reach::Cycle, "the cycle's number"),
    variable("attempts", Reach::Cycle, "which attempt of the pod this is"),
    variable("profile", Reach::Cycle, "the scheduler name"),
    variable("outcome", Reach::Cycle, "Scheduled, Waiting, Unschedulable, SchedulerError or Dropped"),
    variable("feasible", Reach::Cycle, "number of nodes that passed"),
    variable("evaluated", Reach::Cycle, "number of nodes evaluated"),
    variable("nodes", Reach::Cycle, "number of nodes"),
    variable("chosen", Reach::Cycle, "the chosen node's name"),
    variable("nominated", Reach::Cycle, "the nominated node's name"),
    variable("victims", Reach::Cycle, "number of pods that preemption evicts"),
    variable("ties", Reach::Cycle, "number of nodes with the best total"),
    variable("message", Reach::Message, "the plugin's message; without one, the pod's"),
    variable("plugin", Reach::Answer, "the plugin's name"),
    variable("point", Reach::Answer, "the extension point's name"),
    variable("verdict", Reach::Answer, "the plugin's status: Success, Unschedulable, Skip, Wait, …"),
    variable("score", Reach::Score, "the plugin's normalized score, 0 to 100"),
    variable("raw", Reach::Score, "the plugin's score before normalizing"),
    variable("weighted", Reach::Score, "the plugin's normalized score times its weight"),
    variable("total", Reach::Total, "the node's total score"),
    variable("node", Reach::Node, "the node: name, labels, free, allocatable, requested, pods"),
    variable("from", Reach::Move, "the queue the pod leaves"),
    variable("to", Reach::Move, "the queue the pod enters"),
    variable("event", Reach::Move, "the event that moved the pod"),
    variable("value", Reach::Watch, "the watched value"),
    variable("before", Reach::Watch, "the watched value before the change"),
];

impl Variable {
    /// All values that it can have; `None` if it can have others.
    pub fn values(&self) -> Option<Vec<&'static str>> {
        let queues = || QueueName::ALL.map(QueueName::as_str).to_vec();
        match self.name {
            "outcome" => Some(Outcome::ALL.map(Outcome::as_str).to_vec()),
            "point" => Some(POINTS.map(ExtensionPoint::name).to_vec()),
            "verdict" => Some(Code::ALL.map(Code::as_str).to_vec()),
            "from" | "to" => Some(queues()),
            _ => None,
        }
    }
}

/// A plugin's status, or the verdict of a node.
#[derive(Clone, Copy, Debug)]
pub struct StatusFacts<'a> {
    /// Where the plugin was called.
    pub point: ExtensionPoint,
    /// Name of the plugin.
    pub plugin: Symbol,
    /// Code of the status, such as `Unschedulable`.
    pub code: Code,
    /// The status's reasons; empty for Success.
    pub reasons: &'a [Symbol],
}

/// The scores of a node, by a plugin and in total.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ScoreFacts {
    /// Before normalization; only if a plugin is given.
    pub raw: i64,
    /// After normalization; without a plugin the total.
    pub score: i64,
    /// Multiplied by the weight; without a plugin the total.
    pub weighted: i64,
    /// The sum over all plugins.
    pub total: i64,
}

/// A node as it was at that time.
#[derive(Clone, Copy, Debug)]
pub struct NodeFacts<'a> {
    /// `metadata.name` of the node.
    pub name: Name,
    /// Its amounts and its object.
    pub amounts: Option<&'a NodeAmounts>,
}

/// The value of a [`Subject`](super::watch::Subject), as watches compare it.
#[derive(Clone, PartialEq, Debug)]
pub enum WatchedValue {
    /// An amount of a resource.
    Amount(AmountValue),
    /// The length of a queue.
    Number(i64),
    /// A text, such as where a pod is.
    Text(String),
}

/// All that is known when a condition is evaluated. Created for each evaluation, so it only
/// borrows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Namespace and name of the pod.
    pub key: NamespacedName,
    /// The pod; `None` if it was deleted.
    pub pod: Option<&'a PodInfo>,
    /// Microseconds since the start.
    pub micros: i64,
    /// The cycle in which the hit is, if it is in one.
    pub cycle: Option<&'a CycleRecord>,
    /// The status that the hit is about, at a plugin or a node.
    pub answer: Option<StatusFacts<'a>>,
    /// Whether `message` is the plugin's and not the cycle's.
    pub message_of_answer: bool,
    /// The scores that the hit is about, at Score.
    pub score: Option<ScoreFacts>,
    /// The node that the hit is about, or that the cycle selected.
    pub node: Option<NodeFacts<'a>>,
    /// The move that the hit is, at queues.
    pub moved: Option<&'a QueueMove>,
    /// The watched value now and before.
    pub watched: Option<(&'a WatchedValue, &'a WatchedValue)>,
}

impl<'a> Facts<'a> {
    /// The facts that a cycle's record holds.
    pub fn of_cycle(record: &'a CycleRecord) -> Facts<'a> {
        Facts {
            key: record.pod,
            pod: record.info.as_deref(),
            micros: record.time.0 - START.0,
            cycle: Some(record),
            ..Facts::default()
        }
    }
}

fn text<'b>(text: &'b str) -> CowVal<'b, 'b> {
    CowVal::owned(CelString::from(text))
}

fn int<'b>(number: impl TryInto<i64>) -> CowVal<'b, 'b> {
    CowVal::owned(CelInt::from(number.try_into().unwrap_or(i64::MAX)))
}

impl VariableResolver for Facts<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        match name {
            "pod" => Some(CowVal::owned(CelRecord(PodFields { key: self.key, pod: self.pod }))),
            "seconds" => Some(CowVal::owned(CelDouble::from(self.micros as f64 / 1e6))),
            "message" => self.message(),
            "plugin" => self.plugin(),
            "point" => Some(text(self.answer?.point.name())),
            "verdict" => Some(text(self.answer?.code.as_str())),
            "score" => Some(int(self.score?.score)),
            "raw" => Some(int(self.score?.raw)),
            "weighted" => Some(int(self.score?.weighted)),
            "total" => Some(int(self.score?.total)),
            "node" => Some(CowVal::owned(CelRecord(self.node?))),
            "from" => Some(text(self.moved?.from.as_str())),
            "to" => Some(text(self.moved?.to.as_str())),
            "event" => Some(text(self.moved?.event.as_str())),
            "value" => Some(watched(self.watched?.0)),
            "before" => Some(watched(self.watched?.1)),
            _ => of_cycle(self.cycle?, name),
        }
    }
}

impl Facts<'_> {
    fn message(&self) -> Option<CowVal<'_, '_>> {
        match self.answer.filter(|_| self.message_of_answer) {
            Some(StatusFacts { reasons: [only], .. }) => Some(text(only.as_str())),
            Some(answer) => {
                let reasons: Vec<&str> = answer.reasons.iter().map(|r| r.as_str()).collect();
                Some(CowVal::owned(CelString::from(reasons.join(", "))))
            }
            None => Some(text(&self.cycle?.message)),
        }
    }

    fn plugin(&self) -> Option<CowVal<'_, '_>> {
        let moved = self.moved.map(|moved| moved.plugin.unwrap_or_default());
        Some(text(self.answer.map(|answer| answer.plugin).or(moved)?.as_str()))
    }
}

fn of_cycle<'b>(cycle: &'b CycleRecord, name: &str) -> Option<CowVal<'b, 'b>> {
    let victims = cycle.preemption.as_ref().map_or(0, |candidate| candidate.victims.len());
    Some(match name {
        "cycle" => int(cycle.cycle),
        "attempts" => int(cycle.attempt),
        "profile" => text(cycle.profile.as_str()),
        "outcome" => text(cycle.outcome.as_str()),
        "feasible" => int(cycle.feasible_count()),
        "evaluated" => int(cycle.evaluated_nodes),
        "nodes" => int(cycle.nodes.order.len()),
        "chosen" => name_of(cycle.node),
        "nominated" => name_of(cycle.nominated_node),
        "victims" => int(victims),
        "ties" => int(cycle.tied),
        _ => return None,
    })
}

fn name_of<'b>(node: Option<Name>) -> CowVal<'b, 'b> {
    CowVal::owned(CelString::from(node.unwrap_or_default().text().into_string()))
}

fn watched<'b>(value: &'b WatchedValue) -> CowVal<'b, 'b> {
    match value {
        WatchedValue::Amount(amount) => CowVal::Borrowed(amount),
        WatchedValue::Number(number) => int(*number),
        WatchedValue::Text(words) => text(words),
    }
}

/// The fields of `pod`.
#[derive(Clone, Copy, Debug)]
struct PodFields<'a> {
    key: NamespacedName,
    pod: Option<&'a PodInfo>,
}

impl HasFields for PodFields<'_> {
    const NAMES: &'static [&'static str] =
        &["name", "namespace", "uid", "labels", "priority", "scheduler", "requests"];

    fn field<'v>(&self, name: &str) -> Option<Box<dyn Val + 'v>>
    where
        Self: 'v,
    {
        let text = |text: &str| Box::new(CelString::from(text.to_owned()));
        Some(match name {
            "name" => text(&self.key.name.text()),
            "namespace" => text(&self.key.namespace),
            "uid" => Box::new(CelString::from(self.pod?.uid().to_string())),
            "labels" => Box::new(LabelMap::new(&self.pod?.pod.metadata.labels)),
            "priority" => Box::new(CelInt::from(i64::from(self.pod?.priority()))),
            "scheduler" => text(&self.pod?.pod.spec.scheduler_name),
            "requests" => Box::new(CelRecord(Amounts(&self.pod?.resource.resource))),
            _ => return None,
        })
    }
}

impl HasFields for NodeFacts<'_> {
    const NAMES: &'static [&'static str] =
        &["name", "labels", "cordoned", "free", "allocatable", "requested", "pods"];

    fn field<'v>(&self, name: &str) -> Option<Box<dyn Val + 'v>>
    where
        Self: 'v,
    {
        let object: Option<&Node> = self.amounts.and_then(|amounts| amounts.object.as_deref());
        Some(match name {
            "name" => Box::new(CelString::from(self.name.text().into_string())),
            "labels" => Box::new(LabelMap::new(&object?.metadata.labels)),
            "cordoned" => Box::new(CelBool::from(object?.spec.unschedulable)),
            "free" => Box::new(CelRecord(Amounts(&self.amounts?.free))),
            "allocatable" => Box::new(CelRecord(Amounts(&self.amounts?.allocatable))),
            "requested" => Box::new(CelRecord(OwnAmounts(self.amounts?.requested()))),
            "pods" => Box::new(CelInt::from(self.amounts?.pods as i64)),
            _ => return None,
        })
    }
}
