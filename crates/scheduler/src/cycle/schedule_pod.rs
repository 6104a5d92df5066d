//! The scheduling algorithm: finding the nodes that fit a pod with PreFilter, the nominated
//! node, Filter and the extenders. [`prioritize`](super::prioritize) selects one of them.
//!
//! Upstream: `schedulePod` and `findNodesThatFitPod` in `pkg/scheduler/schedule_one.go`.

use std::mem::take;
use std::sync::Arc;

use super::batch::Batches;
use super::select::RankedNodes;
use super::{Cycle, CycleParts};
use crate::answers::PluginAnswers;
use crate::answers::matrix::{FilterCycle, first_rejection};
use crate::cluster_state::ClusterState;
use crate::host::SchedulerHost;
use crate::interventions;
use crate::profiles::Profiles;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_config::versions::Switch;
use kubestep_framework::extender;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::record::column::Column;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::{FilterColumn, VerdictId, VerdictTable};
use kubestep_framework::runtime::Framework;
use kubestep_framework::status::node_statuses::{Diagnosis, add_once};
use kubestep_framework::status::{Code, Status};

/// Clusters smaller than this are always searched completely.
const MIN_FEASIBLE_NODES: usize = 100;
/// The adaptive percentage is never below this.
const MIN_PERCENTAGE: usize = 5;

/// What the algorithm keeps from cycle to cycle.
#[derive(Clone, Default)]
pub(crate) struct Algorithm {
    pub answers: PluginAnswers,
    pub batches: Batches,
    /// Where the next search starts in the node order.
    pub next_start_node_index: usize,
}

/// The search for a node for one pod.
pub(crate) struct SchedulePod<'a> {
    pub cluster: &'a ClusterState,
    pub profiles: &'a Profiles,
    pub algorithm: &'a mut Algorithm,
    /// How many pods the queue has popped.
    pub popped: u64,
    pub cycle: &'a mut Cycle,
    pub host: &'a mut dyn SchedulerHost,
}

/// Why no node was found.
pub(crate) enum SchedulePodError {
    /// No node fits the pod.
    Fit(Box<Diagnosis>),
    /// The cycle ends without a diagnosis.
    Failed(Status),
}

impl From<Status> for SchedulePodError {
    fn from(status: Status) -> SchedulePodError {
        SchedulePodError::Failed(status)
    }
}

/// The feasible nodes, in order, and why the others were rejected.
struct FeasibleNodes {
    nodes: NodeList,
    /// Complete only if no node is feasible.
    diagnosis: Diagnosis,
    /// Number of nodes that passed or were rejected.
    processed: usize,
    /// Whether a kept search found them; then the record has its verdicts already.
    by_search: bool,
}

impl FeasibleNodes {
    fn new(nodes: Vec<NodeId>, diagnosis: Diagnosis) -> FeasibleNodes {
        let processed = nodes.len() + diagnosis.statuses.len();
        FeasibleNodes { nodes: nodes.into(), diagnosis, processed, by_search: false }
    }
}

/// The nodes that PreFilter leaves to Filter.
pub(crate) enum PreFilterNodes {
    All,
    /// Those with these names, sorted.
    Only(Vec<Name>),
    /// None, as PreFilter rejected the pod.
    Rejected,
}

