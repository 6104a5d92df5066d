//! Keeps the picture of the session up to date.
//!
//! What the recording shows follows every move; the rows of the cluster are drawn up only for
//! the view on screen, from the state at the position. In the past that state, or a matrix of
//! the cycle there, may have to be reached again first. A moment of that is done at once; what
//! takes longer is left to [`Driver::work_slice`], and the picture says so meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Driver, rows};
use crate::report;
use crate::tui::model::{Configuration, Folding, Model, Position};
use crate::tui::names::CommonParts;
use crate::tui::view::{ViewId, events};
use kubestep_cluster::moments::Target;
use kubestep_config as config;
use kubestep_config::ResolvedConfig;
use kubestep_debug::timeline::Stop;
use kubestep_debug::{Input, Session};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::NodeNames;

/// The patience of a person who presses keys.
const PATIENCE: Duration = Duration::from_millis(40);

/// What of the picture is how old.
pub(super) struct Picture {
    /// How long the way to an earlier state may keep a key waiting.
    pub patience: Duration,
    /// History entries taken in, and how many records had been replaced by then.
    seen: usize,
    replaced: u64,
    /// How many cycles were forgotten by then.
    forgotten: usize,
    /// Rows of the cluster that are of another state than the one at the position.
    old_queues: bool,
    old_pods: bool,
    old_groups: bool,
    old_watches: bool,
    old_rest: bool,
    /// The names of nodes whose common parts are known.
    named: Option<Arc<NodeNames>>,
    /// The configuration that the rows are of.
    config: Option<Arc<ResolvedConfig>>,
    /// The revision of which the times are.
    pub times_of: u64,
    /// The state that the rows show, if it is known: the step and the moment within it.
    state: Option<(usize, Option<Target>)>,
}

impl Default for Picture {
    fn default() -> Picture {
        Picture {
            patience: PATIENCE,
            seen: 0,
            replaced: 0,
            forgotten: 0,
            old_queues: true,
            old_pods: true,
            old_groups: true,
            old_watches: true,
            old_rest: true,
            named: None,
            config: None,
            times_of: u64::MAX,
            state: None,
        }
    }
}

impl Driver {
    /// The picture for `view`: complete, or as complete as it gets in a moment.
    pub fn model(&mut self, view: ViewId) -> &Model {
        if self.work.is_none() {
            self.work = self.session.restoring_here(view.shows_cluster());
            self.work_slice(self.picture.patience);
        }
        if self.work.is_none()
            && let Some((number, _)) = self.model.inspected
            && let Some(stop) = self.session.timeline().stop_of_cycle(number)
            && let Some(stop) = self.session.timeline().stops().get(stop)
        {
            self.work = self.session.restoring(stop.step, false);
            self.work_slice(self.picture.patience);
        }
        if self.work.is_none() {
            self.draw_up(view);
        }
        &self.model
    }

    /// Whether the state at the position is still being reached: call `work_slice`.
    pub fn is_working(&self) -> bool {
        self.work.is_some()
    }

    /// Goes on with the way to the state at the position for about `budget`.
    pub fn work_slice(&mut self, budget: Duration) {
        let Some(mut work) = self.work.take() else { return };
        let start = Instant::now();
        let done = self.session.restore(&mut work, || start.elapsed() >= budget);
        self.model.going_back = (!done).then(|| work.progress());
        self.model.progress = self.model.going_back.map(|(done, all)| {
            format!("going back: {done} of {all} steps are done again; Esc stops")
        });
        self.model.revision += 1;
        match done {
            true => self.take_cycles(),
            false => self.work = Some(work),
        }
    }

