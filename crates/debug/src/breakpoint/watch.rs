//! Watches: a node's free resources, a queue's length, a pod's place, through the recording.

use std::collections::BTreeSet;
use std::fmt;

use crate::breakpoint::BreakpointError;
use crate::breakpoint::condition::Condition;
use crate::breakpoint::location;
use crate::breakpoint::recording::RecordedRun;
use crate::breakpoint::values::AmountValue;
use crate::breakpoint::variables::{Reach, WatchedValue};
use crate::ledger::NodeAmounts;
use crate::trace::{Entry, EntryId};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_config::suggest;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::resource::amount::{self, bytes, cpu};

/// What a watch compares after each step.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// What is free on a node: of one resource, or of CPU, memory and pods.
    Node {
        /// Name of the node.
        node: Name,
        /// Name of the resource; `None` for CPU, memory and pods together.
        resource: Option<Symbol>,
    },
    /// How many pods are in a queue.
    Queue(QueueName),
    /// Where a pod is.
    Pod(NamespacedName),
}

impl Subject {
    /// Reads `node:NAME [RESOURCE]`, `queue:NAME` or `pod:NAMESPACE/NAME`.
    ///
    /// # Errors
    /// It has another form, or names an unknown queue.
    pub fn parse(words: &[&str]) -> Result<Subject, BreakpointError> {
        let usage = "a watch has the form node:NAME [RESOURCE], queue:NAME or pod:NAMESPACE/NAME";
        let form = |text: &str| BreakpointError::WatchForm(text.to_owned());
        let (first, more) = words.split_first().ok_or_else(|| form(usage))?;
        let found = match first.split_once(':') {
            Some((_, "")) | None => return Err(form(usage)),
            Some(("node", node)) => {
                let resource = more.first().map(|resource| Symbol::new(resource));
                return match more.len() {
                    0 | 1 => Ok(Subject::Node { node: node.into(), resource }),
                    _ => Err(form(&format!("{usage}; one resource per watch"))),
                };
            }
            Some(("queue", "none")) => return Err(form("none is not a queue")),
            Some(("queue", queue)) => Subject::Queue(location::queue(queue)?),
            Some(("pod", pod)) => {
                let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
                Subject::Pod(NamespacedName::new(namespace.into(), name.into()))
            }
            Some(_) => return Err(form(usage)),
        };
        match more.first() {
            None => Ok(found),
            Some(more) => Err(form(&format!("unexpected {more:?}; {usage}"))),
        }
    }

    /// Rejects a resource that no node of a cluster has.
    ///
    /// # Errors
    /// Names the nearest one.
    pub fn check_resource(&self, world: &World) -> Result<(), BreakpointError> {
        let Subject::Node { resource: Some(resource), .. } = self else { return Ok(()) };
        let nodes = || world.scheduler().cache().nodes();
        let names = |node: &NodeInfo| {
            let parts = amount::parts(&node.allocatable).into_iter();
            parts
                .map(|(name, _)| Symbol::new(name))
                .chain([Symbol::new("pods")])
                .collect::<Vec<_>>()
        };
        let known: BTreeSet<Symbol> = nodes().flat_map(|node| names(node)).collect();
        if known.is_empty() || known.contains(resource) {
            return Ok(());
        }
        let near = suggest::closest(resource, known.iter().map(|name| name.as_str()));
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        Err(BreakpointError::UnknownResource { name: resource.to_string(), hint: near })
    }

    /// Rejects conditions on what a watch does not know.
    ///
    /// # Errors
    /// Says what it knows.
    pub fn check(&self, condition: Option<&Condition>) -> Result<(), BreakpointError> {
        let others = [
            Reach::Pod,
            Reach::Cycle,
            Reach::Message,
            Reach::Answer,
            Reach::Score,
            Reach::Total,
            Reach::Node,
            Reach::Move,
        ];
        let strange = |condition: &Condition| others.iter().any(|reach| condition.needs(*reach));
        match condition.is_some_and(strange) {
            true => Err(BreakpointError::Combination(
                "the condition of a watch can only use value and before",
            )),
            false => Ok(()),
        }
    }

