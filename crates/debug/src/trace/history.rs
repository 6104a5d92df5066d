//! Everything that happened, as one ordered timeline: cycles, moves between queues, results of
//! queueing hints, and Kubernetes Events.
//!
//! Entries are appended at the end, cut off there when the debugger goes back in time, or dropped
//! at the start, so an [`EntryId`] means the same entry for as long as it exists. Records are
//! shared, so a view can keep one while the history grows.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::trace::offset_list::OffsetList;
use crate::trace::thin::{self, MatrixMemory, ThinLists};
use kubestep_api::Time;
use kubestep_framework::host::ApiEvent;
use kubestep_framework::objects::shards::{ShardKey as _, Shards};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, HintRecord, QueueMove};

/// Approximate memory of an entry without matrices, such as a thin record of a cycle, in bytes.
pub(crate) const ENTRY_BYTES: usize = 700;
/// Records that stay whole, whatever their size.
const WHOLE: usize = 8;
/// A node of a whole record counts as at least so many bytes, as three scores take, however much is
/// shared: breakpoints look at the nodes of all whole records, and a new branch drops those that it
/// cuts off.
const NODE_BYTES: usize = 12;
/// How many records that were cut off are dropped with each entry that follows.
const LEAVING: usize = 4;
/// The most replaced records that are remembered.
const REPLACED: usize = 8_192;

/// The index of an entry in the timeline, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u32);

impl EntryId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A scheduling cycle with its binding cycle.
    Cycle(Arc<CycleRecord>),
    /// A pod moved between queues.
    Move(QueueMove),
    /// The queueing hint of a plugin: whether an event may make a pod schedulable.
    Hint(HintRecord),
    /// A Kubernetes Event was written.
    Event(Time, ApiEvent),
}

impl Entry {
    /// The virtual time of the cycle, move, hint or event.
    pub fn time(&self) -> Time {
        match self {
            Entry::Cycle(record) => record.time,
            Entry::Move(moved) => moved.time,
            Entry::Hint(hint) => hint.time,
            Entry::Event(time, _) => *time,
        }
    }

    /// The pod it concerns.
    pub fn pod(&self) -> NamespacedName {
        match self {
            Entry::Cycle(record) => record.pod,
            Entry::Move(moved) => moved.pod,
            Entry::Hint(hint) => hint.pod,
            Entry::Event(_, event) => event.regarding,
        }
    }

    /// The cycle, if it is one.
    pub fn as_cycle(&self) -> Option<&Arc<CycleRecord>> {
        match self {
            Entry::Cycle(record) => Some(record),
            _ => None,
        }
    }

    /// The record of the cycle, if there is no other reference to it.
    fn own_cycle(&mut self) -> Option<&mut CycleRecord> {
        match self {
            Entry::Cycle(record) => Arc::get_mut(record),
            _ => None,
        }
    }
}

/// Drops the matrices of a cycle's record: in place if nothing else refers to it, which is cheaper
/// than a copy without them.
fn make_thin(entry: &mut Arc<Entry>, last: &mut ThinLists) {
    if let Some(record) = Arc::get_mut(entry).and_then(Entry::own_cycle) {
        thin::drop_matrices(record, last);
    } else if let Some(record) = entry.as_cycle() {
        *entry = Arc::new(Entry::Cycle(Arc::new(thin::thin(record, last))));
    }
}

/// The entries of one pod: as many as a cycle that binds it adds need no allocation.
type EntryIds = SmallVec<[EntryId; 6]>;

/// The timeline, with indexes by cycle number and by pod.
#[derive(Clone, Default, Debug)]
pub struct History {
    entries: OffsetList<Arc<Entry>>,
    /// Cycle entries in order; their cycle numbers ascend.
    cycles: OffsetList<EntryId>,
    by_pod: Shards<NamespacedName, EntryIds>,
    /// Numbers of the cycles with whole records, in the order they were added. A number may belong
    /// to a cycle that was cut off.
    whole: VecDeque<u64>,
    weights: Arc<MatrixMemory>,
    thin_lists: ThinLists,
    /// Whole records that were cut off. Thousands of them take long to drop, so a few go with each
    /// entry that follows; until then they count as memory.
    leaving: Vec<Arc<Entry>>,
    /// The indices among the cycles of replaced records, in order of replacement, after the number
    /// of those that were dropped.
    replaced: Vec<u32>,
    forgotten: u64,
    /// The number of the newest dropped cycle; 0: none was dropped.
    forgotten_cycle: u64,
    /// The memory budget of entries and matrices in bytes; `None`: unlimited.
    budget: Option<usize>,
}

