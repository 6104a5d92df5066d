//! Running forward and backward until a breakpoint stops it.

use super::{Session, StepOutcome};
use crate::breakpoint::{Breakpoints, Hit, Moment, RecordedRun};
use crate::frames::{self, Position};
use crate::trace::EntryId;
use kubestep_api::intern::Symbol;

/// Where `continue` ended, forward or back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ContinueOutcome {
    /// A breakpoint or watch stopped it, and the position is there.
    Stopped(Hit),
    /// No pod can be popped, or a livelock: an event or a timer is needed.
    Idle,
    /// There is nothing before.
    AtStart,
    /// It was paused; continuing resumes.
    Paused,
}

/// The result of a search for a stop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StopSearch {
    /// The nearest hit that stops.
    Found(Hit),
    /// No breakpoint or watch hits before the end.
    None,
    /// The search was paused; it can be resumed.
    Paused,
}

impl Session {
    /// The breakpoints and watches.
    pub fn breakpoints(&self) -> &Breakpoints {
        &self.breakpoints
    }

    /// Changes breakpoints and watches, and counts the hits of new ones over the recording.
    pub fn change_breakpoints<T>(&mut self, change: impl FnOnce(&mut Breakpoints) -> T) -> T {
        let changed = change(&mut self.breakpoints);
        self.with_recording(|breakpoints, recording| breakpoints.update(recording));
        changed
    }

    /// Takes over the breakpoints and watches of another session, and counts their hits here.
    pub(crate) fn take_breakpoints_of(&mut self, other: &Session) {
        self.breakpoints.take_over(&other.breakpoints);
        self.with_recording(|breakpoints, recording| breakpoints.update(recording));
    }

