//! Breakpoints and watches: setting them, files of them, and the rows that views show.

use std::path::Path;

use super::Driver;
use crate::tui::action_error::ActionError;
use crate::tui::command::BreakpointCommand;
use crate::tui::command_result::CommandResult;
use crate::tui::model::BreakpointRow;
use kubestep_debug::breakpoint::{
    BreakpointError, BreakpointKind, Definition, Hit, HitAction, ListedBreakpoint, Moment,
    RecordedRun, file, message,
};
use kubestep_debug::{Session, StopSearch};
use kubestep_output::file::replace;

/// Lines that logging breakpoints may add at once.
const LOG_LINES: usize = 100;
/// Changes of a watched value that are shown.
const CHANGES: usize = 8;

impl Driver {
    /// Does something with breakpoints and watches.
    pub(super) fn breakpoints(&mut self, command: &BreakpointCommand) -> CommandResult {
        let known = self.session.plugin_names();
        let said = match command {
            BreakpointCommand::Break(text) => self.set(Definition::parse_break(text, &known)),
            BreakpointCommand::Watch(text) => self.set(Definition::parse_watch(text)),
            BreakpointCommand::Toggle(place) => self.toggle(place),
            BreakpointCommand::Edit(id, text) => self.edit(*id, text),
            BreakpointCommand::Remove(id) => {
                let removed = self.session.change_breakpoints(|list| list.remove(*id));
                let done = removed.then(|| format!("breakpoint {id} removed"));
                done.ok_or_else(|| no_such(*id).into())
            }
            BreakpointCommand::Switch(id, on) => self.switch(*id, *on),
            BreakpointCommand::Clear => {
                self.session.change_breakpoints(|list| list.clear());
                Ok("all breakpoints and watches are removed".into())
            }
            BreakpointCommand::Save(path) => self.save_breakpoints(path),
            BreakpointCommand::Load(path) => load(&mut self.session, path),
        };
        self.refresh_breakpoints(true);
        match said {
            Ok(words) => CommandResult::info(words),
            Err(problem) => CommandResult::error(problem.to_string()),
        }
    }

    fn set(
        &mut self,
        definition: Result<Definition, BreakpointError>,
    ) -> Result<String, ActionError> {
        let definition = definition?;
        self.check_resource(&definition)?;
        let id = self.session.change_breakpoints(|list| list.add(definition, true));
        Ok(self.about(id))
    }

    /// Rejects a watch of a resource that no node has: most likely a typo.
    fn check_resource(&self, definition: &Definition) -> Result<(), BreakpointError> {
        match definition.subject() {
            Some(subject) => subject.check_resource(self.session.world()),
            None => Ok(()),
        }
    }

    /// The message about one that was just set.
    fn about(&self, id: u32) -> String {
        let Some(item) = self.session.breakpoints().get(id) else { return no_such(id) };
        if item.definition.is_watch() {
            let value = value(&self.session, item);
            return format!("watch {id}: {} = {value}", item.definition);
        }
        let unseen = if item.unseen() > 0 { "at least " } else { "" };
        let hits = match item.hits() {
            1 => "1 hit".to_owned(),
            hits => format!("{hits} hits"),
        };
        format!("breakpoint {id}: {}; {unseen}{hits} in the recording", item.definition)
    }

    fn toggle(&mut self, place: &str) -> Result<String, ActionError> {
        let at_place = |item: &&ListedBreakpoint| {
            let location = item.definition.location().map(ToString::to_string);
            location.as_deref() == Some(place)
        };
        match self.session.breakpoints().items().iter().find(at_place).map(|item| item.id) {
            Some(id) => {
                self.session.change_breakpoints(|list| list.remove(id));
                Ok(format!("breakpoint {id} at {place} removed"))
            }
            None => {
                let known = self.session.plugin_names();
                self.set(Definition::parse_break(place, &known))
            }
        }
    }

    fn edit(&mut self, id: u32, text: &str) -> Result<String, ActionError> {
        let item = self.session.breakpoints().get(id).ok_or_else(|| no_such(id))?;
        let definition = match item.definition.is_watch() {
            true => Definition::parse_watch(text),
            false => Definition::parse_break(text, &self.session.plugin_names()),
        }?;
        self.check_resource(&definition)?;
        self.session.change_breakpoints(|list| list.replace(id, definition));
        Ok(self.about(id))
    }

    fn switch(&mut self, id: u32, on: Option<bool>) -> Result<String, ActionError> {
        let item = self.session.breakpoints().get(id).ok_or_else(|| no_such(id))?;
        let on = on.unwrap_or(!item.enabled);
        self.session.change_breakpoints(|list| list.set_enabled(id, on));
        Ok(format!("breakpoint {id} is {}", if on { "on" } else { "off" }))
    }

    fn save_breakpoints(&self, path: &str) -> Result<String, ActionError> {
        let items = self.session.breakpoints().items();
        let text = self.breakpoints_over(Path::new(path))?;
        replace(Path::new(path), &text).map_err(|error| format!("cannot save {path}: {error}"))?;
        Ok(format!("saved {} to {path}", count(items.len())))
    }

    /// The breakpoints and watches as a file holds them.
    pub fn breakpoints_text(&self) -> String {
        // Plain lines can always be written as YAML.
        file::write(self.session.breakpoints().items()).unwrap_or_default()
    }

    /// The same over a file, which may be there: its comments stay.
    ///
    /// # Errors
    /// They cannot be written as YAML.
    pub fn breakpoints_over(&self, path: &Path) -> Result<String, BreakpointError> {
        let (items, known) = (self.session.breakpoints().items(), self.session.plugin_names());
        match std::fs::read_to_string(path) {
            Ok(before) => file::write_over(&before, items, &known),
            Err(_) => file::write(items),
        }
    }

