//! A log of queueing hints for display: every answer that requeues a pod, and each other answer
//! only once between two moves of the pod, so that many waiting pods in a busy cluster do not fill
//! the memory with repeated answers.

use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;
use smallvec::SmallVec;

use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::events::{ClusterEvent, HintResult, QueueingHint};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::HintRecord;

/// The names of the answers, as upstream's metrics label them.
struct Answers {
    queue: Symbol,
    skip: Symbol,
    error: Symbol,
}

static ANSWERS: LazyLock<Answers> = LazyLock::new(|| Answers {
    queue: "Queue".into(),
    skip: "QueueSkip".into(),
    error: "Error".into(),
});

/// The name of an answer.
pub(super) fn name(answer: &HintResult) -> Symbol {
    match answer {
        Ok(QueueingHint::Queue) => ANSWERS.queue,
        Ok(QueueingHint::Skip) => ANSWERS.skip,
        Err(_) => ANSWERS.error,
    }
}

/// Plugin and event of the answers that did not requeue the pod.
type SkippedHints = SmallVec<[(Symbol, ClusterEvent); 4]>;

/// The answers since the last call of [`HintLog::drain`].
#[derive(Clone, Default)]
pub(super) struct HintLog {
    records: Vec<HintRecord>,
    rejections: Arc<HashMap<NamespacedName, SkippedHints>>,
}

impl HintLog {
    /// Logs what a hint returned for a pod and an event.
    pub(super) fn note(
        &mut self,
        time: Time,
        pod: NamespacedName,
        (plugin, event): (Symbol, ClusterEvent),
        answer: &HintResult,
    ) {
        if *answer == Ok(QueueingHint::Skip) && !self.is_first_rejection(pod, plugin, event) {
            return;
        }
        let answer = name(answer);
        self.records.push(HintRecord { time, event, pod, plugin, answer });
    }

    fn is_first_rejection(
        &mut self,
        pod: NamespacedName,
        plugin: Symbol,
        event: ClusterEvent,
    ) -> bool {
        let rejection = (plugin, event);
        if self.rejections.get(&pod).is_some_and(|known| known.contains(&rejection)) {
            return false;
        }
        Arc::make_mut(&mut self.rejections).entry(pod).or_default().push(rejection);
        true
    }

    /// The pod moved: answers that did not requeue it are logged again.
    pub(super) fn forget(&mut self, pod: NamespacedName) {
        if self.rejections.contains_key(&pod) {
            Arc::make_mut(&mut self.rejections).remove(&pod);
        }
    }

    /// The number of answers since the last [`HintLog::drain`].
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Removes and returns the answers, in order.
    pub(super) fn drain(&mut self) -> Vec<HintRecord> {
        std::mem::take(&mut self.records)
    }
}