    /// The view of the session that breakpoints and watches evaluate.
    pub fn recording(&self) -> RecordedRun<'_> {
        RecordedRun {
            history: &self.history,
            start: self.story_start(),
            beginning: self.checkpoints.first().filter(|_| self.forgotten_before().is_some()),
            ledger: &self.ledger,
            objects: self.world.scheduler().objects(),
        }
    }

    /// The plugins that breakpoints can name: those of the profiles.
    pub fn plugin_names(&self) -> Vec<Symbol> {
        let frameworks = self.world.scheduler().frameworks();
        let instances = frameworks.values().flat_map(|framework| framework.instances());
        let mut names: Vec<Symbol> = instances.map(|plugin| plugin.name()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The moment of the recording at the position; `None` at the beginning.
    pub fn moment(&self) -> Option<Moment> {
        let stop = self.stop()?;
        let recording = self.recording();
        if let Some(entry) = self.position.entry {
            return Some(Moment::new(&recording, entry, self.position));
        }
        match stop.cycle_entry.filter(|_| !self.stands_at_end()) {
            Some(entry) => Some(Moment::new(&recording, entry, self.position)),
            None => Moment::after(stop.entries.end as usize),
        }
    }

    /// How many entries of the history have happened at the position: all those behind are still to
    /// come. `None` before the first stop.
    pub fn entries_reached(&self) -> Option<usize> {
        let stop = self.stop()?;
        let within = stop.cycle_entry.filter(|_| !self.stands_at_end());
        let reached = self.position.entry.or(within).map(|entry| entry.0 as usize + 1);
        Some(reached.unwrap_or(stop.entries.end as usize))
    }

    /// Whether the position is the end of a cycle. One that reached no extension point has only its
    /// beginning.
    fn stands_at_end(&self) -> bool {
        self.position == Position::START
            && self.record().is_none_or(|record| frames::beginning(record) != Position::START)
    }

    /// The number of history entries that are past at the position: those up to the current entry,
    /// within a cycle those before it, otherwise all of its stop.
    pub fn entries_past(&self) -> usize {
        let Some(stop) = self.stop() else { return 0 };
        let within = stop.cycle_entry.filter(|_| self.position.point.is_some());
        match self.position.entry {
            Some(entry) => entry.0 as usize + 1,
            None => within.map_or(stop.entries.end, |entry| entry.0) as usize,
        }
    }

    /// Continues until a breakpoint stops it: first through the recording, then by running cycles.
    /// Pauses when `more`, which is called now and then, returns false.
    pub fn continue_on(&mut self, mut more: impl FnMut() -> bool) -> ContinueOutcome {
        let mut after = self.moment();
        loop {
            match self.stop_after(after, None, &mut more) {
                StopSearch::Found(hit) => return self.stopped(hit),
                StopSearch::Paused => return ContinueOutcome::Paused,
                StopSearch::None => {}
            }
            self.go_to_end();
            after = Moment::after(self.history.len());
            let over = self.run_on() != StepOutcome::NewCycle || self.livelock().is_some();
            if over || !more() {
                return match self.stop_after(after, None, &mut || true) {
                    StopSearch::Found(hit) => self.stopped(hit),
                    _ if !over => ContinueOutcome::Paused,
                    _ => {
                        // The last of the pods, if a group was tried.
                        self.go_to_end();
                        ContinueOutcome::Idle
                    }
                };
            }
        }
    }

    /// Continues backward until a breakpoint stops it, or to the beginning. Pauses when `more`
    /// returns false.
    pub fn continue_back(&mut self, mut more: impl FnMut() -> bool) -> ContinueOutcome {
        match self.stop_before(self.moment(), None, &mut more) {
            StopSearch::Found(hit) => self.stopped(hit),
            StopSearch::Paused => ContinueOutcome::Paused,
            StopSearch::None => {
                self.go_to_stop(0);
                ContinueOutcome::AtStart
            }
        }
    }

    /// The last stop before a moment and not before `since`. Pauses when `more` returns false.
    pub fn stop_before(
        &mut self,
        before: Option<Moment>,
        since: Option<Moment>,
        more: &mut dyn FnMut() -> bool,
    ) -> StopSearch {
        if !self.breakpoints.can_stop() {
            return StopSearch::None;
        }
        let first = since.map_or(EntryId(0), |since| since.entry());
        loop {
            let found = self.with_recording(|breakpoints, recording| {
                breakpoints.previous(recording, before, first)
            });
            match found {
                Ok(Some(hit)) if Some(hit.moment) >= since => return StopSearch::Found(hit),
                Ok(_) => return StopSearch::None,
                Err(entry) => self.make_entry_whole(entry),
            }
            if !more() {
                return StopSearch::Paused;
            }
        }
    }

    /// The first stop after a moment and, with `until`, not after that one. Pauses when `more`
    /// returns false.
    pub fn stop_after(
        &mut self,
        after: Option<Moment>,
        until: Option<Moment>,
        more: &mut dyn FnMut() -> bool,
    ) -> StopSearch {
        if !self.breakpoints.can_stop() {
            return StopSearch::None;
        }
        let last = until.map_or(EntryId(u32::MAX), |until| until.entry());
        loop {
            let found = self
                .with_recording(|breakpoints, recording| breakpoints.next(recording, after, last));
            match found {
                Ok(Some(hit)) if until.is_none_or(|until| hit.moment <= until) => {
                    return StopSearch::Found(hit);
                }
                Ok(_) => return StopSearch::None,
                Err(entry) => self.make_entry_whole(entry),
            }
            if !more() {
                return StopSearch::Paused;
            }
        }
    }

    /// Runs a cycle again whose matrices were dropped, and counts the hits in it and in those that
    /// became complete with it.
    fn make_entry_whole(&mut self, entry: EntryId) {
        let record = self.history.get(entry).and_then(|entry| entry.as_cycle());
        let Some(number) = record.map(|record| record.cycle) else { return };
        let replaced = self.history.replaced();
        self.whole_record(number);
        let whole = self.history.replaced_since(replaced).unwrap_or_default().iter();
        let records = whole.filter_map(|place| self.history.cycles_from(*place as usize).next());
        let numbers: Vec<u64> = records.map(|record| record.cycle).collect();
        let entries: Vec<EntryId> =
            numbers.into_iter().filter_map(|number| self.history.entry_of_cycle(number)).collect();
        self.with_recording(|breakpoints, recording| {
            entries.iter().for_each(|entry| breakpoints.recount(recording, *entry));
            breakpoints.recount(recording, entry);
            breakpoints.give_up_on(recording, entry);
        });
    }

    /// The number of recorded cycles up to a moment that must be run again to know all stops.
    pub fn unseen_until(&self, moment: Option<Moment>) -> usize {
        moment.map_or(0, |moment| self.breakpoints.unseen_until(moment.entry()))
    }

    /// Moves to a hit and disables a breakpoint that stops only once.
    pub fn stopped(&mut self, hit: Hit) -> ContinueOutcome {
        self.go_to_hit(&hit);
        self.breakpoints.stopped(&hit);
        ContinueOutcome::Stopped(hit)
    }

    /// Moves to a hit.
    pub(crate) fn go_to_hit(&mut self, hit: &Hit) {
        if self.go_to_entry(hit.entry()) {
            self.go_to(hit.frame);
        }
    }

    /// The lines of logging breakpoints between two moments, at most `limit`.
    pub fn logged(&mut self, from: Option<Moment>, to: Option<Moment>, limit: usize) -> Vec<Hit> {
        let logged = |breakpoints: &mut Breakpoints, recording: &RecordedRun<'_>| {
            breakpoints.logged(recording, from, to, limit)
        };
        self.with_recording(logged)
    }

    /// The hits of each breakpoint and watch up to the position, in their order.
    pub fn hits_so_far(&mut self) -> Vec<u64> {
        let moment = self.moment();
        self.with_recording(|breakpoints, recording| breakpoints.hits_until(recording, moment))
    }

    fn with_recording<T>(
        &mut self,
        act: impl FnOnce(&mut Breakpoints, &RecordedRun<'_>) -> T,
    ) -> T {
        let mut breakpoints = std::mem::take(&mut self.breakpoints);
        let done = act(&mut breakpoints, &self.recording());
        self.breakpoints = breakpoints;
        done
    }

    /// Entries before this one led to the loaded cluster.
    fn story_start(&self) -> usize {
        self.timeline.steps().first().map_or(0, |step| step.entries.end as usize)
    }

    /// Records which nodes a step changed, and counts the hits in it.
    pub(super) fn look_at_step(&mut self, cycles: &[(EntryId, u64)], replaced: Vec<u64>) {
        let is_loading = self.timeline.steps().end() == 1;
        // A cycle that assumed its pod changed the node; otherwise the entries after it did, or the
        // input as a whole.
        let bound = cycles.iter().rev().find(|(id, _)| {
            let record = self.history.get(*id).and_then(|entry| entry.as_cycle());
            record.is_some_and(|record| record.node.is_some())
        });
        let start = self.timeline.steps().last().map_or(0, |step| step.entries.start as usize);
        let len = match (cycles.is_empty(), bound) {
            (_, Some((id, _))) => id.0 as usize + 1,
            (true, None) => start + 1,
            (false, None) => self.history.len(),
        };
        let len = if is_loading { 0 } else { len.min(self.history.len()) };
        let cache = self.world.scheduler().cache();
        for (id, node) in cache.changed() {
            self.ledger.note(id, node.map(AsRef::as_ref), len);
        }
        // Cycles of a group refresh the snapshot in between: their nodes have changed as well.
        for (id, _) in cycles {
            let record = self.history.get(*id).and_then(|entry| entry.as_cycle());
            let chosen = record.and_then(|record| cache.node_by_name(record.node?));
            if let Some(node) = chosen {
                self.ledger.note(node.id, Some(node.as_ref()), len);
            }
        }
        let replaced: Vec<EntryId> =
            replaced.into_iter().filter_map(|cycle| self.history.entry_of_cycle(cycle)).collect();
        self.with_recording(|breakpoints, recording| {
            replaced.iter().for_each(|entry| breakpoints.recount(recording, *entry));
            breakpoints.update(recording);
        });
    }

    /// The recording was truncated, and the records of these cycles are reset to the state before
    /// their pods waited.
    pub(super) fn forget_rest(&mut self, taken_back: &[u64]) {
        let len = self.history.len();
        self.ledger.truncate(len);
        self.breakpoints.truncate(len);
        let entries = taken_back.iter().filter_map(|cycle| self.history.entry_of_cycle(*cycle));
        let entries: Vec<EntryId> = entries.collect();
        self.with_recording(|breakpoints, recording| {
            entries.iter().for_each(|entry| breakpoints.took_back(recording, *entry));
            breakpoints.update(recording);
        });
    }
}