    /// The value where the recording begins: before anything happened, or else before what is
    /// not forgotten.
    fn start(&self, recording: &RecordedRun<'_>) -> WatchedValue {
        match (self, recording.beginning) {
            (Subject::Node { .. }, _) => {
                self.of_node(recording, recording.history.entries().start()).unwrap_or_else(deleted)
            }
            (subject, Some(world)) => subject.value_in(world),
            (Subject::Queue(_), None) => WatchedValue::Number(0),
            (Subject::Pod(_), None) => WatchedValue::Text("none".into()),
        }
    }

    /// The value in a cluster.
    pub fn value_in(&self, world: &World) -> WatchedValue {
        match self {
            Subject::Node { node, resource } => {
                let node = world.scheduler().cache().nodes().find(|info| info.name == *node);
                node.map_or_else(deleted, |info| free(&NodeAmounts::of(info), *resource))
            }
            Subject::Queue(queue) => WatchedValue::Number(length(world, *queue)),
            Subject::Pod(pod) => WatchedValue::Text(place_in(world, *pod)),
        }
    }

    /// What was free on the node after the first `len` entries; `None` if it is not of a node.
    pub fn of_node(&self, recording: &RecordedRun<'_>, len: usize) -> Option<WatchedValue> {
        let Subject::Node { node, resource } = self else { return None };
        let amounts = recording.ledger.after(*node, len);
        Some(amounts.map_or_else(deleted, |amounts| free(amounts, *resource)))
    }

    /// The value after an entry that may have changed it; `None` if it says nothing of it.
    fn after(
        &self,
        recording: &RecordedRun<'_>,
        at: usize,
        before: &WatchedValue,
    ) -> Option<WatchedValue> {
        let entry = recording.history.get(EntryId(at as u32))?;
        match (self, entry) {
            (Subject::Node { .. }, _) => self.of_node(recording, at + 1),
            (Subject::Queue(queue), Entry::Move(moved)) => {
                let WatchedValue::Number(length) = before else { return None };
                let change = i64::from(moved.to == *queue) - i64::from(moved.from == *queue);
                Some(WatchedValue::Number(length + change))
            }
            (Subject::Pod(pod), Entry::Move(moved)) if moved.pod == *pod => {
                let bound = || last_cycle(recording, *pod, at).and_then(bound_to);
                let left = (moved.to == QueueName::None).then(bound).flatten();
                let words = left.unwrap_or_else(|| moved.to.as_str().into());
                Some(WatchedValue::Text(words))
            }
            (Subject::Pod(pod), Entry::Cycle(record)) if record.pod == *pod => {
                place(record).map(WatchedValue::Text)
            }
            _ => None,
        }
    }
}

fn deleted() -> WatchedValue {
    WatchedValue::Text("no such node".into())
}

/// How many pods are in a queue of a cluster.
fn length(world: &World, queue: QueueName) -> i64 {
    let pods = world.scheduler().queue();
    let length = match queue {
        QueueName::Active => pods.active().len(),
        QueueName::Backoff => pods.backoff().len(),
        QueueName::Unschedulable => pods.unschedulable().len(),
        QueueName::Gated => pods.gated().len(),
        QueueName::InFlight => pods.in_flight().len(),
        QueueName::None => 0,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Where a pod is in a cluster.
fn place_in(world: &World, pod: NamespacedName) -> String {
    let mut waiting = world.scheduler().waiting().iter();
    if let Some(waiting) = waiting.find(|waiting| waiting.pod().key() == pod) {
        return format!("waits for {}", waiting.node());
    }
    let object = world.api().objects().pod(pod);
    match object.map(|object| object.spec.node_name).filter(|node| !node.is_empty()) {
        Some(node) => format!("on {node}"),
        None => world.scheduler().queue().queue_of(pod).as_str().into(),
    }
}

/// Where a cycle brought its pod by its own end; a wait at Permit may end later.
fn place(record: &CycleRecord) -> Option<String> {
    let node = record.node?;
    let waits = record.permit.iter().any(|answer| answer.status.is_wait());
    match (waits, record.outcome) {
        (true, _) => Some(format!("waits for {node}")),
        (false, Outcome::Scheduled) => Some(format!("on {node}")),
        _ => None,
    }
}

/// Where the pod of a cycle is once it has left the queues for good: nowhere if it was deleted.
fn bound_to(record: &CycleRecord) -> Option<String> {
    let node = record.node.filter(|_| record.outcome == Outcome::Scheduled)?;
    Some(format!("on {node}"))
}

/// The pod's newest cycle before an entry.
fn last_cycle<'a>(
    recording: &RecordedRun<'a>,
    pod: NamespacedName,
    before: usize,
) -> Option<&'a CycleRecord> {
    let mut entries = recording.history.of_pod(pod).rev();
    let cycle = |(id, entry): (EntryId, &'a Entry)| {
        entry.as_cycle().filter(|_| (id.0 as usize) < before).map(AsRef::as_ref)
    };
    entries.find_map(cycle)
}