impl SchedulePod<'_> {
    /// Finds the nodes that fit and selects the best one.
    pub fn run(mut self) -> Result<Name, SchedulePodError> {
        if self.cluster.snapshot.placement().is_empty() {
            return Err(Status::unresolvable("no nodes available to schedule pods").into());
        }
        let found = self.find_nodes_that_fit();
        let (cycle, answers) = (&mut *self.cycle, &mut self.algorithm.answers);
        cycle.record.verdicts = answers.verdicts.clone();
        let by_search = found.as_ref().is_ok_and(|found| found.by_search);
        if !by_search {
            cycle.record.filter.evaluated = answers.records.evaluated(&cycle.evaluated);
            cycle.record.filter.verdicts = match cycle.verdicts.is_empty() {
                true => answers.records.ended(self.cluster.snapshot.slots()),
                false => answers.records.verdicts(&cycle.verdicts),
            };
        }
        let FeasibleNodes { nodes, diagnosis, processed, .. } = found?;
        cycle.record.evaluated_nodes = processed;
        cycle.record.feasible =
            if by_search { nodes } else { answers.records.feasible(&nodes.slice()) };
        let feasible = &cycle.record.feasible;
        match (feasible.len(), feasible.first()) {
            (_, None) => Err(SchedulePodError::Fit(Box::new(diagnosis))),
            (1, Some(only)) => {
                let only = cycle.record.nodes.name(*only);
                self.remember(only, || None);
                Ok(only)
            }
            _ => Ok(self.prioritize()?),
        }
    }

    /// Remembers the selected node for batching.
    pub fn remember(&mut self, selected: Name, others: impl FnOnce() -> Option<RankedNodes>) {
        let batches = &mut self.algorithm.batches;
        batches.remember(self.cluster, self.cycle, self.popped, selected, others);
    }

    /// Finds the nodes that fit the pod. The error ends the cycle.
    fn find_nodes_that_fit(&mut self) -> Result<FeasibleNodes, Status> {
        let mut diagnosis = Diagnosis::default();
        let allowed = self.pre_filter(&mut diagnosis)?;
        if let Some(node) = self.forced_node() {
            return Ok(FeasibleNodes::new(vec![node], Diagnosis::default()));
        }
        if matches!(allowed, PreFilterNodes::Rejected) {
            return Ok(FeasibleNodes::new(Vec::new(), diagnosis));
        }
        let hint = self.algorithm.batches.node_hint(self.cluster, self.cycle, self.popped);
        self.cycle.record.node_hint = hint;
        self.fill_matrix(matches!(allowed, PreFilterNodes::All));
        if let Some(nodes) = self.try_nominated_node(&mut diagnosis) {
            return Ok(FeasibleNodes::new(nodes, diagnosis));
        }
        if matches!(allowed, PreFilterNodes::All)
            && let Some(found) = self.search(&mut diagnosis)
        {
            return Ok(found);
        }
        self.cycle.begin_verdicts(&self.cluster.snapshot);
        let narrowed;
        let nodes = match allowed {
            PreFilterNodes::Only(names) => {
                narrowed = self.narrow(&names, &mut diagnosis);
                &narrowed
            }
            _ => self.cluster.snapshot.placement().as_ref(),
        };
        let mut feasible = Vec::new();
        let passed = self.find_feasible(nodes, &mut feasible, &mut diagnosis);
        // Also after an error, so that every node gets its turn.
        let processed = feasible.len() + diagnosis.statuses.len();
        self.advance_start(processed);
        passed?;
        let nodes = self.nodes_that_pass_extenders(feasible, &mut diagnosis)?;
        Ok(FeasibleNodes::new(nodes, diagnosis))
    }

    /// Searches all nodes with what is kept of the last search for a pod like this one. `None` if
    /// more than the verdicts of the filter plugins decides.
    fn search(&mut self, diagnosis: &mut Diagnosis) -> Option<FeasibleNodes> {
        let snapshot = &self.cluster.snapshot;
        let by_filters = self.cycle.record.interventions.is_empty()
            && self.cycle.evaluated.is_empty()
            && self.profiles.extenders.is_empty()
            && !self.cycle.framework.at(ExtensionPoint::Filter).is_empty();
        if !by_filters {
            return None;
        }
        let wanted = self.wanted_nodes(snapshot.len());
        let key = self.search_key()?;
        let answers = &mut self.algorithm.answers;
        let search = answers.searches.get_mut(&key)?;
        if search.has_errors(&answers.verdicts) {
            return None;
        }
        let start = self.algorithm.next_start_node_index.checked_rem(snapshot.len())?;
        let found = search.find(start, wanted, snapshot);
        match &found.diagnosis {
            _ if !found.feasible.is_empty() => {}
            Some(kept) => diagnosis.clone_from(kept),
            None => {
                self.cycle.begin_verdicts(snapshot);
                let rejected = found.evaluated.iter().copied();
                let verdicts = Some(&found.verdicts);
                self.visit(rejected, wanted, verdicts, &mut Vec::new(), diagnosis).ok()?;
                let search = self.algorithm.answers.searches.get_mut(&key)?;
                search.keep_diagnosis(diagnosis);
            }
        }
        self.advance_start(found.processed);
        self.cycle.passing = Some(found.passing);
        let filter = &mut self.cycle.record.filter;
        (filter.verdicts, filter.evaluated) = (found.verdicts, found.evaluated);
        let (nodes, processed) = (found.feasible, found.processed);
        Some(FeasibleNodes { nodes, diagnosis: take(diagnosis), processed, by_search: true })
    }

    /// The key of the search for this pod, which is up to date. Nominated pods make it another
    /// search, in which the verdicts with them come before those without.
    fn search_key(&mut self) -> Option<String> {
        let Cycle { keys, nominated, is_nominated, .. } = &mut *self.cycle;
        let class = keys.class.take()?;
        if nominated.is_empty() {
            return Some(class);
        }
        let key = keys.nominated.take().filter(|_| !*is_nominated)?;
        let CycleParts { framework, cx, state, .. } = self.cycle.parts(self.cluster);
        let answers = &mut self.algorithm.answers;
        let with = answers.nominated_verdicts(FilterCycle { framework, cx, state }, &key);
        let without = answers.searches.get_mut(&class)?;
        let rejected = [with.rejected, without.rejected()];
        let columns = [with.column, without.first.clone()]
            .map(|verdicts| FilterColumn { plugin: Symbol::EMPTY, verdicts });
        answers.searches.update(&key, &columns, &rejected, cx.snapshot);
        Some(key)
    }

    /// Lets the next search start after the nodes that this one processed.
    pub(crate) fn advance_start(&mut self, processed: usize) {
        let start = self.algorithm.next_start_node_index + processed;
        let nodes = self.cluster.snapshot.placement().len();
        self.algorithm.next_start_node_index = start % nodes;
    }

    /// Runs PreFilter and records each plugin's answer.
    pub fn pre_filter(&mut self, diagnosis: &mut Diagnosis) -> Result<PreFilterNodes, Status> {
        let CycleParts { framework, cx, state, verdicts, record, .. } =
            self.cycle.parts(self.cluster);
        let outcome = framework.run_pre_filter(&cx, state);
        let records = &mut self.algorithm.answers.records;
        record.pre_filter = records.answers(ExtensionPoint::PreFilter, outcome.answers);
        verdicts.clear();
        if cx.snapshot.assumed_placement().is_some() {
            self.cycle.begin_verdicts(&self.cluster.snapshot);
        }
        diagnosis.unschedulable_plugins = outcome.narrowed_by;
        if outcome.status.is_success() {
            return Ok(outcome.nodes.map_or(PreFilterNodes::All, PreFilterNodes::Only));
        }
        if !outcome.status.is_rejected() {
            return Err(outcome.status);
        }
        diagnosis.pre_filter_message = outcome.status.message();
        diagnosis.add_plugin_status(&outcome.status);
        diagnosis.statuses.set_absent(outcome.status);
        Ok(PreFilterNodes::Rejected)
    }

    /// The node that an intervention forces on the pod, as the only one that is feasible. The
    /// answers of the filter plugins stay in the record.
    fn forced_node(&mut self) -> Option<NodeId> {
        let interventions = &self.cycle.record.interventions;
        let (intervention, node) = interventions::forced(interventions, &self.cluster.snapshot)?;
        self.fill_matrix(false);
        self.cycle.begin_verdicts(&self.cluster.snapshot);
        let left_out = self.algorithm.answers.verdict_id(&intervention.rejection());
        for id in self.cluster.snapshot.order().iter() {
            let verdict = if *id == node { VerdictId::PASS } else { left_out };
            self.cycle.verdicts[id.index()] = verdict;
        }
        self.cycle.evaluated.push(node);
        self.cycle.returned = extender::infos(&self.cluster.snapshot, &[node]);
        Some(node)
    }

    /// Runs every filter plugin on every node, also where only some are searched.
    fn fill_matrix(&mut self, searches_all: bool) {
        let CycleParts { framework, cx, state, first_rejections, keys, record, .. } =
            self.cycle.parts(self.cluster);
        let cycle = FilterCycle { framework, cx, state };
        let mut matrix = self.algorithm.answers.filter_matrix(cycle, searches_all);
        if framework.opaque().is_some() {
            add_opaque_columns(framework, cx.snapshot.slots(), &mut matrix.columns);
        }
        record.filter.plugins = matrix.columns.into();
        (*first_rejections, *keys) = (matrix.first_rejections, matrix.keys);
    }

    /// Tries the nominated node alone; `Some` when it is feasible.
    fn try_nominated_node(&mut self, diagnosis: &mut Diagnosis) -> Option<Vec<NodeId>> {
        let nominated = self.cycle.queued.info.pod.status.nominated_node_name;
        let name = match nominated.is_empty() {
            true => self.cycle.record.node_hint?,
            false => nominated,
        };
        let node = self.cluster.snapshot.by_name(name)?.id;
        if !self.cluster.snapshot.is_in_placement(node) {
            return None;
        }
        self.cycle.record.nominated_first = Some(name);
        self.cycle.begin_verdicts(&self.cluster.snapshot);
        let mut feasible = Vec::new();
        // Errors are ignored: the search goes on with all nodes.
        self.find_feasible(&[node], &mut feasible, diagnosis).ok()?;
        let feasible = self.nodes_that_pass_extenders(feasible, diagnosis).ok()?;
        if feasible.is_empty() {
            return None;
        }
        let placement = self.cluster.snapshot.placement();
        for other in placement.iter().filter(|other| **other != node) {
            self.cycle.verdicts[other.index()] = VerdictId::NOMINATED_TAKEN;
        }
        Some(feasible)
    }

    /// The nodes with these names, in node order; all others get one status.
    fn narrow(&mut self, names: &[Name], diagnosis: &mut Diagnosis) -> Vec<NodeId> {
        if self.cluster.features.has(Switch::ExcludedIsUnresolvable) {
            let mut plugins: Vec<&str> =
                diagnosis.unschedulable_plugins.iter().map(|name| name.as_str()).collect();
            plugins.sort_unstable();
            let text = format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "));
            diagnosis.statuses.set_absent(Status::unresolvable(&text));
        }
        let (snapshot, verdicts) = (&self.cluster.snapshot, &mut self.cycle.verdicts);
        let named = names.iter().filter_map(|name| Some(snapshot.by_name(*name)?.id));
        let mut named: Vec<NodeId> = named.collect();
        // The nominated node keeps the verdict that it got.
        let is_open = |verdict: &&mut VerdictId| **verdict == VerdictId::CYCLE_ENDED;
        verdicts.iter_mut().filter(is_open).for_each(|verdict| *verdict = VerdictId::NARROWED);
        for id in &named {
            if verdicts[id.index()] == VerdictId::NARROWED {
                verdicts[id.index()] = VerdictId::CYCLE_ENDED;
            }
        }
        let Some(placement) = snapshot.assumed_placement() else {
            named.sort_unstable_by_key(|id| snapshot.ranks()[id.index()]);
            return named;
        };
        named.sort_unstable();
        placement.iter().filter(|id| named.binary_search(id).is_ok()).copied().collect()
    }

    /// Collects the nodes that pass, from where the last cycle stopped, until they are enough.
    fn find_feasible(
        &mut self,
        nodes: &[NodeId],
        feasible: &mut Vec<NodeId>,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), Status> {
        let wanted = self.wanted_nodes(nodes.len());
        let start = self.algorithm.next_start_node_index.checked_rem(nodes.len()).unwrap_or(0);
        let (before, after) = nodes.split_at(start);
        let order = after.iter().chain(before).copied();
        if self.cycle.framework.at(ExtensionPoint::Filter).is_empty() {
            let record = &self.cycle.record;
            let is_open = |node: &NodeId| {
                !interventions::is_vetoed(&record.interventions, record.nodes.name(*node))
            };
            feasible.extend(order.take(wanted).filter(is_open));
            return Ok(());
        }
        feasible.reserve_exact(wanted.min(nodes.len()));
        self.cycle.evaluated.reserve_exact(wanted.min(nodes.len()));
        self.visit(order, wanted, None, feasible, diagnosis)
    }

    /// Takes the verdicts of the nodes in order, until `wanted` have passed. `known` are those that
    /// a kept search found.
    fn visit(
        &mut self,
        mut order: impl Iterator<Item = NodeId>,
        wanted: usize,
        known: Option<&Column<VerdictId>>,
        feasible: &mut Vec<NodeId>,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), Status> {
        let CycleParts {
            framework, cx, state, first_rejections, verdicts, evaluated, record, ..
        } = self.cycle.parts(self.cluster);
        let cycle = FilterCycle { framework, cx, state };
        let verdicts = verdicts.as_mut_slice();
        let answers = &mut self.algorithm.answers;
        let mut indexes = StatusIndexes::default();
        // Only the nominated node, evaluated before, can come twice.
        let before = evaluated.first().copied();
        // Only nominated pods and vetoes change the verdict of the first filter that rejects.
        let plain = known.is_some() || cx.nominated.is_empty() && record.interventions.is_empty();
        let known = known.or(first_rejections.as_ref());
        while let Some(id) = order.next() {
            let first = match known {
                Some(verdicts) => verdicts.get(id).unwrap_or(VerdictId::PASS),
                None => first_rejection(&record.filter.plugins, id),
            };
            let verdict = match plain {
                true => first,
                false => {
                    let verdict = answers.verdict_with_nominated(cycle, id, first);
                    let (name, interventions) = (record.nodes.name(id), &record.interventions);
                    interventions::vetoed(answers, interventions, name, verdict)
                }
            };
            if before != Some(id) {
                evaluated.push(id);
            }
            if verdict == VerdictId::PASS && feasible.len() == wanted {
                let left = std::iter::once(id).chain(order);
                left.for_each(|left| verdicts[left.index()] = VerdictId::ENOUGH_FOUND);
                return Ok(());
            }
            verdicts[id.index()] = verdict;
            if verdict == VerdictId::PASS {
                feasible.push(id);
                continue;
            }
            let index = indexes.of(verdict, &answers.verdicts, diagnosis)?;
            diagnosis.statuses.set_number(id, index);
        }
        Ok(())
    }

    /// How many feasible nodes end the search.
    fn wanted_nodes(&self, nodes: usize) -> usize {
        let framework = &self.cycle.framework;
        let no_scoring = !framework.runs_any_at(ExtensionPoint::Score);
        if no_scoring && !self.profiles.extenders_want_all_nodes() {
            return 1;
        }
        if nodes < MIN_FEASIBLE_NODES {
            return nodes;
        }
        let own = framework.profile().percentage_of_nodes_to_score;
        let percentage = match own.unwrap_or(self.profiles.percentage_of_nodes_to_score) {
            0 => 50_usize.saturating_sub(nodes / 125).max(MIN_PERCENTAGE),
            percentage => percentage as usize,
        };
        (nodes * percentage / 100).max(MIN_FEASIBLE_NODES)
    }

    /// Asks the extenders one after the other, each about the nodes that the one before left.
    fn nodes_that_pass_extenders(
        &mut self,
        feasible: Vec<NodeId>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<NodeId>, Status> {
        if self.profiles.extenders.is_empty() {
            return Ok(feasible);
        }
        let appends = !self.cluster.features.has(Switch::ExtenderReasonReplaces);
        let pod = self.cycle.queued.info.pod.clone();
        let mut nodes = extender::infos(&self.cluster.snapshot, &feasible);
        for (index, extender) in self.profiles.extenders.iter().enumerate() {
            if nodes.is_empty() {
                break;
            }
            if !extender::is_interested(extender, &pod) {
                continue;
            }
            let filtered = match extender::filter((index, extender), &pod, &nodes, self.host) {
                Ok(filtered) => filtered,
                Err(_) if extender.ignorable => continue,
                Err(text) => return Err(Status::error(&text)),
            };
            let own_name = extender::name(extender);
            if !extender.filter_verb.is_empty() {
                self.cycle.record.filter.extenders.push(own_name);
            }
            for (name, status) in filtered.rejected {
                let Some(node) = self.cluster.snapshot.by_name(name).map(|node| node.id) else {
                    diagnosis.statuses.set_unknown(name, &status);
                    continue;
                };
                self.cycle.record.filter.extender.push((node, status.clone().by(own_name)));
                let before = diagnosis.statuses.own(node).filter(|_| appends);
                let status = before.map_or(status.clone(), |before| appended(before, &status));
                diagnosis.statuses.set(node, status);
            }
            nodes = filtered.nodes;
        }
        if nodes.len() != feasible.len() {
            add_once(&mut diagnosis.unschedulable_plugins, Symbol::new("Extender"));
        }
        nodes.iter_mut().for_each(|node| add_invented_name(self.cycle, node));
        let left = nodes.iter().map(|node| node.id).collect();
        self.cycle.returned = nodes;
        Ok(left)
    }
}

