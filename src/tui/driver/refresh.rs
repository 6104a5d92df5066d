//! Keeps the model of the session up to date.
//!
//! What the recording shows follows every move; the rows of the cluster are drawn up only for
//! the view on screen, from the state at the position. In the past that state, or a matrix of
//! the cycle there, may have to be reached again first. A moment of that is done at once; what
//! takes longer is left to [`Driver::work_slice`], and the model says so meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Driver, rows};
use crate::report;
use crate::tui::model::entry::entry_text;
use crate::tui::model::{
    ArgumentNames, Configuration, CyclePosition, FoldedOutline, Model, ModelPart, NeededNames,
};
use crate::tui::names::CommonNameParts;
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_cluster::moments::MomentTarget;
use kubestep_config as config;
use kubestep_config::ResolvedConfig;
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::{Input, Position as Frame, Restoring, Session, upgrade};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::NodeNames;

/// The patience of a person who presses keys.
const PATIENCE: Duration = Duration::from_millis(40);
/// The label whose value is the node's name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The way to an earlier state, if it is long.
pub(super) struct PendingReplay {
    /// What is still to be done.
    pub work: Option<Restoring>,
    /// The stop and the frame where it began.
    pub origin: (usize, Frame),
}

impl Default for PendingReplay {
    fn default() -> PendingReplay {
        PendingReplay { work: None, origin: (0, Frame::START) }
    }
}

/// Which parts of the model are out of date.
pub(super) struct Freshness {
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
    old_nodes: bool,
    /// The names of nodes whose common parts are known.
    named: Option<Arc<NodeNames>>,
    /// The configuration that the rows are of.
    config: Option<Arc<ResolvedConfig>>,
    /// The revision of which the names are, and which there are.
    names_of: Option<(u64, NeededNames)>,
    /// The revision of which the times are.
    pub times_of: u64,
    /// The state that the rows show, if it is known: the step and the moment within it.
    state: Option<(usize, Option<MomentTarget>)>,
}

impl Default for Freshness {
    fn default() -> Freshness {
        Freshness {
            patience: PATIENCE,
            seen: 0,
            replaced: 0,
            forgotten: 0,
            old_queues: true,
            old_pods: true,
            old_groups: true,
            old_watches: true,
            old_nodes: true,
            named: None,
            config: None,
            names_of: None,
            times_of: u64::MAX,
            state: None,
        }
    }
}

impl Driver {
    /// The session as views draw it, as of the last refresh.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Brings the model up to date for a view that draws `part`: completely, or as far as it gets in a moment.
    pub fn refresh(&mut self, part: ModelPart) {
        if self.replay.work.is_none() {
            self.replay.work = self.session.restoring_position(part.shows_cluster());
            self.work_slice(self.freshness.patience);
        }
        if self.replay.work.is_none()
            && let Some((number, _)) = self.model.inspected
            && let Some(stop) = self.session.timeline().stop_of_cycle(number)
            && let Some(stop) = self.session.timeline().stops().get(stop)
        {
            self.replay.work = self.session.restoring(stop.step, false);
            self.work_slice(self.freshness.patience);
        }
        // The way back completes records, and so do answers, such as the one beside the rows.
        if self.session.history().replaced() != self.freshness.replaced {
            self.model.revision += 1;
            self.take_cycles();
        }
        if self.replay.work.is_none() {
            self.refresh_part(part);
        }
        if part == ModelPart::Preemption {
            self.refresh_preemption();
        }
    }

    /// Whether the state at the position is still being reached: call `work_slice`.
    pub fn is_working(&self) -> bool {
        self.replay.work.is_some()
    }

    /// Goes on with the way to the state at the position for about `budget`.
    pub fn work_slice(&mut self, budget: Duration) {
        let Some(mut work) = self.replay.work.take() else { return };
        let start = Instant::now();
        let done = self.session.restore(&mut work, || start.elapsed() >= budget);
        self.model.going_back = (!done).then(|| work.progress());
        self.model.progress = self
            .model
            .going_back
            .map(|(done, all)| format!("going back: {done} of {all} steps replayed; Esc stops"));
        self.model.revision += 1;
        self.replay.work = (!done).then_some(work);
    }

