//! The scores of all nodes for similar pods, kept from cycle to cycle: computed again only
//! for the nodes that changed, and summed up.
//!
//! Only plugins whose raw scores depend on one node alone, and whose normalized scores depend at
//! most on the highest raw score besides, are kept; the others run in each cycle as usual.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::best::{BestTotals, Winner};
use super::best_window::BestOfWindows;
use super::cache::{AnswerCache, AnswerKey, CachedColumn};
use super::raw_scores::{RawScores, UNKNOWN};
use super::recent::Recent;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeId;
use kubestep_framework::plugin::{CycleContext, Plugin, ScoreBasis};
use kubestep_framework::record::ScoreColumn;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::nodes::{NodeList, NodeWindow};
use kubestep_framework::record::scores::{MAX_NODE_SCORE, Scores, range};
use kubestep_framework::runtime::Framework;
use kubestep_framework::runtime::scoring::CachedScores;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::positions::PositionSet;
use kubestep_framework::tie_break::TieBreak;

/// About how many bytes the scores of a class take per node, most of them in the tree of the best.
const NODE_BYTES: usize = 80;

/// The scores by what the plugins look at in a pod.
#[derive(Clone, Default, Debug)]
pub(crate) struct AllClassScores(Recent<ClassScores>);

/// The scores of all nodes for one class of pods.
#[derive(Clone, Default, Debug)]
struct ClassScores {
    plugins: Vec<PluginScores>,
    /// By slot: the sum of the weighted scores.
    totals: Column<i32>,
    /// The node order, and the positions in it of the nodes for which all of this is up to date.
    order: Arc<Vec<NodeId>>,
    known: PositionSet,
    /// The state of the cache that it reflects: see [`AnswerCache::changes`] and
    /// [`AnswerCache::dropped`].
    changes: u64,
    dropped: u64,
    best: BestTotals,
    windows: BestOfWindows,
}

/// The scores of all nodes by one plugin.
#[derive(Clone, Default, Debug)]
struct PluginScores {
    raw: Column<i32>,
    normalized: Column<i32>,
    /// How many of the known nodes have each raw score.
    counts: BTreeMap<i32, usize>,
    /// The raw score to which the others are relative, if the plugin normalizes.
    highest: i32,
}

/// The position of a node in the node order; beyond its end if the slot holds no node.
fn position(snapshot: &Snapshot, id: NodeId) -> usize {
    snapshot.ranks().get(id.index()).map_or(usize::MAX, |rank| *rank as usize)
}

/// A plugin whose scores are kept, with what it looks at in the pod.
struct CachedPlugin<'a> {
    plugin: &'a dyn Plugin,
    key: AnswerKey,
    weight: i64,
}

/// The cycle in which nodes are scored.
#[derive(Clone, Copy)]
pub(crate) struct ScoreCycle<'a> {
    pub framework: &'a Framework,
    pub cx: &'a CycleContext<'a>,
    pub state: &'a CycleState,
    pub feasible: &'a NodeList,
    /// The feasible nodes as a window on the node order, and the positions in it of all nodes that
    /// pass, if a kept search found them.
    pub searched: Option<(&'a NodeWindow, &'a PositionSet)>,
    pub tie_break: TieBreak,
    /// The number of the cycle.
    pub number: u64,
}

/// The kept scores of the feasible nodes.
pub(crate) struct FeasibleScores {
    pub scores: CachedScores,
    /// The winner by their totals, if it is known.
    pub winner: Option<Winner>,
}

impl AllClassScores {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The scores of the feasible nodes by the plugins that can be kept. `None` if a plugin fails,
    /// or if the nodes are few and the highest score is another one among them.
    pub fn update(
        &mut self,
        cycle: ScoreCycle<'_>,
        cache: &mut AnswerCache,
    ) -> Option<FeasibleScores> {
        let plugins = cached_plugins(cycle);
        let mut class = cycle.framework.name().to_string();
        for kept in &plugins {
            class.extend(["\n", kept.plugin.name().as_str(), " ", &kept.key.pod]);
        }
        let bytes = cycle.cx.snapshot.slots() * NODE_BYTES;
        let scores = self.0.entry(&class, bytes, ClassScores::default);
        let Some(mut kept) = scores.update(cycle, &plugins, cache) else {
            *scores = ClassScores::default();
            return None;
        };
        let winner = scores.winner(cycle);
        let len = cycle.feasible.len();
        kept.columns.extend(idle_plugins(cycle).map(|plugin| ScoreColumn {
            plugin,
            weight: cycle.framework.score_weight(plugin),
            raw: Scores::Same { value: 0, len },
            normalized: Scores::Same { value: 0, len },
        }));
        Some(FeasibleScores { scores: kept, winner })
    }
}

