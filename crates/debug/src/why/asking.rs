//! Asking a session: the answer where the debugger stands, with the states that it needs from
//! the past.

use std::sync::Arc;

use super::{
    EarlierRejection, PreFilterRejection, Reason, Why, WhyQuestion, before_any_node, is_under_way,
};
use crate::Session;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome};

/// Why the pod is where it is at the session's position. Of a pod that a cycle placed, the state
/// before that cycle is restored, and the one before the cycle in which it preempted others.
/// `nodes` are looked at in any case. `None` if there is no such pod then.
pub fn ask(session: &mut Session, pod: NamespacedName, nodes: &[Symbol]) -> Option<Why> {
    let world = session.world_at_position().clone();
    let so_far = world.scheduler().cycles();
    let own = session.history().cycles_of(pod).filter(|record| record.cycle <= so_far);
    let own = own.filter(|record| !is_under_way(&world, record));
    let records: Vec<Arc<CycleRecord>> = own.cloned().collect();
    if let Some(last) = records.last() {
        // The answer reads it in the recording.
        session.whole_record(last.cycle);
    }
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
pub fn ask_of_cycle(session: &mut Session, cycle: u64, nodes: &[Symbol]) -> Option<Why> {
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