    /// Brings the names that an argument completes to up to date.
    pub fn refresh_names(&mut self, needed: NeededNames) {
        let revision = self.model.revision;
        if self.freshness.names_of.is_some_and(|(of, names)| of == revision && names >= needed) {
            return;
        }
        self.freshness.names_of = Some((revision, needed));
        let world = self.session.state().unwrap_or_else(|| self.session.world());
        let with_pods = needed == NeededNames::WithPods;
        let pods = world.api().objects().pods.iter().filter(|_| with_pods);
        let mut pods: Vec<_> = pods.map(|(key, _)| *key).collect();
        pods.sort_unstable();
        let branches = self.branches.list(&self.session);
        let nodes = || world.api().nodes();
        let mut names: Vec<Name> = nodes().map(|node| node.metadata.name).collect();
        names.sort_unstable();
        // Most nodes have the taints and labels of others: only the different ones become text.
        let taints = nodes().flat_map(|node| &node.spec.taints);
        let taints: HashMap<_, _> =
            taints.map(|taint| ((taint.key, taint.value, taint.effect), taint)).collect();
        let labels = nodes().flat_map(|node| node.metadata.labels.iter());
        let labels: HashSet<_> = labels.filter(|(key, _)| *key != HOSTNAME).collect();
        let resources = nodes().flat_map(|node| node.allocatable());
        self.model.names = Arc::new(ArgumentNames {
            nodes: names,
            taints: taints.values().map(ToString::to_string).collect(),
            labels: labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect(),
            resources: resources.map(|(name, _)| name).collect(),
            pods,
            branches: branches.into_iter().map(|branch| branch.name).collect(),
            plugins: self.session.plugin_names().iter().map(ToString::to_string).collect(),
        });
    }

    fn refresh_part(&mut self, part: ModelPart) {
        match part {
            ModelPart::Recording => {}
            ModelPart::Times => self.refresh_times(),
            ModelPart::Breakpoints => {
                if std::mem::take(&mut self.freshness.old_watches) {
                    self.refresh_breakpoints(true);
                }
            }
            _ => self.refresh_cluster(part),
        }
    }

