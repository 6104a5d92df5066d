//! Manual decisions about pods that wait at Permit, and their effects: what was unreserved, where
//! the pod went and why, and which pods were requeued.

use std::collections::BTreeSet;

use crate::input::Input;
use crate::ledger::NodeAmounts;
use crate::session::Session;
use crate::trace::Entry;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, ObjectKey};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{HintRecord, Outcome, QueueMove, QueueName};
use kubestep_framework::resource::Resource;
use kubestep_scheduler::WaitingPod;

/// A manual decision about a pod that waits at Permit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ManualDecision {
    /// Allows the pod on behalf of one plugin, or of all.
    Allow(Option<Symbol>),
    /// Rejects the pod on behalf of the first plugin that holds it.
    Reject(String),
}

/// The effect of a decision on one pod and on the cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionEffect {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The node that was reserved for it.
    pub node: Name,
    /// The plugin on whose behalf it was rejected or allowed; `None`: all.
    pub plugin: Option<Symbol>,
    /// The plugins that still hold it.
    pub held: Vec<Symbol>,
    /// The outcome of its cycle, once nothing holds it, and the message.
    pub outcome: Option<(Outcome, String)>,
    /// The resources that became free on the node.
    pub freed: Resource,
    /// The free resources of the node now; `None` if it was deleted.
    pub free: Option<Resource>,
    /// Volumes and claims whose reservation for the pod was undone.
    pub unreserved: Vec<ObjectKey>,
    /// The moves of the pod itself.
    pub moves: Vec<QueueMove>,
    /// When it is retried at the latest; `None` if no timer does.
    pub until: Option<kubestep_api::Time>,
    /// The pods that were requeued by it.
    pub requeued: Vec<QueueMove>,
    /// The hints for pods that stay where they are.
    pub passed_over: Vec<HintRecord>,
}

/// Applies a decision; `None` if the pod does not wait at Permit, or not for that plugin.
pub fn decide(
    session: &mut Session,
    pod: NamespacedName,
    decision: &ManualDecision,
) -> Option<DecisionEffect> {
    let waiting = waiting(session.world(), pod)?;
    let (uid, node, first) = (waiting.pod().uid(), waiting.node(), waiting.holds().first()?.plugin);
    let before = NodeState::of(session.world(), node);
    let (input, plugin) = match decision {
        ManualDecision::Allow(plugin) => (Input::Allow { uid, plugin: *plugin }, *plugin),
        ManualDecision::Reject(message) => {
            let message = message.as_str().into();
            (Input::Reject { uid, plugin: first, message }, Some(first))
        }
    };
    session.apply(input).ok().filter(|done| *done)?;
    Some(look_back(session, pod, node, plugin, &before))
}

/// The pod, if it waits at Permit.
fn waiting(world: &World, pod: NamespacedName) -> Option<&WaitingPod> {
    let mut all = world.scheduler().waiting().iter();
    all.find(|waiting| waiting.pod().key() == pod && waiting.in_pre_bind().is_none())
}

/// The state that a decision can change.
struct NodeState {
    amounts: Option<NodeAmounts>,
    reserved: BTreeSet<ObjectKey>,
}

impl NodeState {
    fn of(world: &World, node: Name) -> NodeState {
        let mut nodes = world.scheduler().cache().nodes();
        let amounts = nodes.find(|info| info.name == node).map(|info| NodeAmounts::of(info));
        NodeState { amounts, reserved: world.scheduler().reserved_objects() }
    }
}

/// The effect of the newest step.
fn look_back(
    session: &Session,
    pod: NamespacedName,
    node: Name,
    plugin: Option<Symbol>,
    before: &NodeState,
) -> DecisionEffect {
    let world = session.world();
    let after = NodeState::of(world, node);
    let held = waiting(world, pod)
        .map_or(Vec::new(), |waiting| waiting.holds().iter().map(|hold| hold.plugin).collect());
    let record = session.history().cycles_of(pod).next_back().filter(|_| held.is_empty());
    let outcome = record.map(|record| (record.outcome, record.message.clone()));
    let kept = [Outcome::Scheduled, Outcome::Waiting];
    let gave_back = outcome.as_ref().is_some_and(|(outcome, _)| !kept.contains(outcome));
    let mut freed = Resource::default();
    if let (Some(before), Some(after)) = (&before.amounts, &after.amounts) {
        freed = after.free.clone();
        freed.accumulate(&before.free, -1);
        // The number of pods is not part of their requests.
        freed.allowed_pods = after.free.allowed_pods - before.free.allowed_pods;
    }
    let open = before.reserved.difference(&after.reserved).filter(|_| gave_back);
    let (moves, passed_over) = reported(session);
    let (moves, requeued) = moves.into_iter().partition(|moved| moved.pod == pod);
    DecisionEffect {
        pod,
        node,
        plugin,
        held,
        outcome,
        freed,
        free: after.amounts.map(|amounts| amounts.free),
        unreserved: open.copied().collect(),
        moves,
        until: until(world, pod),
        requeued,
        passed_over,
    }
}

