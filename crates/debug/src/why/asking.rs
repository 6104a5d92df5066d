//! Asking a session: the answer where the debugger stands, with the states that it needs from
//! the past.

use std::sync::Arc;

use super::{
    EarlierRejection, PreFilterRejection, Reason, Why, WhyQuestion, attempts, before_any_node,
};
use crate::Session;
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome};

/// Why the pod is where it is at the session's position. Of a pod that a cycle placed, the state
/// before that cycle is restored, and the one before the cycle in which it preempted others.
/// `nodes` are looked at in any case. `None` if there is no such pod then.
pub fn ask(session: &mut Session, pod: NamespacedName, nodes: &[Name]) -> Option<Why> {
    let world = session.world_at_position().clone();
    let records = attempts(&world, session.history(), world.api().objects().pod(pod)?);
    make_last_whole(session, &records);
    let placed = |record: &&Arc<CycleRecord>| {
        matches!(record.outcome, Outcome::Scheduled | Outcome::Waiting)
    };
    let before = records.iter().rev().find(placed);
    let before = before.and_then(|record| state_before(session, record));
    let preempted = |record: &&Arc<CycleRecord>| record.preemption.is_some();
    let preempting = records.iter().rev().find(preempted);
    let preempting = preempting.and_then(|record| state_before(session, record));
    let mut why = WhyQuestion {
        world: &world,
        history: session.history(),
        pod,
        before: before.as_ref().map(|(world, record)| (world.as_ref(), record.as_ref())),
        preempting: preempting.as_ref().map(|(world, record)| (world.as_ref(), record.as_ref())),
        nodes,
    }
    .answer()?;
    if let Some((_, placed)) = &before {
        why.rejected_before = earlier_rejection(session, &records, placed.cycle);
    }
    Some(why)
}

/// Why the pod is where it is at the end of the session, with the cluster as it is then. `None` if
/// there is no such pod.
pub fn ask_now(session: &mut Session, pod: NamespacedName) -> Option<Why> {
    let object = session.world().api().objects().pod(pod)?;
    let records = attempts(session.world(), session.history(), object);
    make_last_whole(session, &records);
    let (world, history) = (session.world(), session.history());
    WhyQuestion { world, history, pod, before: None, preempting: None, nodes: &[] }.answer()
}

/// Answers read the last cycle in the recording, with nothing left out.
fn make_last_whole(session: &mut Session, records: &[Arc<CycleRecord>]) {
    if let Some(last) = records.last() {
        session.whole_record(last.cycle);
    }
}

/// The last attempt before the cycle `placed` that a plugin rejected before any node was evaluated.
/// Its message has no amounts, so its plugins explain it by the state before that cycle.
fn earlier_rejection(
    session: &mut Session,
    records: &[Arc<CycleRecord>],
    placed: u64,
) -> Option<EarlierRejection> {
    let rejected = |record: &&Arc<CycleRecord>| {
        record.pre_filter.iter().any(|answer| answer.status.is_rejected())
    };
    let record = records.iter().rev().filter(|record| record.cycle < placed).find(rejected)?;
    let (world, record) = state_before(session, record)?;
    let ahead = before_any_node(&world, record.pod)?;
    let reasons: Vec<Reason> = ahead.iter().filter(|ahead| ahead.rejects()).map(reason).collect();
    (!reasons.is_empty()).then_some(EarlierRejection {
        cycle: record.cycle,
        attempt: record.attempt,
        reasons,
    })
}

fn reason(ahead: &PreFilterRejection) -> Reason {
    let causes: Vec<String> = ahead.causes.iter().map(|cause| cause.text()).collect();
    Reason { plugin: ahead.plugin, text: causes.join("; ") }
}

/// What a cycle found: the same for its pod, by the state before it. `nodes` are looked at in
/// any case. `None` if there is no such cycle.
pub fn ask_of_cycle(session: &mut Session, cycle: u64, nodes: &[Name]) -> Option<Why> {
    let record = session.history().cycle(cycle)?.clone();
    let (world, record) = state_before(session, &record)?;
    WhyQuestion {
        world: &world,
        history: session.history(),
        pod: record.pod,
        before: Some((world.as_ref(), record.as_ref())),
        preempting: None,
        nodes,
    }
    .answer()
}