/// Whether a plugin scores in this cycle.
fn runs(cycle: ScoreCycle<'_>, name: Symbol) -> bool {
    !cycle.state.skips_score(name) && cycle.state.fault(ExtensionPoint::Score, name).is_none()
}

/// The plugins of the cycle that the pod does not concern.
fn idle_plugins(cycle: ScoreCycle<'_>) -> impl Iterator<Item = Symbol> {
    let plugins = cycle.framework.at(ExtensionPoint::Score).iter();
    let idle = plugins.filter(move |plugin| plugin.is_idle(cycle.state));
    idle.map(|plugin| plugin.name()).filter(move |name| runs(cycle, *name))
}

/// The plugins of the cycle whose scores can be kept.
fn cached_plugins(cycle: ScoreCycle<'_>) -> Vec<CachedPlugin<'_>> {
    let ScoreCycle { framework, cx, .. } = cycle;
    let point = ExtensionPoint::Score;
    let kept = |plugin: &'_ Arc<dyn Plugin>| {
        runs(cycle, plugin.name()) && plugin.score_basis().is_cacheable()
    };
    let plugins = framework.at(point).iter().filter(|plugin| kept(plugin));
    let plugins = plugins.filter_map(|plugin| {
        let (profile, pod) = (framework.name(), plugin.score_key(cx.pod)?);
        let key = AnswerKey { profile, plugin: plugin.name(), point, pod };
        let weight = framework.score_weight(plugin.name());
        Some(CachedPlugin { plugin: plugin.as_ref(), key, weight })
    });
    plugins.collect()
}

/// Whether no other plugin adds to the totals.
fn are_all(cycle: ScoreCycle<'_>, plugins: &[CachedPlugin<'_>]) -> bool {
    let running = cycle.framework.at(ExtensionPoint::Score).iter();
    let running = running.filter(|plugin| !cycle.state.skips_score(plugin.name())).count();
    running == plugins.len() + idle_plugins(cycle).count()
}

impl ClassScores {
    fn new(plugins: usize, snapshot: &Snapshot) -> ClassScores {
        let slots = snapshot.slots();
        ClassScores {
            plugins: (0..plugins).map(|_| PluginScores::new(slots)).collect(),
            totals: Column::filled(0, slots),
            order: snapshot.order().clone(),
            known: PositionSet::of(snapshot.len(), |_| false),
            ..ClassScores::default()
        }
    }

    fn update(
        &mut self,
        cycle: ScoreCycle<'_>,
        plugins: &[CachedPlugin<'_>],
        cache: &mut AnswerCache,
    ) -> Option<CachedScores> {
        let (stale, raw_scores) = self.take_over(cache, plugins, cycle.cx.snapshot);
        let missing = self.missing(cycle, stale);
        for ((scores, kept), mut raw) in self.plugins.iter_mut().zip(plugins).zip(raw_scores) {
            let complete = || scores.complete(kept.plugin, cycle, &missing, &mut raw);
            let timer = &cycle.cx.shared.timer;
            timer.time(ExtensionPoint::Score, kept.plugin.name(), complete)?;
            cache.put(kept.key.clone(), CachedColumn::Scores(raw));
        }
        let changed = self.normalize(cycle, plugins, missing)?;
        self.follow(cycle, plugins, &changed);
        Some(self.kept(plugins, cycle))
    }

    /// Follows to the best of the feasible nodes, of which `changed` have other totals than before.
    fn follow(&mut self, cycle: ScoreCycle<'_>, plugins: &[CachedPlugin<'_>], changed: &[NodeId]) {
        match (cycle.feasible, cycle.searched) {
            (NodeList::Window(_), Some((window, passing))) if are_all(cycle, plugins) => {
                let positions = changed.iter().map(|id| position(cycle.cx.snapshot, *id));
                self.windows.follow(window, passing, positions, &self.totals);
                self.best = BestTotals::default();
            }
            (NodeList::Written(nodes), _) => {
                self.best.follow(nodes, changed, &self.totals);
                self.windows = BestOfWindows::default();
            }
            _ => self.windows = BestOfWindows::default(),
        }
    }

    /// The best of the feasible nodes, if it is known.
    fn winner(&self, cycle: ScoreCycle<'_>) -> Option<Winner> {
        match cycle.feasible {
            NodeList::Window(window) => self.windows.winner(window, cycle.tie_break, cycle.number),
            NodeList::Written(_) => self.best.winner(cycle.tie_break, cycle.number),
        }
    }