/// The moves of the newest step, and the hints that led to no move.
fn reported(session: &Session) -> (Vec<QueueMove>, Vec<HintRecord>) {
    let entries = session.timeline().steps().last().map(|step| step.entries.clone());
    let entries = entries.unwrap_or_default();
    let (mut moves, mut hints) = (Vec::new(), Vec::new());
    for entry in session.history().entries().range(entries.start as usize..entries.end as usize) {
        match entry.as_ref() {
            Entry::Move(moved) => moves.push(moved.clone()),
            Entry::Hint(hint) => hints.push(hint.clone()),
            _ => {}
        }
    }
    let moved = |hint: &HintRecord| moves.iter().any(|moved| moved.pod == hint.pod);
    hints.retain(|hint| !moved(hint));
    (moves, hints)
}

/// When a timer of the queue retries the pod.
fn until(world: &World, pod: NamespacedName) -> Option<kubestep_api::Time> {
    let queue = world.scheduler().queue();
    let queued = queue.get(pod)?;
    let settings = queue.settings();
    match queue.queue_of(pod) {
        QueueName::Backoff => queued.backoff_expiration.map(|end| settings.backoff_release(end)),
        QueueName::Unschedulable => Some(settings.flush_time(queued.timestamp)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::{NODES, container, edit, world};
    use kubestep_framework::record::intervention::HOLD;
    use kubestep_framework::testing::key;

    fn session() -> Session {
        let pods: String = ["p", "q"]
            .map(|name| {
                let spec = container("resources: {requests: {cpu: 3, memory: 1Gi}}");
                let meta = format!("name: {name}, namespace: default, labels: {{app: {name}}}");
                format!("---\n{{kind: Pod, metadata: {{{meta}}}, spec: {{{spec}}}}}\n")
            })
            .concat();
        let mut session = Session::new(world(&format!("{NODES}{pods}")));
        for text in ["cordon node b", "hold app=p for 5m"] {
            session.change(std::sync::Arc::new(edit(text))).unwrap();
        }
        session.run_until_idle(10, |_| false);
        session
    }

    #[test]
    fn a_held_pod_keeps_its_place_under_our_own_name() {
        let session = session();
        let waiting = waiting(session.world(), key("p")).unwrap();
        let holds: Vec<_> = waiting.holds().iter().map(|hold| hold.plugin.as_str()).collect();
        assert_eq!(holds, [HOLD]);
        assert_eq!(waiting.holds()[0].deadline.0 - waiting.since().0, 300_000_000);
        let record = session.history().cycles_of(key("p")).next_back().unwrap();
        assert_eq!(record.permit.last().unwrap().status.message(), "held manually at Permit");
        let other = session.history().cycles_of(key("q")).next_back().unwrap();
        assert_eq!(other.outcome, Outcome::Unschedulable, "the room is taken");
    }

    #[test]
    fn rejecting_gives_the_room_back_and_wakes_who_waits_for_it() {
        let mut session = session();
        let decision = ManualDecision::Reject("not today".into());
        let decided = decide(&mut session, key("p"), &decision).unwrap();
        assert_eq!(decided.plugin.unwrap(), HOLD);
        assert_eq!((decided.freed.milli_cpu, decided.freed.memory), (3_000, 1 << 30));
        assert_eq!(decided.freed.allowed_pods, 1);
        assert_eq!(decided.outcome.unwrap().0, Outcome::Unschedulable);
        assert_eq!(decided.moves.last().unwrap().to, QueueName::Unschedulable);
        assert!(decided.until.is_some());
        let requeued: Vec<_> = decided.requeued.iter().map(|moved| moved.pod).collect();
        assert_eq!(requeued, [key("q")]);
        assert!(decide(&mut session, key("p"), &decision).is_none(), "it waits no more");
        // Replaying the log leads to the same state.
        let step = session.step();
        let [first, again] = [session.world_at(step), {
            session.go_to_stop(0);
            session.world_at(step)
        }];
        let places = |world: &World| ["p", "q"].map(|p| world.scheduler().queue().queue_of(key(p)));
        assert_eq!(places(&first), places(&again));
    }

    #[test]
    fn allowing_binds_it_and_releasing_lets_all_go() {
        let mut session = session();
        let decided =
            decide(&mut session, key("p"), &ManualDecision::Allow(Some(HOLD.into()))).unwrap();
        assert_eq!(decided.outcome.unwrap().0, Outcome::Scheduled);
        assert!(decided.unreserved.is_empty() && decided.requeued.is_empty());
        assert_eq!(decided.freed.milli_cpu, 0);
        let mut held = self::session();
        let released = edit("release app=p");
        let applied = released.apply(&mut held.world().clone()).unwrap();
        assert_eq!(applied.notes, ["1 waiting pod continues"]);
        held.change(std::sync::Arc::new(released)).unwrap();
        assert!(held.world().scheduler().waiting().is_empty());
        let error = edit("release").apply(&mut held.world().clone()).unwrap_err();
        assert_eq!(error.to_string(), "no pod is held manually");
    }
}