    fn draw_up(&mut self, view: ViewId) {
        if view == ViewId::Times {
            return self.draw_up_times();
        }
        if view == ViewId::Breakpoints && std::mem::take(&mut self.picture.old_watches) {
            return self.draw_up_breakpoints();
        }
        if view == ViewId::Preemption {
            self.draw_up_preemption();
        }
        // The node views of a cycle show labels, if the cluster there is known.
        let shows = view.shows_cluster()
            || matches!(view, ViewId::Filter | ViewId::Scores | ViewId::Preemption);
        let Some(world) = self.session.state().filter(|_| shows) else { return };
        let (picture, model) = (&mut self.picture, &mut self.model);
        let newest = self.session.newest_known_cycle();
        let history = self.session.history();
        let said = |pod: NamespacedName| {
            let mut cycles = history.cycles_of(pod).rev();
            cycles.find(|record| record.cycle <= newest).map(|record| record.message.clone())
        };
        if view == ViewId::Configuration {
            let config = world.config();
            if picture.config.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, config)) {
                return;
            }
            picture.config = Some(config.clone());
            let rows = Arc::new(config::rows::rows(config));
            model.configuration = Configuration { gates: config.features, rows };
        } else if view == ViewId::Groups {
            if !std::mem::take(&mut picture.old_groups) {
                return;
            }
            let outline = report::groups::outline(world, history);
            model.groups = Some(Folding::new(outline, model.groups.take(), None));
        } else if view == ViewId::Queues && std::mem::take(&mut picture.old_queues) {
            model.queued = rows::queued(world, &said);
            model.nominated = rows::nominated(world);
        } else if view == ViewId::Pods && std::mem::take(&mut picture.old_pods) {
            model.pods = rows::pods(world);
            model.nominated = rows::nominated(world);
        } else if !std::mem::take(&mut picture.old_rest) {
            return;
        } else {
            let holds = world.scheduler().interventions().holds();
            model.holds = holds.iter().map(ToString::to_string).collect();
            model.waiting = rows::waiting(world);
            model.nominated = rows::nominated(world);
            model.nodes = world.scheduler().cache().nodes().cloned().collect();
            if model.cycles.is_empty() {
                model.node_names = CommonParts::of(model.nodes.iter().map(|n| n.name.as_str()));
            }
        }
        model.revision += 1;
    }

    /// Takes over what was done to the cluster, and where the debugger is now.
    pub(super) fn world_changed(&mut self) {
        self.changes += 1;
        let (history, picture) = (self.session.history(), &mut self.picture);
        let (entries, events) = (history.entries(), &mut self.model.events);
        events.drain(..events.partition_point(|(at, _)| (*at as usize) < entries.start()));
        let seen = picture.seen.max(entries.start());
        let new = entries.from(seen).zip(seen as u32..);
        let new = new.filter(|(entry, _)| entry.as_cycle().is_none());
        events.extend(new.map(|(entry, at)| (at, entry.clone())));
        picture.seen = history.len();
        picture.state = None;
        self.take_cycles();
        self.position_changed();
    }

    /// What was done to the cluster last was forgotten.
    pub(super) fn future_forgotten(&mut self) {
        self.model.events.clear();
        self.model.cycles.clear();
        self.picture.seen = 0;
        self.world_changed();
    }

    /// Takes the records over that are new, or became whole or thin.
    fn take_cycles(&mut self) {
        let (history, cycles) = (self.session.history(), &mut self.model.cycles);
        let first = history.forgotten_cycles();
        let gone = first.saturating_sub(self.picture.forgotten).min(cycles.len());
        cycles.drain(..gone);
        let is_other = self.picture.forgotten > first;
        self.picture.forgotten = first;
        match history.replaced_since(self.picture.replaced).filter(|_| !is_other) {
            Some(replaced) if first + cycles.len() <= history.cycle_count() => {
                let places = replaced.iter().map(|place| *place as usize);
                for place in places.filter(|place| *place >= first) {
                    let record = history.cycles_from(place).next();
                    if let Some((shown, record)) = cycles.get_mut(place - first).zip(record) {
                        shown.clone_from(record);
                    }
                }
            }
            _ => cycles.clear(),
        }
        cycles.extend(history.cycles_from(first + cycles.len()).cloned());
        self.picture.replaced = history.replaced();
        let newest = cycles.last().map(|cycle| cycle.nodes.clone());
        let same = |new: &Arc<NodeNames>| {
            self.picture.named.as_ref().is_some_and(|named| Arc::ptr_eq(named, new))
        };
        if let Some(nodes) = newest.filter(|new| !same(new)) {
            let names = nodes.names.iter().map(|name| name.as_str());
            self.model.node_names = CommonParts::of(names);
            self.picture.named = Some(nodes);
        }
    }

    /// Takes over where the debugger is.
    pub(super) fn position_changed(&mut self) {
        let number = self.session.latest_record().map(|record| record.cycle);
        let cycles = &self.model.cycles;
        let index = number.and_then(|n| cycles.binary_search_by_key(&n, |c| c.cycle).ok());
        self.place_changed();
        let frame = self.session.position();
        self.model.position = index.map(|cycle| Position { cycle, frame });
        self.model.aside = aside(&self.session);
        self.draw_up_breakpoints();
        self.model.under_way =
            number.is_some_and(|number| number > self.session.newest_known_cycle());
        let within = self.session.is_within();
        let until = |stop: &Stop| if within { stop.entries.start } else { stop.entries.end };
        self.model.events_until = self.session.stop().map_or(0, until);
        self.model.at_end = self.session.is_at_newest();
        let idle = || self.session.world().scheduler().queue().is_idle();
        self.model.idle = !self.session.is_within() && (idle() || self.session.circle().is_some());
        self.model.now = self.session.now();
        self.model.going_back = None;
        self.model.revision += 1;
        let state = Some(self.session.state_key());
        if self.picture.state != state {
            let picture = &mut self.picture;
            (picture.old_queues, picture.old_pods, picture.old_rest) = (true, true, true);
            (picture.old_groups, picture.old_watches) = (true, true);
            picture.state = state;
            self.model.answer = None;
        }
    }
}

/// Where the session stands beside a cycle: what was done that is no cycle, and what followed.
fn aside(session: &Session) -> Vec<String> {
    let stop = session.stop().filter(|stop| stop.cycle.is_none());
    let step = stop.and_then(|stop| session.timeline().steps().get(stop.step));
    let done = step.and_then(|step| step.input.as_ref()).map(Input::words);
    let entry = session.position().entry.and_then(|id| session.history().get(id));
    done.into_iter().chain(entry.map(events::words)).collect()
}