    /// The rows of the cluster, if its state at the position is known.
    fn refresh_cluster(&mut self, part: ModelPart) {
        let Some(world) = self.session.state() else { return };
        let (freshness, model) = (&mut self.freshness, &mut self.model);
        let newest = self.session.newest_known_cycle();
        let history = self.session.history();
        let last = |pod: NamespacedName| {
            let mut cycles = history.cycles_of(pod).rev();
            let last = cycles.find(|record| record.cycle <= newest)?;
            Some((last.time, last.message.clone()))
        };
        match part {
            ModelPart::Configuration => {
                let config = world.config();
                if freshness.config.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, config)) {
                    return;
                }
                freshness.config = Some(config.clone());
                let rows = Arc::new(config::rows::rows(config));
                model.configuration = Configuration { gates: config.features, rows };
            }
            ModelPart::Groups if std::mem::take(&mut freshness.old_groups) => {
                let outline = report::groups::outline(world, history);
                model.groups = Some(FoldedOutline::new(outline, model.groups.take(), None));
            }
            ModelPart::Queues if std::mem::take(&mut freshness.old_queues) => {
                model.queued = rows::queued(world, &last);
                model.nominated = rows::nominated(world);
            }
            ModelPart::Pods if std::mem::take(&mut freshness.old_pods) => {
                model.pods = rows::pods(world, &model.pods);
                model.nominated = rows::nominated(world);
            }
            ModelPart::Nodes | ModelPart::CycleNodes | ModelPart::Preemption
                if std::mem::take(&mut freshness.old_nodes) =>
            {
                refresh_nodes(model, world);
            }
            _ => return,
        }
        model.revision += 1;
    }

    /// Takes over what was done to the cluster, and where the debugger is now.
    pub(super) fn world_changed(&mut self) {
        self.changes += 1;
        let gates = upgrade::gates(&self.session);
        let original = self.branches.other(ORIGINAL).map_or(gates, upgrade::gates);
        // Where branches differ in it, also the default version is shown.
        let differs = original.version_words() != gates.version_words();
        self.model.scheduler = match differs {
            true => Some(gates.version_words()),
            false => gates.other_version(),
        };
        let (history, freshness) = (self.session.history(), &mut self.freshness);
        let (entries, events) = (history.entries(), &mut self.model.events);
        events.drain(..events.partition_point(|(at, _)| (*at as usize) < entries.start()));
        let seen = freshness.seen.max(entries.start());
        let new = entries.from(seen).zip(seen as u32..);
        let new = new.filter(|(entry, _)| entry.as_cycle().is_none());
        events.extend(new.map(|(entry, at)| (at, entry.clone())));
        freshness.seen = history.len();
        freshness.state = None;
        self.take_cycles();
        self.position_changed();
    }

    /// What was done to the cluster last was forgotten.
    pub(super) fn future_forgotten(&mut self) {
        self.model.events.clear();
        self.model.cycles.clear();
        self.freshness.seen = 0;
        self.world_changed();
    }

    /// Takes the records over that are new, or became whole or thin.
    fn take_cycles(&mut self) {
        let (history, cycles) = (self.session.history(), &mut self.model.cycles);
        let first = history.forgotten_cycles();
        let dropped = first.saturating_sub(self.freshness.forgotten).min(cycles.len());
        cycles.drain(..dropped);
        let is_other = self.freshness.forgotten > first;
        self.freshness.forgotten = first;
        match history.replaced_since(self.freshness.replaced).filter(|_| !is_other) {
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
        self.freshness.replaced = history.replaced();
        let newest = cycles.last().map(|cycle| cycle.nodes.clone());
        let same = |new: &Arc<NodeNames>| {
            self.freshness.named.as_ref().is_some_and(|named| Arc::ptr_eq(named, new))
        };
        if let Some(nodes) = newest.filter(|new| !same(new)) {
            let names = nodes.names.iter().map(|name| name.text());
            self.model.node_names = CommonNameParts::of(names);
            self.freshness.named = Some(nodes);
        }
    }

    /// Takes over where the debugger is.
    pub(super) fn position_changed(&mut self) {
        let number = self.session.latest_record().map(|record| record.cycle);
        let cycles = &self.model.cycles;
        let index = number.and_then(|n| cycles.binary_search_by_key(&n, |c| c.cycle).ok());
        self.place_changed();
        let frame = self.session.position();
        self.model.position = index.map(|cycle| CyclePosition { cycle, frame });
        self.model.other_events = other_events(&self.session);
        self.model.entries_reached = self.session.entries_reached();
        self.refresh_breakpoints(false);
        self.freshness.old_watches = true;
        self.model.under_way =
            number.is_some_and(|number| number > self.session.newest_known_cycle());
        self.model.at_end = self.session.is_at_newest();
        let idle = || self.session.world().scheduler().queue().is_idle();
        self.model.idle =
            !self.session.is_within() && (idle() || self.session.livelock().is_some());
        self.model.now = self.session.now();
        self.model.going_back = None;
        self.model.revision += 1;
        let state = Some(self.session.state_key());
        if self.freshness.state != state {
            let freshness = &mut self.freshness;
            (freshness.old_queues, freshness.old_pods, freshness.old_nodes) = (true, true, true);
            (freshness.old_groups, freshness.old_watches) = (true, true);
            freshness.state = state;
            self.model.answer = None;
            self.model.causes.clear();
        }
    }
}

fn refresh_nodes(model: &mut Model, world: &World) {
    let holds = world.scheduler().interventions().holds();
    model.holds = holds.iter().map(ToString::to_string).collect();
    model.waiting = rows::waiting(world);
    model.nominated = rows::nominated(world);
    model.nodes = world.scheduler().cache().nodes().cloned().collect();
    if model.cycles.is_empty() {
        model.node_names = CommonNameParts::of(model.nodes.iter().map(|n| n.name.text()));
    }
}

/// Where the session stands beside a cycle: what was done that is no cycle, and what followed.
fn other_events(session: &Session) -> Vec<String> {
    let stop = session.stop().filter(|stop| stop.cycle.is_none());
    let step = stop.and_then(|stop| session.timeline().steps().get(stop.step));
    let done = step.and_then(|step| step.input.as_ref()).map(Input::describe);
    let entry = session.position().entry.and_then(|id| session.history().get(id));
    done.into_iter().chain(entry.map(entry_text)).collect()
}
