//! The breakpoints and watches of a session, with their hits over the whole recording.
//!
//! The hits in each entry are counted once, when the entry is recorded. Stops forward and backward,
//! hit counts and "how often would this have stopped" are then look-ups.

use std::collections::BTreeSet;
use std::fmt;

use crate::breakpoint::definition::{BreakpointKind, Definition, HitAction};
use crate::breakpoint::hits::{BreakpointProbe, ConditionCache};
use crate::breakpoint::recording::{Moment, Rank, Ranks, RecordedRun};
use crate::breakpoint::variables::{Facts, WatchedValue};
use crate::breakpoint::watch::WatchedValues;
use crate::frames::{self, Position};
use crate::trace::EntryId;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::CycleRecord;

/// A breakpoint or watch in the list.
#[derive(Clone, Debug)]
pub struct ListedBreakpoint {
    /// Its number, from 1; numbers are not reused.
    pub id: u32,
    /// What it was set to: location or watched value, condition, action.
    pub definition: Definition,
    /// Whether it stops or logs.
    pub enabled: bool,
    /// Hits in entries that were dropped from the recording.
    forgotten: u64,
    /// The entries with hits, in order, and the number of hits in each.
    counts: Vec<(usize, u32)>,
    /// Entries that could not be evaluated, because their per-node lists were dropped.
    unseen: BTreeSet<usize>,
    scanned: usize,
    memory: ConditionCache,
    course: WatchedValues,
}

/// A hit at which a breakpoint stops the debugger or logs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hit {
    /// Number of the breakpoint, as [`ListedBreakpoint::id`].
    pub id: u32,
    /// Which of its hits this is, from 1.
    pub number: u64,
    /// The time of the hit, for the order of hits.
    pub moment: Moment,
    /// The frame in the cycle, or the entry if it is not a cycle.
    pub frame: Position,
}

impl Hit {
    /// The entry of the history.
    pub fn entry(&self) -> EntryId {
        self.moment.entry()
    }
}

impl ListedBreakpoint {
    fn new(id: u32, definition: Definition, enabled: bool) -> ListedBreakpoint {
        ListedBreakpoint {
            id,
            definition,
            enabled,
            forgotten: 0,
            counts: Vec::new(),
            unseen: BTreeSet::new(),
            scanned: 0,
            memory: ConditionCache::default(),
            course: WatchedValues::default(),
        }
    }

    /// How often it was hit, or would have been, over the whole recording. Hits in dropped entries
    /// count too.
    pub fn hits(&self) -> u64 {
        self.hits_until(EntryId(u32::MAX))
    }

    /// Hits up to and including an entry.
    pub fn hits_until(&self, entry: EntryId) -> u64 {
        let known = &self.counts[..self.first_after(entry.0 as usize)];
        self.forgotten + known.iter().map(|(_, count)| u64::from(*count)).sum::<u64>()
    }

    /// The number of cycles it could not evaluate, because their per-node lists were dropped to
    /// save memory. They are evaluated when the session runs or steps back through them.
    pub fn unseen(&self) -> usize {
        self.unseen.len()
    }