    /// Takes the raw scores out of the cache. Returns the nodes that changed since the last time, of
    /// which nothing is known any more, and the raw scores by plugin.
    fn take_over(
        &mut self,
        cache: &mut AnswerCache,
        plugins: &[CachedPlugin<'_>],
        snapshot: &Snapshot,
    ) -> (Vec<NodeId>, Vec<RawScores>) {
        let slots = snapshot.slots();
        let is_same = Arc::ptr_eq(&self.order, snapshot.order()) && self.totals.len() == slots;
        let stale = cache.changed_since(self.changes).filter(|_| is_same);
        let columns: Vec<_> = plugins.iter().map(|kept| cache.take(&kept.key)).collect();
        let is_complete = self.dropped == cache.dropped() && columns.iter().all(Option::is_some);
        let stale = stale.filter(|_| is_complete);
        if stale.is_none() {
            *self = ClassScores::new(plugins.len(), snapshot);
        }
        (self.changes, self.dropped) = (cache.changes(), cache.dropped());
        let mut stale = stale.unwrap_or_default();
        // A pod may be bound to a node that is not in the snapshot.
        stale.retain(|id| self.known.contains(position(snapshot, *id)));
        for scores in &mut self.plugins {
            stale.iter().for_each(|id| scores.uncount(*id));
        }
        stale.iter().for_each(|id| self.known.set(position(snapshot, *id), false));
        let raw_scores = columns.into_iter().map(|cached| RawScores::of_cache(cached, slots));
        (stale, raw_scores.collect())
    }

    /// The feasible nodes whose scores are not known; `stale` are those that were until now.
    fn missing(&self, cycle: ScoreCycle<'_>, mut stale: Vec<NodeId>) -> Vec<NodeId> {
        if let NodeList::Written(nodes) = cycle.feasible
            && self.best.is_of(nodes)
        {
            // All others in the list are known since the last cycle.
            stale.retain(|id| self.best.contains(*id));
            return stale;
        }
        if let Some((window, _)) = cycle.searched {
            return window.outside(&self.known).map(|at| self.order[at]).collect();
        }
        let unknown = |id: &&NodeId| !self.known.contains(position(cycle.cx.snapshot, **id));
        cycle.feasible.iter().filter(unknown).copied().collect()
    }

    /// Normalizes the scores of the nodes that were missing, or of all nodes if a highest score
    /// changed, and sums them up. Returns those nodes.
    fn normalize(
        &mut self,
        cycle: ScoreCycle<'_>,
        plugins: &[CachedPlugin<'_>],
        missing: Vec<NodeId>,
    ) -> Option<Vec<NodeId>> {
        let all = self.plugins.iter().zip(plugins);
        let measures = all.map(|(scores, kept)| scores.highest_of(kept.plugin, cycle.feasible));
        let measures: Vec<i32> = measures.collect();
        let is_same = self.plugins.iter().map(|scores| scores.highest).eq(measures.iter().copied());
        let mut changed = missing;
        if !is_same {
            if self.known.len() > 2 * cycle.feasible.len() {
                return None;
            }
            let known = self.known.members(0, self.order.len());
            changed.extend(known.map(|at| self.order[at]));
        }
        let mut sums = vec![0_i64; changed.len()];
        for (at, (scores, kept)) in self.plugins.iter_mut().zip(plugins).enumerate() {
            scores.highest = measures[at];
            let normalized = scores.normalize(kept.plugin, cycle, &changed)?;
            sums.iter_mut().zip(&normalized).for_each(|(sum, score)| *sum += score * kept.weight);
        }
        for (id, sum) in changed.iter().zip(&sums) {
            self.totals.set(*id, i32::try_from(*sum).ok()?);
            self.known.set(position(cycle.cx.snapshot, *id), true);
        }
        Some(changed)
    }

    /// The scores of the feasible nodes.
    fn kept(&self, plugins: &[CachedPlugin<'_>], cycle: ScoreCycle<'_>) -> CachedScores {
        let nodes = cycle.feasible;
        let of_nodes =
            |column: &Column<i32>| Scores::OfNodes { column: column.clone(), nodes: nodes.clone() };
        let column = |(scores, kept): (&PluginScores, &CachedPlugin<'_>)| {
            let first = nodes.first().copied().unwrap_or(NodeId(0));
            let same = |column: &Column<i32>| {
                let value = column.get(first).unwrap_or_default().into();
                Scores::Same { value, len: nodes.len() }
            };
            let (raw, normalized) = match scores.counts.len() {
                1 => (same(&scores.raw), same(&scores.normalized)),
                _ => (of_nodes(&scores.raw), of_nodes(&scores.normalized)),
            };
            ScoreColumn { plugin: kept.plugin.name(), weight: kept.weight, raw, normalized }
        };
        let columns = self.plugins.iter().zip(plugins).map(column).collect();
        CachedScores { columns, totals: of_nodes(&self.totals) }
    }
}

impl PluginScores {
    fn new(slots: usize) -> PluginScores {
        let normalized = Column::filled(0, slots);
        PluginScores { raw: Column::filled(UNKNOWN, slots), normalized, ..PluginScores::default() }
    }

    /// Counts a node out whose score was known.
    fn uncount(&mut self, id: NodeId) {
        let score = self.raw.get(id).unwrap_or(UNKNOWN);
        if let Some(count) = self.counts.get_mut(&score) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&score);
            }
        }
    }

