//! The inputs of a session: applied again in the same order to the same cluster, they give the same
//! bytes.
//!
//! Everything that changes the cluster is an [`Input`], so a session's log describes it completely.
//! Answers of extenders come from outside: they are stored with the input and returned again when
//! it is replayed.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::edit::{Applied, Edit, EditError};
use crate::trace::Entry;
use kubestep_api::intern::Symbol;
use kubestep_api::{Time, Uid};
use kubestep_cluster::moments::{Mark, MomentTarget};
use kubestep_cluster::{ExtenderFn, World};
use kubestep_framework::host::ApiEvent;
use kubestep_framework::record::{CycleRecord, HintRecord, QueueMove, QueueName};
use kubestep_scheduler::what_if::ReplayHint;

/// An input of a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// One scheduling cycle, of the pod at the head of the active queue.
    Cycle,
    /// The clock advances by so many microseconds, and due timers fire.
    Advance(i64),
    /// A waiting pod is allowed.
    Allow {
        /// UID of the pod.
        uid: Uid,
        /// The plugin whose wait ends; `None`: all.
        plugin: Option<Symbol>,
    },
    /// A waiting pod is rejected.
    Reject {
        /// UID of the pod.
        uid: Uid,
        /// The plugin in whose name it is rejected.
        plugin: Symbol,
        /// The reason in the status of the rejection.
        message: Arc<str>,
    },
    /// Anything else: edits, faults, updates from a live cluster.
    Change(Arc<dyn Change>),
}

impl Input {
    /// What it is, in a few words.
    pub fn describe(&self) -> String {
        match self {
            Input::Cycle => "scheduling cycle".into(),
            Input::Advance(_) => "the clock advanced".into(),
            Input::Allow { .. } => "a waiting pod was allowed".into(),
            Input::Reject { .. } => "a waiting pod was rejected".into(),
            Input::Change(change) => change.describe(),
        }
    }
}

/// A change of the cluster from outside. It must depend only on itself and the cluster: applied
/// again to the same state, it must lead to the same state.
pub trait Change: fmt::Debug + Send + Sync {
    /// What it is, in a few words: `node-3 cordoned`.
    fn describe(&self) -> String;

    /// Whether it never fails, so that nothing has to be undone.
    fn cannot_fail(&self) -> bool {
        false
    }

    /// Whether it sets the version of kube-scheduler or a feature gate.
    fn sets_gates(&self) -> bool {
        false
    }

    /// Approximate memory that only this change holds once the cluster has changed further, in
    /// bytes.
    fn bytes(&self) -> usize {
        0
    }

    /// Applies the change.
    ///
    /// # Errors
    /// It cannot be applied. The session then continues with the cluster as it was before.
    fn apply(&self, world: &mut World) -> Result<(), EditError>;
}

/// An answer of an extender.
pub(super) type ExtenderResult = Result<Value, String>;

/// The effects of an input.
#[derive(Default)]
pub(super) struct InputEffect {
    /// The cycle it ran, if it was one.
    pub record: Option<Arc<CycleRecord>>,
    /// Cycles whose pod waited at Permit and that ended now, and the other cycles of a pod group.
    pub finished: Vec<Arc<CycleRecord>>,
    /// Moves, hints and events for people, in order.
    pub entries: Vec<Entry>,
    /// How many of them came before the cycle: its pods left the queue.
    pub lead: usize,
    /// The answers of extenders.
    pub answers: Vec<ExtenderResult>,
}

/// Applies an input for the first time; `hands`, if given, answers calls of extenders instead of
/// the cluster's own function. `None` if there was nothing to do: no pod can be popped, or the pod
/// does not wait.
///
/// # Errors
/// A change cannot be applied; the cluster is as before.
pub(super) fn perform(
    world: &mut World,
    input: &Input,
    hands: Option<&ExtenderFn>,
) -> Result<Option<InputEffect>, EditError> {
    let (result, answers) = noting_answers(world, hands, |world| run(world, input));
    Ok(result?.map(|effect| InputEffect { answers, ..effect }))
}

/// Applies an edit for the first time, as [`perform`] does; also returns its side effects.
///
/// # Errors
/// It cannot be applied; the cluster is as before.
pub(super) fn perform_edit(
    world: &mut World,
    edit: &Edit,
    hands: Option<&ExtenderFn>,
) -> Result<(Applied, InputEffect), EditError> {
    let (result, answers) = noting_answers(world, hands, |world| -> Result<Applied, EditError> {
        let mut changed = world.clone();
        let applied = edit.apply(&mut changed)?;
        *world = changed;
        Ok(applied)
    });
    Ok((result?, InputEffect { answers, ..collect(world, None) }))
}

/// Runs `act`; returns its result, and what extenders answered meanwhile.
fn noting_answers<T>(
    world: &mut World,
    hands: Option<&ExtenderFn>,
    act: impl FnOnce(&mut World) -> T,
) -> (T, Vec<ExtenderResult>) {
    let Some(original) = world.api().extenders().cloned() else { return (act(world), Vec::new()) };
    let tape: Arc<Mutex<Vec<ExtenderResult>>> = Arc::default();
    let (recording, asked) = (tape.clone(), hands.unwrap_or(&original).clone());
    let record: ExtenderFn = Arc::new(move |call, objects| {
        let answer = asked(call, objects);
        recording.lock().unwrap_or_else(PoisonError::into_inner).push(answer.clone());
        answer
    });
    world.api_mut().set_extenders(record);
    let result = act(world);
    world.api_mut().set_extenders(original);
    let answers = mem::take(&mut *tape.lock().unwrap_or_else(PoisonError::into_inner));
    (result, answers)
}