    /// How many entries are stored for it: those with hits, or with changes of the watched value.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.counts.len() + self.unseen.len() + self.course.changes().len()
    }

    /// The last error of its condition.
    pub fn problem(&self) -> Option<&str> {
        self.memory.problem.as_deref()
    }

    /// The watched value after the first `len` entries.
    pub fn value_after(&self, recording: &RecordedRun<'_>, len: usize) -> Option<WatchedValue> {
        match &self.definition.what {
            BreakpointKind::Watch(subject) => {
                subject.of_node(recording, len).or_else(|| self.course.after(len).cloned())
            }
            BreakpointKind::Break { .. } => None,
        }
    }

    /// The watched value before and after an entry.
    pub(crate) fn change_at(&self, entry: EntryId) -> Option<(&WatchedValue, &WatchedValue)> {
        let at = entry.0 as usize;
        self.course.after(at).zip(self.course.after(at + 1))
    }

    /// The entries after which the watched value changed, with the new value.
    pub fn changes(&self) -> &[(usize, WatchedValue)] {
        self.course.changes()
    }

    fn probe<'a>(definition: &'a Definition) -> Option<BreakpointProbe<'a>> {
        let Definition { what: BreakpointKind::Break { location, grain }, condition, .. } =
            definition
        else {
            return None;
        };
        Some(BreakpointProbe { location, grain: *grain, condition: condition.as_ref() })
    }

    /// Evaluates the entries recorded since the last update.
    fn update(&mut self, recording: &RecordedRun<'_>) {
        let len = recording.history.len();
        match &self.definition.what {
            BreakpointKind::Watch(subject) => {
                for at in self.course.update(subject, recording) {
                    if at >= recording.start && self.is_change_meant(at) {
                        self.counts.push((at, 1));
                    }
                }
            }
            BreakpointKind::Break { .. } => {
                for at in self.scanned.max(recording.start)..len {
                    if self.needs_whole(recording, at) {
                        self.unseen.insert(at);
                        continue;
                    }
                    let count = self.count(recording, at);
                    if count > 0 {
                        self.counts.push((at, count));
                    }
                }
            }
        }
        self.scanned = len;
    }

    /// Whether the condition holds for the change of the watched value.
    fn is_change_meant(&mut self, at: usize) -> bool {
        let Some(condition) = &self.definition.condition else { return true };
        let watched = self.course.after(at + 1).zip(self.course.after(at));
        let facts = Facts { watched, ..Facts::default() };
        condition.holds(&facts).unwrap_or_else(|problem| {
            self.memory.problem = Some(problem.to_string());
            false
        })
    }

    /// Whether the condition needs per-node lists that were dropped from the cycle's record.
    fn needs_whole(&self, recording: &RecordedRun<'_>, at: usize) -> bool {
        let record = recording.history.get(EntryId(at as u32)).and_then(|entry| entry.as_cycle());
        let left_out = record.is_some_and(|record| !record.is_whole());
        left_out
            && ListedBreakpoint::probe(&self.definition).is_some_and(|probe| probe.needs_lists())
    }

    fn count(&mut self, recording: &RecordedRun<'_>, at: usize) -> u32 {
        let mut count = 0;
        if let Some(probe) = ListedBreakpoint::probe(&self.definition) {
            probe.visit(recording, at, &mut self.memory, &mut |_| count += 1);
        }
        count
    }

    /// Evaluates an entry again whose record was replaced by a fuller one.
    fn recount(&mut self, recording: &RecordedRun<'_>, at: usize) {
        if at < recording.start || at >= self.scanned || self.definition.is_watch() {
            return;
        }
        if self.needs_whole(recording, at) {
            return;
        }
        self.unseen.remove(&at);
        let count = self.count(recording, at);
        match self.counts.binary_search_by_key(&at, |(entry, _)| *entry) {
            Ok(place) if count == 0 => drop(self.counts.remove(place)),
            Ok(place) => self.counts[place].1 = count,
            Err(_) if count == 0 => {}
            Err(place) => self.counts.insert(place, (at, count)),
        }
    }

    /// Evaluates an entry again whose record was restored to what it was before its cycle
    /// completed.
    fn took_back(&mut self, recording: &RecordedRun<'_>, at: usize) {
        if self.definition.is_watch() {
            // Later values depend on the value at this entry.
            self.truncate(at);
        } else if self.needs_whole(recording, at) && at < self.scanned {
            self.counts.retain(|(entry, _)| *entry != at);
            self.unseen.insert(at);
        } else {
            self.recount(recording, at);
        }
    }

    fn truncate(&mut self, len: usize) {
        self.counts.truncate(self.counts.partition_point(|(at, _)| *at < len));
        self.unseen.split_off(&len);
        self.scanned = self.scanned.min(len);
        self.course.truncate(len);
        // The same number of entries can stand for other amounts now.
        self.memory = ConditionCache::default();
    }

    /// Drops the first `len` entries but keeps the count of their hits.
    fn forget(&mut self, len: usize) {
        let dropped = self.counts.partition_point(|(at, _)| *at < len);
        self.forgotten +=
            self.counts.drain(..dropped).map(|(_, count)| u64::from(count)).sum::<u64>();
        self.unseen = self.unseen.split_off(&len);
        self.course.forget(len);
        self.memory.forget_nodes();
    }

    /// The index of the first of `counts` after an entry.
    fn first_after(&self, entry: usize) -> usize {
        self.counts.partition_point(|(at, _)| *at <= entry)
    }

    /// The first entry in a range that has hits or could not be evaluated.
    fn first_in(&self, from: usize, to: usize) -> Option<usize> {
        let place = self.counts.partition_point(|(at, _)| *at < from);
        let hit = self.counts.get(place).map(|(at, _)| *at);
        let unseen = self.unseen.range(from..).next().copied();
        hit.into_iter().chain(unseen).min().filter(|at| *at <= to)
    }

    /// The last entry in a range that has hits or could not be evaluated.
    fn last_in(&self, from: usize, to: usize) -> Option<usize> {
        let place = self.counts.partition_point(|(at, _)| *at <= to);
        let hit = place.checked_sub(1).map(|place| self.counts[place].0);
        let unseen = self.unseen.range(..=to).next_back().copied();
        hit.into_iter().chain(unseen).max().filter(|at| *at >= from)
    }

    /// How many entries up to one could not be evaluated but must be to find all stops.
    fn unseen_until(&self, entry: EntryId) -> usize {
        if self.stops() { self.unseen.range(..=entry.0 as usize).count() } else { 0 }
    }

    /// The hits at an entry that count; the entry itself as the error if its record must be made
    /// whole first.
    fn whole_hits_at(
        &mut self,
        recording: &RecordedRun<'_>,
        at: usize,
    ) -> Result<Vec<Hit>, EntryId> {
        match self.needs_whole(recording, at) {
            true => Err(EntryId(at as u32)),
            false => Ok(self.hits_at(recording, at)),
        }
    }

    /// The number of hits before an entry.
    fn hits_before(&self, at: usize) -> u64 {
        let before = at.checked_sub(1).map(|before| self.hits_until(EntryId(before as u32)));
        before.unwrap_or(self.forgotten)
    }

    /// Hits up to and including a moment: the number of the last one, as [`Hit::number`] counts.
    fn hits_until_moment(&mut self, recording: &RecordedRun<'_>, moment: Moment) -> u64 {
        if moment.is_end() {
            return self.hits_until(moment.entry());
        }
        let at = moment.entry().0 as usize;
        let before = self.hits_before(at);
        if self.first_in(at, at).is_none() || self.needs_whole(recording, at) {
            return before;
        }
        let frames = self.frames_at(recording, at);
        let is_past = |rank: Rank| Moment::ranked(moment.entry(), rank) <= moment;
        before + frames.iter().filter(|(rank, _)| is_past(*rank)).count() as u64
    }

    /// The hits at an entry that count, in order.
    fn hits_at(&mut self, recording: &RecordedRun<'_>, at: usize) -> Vec<Hit> {
        let (entry, before) = (EntryId(at as u32), self.hits_before(at));
        let frames = self.frames_at(recording, at);
        let counted = frames.into_iter().zip(before + 1..);
        let meant = counted.filter(|(_, number)| self.is_meant(*number));
        meant
            .map(|((rank, frame), number)| Hit {
                id: self.id,
                number,
                moment: Moment::ranked(entry, rank),
                frame,
            })
            .collect()
    }

    /// The frames of all hits at an entry, in order.
    fn frames_at(&mut self, recording: &RecordedRun<'_>, at: usize) -> Vec<(Rank, Position)> {
        let entry = EntryId(at as u32);
        let mut frames: Vec<(Rank, Position)> = Vec::new();
        let record = recording.history.get(entry).and_then(|entry| entry.as_cycle());
        match (ListedBreakpoint::probe(&self.definition), record) {
            (Some(probe), Some(record)) => {
                let mut ranks = Ranks::new(record);
                probe.visit(recording, at, &mut self.memory, &mut |frame| {
                    frames.push((ranks.of(frame), frame));
                });
            }
            (None, Some(record)) => {
                let frame = where_changed(record);
                frames.push((Ranks::new(record).of(frame), frame));
            }
            (_, None) => frames.push((Rank::FIRST, Position::of_entry(entry))),
        }
        frames.sort_by_key(|(rank, _)| *rank);
        frames
    }

    /// Whether it can stop the debugger.
    fn stops(&self) -> bool {
        self.enabled && self.definition.act == HitAction::Stop
    }

    fn is_meant(&self, number: u64) -> bool {
        self.definition.hits.is_none_or(|hits| hits.counts(number))
    }
}