impl History {
    /// Appends an entry and returns its id.
    pub fn push(&mut self, entry: Entry) -> EntryId {
        let id = EntryId(self.entries.end() as u32);
        self.by_pod.get_or_default(entry.pod()).push(id);
        if let Entry::Cycle(record) = &entry {
            self.cycles.push(id);
            self.count_in(&record.clone());
        }
        self.entries.push(Arc::new(entry));
        self.drop_leaving(LEAVING);
        self.keep_within_budget();
        id
    }

    /// Sets the memory budget of the timeline, in bytes; `None`: unlimited. Matrices are dropped to
    /// stay within it; entries are only dropped by [`History::forget`].
    pub(crate) fn set_budget(&mut self, bytes: Option<usize>) {
        self.budget = bytes;
        self.keep_within_budget();
    }

    /// Memory of the matrices of whole records, in bytes, with those that were cut off and are not
    /// dropped yet.
    pub fn matrix_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// What whole records count in the budget, in bytes.
    fn whole_bytes(&self) -> usize {
        self.weights.bytes().max(self.weights.nodes() * NODE_BYTES)
    }

    /// Approximate memory of the entries without matrices, in bytes.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.entries.count() * ENTRY_BYTES
    }

    fn count_in(&mut self, record: &CycleRecord) {
        if record.is_whole() {
            self.weights_mut().add(record);
            self.whole.push_back(record.cycle);
        }
    }

    fn count_out(&mut self, record: &CycleRecord) {
        if record.is_whole() {
            self.weights_mut().remove(record);
            self.unlist(record);
        }
    }

    /// A branch counts on its own from the first change on.
    fn weights_mut(&mut self) -> &mut MatrixMemory {
        Arc::make_mut(&mut self.weights)
    }

    /// The cycle is no longer among those with whole records.
    fn unlist(&mut self, record: &CycleRecord) {
        if let Some(at) = self.whole.iter().rposition(|number| *number == record.cycle) {
            self.whole.remove(at);
        }
    }

    /// Drops some of the records that were cut off.
    fn drop_leaving(&mut self, count: usize) {
        for entry in self.leaving.split_off(self.leaving.len().saturating_sub(count)) {
            if let Some(record) = entry.as_cycle() {
                self.weights_mut().remove(record);
            }
        }
    }

    /// Drops records that were cut off, then makes the oldest whole ones thin, until the budget is
    /// met.
    fn keep_within_budget(&mut self) {
        let Some(budget) = self.budget else { return };
        let budget = budget.saturating_sub(self.entry_bytes());
        while self.whole_bytes() > budget && !self.leaving.is_empty() {
            self.drop_leaving(LEAVING);
        }
        while self.whole_bytes() > budget && self.whole.len() > WHOLE {
            let Some(number) = self.whole.pop_front() else { return };
            if let Some(id) = self.entry_of_cycle(number) {
                self.thin_entry(id);
            }
        }
    }

    /// Makes the record of a cycle thin; its number is no longer among the whole ones.
    fn thin_entry(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get_mut(id.index()) else { return };
        let Some(record) = entry.as_cycle().filter(|record| record.is_whole()) else { return };
        Arc::make_mut(&mut self.weights).remove(record);
        make_thin(entry, &mut self.thin_lists);
        self.note_replaced(id);
    }

    /// Makes all records thin but the newest, as a budget of 0 does from now on, only faster.
    pub(crate) fn keep_least(&mut self) {
        self.budget = Some(0);
        self.whole.drain(..self.whole.len().saturating_sub(WHOLE));
        self.leaving = Vec::new();
        let mut weights = MatrixMemory::default();
        self.forget_replaced();
        for id in self.cycles.iter() {
            let Some(entry) = self.entries.get_mut(id.index()) else { continue };
            let Some(record) = entry.as_cycle().filter(|record| record.is_whole()) else {
                continue;
            };
            match self.whole.contains(&record.cycle) {
                true => weights.add(record),
                false => make_thin(entry, &mut self.thin_lists),
            }
        }
        self.weights = Arc::new(weights);
    }

    /// Adds the matrices of a cycle that was run again to its record, if they were dropped.
    pub fn fill(&mut self, whole: &CycleRecord) {
        let thin = self.cycle(whole.cycle).filter(|record| !record.is_whole());
        if let Some(filled) = thin.map(|record| Arc::new(thin::fill(record, whole))) {
            self.put_cycle(filled);
            self.keep_within_budget();
        }
    }

    /// Replaces the record of a cycle by a fuller one: its pod had waited at Permit and is now
    /// allowed or rejected. An unknown cycle is appended. Returns its id, and the replaced record.
    pub(crate) fn put_cycle(
        &mut self,
        record: Arc<CycleRecord>,
    ) -> (EntryId, Option<Arc<CycleRecord>>) {
        let there = self.entry_of_cycle(record.cycle);
        let before = there.and_then(|id| self.get(id)?.as_cycle().cloned());
        let Some((id, before)) = there.zip(before) else {
            return (self.push(Entry::Cycle(record)), None);
        };
        self.count_out(&before);
        self.count_in(&record);
        self.note_replaced(id);
        if let Some(entry) = self.entries.get_mut(id.index()) {
            *entry = Arc::new(Entry::Cycle(record));
        }
        (id, Some(before))
    }

    fn note_replaced(&mut self, id: EntryId) {
        if self.replaced.len() >= REPLACED {
            let forgotten = self.replaced.drain(..REPLACED / 2).count();
            self.forgotten += forgotten as u64;
        }
        let place = self.cycles.partition_point(|cycle| *cycle < id);
        self.replaced.push(place as u32);
    }

    /// How many records were replaced so far; an argument for [`History::replaced_since`].
    pub fn replaced(&self) -> u64 {
        self.forgotten + self.replaced.len() as u64
    }

    /// The indices among the cycles of all records that were replaced after the first `count`.
    /// `None`: they are not remembered any more, or cycles were cut off since.
    pub fn replaced_since(&self, count: u64) -> Option<&[u32]> {
        let first = usize::try_from(count.checked_sub(self.forgotten)?).ok()?;
        self.replaced.get(first..)
    }

    /// Restores the record that a cycle had before it completed. It may be thin. A dropped cycle is
    /// not restored.
    pub fn take_back(&mut self, record: &CycleRecord) {
        if self.has_forgotten(record.cycle) {
            return;
        }
        let present = self.cycle(record.cycle).filter(|present| present.is_whole());
        let record = match present {
            Some(present) => thin::fill(record, present),
            None => record.clone(),
        };
        self.put_cycle(Arc::new(record));
    }

    /// Number of entries, including dropped ones; the id of the next one.
    pub fn len(&self) -> usize {
        self.entries.end()
    }

    /// Number of cycles, including dropped ones.
    pub fn cycle_count(&self) -> usize {
        self.cycles.end()
    }

    /// Number of pods with entries.
    #[cfg(test)]
    pub fn pod_count(&self) -> usize {
        self.by_pod.len()
    }

    /// Number of dropped cycles.
    pub fn forgotten_cycles(&self) -> usize {
        self.cycles.start()
    }

    /// Whether the cycle of that number was dropped.
    pub fn has_forgotten(&self, number: u64) -> bool {
        number <= self.forgotten_cycle
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries before that id.
    pub fn forget(&mut self, before: EntryId) {
        let forgotten: Vec<Arc<Entry>> = self.entries.forget(before.index()).collect();
        let mut pods: Vec<NamespacedName> = forgotten.iter().map(|entry| entry.pod()).collect();
        pods.sort_unstable_by_key(|pod| pod.number());
        pods.dedup();
        for pod in pods {
            let Some(ids) = self.by_pod.get_mut(&pod) else { continue };
            ids.drain(..ids.partition_point(|id| *id < before));
            if ids.is_empty() {
                self.by_pod.remove(&pod);
            }
        }
        for record in forgotten.iter().filter_map(|entry| entry.as_cycle()) {
            self.forgotten_cycle = record.cycle;
            if record.is_whole() {
                Arc::make_mut(&mut self.weights).remove(record);
            }
        }
        let dropped = self.cycles.partition_point(|cycle| *cycle < before);
        self.cycles.forget(dropped);
        let last = self.forgotten_cycle;
        self.whole.retain(|number| *number > last);
    }

    /// Nothing that was known of replaced records holds any more.
    fn forget_replaced(&mut self) {
        self.forgotten += self.replaced.drain(..).count() as u64 + 1;
    }

    /// Drops all entries from `len` on: the debugger went back to that point.
    pub fn truncate(&mut self, len: usize) {
        self.forget_replaced();
        for entry in self.entries.cut(len).into_iter().rev() {
            if let Some(ids) = self.by_pod.get_mut(&entry.pod()) {
                ids.pop();
            }
            let Entry::Cycle(record) = entry.as_ref() else { continue };
            self.cycles.pop();
            if record.is_whole() {
                self.unlist(record);
                self.leaving.push(entry);
            }
        }
    }

    /// The entry with that id.
    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(id.index()).map(Arc::as_ref)
    }

    /// All entries in order.
    pub fn entries(&self) -> &OffsetList<Arc<Entry>> {
        &self.entries
    }

    /// The entries of a pod, in order.
    pub fn of_pod(
        &self,
        pod: NamespacedName,
    ) -> impl DoubleEndedIterator<Item = (EntryId, &Entry)> {
        let ids = self.by_pod.get(&pod).map_or(&[][..], EntryIds::as_slice);
        ids.iter().filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// The cycles in order.
    pub fn cycles(&self) -> impl DoubleEndedIterator<Item = &Arc<CycleRecord>> {
        self.cycles.iter().filter_map(|id| self.get(*id)?.as_cycle())
    }

    /// The cycles from that index on, in order. Dropped cycles count for the index.
    pub fn cycles_from(&self, place: usize) -> impl Iterator<Item = &Arc<CycleRecord>> {
        self.cycles.from(place).filter_map(|id| self.get(*id)?.as_cycle())
    }

    /// The newest cycle; `None` before the first.
    pub fn last_cycle(&self) -> Option<&Arc<CycleRecord>> {
        self.cycles().next_back()
    }

    /// The entry of the cycle with that number.
    pub(crate) fn entry_of_cycle(&self, number: u64) -> Option<EntryId> {
        let number_of = |id: &EntryId| self.get(*id).and_then(Entry::as_cycle).map(|r| r.cycle);
        let id_at = |at: usize| self.cycles.get(at).filter(|id| number_of(id) == Some(number));
        // Mostly every cycle is there, in the place of its number.
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        let found = id_at(place)
            .or_else(|| id_at(self.cycles.partition_point(|id| number_of(id) < Some(number))));
        found.copied()
    }

    /// The cycle with that number (numbers start at 1).
    pub fn cycle(&self, number: u64) -> Option<&Arc<CycleRecord>> {
        self.get(self.entry_of_cycle(number)?)?.as_cycle()
    }

    /// The cycles of all pods that had this name, in order.
    pub fn cycles_of(
        &self,
        pod: NamespacedName,
    ) -> impl DoubleEndedIterator<Item = &Arc<CycleRecord>> {
        self.of_pod(pod).filter_map(|(_, entry)| entry.as_cycle())
    }

    /// The same pod's cycle before this one.
    pub(crate) fn previous_attempt(&self, record: &CycleRecord) -> Option<&Arc<CycleRecord>> {
        let mut earlier = self.cycles_of(record.pod).rev();
        earlier.find(|other| other.uid == record.uid && other.cycle < record.cycle)
    }

    /// The same pod's cycle after this one.
    pub(crate) fn next_attempt(&self, record: &CycleRecord) -> Option<&Arc<CycleRecord>> {
        let mut later = self.cycles_of(record.pod);
        later.find(|other| other.uid == record.uid && other.cycle > record.cycle)
    }
}

#[cfg(test)]
mod tests;