/// Applies an input again, with the extenders' first answers.
pub(super) fn repeat(world: &mut World, input: &Input, answers: &[ExtenderResult]) -> InputEffect {
    let original = world.api().extenders().cloned();
    if original.is_some() {
        let left = Mutex::new(VecDeque::from(answers.to_vec()));
        world.api_mut().set_extenders(Arc::new(move |_, _| {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            next.unwrap_or_else(|| Err("the extender was not called the first time".into()))
        }));
    }
    // What succeeded once succeeds again.
    let effect = run(world, input).ok().flatten().unwrap_or_default();
    if let Some(original) = original {
        world.api_mut().set_extenders(original);
    }
    effect
}

/// Like [`repeat`]; returns the cluster at a moment of the input, with the effects.
pub(super) fn repeat_until(
    world: World,
    input: &Input,
    answers: &[ExtenderResult],
    moment: MomentTarget,
) -> (World, InputEffect) {
    world.at_moment(moment, |world| repeat(world, input, answers))
}

/// Runs a cycle again without its matrices, as enough is known of it.
pub(super) fn repeat_known(world: &mut World, known: &ReplayHint) {
    world.step_again(known);
    // Its effects are recorded already.
    collect(world, None);
}

fn run(world: &mut World, input: &Input) -> Result<Option<InputEffect>, EditError> {
    let mut record = None;
    let done = match input {
        Input::Cycle => {
            record = world.step();
            record.is_some()
        }
        Input::Advance(micros) => {
            world.advance(*micros);
            true
        }
        Input::Allow { uid, plugin } => world.allow(*uid, *plugin),
        Input::Reject { uid, plugin, message } => world.reject(*uid, *plugin, message),
        Input::Change(change) if change.cannot_fail() => {
            change.apply(world)?;
            true
        }
        Input::Change(change) => {
            let mut changed = world.clone();
            change.apply(&mut changed)?;
            *world = changed;
            true
        }
    };
    Ok(done.then(|| collect(world, record)))
}

/// Takes the effects since the last call out of the cluster's records.
pub(super) fn collect(world: &mut World, record: Option<Arc<CycleRecord>>) -> InputEffect {
    let now = world.now();
    let finished = world.scheduler_mut().take_finished().into_iter().map(Arc::new).collect();
    let taken = world.take_moments();
    let queue = world.scheduler_mut().queue_mut();
    let moves: VecDeque<_> = queue.drain_moves().into();
    let hints: VecDeque<_> = queue.drain_hints().into();
    world.api_mut().take_deleted_pods();
    let events: VecDeque<_> = world.api_mut().take_events().into();
    let lead = if record.is_some() { taken.popped } else { 0 };
    let entries = RecordedEvents { moves, hints, events }.in_order(&taken.marks, now);
    InputEffect { record, finished, entries, lead, answers: Vec::new() }
}

/// What a step recorded, each kind in order.
struct RecordedEvents {
    moves: VecDeque<QueueMove>,
    hints: VecDeque<HintRecord>,
    events: VecDeque<ApiEvent>,
}

impl RecordedEvents {
    /// All entries in the order in which they happened.
    fn in_order(mut self, marks: &[Mark], now: Time) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut before = Mark::default();
        let rest = Mark { moves: usize::MAX, hints: usize::MAX, events: usize::MAX };
        for mark in marks.iter().chain([&rest]) {
            let some = |all: usize, of: usize| of.min(all);
            let moves = some(self.moves.len(), mark.moves.saturating_sub(before.moves));
            let hints = some(self.hints.len(), mark.hints.saturating_sub(before.hints));
            let events = some(self.events.len(), mark.events.saturating_sub(before.events));
            let moves = self.moves.drain(..moves).collect();
            moves_and_hints(moves, self.hints.drain(..hints).collect(), &mut entries);
            let events = self.events.drain(..events);
            entries.extend(events.map(|event| Entry::Event(now, event)));
            before = *mark;
        }
        entries
    }
}

/// Appends both, each hint before the move it led to: the cause comes before its effect.
fn moves_and_hints(
    moves: Vec<QueueMove>,
    mut hints: VecDeque<HintRecord>,
    entries: &mut Vec<Entry>,
) {
    for moved in moves {
        let causes = causes(&hints, &moved);
        entries.extend(hints.drain(..causes).map(Entry::Hint));
        entries.push(Entry::Move(moved));
    }
    entries.extend(hints.into_iter().map(Entry::Hint));
}

/// The number of hints before the move: those up to the one that led to it.
fn causes(hints: &VecDeque<HintRecord>, moved: &QueueMove) -> usize {
    let by_hint = moved.plugin.filter(|_| moved.to != QueueName::Gated);
    let led = |hint: &HintRecord| by_hint == Some(hint.plugin) && hint.pod == moved.pod;
    by_hint.and_then(|_| hints.iter().position(led)).map_or(0, |at| at + 1)
}