    /// Goes to the first stop passed since a moment, if there is one. Returns the message.
    pub(super) fn stop_passed(&mut self, since: Option<Moment>) -> Option<String> {
        self.stop_until(since, self.session.moment())
    }

    /// Goes to the first stop from one moment, without it, to another. Returns the message.
    pub(super) fn stop_until(
        &mut self,
        since: Option<Moment>,
        until: Option<Moment>,
    ) -> Option<String> {
        let until = Some(until?);
        match self.session.stop_after(since, until, &mut || true) {
            StopSearch::Found(hit) => Some(self.stop_at(hit)),
            _ => None,
        }
    }

    /// The stop that a backward move passed last, as [`Driver::stop_passed`] for forward moves.
    pub(super) fn stop_passed_back(&mut self, since: Option<Moment>) -> Option<String> {
        let now = self.session.moment();
        match self.session.stop_before(since, now, &mut || true) {
            StopSearch::Found(hit) => Some(self.stop_at(hit)),
            _ => None,
        }
    }

    /// Goes to a stop. Returns the message.
    pub(super) fn stop_at(&mut self, hit: Hit) -> String {
        self.session.stopped(hit);
        self.hit_message(&hit)
    }

    /// The message of a stop.
    pub(super) fn hit_message(&mut self, hit: &Hit) -> String {
        let words = message::of_hit(&self.session.recording(), self.session.breakpoints(), hit);
        self.last_hits.insert(hit.id, words.clone());
        words
    }

    /// The messages of logging breakpoints since a moment.
    pub(super) fn log_lines(&mut self, since: Option<Moment>) -> Vec<String> {
        let now = match self.session.is_at_newest() {
            true => Moment::after(self.session.history().len()),
            false => self.session.moment(),
        };
        let hits = self.session.logged(since, now, LOG_LINES + 1);
        let line =
            |hit: &Hit| message::of_hit(&self.session.recording(), self.session.breakpoints(), hit);
        let mut lines: Vec<String> = hits.iter().take(LOG_LINES).map(line).collect();
        if hits.len() > LOG_LINES {
            lines.push(format!("logging stopped here after {LOG_LINES} lines"));
        }
        lines
    }

    /// Brings the rows up to date; `counted`: also the hits up to the position, for which the cells
    /// of its cycle are looked at.
    pub(super) fn refresh_breakpoints(&mut self, counted: bool) {
        let so_far = if counted { self.session.hits_so_far() } else { Vec::new() };
        let session = &self.session;
        let so_far = so_far.into_iter().chain(std::iter::repeat(0));
        let items = session.breakpoints().items().iter().zip(so_far);
        let rows = items.map(|(item, so_far)| BreakpointRow {
            last: self.last_hits.get(&item.id).cloned(),
            so_far,
            ..row(session, item)
        });
        self.model.breakpoints = rows.collect();
        self.model.revision += 1;
    }
}

fn no_such(id: u32) -> String {
    format!("there is no breakpoint {id}; B lists them")
}

fn count(number: usize) -> String {
    match number {
        1 => "1 breakpoint or watch".into(),
        n => format!("{n} breakpoints and watches"),
    }
}

/// Adds the breakpoints and watches of a file, all or none of them.
///
/// # Errors
/// The file cannot be read, or one of them is wrong.
pub fn load(session: &mut Session, path: &str) -> Result<String, ActionError> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let known = session.plugin_names();
    let read = file::read(&text, &known).map_err(|problem| format!("{path}: {problem}"))?;
    let number = read.len();
    session.change_breakpoints(|list| {
        for (definition, enabled) in read {
            list.add(definition, enabled);
        }
    });
    Ok(format!("{} from {path}", count(number)))
}

/// The watched value at the position, if that is known without work.
fn value(session: &Session, item: &ListedBreakpoint) -> String {
    let state = session.state().filter(|_| session.is_within());
    if let (BreakpointKind::Watch(subject), Some(world)) = (&item.definition.what, state) {
        return subject.value_in(world).to_string();
    }
    let value = item.value_after(&session.recording(), session.entries_past());
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn row(session: &Session, item: &ListedBreakpoint) -> BreakpointRow {
    let changes = item.changes().iter().rev().take(CHANGES).rev();
    let change = |(at, value): &(usize, _)| changed(&session.recording(), *at, value);
    BreakpointRow {
        id: item.id,
        text: item.definition.to_string(),
        place: item.definition.location().map(ToString::to_string).unwrap_or_default(),
        is_watch: item.definition.is_watch(),
        enabled: item.enabled,
        act: match item.definition.act {
            HitAction::Stop => "stop",
            HitAction::Log => "log",
            HitAction::Show => "show",
        },
        hits: item.hits(),
        so_far: 0,
        unseen: item.unseen(),
        value: value(session, item),
        changes: changes.map(change).collect(),
        problem: item.problem().map(str::to_owned),
        last: None,
    }
}

/// A change of a watched value: when, and to what.
fn changed(recording: &RecordedRun<'_>, at: usize, value: &impl ToString) -> String {
    let entry = recording.history.get(kubestep_debug::trace::EntryId(at as u32));
    let when = entry.map(|entry| match entry.as_cycle() {
        Some(record) => format!("cycle {}", record.cycle),
        None => crate::tui::model::entry::entry_text(entry),
    });
    format!("to {} by {}", value.to_string(), when.unwrap_or_default())
}