/// The status of a node with an extender's reason after its own, as up to 1.31.
fn appended(before: &Status, status: &Status) -> Status {
    let code = match status.code() {
        Code::UnschedulableAndUnresolvable => status.code(),
        _ => before.code(),
    };
    Status::with_reasons(code, [before.reasons(), status.reasons()].concat())
}

/// Adds the name of a node that is not in the snapshot to the record: upstream binds to any name
/// that an extender returns in `Nodes`.
fn add_invented_name(cycle: &mut Cycle, node: &mut Arc<NodeInfo>) {
    if node.id != extender::UNKNOWN_NODE {
        return;
    }
    let names = &mut Arc::make_mut(&mut cycle.record.nodes).names;
    Arc::make_mut(node).id = NodeId(names.len() as u32);
    names.push(node.name);
}

/// Adds a column without known verdicts for each opaque plugin at Filter, in its place.
fn add_opaque_columns(framework: &Framework, slots: usize, columns: &mut Vec<FilterColumn>) {
    let profile = framework.profile();
    for (at, entry) in profile.at(ExtensionPoint::Filter).iter().enumerate() {
        if profile.is_opaque(entry.name) {
            let verdicts = Column::filled(VerdictId::UNKNOWN, slots);
            columns.insert(at.min(columns.len()), FilterColumn { plugin: entry.name, verdicts });
        }
    }
}

/// The indexes of verdicts among the distinct statuses of the diagnosis: looked up once each.
#[derive(Default)]
struct StatusIndexes(Vec<(VerdictId, u16)>);

impl StatusIndexes {
    /// The index of a verdict's status; a new one adds its plugin to the diagnosis. A status of
    /// code Error ends the search.
    fn of(
        &mut self,
        verdict: VerdictId,
        table: &VerdictTable,
        diagnosis: &mut Diagnosis,
    ) -> Result<u16, Status> {
        if let Some((_, index)) = self.0.iter().find(|(known, _)| *known == verdict) {
            return Ok(*index);
        }
        let status = table.get(verdict).cloned().unwrap_or_default();
        if status.code() == Code::Error {
            return Err(status);
        }
        diagnosis.add_plugin_status(&status);
        let index = diagnosis.statuses.number_of(&status);
        self.0.push((verdict, index));
        Ok(index)
    }
}