/// The frame at which a change of the cluster by a cycle is shown: where the node is assumed.
fn where_changed(record: &CycleRecord) -> Position {
    match frames::reaches(record, ExtensionPoint::Reserve) {
        true => Position::new(ExtensionPoint::Reserve, None, None),
        false => frames::last_plugin(record),
    }
}

/// Breakpoints and watches by number.
#[derive(Clone, Debug, Default)]
pub struct Breakpoints {
    items: Vec<ListedBreakpoint>,
    last_id: u32,
}

impl Breakpoints {
    /// All items, by number.
    pub fn items(&self) -> &[ListedBreakpoint] {
        &self.items
    }

    /// The item of that number.
    pub fn get(&self, id: u32) -> Option<&ListedBreakpoint> {
        self.items.iter().find(|item| item.id == id)
    }

    /// Adds an item and returns its number.
    pub fn add(&mut self, definition: Definition, enabled: bool) -> u32 {
        self.last_id += 1;
        self.items.push(ListedBreakpoint::new(self.last_id, definition, enabled));
        self.last_id
    }

    /// Replaces the definition of an item; its hits are counted again. `false` if the number is
    /// unknown.
    pub fn replace(&mut self, id: u32, definition: Definition) -> bool {
        let found = self.items.iter_mut().find(|item| item.id == id);
        let there = found.map(|item| *item = ListedBreakpoint::new(id, definition, item.enabled));
        there.is_some()
    }