fn free(amounts: &NodeAmounts, resource: Option<Symbol>) -> WatchedValue {
    let of = |resource: Symbol| AmountValue::of(resource, amounts.free.amount(resource));
    match resource {
        Some(resource) => WatchedValue::Amount(of(resource)),
        None => {
            let shown =
                ["cpu", "memory", "pods"].map(|name| format!("{name} {}", shown(&of(name.into()))));
            WatchedValue::Text(shown.join(", "))
        }
    }
}

/// A watched value through the recording.
#[derive(Clone, Debug, Default)]
pub struct WatchedValues {
    start: Option<WatchedValue>,
    /// The entries after which the value was another.
    changes: Vec<(usize, WatchedValue)>,
    scanned: usize,
}

impl WatchedValues {
    /// Takes in what happened since the last time. Gives the entries that changed the value.
    pub fn update(&mut self, subject: &Subject, recording: &RecordedRun<'_>) -> Vec<usize> {
        if self.start.is_none() {
            self.start = Some(subject.start(recording));
            self.scanned = recording.history.entries().start();
        }
        let mut changed = Vec::new();
        for at in self.scanned..recording.history.len() {
            let Some(before) = self.after(at) else { continue };
            let after = subject.after(recording, at, before).filter(|after| after != before);
            if let Some(after) = after {
                self.changes.push((at, after));
                changed.push(at);
            }
        }
        self.scanned = recording.history.len();
        changed
    }

    /// Forgets what came after the first `len` entries.
    pub fn truncate(&mut self, len: usize) {
        self.changes.truncate(self.changes.partition_point(|(at, _)| *at < len));
        self.scanned = self.scanned.min(len);
    }

    /// Forgets what held only before the first `len` entries were there.
    pub fn forget(&mut self, len: usize) {
        let dropped = self.changes.partition_point(|(at, _)| *at < len);
        if let Some((_, last)) = self.changes.drain(..dropped).next_back() {
            self.start = Some(last);
        }
    }

    /// The value after the first `len` entries.
    pub fn after(&self, len: usize) -> Option<&WatchedValue> {
        let changes = self.changes.partition_point(|(at, _)| *at < len);
        match changes.checked_sub(1) {
            Some(last) => Some(&self.changes[last].1),
            None => self.start.as_ref(),
        }
    }

    /// The entries after which the value was another.
    pub fn changes(&self) -> &[(usize, WatchedValue)] {
        &self.changes
    }
}

impl fmt::Display for WatchedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchedValue::Amount(amount) => f.write_str(&shown(amount)),
            WatchedValue::Number(number) => write!(f, "{number}"),
            WatchedValue::Text(words) => f.write_str(words),
        }
    }
}

/// As everywhere: 3.75 CPUs, not 3750m; 5.3Gi, not 5376Mi.
fn shown(amount: &AmountValue) -> String {
    let written = amount.0.to_string();
    match written.as_bytes() {
        [.., b'm'] => cpu(amount.0.milli_value()),
        [.., b'i'] => bytes(amount.0.value()),
        _ => written,
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Node { node, resource: None } => write!(f, "node:{node}"),
            Subject::Node { node, resource: Some(resource) } => write!(f, "node:{node} {resource}"),
            Subject::Queue(queue) => write!(f, "queue:{}", location::queue_name(*queue)),
            Subject::Pod(pod) => write!(f, "pod:{pod}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_amounts_are_written_as_in_reports() {
        let text = |resource: &str, amount| {
            WatchedValue::Amount(AmountValue::of(resource.into(), amount)).to_string()
        };
        assert_eq!(
            [text("cpu", 3_750), text("cpu", 500), text("cpu", 4_000)],
            ["3.75", "500m", "4"]
        );
        assert_eq!(text("memory", 1 << 30), "1Gi");
    }
}