/// The state before a cycle, and its record with nothing left out.
fn state_before(
    session: &mut Session,
    record: &Arc<CycleRecord>,
) -> Option<(Arc<World>, Arc<CycleRecord>)> {
    let stop = session.timeline().stop_of_cycle(record.cycle)?;
    let step = session.timeline().stops().get(stop)?.step;
    let record = session.whole_record(record.cycle).unwrap_or_else(|| record.clone());
    Some((session.world_at(step.checked_sub(1)?), record))
}

#[cfg(test)]
mod tests {
    use kubestep_api::{Kind, Pod};
    use kubestep_framework::host::ExtenderCall;
    use kubestep_framework::objects::Objects;
    use kubestep_framework::testing::{NodeBuilder as _, PodBuilder as _, key, node, pod};

    use serde_json::json;

    use super::*;
    use crate::Change;
    use crate::edit::EditError;
    use crate::edit::tests::{edit, world};
    use crate::why::score::Formula;
    use crate::why::{Basis, PodLocation};

    fn web(uid: &str, cpu: &str) -> Pod {
        let mut web = pod("web-0").requests("cpu", cpu);
        web.metadata.uid = uid.into();
        web
    }

    /// A controller deletes the pod and creates one of the same name.
    #[derive(Debug)]
    struct Replaced(Pod);

    impl Change for Replaced {
        fn describe(&self) -> String {
            "replaced".to_owned()
        }

        fn apply(&self, world: &mut World) -> Result<(), EditError> {
            world.delete(Kind::Pod, key("web-0"));
            world.create(self.0.clone().into());
            Ok(())
        }
    }

    #[test]
    fn a_pod_is_not_explained_by_the_cycles_of_an_earlier_one_of_its_name() {
        let mut world = world("");
        world.create(node("n").offers("cpu", "4").into());
        world.create(web("first", "1").into());
        let mut session = Session::new(world);
        session.run_until_idle(usize::MAX, |_| false);
        let first = ask(&mut session, key("web-0"), &[]).unwrap();
        assert!(matches!(first.place, PodLocation::Bound { .. }));
        assert_eq!(first.basis, Basis::Cycle { cycle: 1 });
        session.change(Arc::new(Replaced(web("second", "8")))).unwrap();
        session.run_until_idle(usize::MAX, |_| false);
        let second = ask(&mut session, key("web-0"), &[]).unwrap();
        assert_eq!((second.basis, second.attempts.len()), (Basis::Now, 1));
        assert_eq!(ask_now(&mut session, key("web-0")), Some(second));
    }

    /// Upstream scores a node that an extender returned as an object without what is on it.
    #[test]
    fn scores_of_nodes_that_an_extender_returned_are_explained_without_their_pods() {
        let mut world = world("");
        for name in ["n", "m"] {
            world.create(node(name).offers("cpu", "4").into());
        }
        world.create(pod("p").on("n").requests("cpu", "2").into());
        world.create(web("w", "1").into());
        let extender = "config {apiVersion: kubescheduler.config.k8s.io/v1, kind: \
            KubeSchedulerConfiguration, extenders: [{urlPrefix: 'http://one', filterVerb: f}]}";
        edit(extender).apply(&mut world).unwrap();
        let all = |call: &ExtenderCall, _: &Objects| Ok(json!({"Nodes": call.body["Nodes"]}));
        world.api_mut().set_extenders(Arc::new(all));
        let mut session = Session::new(world);
        session.run_until_idle(usize::MAX, |_| false);
        let placement = ask(&mut session, key("web-0"), &[]).unwrap().placement.unwrap();
        assert!(placement.as_returned);
        let fit = |node: &str| {
            let of = |it: &&Formula| it.plugin == "NodeResourcesFit" && it.node.text() == node;
            placement.formulas.iter().find(of).unwrap().inputs.clone()
        };
        assert_eq!(fit("n"), fit("m"), "both count as empty");
    }
}