    /// Removes an item. `false` if the number is unknown.
    pub fn remove(&mut self, id: u32) -> bool {
        let before = self.items.len();
        self.items.retain(|item| item.id != id);
        self.items.len() != before
    }

    /// Removes all items; their numbers are not used again.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// Enables or disables an item. `false` if the number is unknown.
    pub fn set_enabled(&mut self, id: u32, enabled: bool) -> bool {
        let found = self.items.iter_mut().find(|item| item.id == id);
        found.map(|item| item.enabled = enabled).is_some()
    }

    /// Whether any item can stop the debugger.
    pub(crate) fn can_stop(&self) -> bool {
        self.items.iter().any(ListedBreakpoint::stops)
    }

    /// Evaluates the entries recorded since the last update.
    pub fn update(&mut self, recording: &RecordedRun<'_>) {
        self.items.iter_mut().for_each(|item| item.update(recording));
    }

    /// Evaluates an entry again whose record was replaced by a fuller one.
    pub fn recount(&mut self, recording: &RecordedRun<'_>, entry: EntryId) {
        self.items.iter_mut().for_each(|item| item.recount(recording, entry.0 as usize));
    }

    /// Skips an entry that cannot be made whole, so that a search ends.
    pub(crate) fn give_up_on(&mut self, recording: &RecordedRun<'_>, entry: EntryId) {
        let at = entry.0 as usize;
        for item in &mut self.items {
            if item.needs_whole(recording, at) {
                item.unseen.remove(&at);
                item.counts.retain(|(other, _)| *other != at);
            }
        }
    }

    /// Evaluates an entry again whose record was restored to what it was before its cycle
    /// completed.
    pub(crate) fn took_back(&mut self, recording: &RecordedRun<'_>, entry: EntryId) {
        self.items.iter_mut().for_each(|item| item.took_back(recording, entry.0 as usize));
    }

    /// Takes over the breakpoints of another recording. Items that are in both keep their counts.
    pub(crate) fn take_over(&mut self, other: &Breakpoints) {
        let mut items = Vec::new();
        for theirs in &other.items {
            let own = self.items.iter().position(|own| own.id == theirs.id);
            let own = own.map(|at| self.items.swap_remove(at));
            let mut own =
                own.filter(|own| own.definition == theirs.definition).unwrap_or_else(|| {
                    ListedBreakpoint::new(theirs.id, theirs.definition.clone(), theirs.enabled)
                });
            own.enabled = theirs.enabled;
            items.push(own);
        }
        (self.items, self.last_id) = (items, self.last_id.max(other.last_id));
    }

    /// Drops what was counted after the first `len` entries, where the recording was cut off.
    pub fn truncate(&mut self, len: usize) {
        self.items.iter_mut().for_each(|item| item.truncate(len));
    }

    /// Drops the first `len` entries; their hits still count.
    pub fn forget(&mut self, len: usize) {
        self.items.iter_mut().for_each(|item| item.forget(len));
    }

    /// How many cycles up to an entry must be run again to know all stops.
    pub fn unseen_until(&self, entry: EntryId) -> usize {
        self.items.iter().map(|item| item.unseen_until(entry)).max().unwrap_or(0)
    }