    /// Completes the raw scores of these nodes, takes them over, and counts the nodes in. `None` if
    /// the plugin fails, or a score does not fit into the column.
    fn complete(
        &mut self,
        plugin: &dyn Plugin,
        cycle: ScoreCycle<'_>,
        nodes: &[NodeId],
        raw: &mut RawScores,
    ) -> Option<()> {
        for id in nodes {
            let node = cycle.cx.snapshot.get(*id)?;
            let compute = || plugin.score(cycle.cx, cycle.state, node);
            let score = i32::try_from(raw.complete(*id, compute).ok()?).ok()?;
            *self.counts.entry(score).or_default() += 1;
        }
        self.raw = raw.column().clone();
        Some(())
    }

    /// The highest raw score of these nodes; 0 if the plugin does not look at it.
    fn highest_of(&self, plugin: &dyn Plugin, nodes: &NodeList) -> i32 {
        let scored: usize = self.counts.values().sum();
        let measure = match self.counts.len() {
            _ if plugin.score_basis() != ScoreBasis::HighestScore => None,
            1 => self.counts.keys().next().copied(),
            // Every feasible node has a score: these are all.
            _ if scored == nodes.len() => self.counts.keys().next_back().copied(),
            _ => range::<i32>(&self.raw.gather(&nodes.slice(), UNKNOWN)).map(|(_, most)| most),
        };
        measure.unwrap_or_default()
    }

    /// Normalizes the raw scores of these nodes and returns them. `None` if the plugin fails, or a
    /// score is out of range.
    fn normalize(
        &mut self,
        plugin: &dyn Plugin,
        cycle: ScoreCycle<'_>,
        nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        let raw: Vec<i64> = self.raw.gather(nodes, UNKNOWN.into());
        let is_valid = |score: &i64| (0..=MAX_NODE_SCORE).contains(score);
        if plugin.score_basis() != ScoreBasis::HighestScore {
            self.normalized = self.raw.clone();
            return raw.iter().all(is_valid).then_some(raw);
        }
        // The highest score stands for all nodes that have not changed.
        let (first, highest) = (*cycle.feasible.first()?, i64::from(self.highest));
        // Nodes that are known but not feasible must not be the measure of the others.
        let measured = raw.into_iter().map(|score| score.min(highest));
        let mut scores: Vec<i64> = [highest].into_iter().chain(measured).collect();
        let ids: Vec<NodeId> = [first].into_iter().chain(nodes.iter().copied()).collect();
        let status = plugin.normalize(cycle.cx, cycle.state, &ids, &mut scores);
        scores.remove(0);
        if !status.is_success() || !scores.iter().all(is_valid) {
            return None;
        }
        for (id, score) in nodes.iter().zip(&scores) {
            self.normalized.set(*id, i32::try_from(*score).ok()?);
        }
        Some(scores)
    }
}

/// Whether the kept scores are those that the plugins give when they run again.
pub(crate) fn are_as_computed_again(kept: &CachedScores, cycle: ScoreCycle<'_>) -> bool {
    let ScoreCycle { framework, cx, state, feasible, .. } = cycle;
    let nodes = || feasible.iter().filter_map(|id| cx.snapshot.get(*id));
    let mut totals = vec![0; feasible.len()];
    let is_same = kept.columns.iter().all(|column| {
        let mut plugins = framework.at(ExtensionPoint::Score).iter();
        let Some(plugin) = plugins.find(|plugin| plugin.name() == column.plugin) else {
            return false;
        };
        let raw = nodes().filter_map(|node| plugin.score(cx, state, node).ok());
        let raw: Vec<i64> = raw.collect();
        let mut scores = raw.clone();
        let normalized = plugin.normalize(cx, state, &feasible.slice(), &mut scores);
        let weighted = scores.iter().map(|score| score * column.weight);
        totals.iter_mut().zip(weighted).for_each(|(total, score)| *total += score);
        normalized.is_success()
            && column.raw == Scores::from(raw)
            && column.normalized == Scores::from(scores)
    });
    is_same && kept.totals == Scores::from(totals)
}