    /// The first stop after a moment, or of the whole recording if the moment is `None`; at most up
    /// to the entry `until`.
    ///
    /// # Errors
    /// The record of this entry must be made whole and counted again first.
    pub fn next(
        &mut self,
        recording: &RecordedRun<'_>,
        after: Option<Moment>,
        until: EntryId,
    ) -> Result<Option<Hit>, EntryId> {
        let mut first: Option<Hit> = None;
        for item in self.items.iter_mut().filter(|item| item.stops()) {
            let mut from = after.map_or(0, |after| after.entry().0 as usize);
            let until = first.map_or(until, |hit| hit.entry()).0 as usize;
            while let Some(at) = item.first_in(from, until) {
                let hits = item.whole_hits_at(recording, at)?.into_iter();
                let found =
                    hits.into_iter().find(|hit| after.is_none_or(|after| hit.moment > after));
                if let Some(found) = found {
                    first = Some(first.filter(|hit| hit.moment <= found.moment).unwrap_or(found));
                    break;
                }
                from = at + 1;
            }
        }
        Ok(first)
    }

    /// The last stop before a moment; no earlier than the entry `since`.
    ///
    /// # Errors
    /// The record of this entry must be made whole and counted again first.
    pub fn previous(
        &mut self,
        recording: &RecordedRun<'_>,
        before: Option<Moment>,
        since: EntryId,
    ) -> Result<Option<Hit>, EntryId> {
        let Some(before) = before else { return Ok(None) };
        let mut last: Option<Hit> = None;
        for item in self.items.iter_mut().filter(|item| item.stops()) {
            let since = last.map_or(since, |hit| hit.entry()).0 as usize;
            let mut to = Some(before.entry().0 as usize);
            while let Some(at) = to.and_then(|to| item.last_in(since, to)) {
                let hits = item.whole_hits_at(recording, at)?;
                let found = hits.into_iter().rfind(|hit| hit.moment < before);
                if let Some(found) = found {
                    last = Some(last.filter(|hit| hit.moment >= found.moment).unwrap_or(found));
                    break;
                }
                to = at.checked_sub(1);
            }
        }
        Ok(last)
    }

    /// The hits of logging breakpoints after one moment up to and including another, in order, at
    /// most `limit`.
    pub fn logged(
        &mut self,
        recording: &RecordedRun<'_>,
        from: Option<Moment>,
        to: Option<Moment>,
        limit: usize,
    ) -> Vec<Hit> {
        let mut hits = Vec::new();
        for item in
            self.items.iter_mut().filter(|i| i.enabled && i.definition.act == HitAction::Log)
        {
            let entry = from.map_or(0, |from| from.entry().0 as usize);
            let first = item.counts.partition_point(|(at, _)| *at < entry);
            let mut found = 0;
            for place in first..item.counts.len() {
                let new = item.hits_at(recording, item.counts[place].0).into_iter();
                let new = new.filter(|hit| from.is_none_or(|from| hit.moment > from));
                let new: Vec<Hit> =
                    new.filter(|hit| to.is_some_and(|to| hit.moment <= to)).collect();
                found += new.len();
                let past = to.is_none_or(|to| item.counts[place].0 as u32 > to.entry().0);
                hits.extend(new);
                if past || found >= limit {
                    break;
                }
            }
        }
        hits.sort_by_key(|hit| hit.moment);
        hits.truncate(limit);
        hits
    }

    /// The hits of each item up to and including a moment, in the order of the items.
    pub fn hits_until(&mut self, recording: &RecordedRun<'_>, moment: Option<Moment>) -> Vec<u64> {
        let hits = |item: &mut ListedBreakpoint| match moment {
            Some(moment) => item.hits_until_moment(recording, moment),
            None => 0,
        };
        self.items.iter_mut().map(hits).collect()
    }

    /// The debugger stopped at this hit: a one-time breakpoint is disabled.
    pub fn stopped(&mut self, hit: &Hit) {
        let found = self.items.iter_mut().find(|item| item.id == hit.id);
        if let Some(item) = found.filter(|item| item.definition.once) {
            item.enabled = false;
        }
    }
}

impl fmt::Display for ListedBreakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.definition.is_watch() { "watch" } else { "break" };
        write!(f, "{word} {}", self.definition)
    }
}
