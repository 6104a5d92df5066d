//! Finding the nodes that fit: PreFilter, the nominated node, Filter (S-006…S-014).

use std::mem::take;
use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use crate::interventions::by_hand;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{VerdictId, VerdictTable};
use kubestep_framework::status::node_statuses::{Diagnosis, add_once};
use kubestep_framework::status::{Code, Status};

/// Clusters smaller than this are always searched whole (CFG-160, CFG-162).
const MIN_FEASIBLE_NODES: usize = 100;
/// The adaptive percentage is never below this (CFG-161).
const MIN_PERCENTAGE: usize = 5;

/// The nodes that fit, in order, and why the others do not.
pub(crate) struct Found {
    pub feasible: Vec<NodeId>,
    pub diagnosis: Diagnosis,
}

impl Scheduler {
    /// Finds the nodes that fit the pod. The error is a status that ends the cycle.
    pub(crate) fn find_nodes_that_fit(
        &mut self,
        cycle: &mut Cycle,
        host: &mut dyn SchedulerHost,
    ) -> Result<Found, Status> {
        let mut diagnosis = Diagnosis::default();
        let narrowed = self.pre_filter(cycle, &mut diagnosis)?;
        if let Some(feasible) = self.forced_node(cycle, &mut diagnosis) {
            return Ok(Found { feasible, diagnosis });
        }
        let Some(narrowed) = narrowed else {
            return Ok(Found { feasible: Vec::new(), diagnosis });
        };
        cycle.record.node_hint = self.node_hint(cycle);
        self.fill_matrix(cycle);
        if let Some(feasible) = self.try_nominated_node(cycle, &mut diagnosis, host) {
            return Ok(Found { feasible, diagnosis });
        }
        let nodes = match narrowed {
            Some(names) => Arc::new(self.narrow(cycle, &names, &mut diagnosis)),
            None => self.snapshot.placement().clone(),
        };
        let mut feasible = Vec::new();
        let passed = self.nodes_that_pass_filters(cycle, &nodes, &mut feasible, &mut diagnosis);
        // Also after an error, so that every node gets its turn (S-013).
        let processed = feasible.len() + diagnosis.statuses.len();
        self.next_start_node_index =
            (self.next_start_node_index + processed) % self.snapshot.placement().len();
        passed?;
        let feasible = self.nodes_that_pass_extenders(cycle, feasible, &mut diagnosis, host)?;
        Ok(Found { feasible, diagnosis })
    }

    /// Runs PreFilter. The outer `None` means that it refused the pod (S-007); the inner one
    /// that all nodes are worth a look.
    #[allow(clippy::option_option)]
    pub(crate) fn pre_filter(
        &self,
        cycle: &mut Cycle,
        diagnosis: &mut Diagnosis,
    ) -> Result<Option<Option<Vec<Symbol>>>, Status> {
        let framework = cycle.framework.clone();
        let mut state = std::mem::take(&mut cycle.state);
        let outcome = framework.run_pre_filter(&self.cycle_context(cycle), &mut state);
        cycle.state = state;
        cycle.record.pre_filter = outcome.answers;
        cycle.official = vec![VerdictId::CYCLE_ENDED; self.snapshot.slots()];
        self.mark_outside_placement(&mut cycle.official);
        diagnosis.unschedulable_plugins = outcome.narrowed_by; // S-008
        if outcome.status.is_success() {
            return Ok(Some(outcome.nodes));
        }
        if !outcome.status.is_rejected() {
            return Err(outcome.status);
        }
        diagnosis.pre_filter_message = outcome.status.message();
        diagnosis.add_plugin_status(&outcome.status);
        diagnosis.statuses.set_absent(outcome.status);
        Ok(None)
    }

    /// The nodes PreFilter left, in node order; all others get one status (S-010).
    fn narrow(
        &self,
        cycle: &mut Cycle,
        names: &[Symbol],
        diagnosis: &mut Diagnosis,
    ) -> Vec<NodeId> {
        let mut plugins: Vec<&str> =
            diagnosis.unschedulable_plugins.iter().map(|name| name.as_str()).collect();
        plugins.sort_unstable();
        let text = format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "));
        diagnosis.statuses.set_absent(Status::unresolvable(&text));
        let mut nodes = Vec::new();
        for id in self.snapshot.placement().iter() {
            if names.binary_search(&cycle.record.nodes.name(*id)).is_ok() {
                nodes.push(*id);
            } else if cycle.official[id.index()] == VerdictId::CYCLE_ENDED {
                // The nominated node keeps the verdict that it got.
                cycle.official[id.index()] = VerdictId::NARROWED;
            }
        }
        nodes
    }

    /// Nodes outside a placement are not evaluated.
    pub(crate) fn mark_outside_placement(&self, verdicts: &mut [VerdictId]) {
        let Some(placement) = self.snapshot.assumed_placement() else { return };
        let mut outside = vec![true; verdicts.len()];
        placement.iter().for_each(|id| outside[id.index()] = false);
        for (verdict, outside) in verdicts.iter_mut().zip(outside) {
            if outside {
                *verdict = VerdictId::OUTSIDE_PLACEMENT;
            }
        }
    }

    /// Tries the nominated node alone; `Some` when it is feasible (S-009).
    fn try_nominated_node(
        &mut self,
        cycle: &mut Cycle,
        diagnosis: &mut Diagnosis,
        host: &mut dyn SchedulerHost,
    ) -> Option<Vec<NodeId>> {
        let nominated = cycle.queued.info.pod.status.nominated_node_name;
        let name = match nominated.is_empty() {
            true => cycle.record.node_hint?,
            false => nominated,
        };
        let node = self.snapshot.by_name(name)?.id;
        if !self.snapshot.is_in_placement(node) {
            return None;
        }
        cycle.record.nominated_first = Some(name);
        let mut feasible = Vec::new();
        // Errors are ignored: the search goes on with all nodes.
        self.nodes_that_pass_filters(cycle, &[node], &mut feasible, diagnosis).ok()?;
        let feasible = self.nodes_that_pass_extenders(cycle, feasible, diagnosis, host).ok()?;
        if feasible.is_empty() {
            return None;
        }
        for other in self.snapshot.placement().iter().filter(|other| **other != node) {
            cycle.official[other.index()] = VerdictId::NOMINATED_TAKEN;
        }
        Some(feasible)
    }

    /// Visits `nodes` from where the last cycle stopped until enough pass (S-011, S-012).
    fn nodes_that_pass_filters(
        &mut self,
        cycle: &mut Cycle,
        nodes: &[NodeId],
        feasible: &mut Vec<NodeId>,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), Status> {
        let wanted = self.nodes_wanted(cycle, nodes.len());
        let start = self.next_start_node_index.checked_rem(nodes.len()).unwrap_or(0);
        let (before, after) = nodes.split_at(start);
        let order = after.iter().chain(before).copied();
        if cycle.framework.at(ExtensionPoint::Filter).is_empty() {
            let names = cycle.record.nodes.clone();
            let is_open = |node: &NodeId| !by_hand::is_vetoed(cycle, names.name(*node));
            feasible.extend(order.take(wanted).filter(is_open)); // S-014
            return Ok(());
        }
        let (mut official, mut evaluated) = (take(&mut cycle.official), take(&mut cycle.evaluated));
        feasible.reserve_exact(wanted.min(nodes.len()));
        evaluated.reserve_exact(wanted.min(nodes.len()));
        let (official_verdicts, known) = (official.as_mut_slice(), evaluated.first().copied());
        let lists =
            Lists { official: official_verdicts, evaluated: &mut evaluated, known, feasible };
        let visited = self.visit(cycle, order, wanted, lists, diagnosis);
        (cycle.official, cycle.evaluated) = (official, evaluated);
        visited
    }

    /// Takes the nodes' official verdicts in order, until `wanted` have passed.
    fn visit(
        &mut self,
        cycle: &Cycle,
        mut order: impl Iterator<Item = NodeId>,
        wanted: usize,
        lists: Lists<'_>,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), Status> {
        let Lists { official, evaluated, known, feasible } = lists;
        let mut places = Places::default();
        // Nominated pods and vetoes are the only ones that a verdict may change for.
        let plain = cycle.nominated.is_empty() && cycle.record.interventions.is_empty();
        while let Some(id) = order.next() {
            let verdict = match plain {
                true => cycle.first_refusal(id),
                false => self.verdict_by_name(cycle, id),
            };
            if known != Some(id) {
                evaluated.push(id);
            }
            if verdict == VerdictId::PASS && feasible.len() == wanted {
                let left = std::iter::once(id).chain(order);
                left.for_each(|left| official[left.index()] = VerdictId::ENOUGH_FOUND);
                return Ok(());
            }
            official[id.index()] = verdict;
            if verdict == VerdictId::PASS {
                feasible.push(id);
                continue;
            }
            let place = places.of(verdict, &self.verdicts, diagnosis)?;
            diagnosis.statuses.set_place(id, place);
        }
        Ok(())
    }

    /// The official verdict on a node, pods nominated to it and vetoes counted in.
    fn verdict_by_name(&mut self, cycle: &Cycle, id: NodeId) -> VerdictId {
        let name = cycle.record.nodes.name(id);
        let verdict = self.official_verdict(cycle, id, name);
        self.unless_vetoed(cycle, name, verdict)
    }

    /// How many feasible nodes end the search (CFG-160…164).
    fn nodes_wanted(&self, cycle: &Cycle, nodes: usize) -> usize {
        let no_scoring = cycle.framework.at(ExtensionPoint::Score).is_empty();
        if no_scoring && !self.extenders_want_all_nodes() {
            return 1;
        }
        if nodes < MIN_FEASIBLE_NODES {
            return nodes;
        }
        let own = cycle.framework.profile().percentage_of_nodes_to_score;
        let percentage = match own.unwrap_or(self.percentage_of_nodes_to_score) {
            0 => 50_usize.saturating_sub(nodes / 125).max(MIN_PERCENTAGE),
            percentage => percentage as usize,
        };
        (nodes * percentage / 100).max(MIN_FEASIBLE_NODES)
    }

    /// Marks extenders as a rejector when they removed nodes (S-015).
    pub(crate) fn note_extender_rejection(diagnosis: &mut Diagnosis) {
        add_once(&mut diagnosis.unschedulable_plugins, Symbol::new("Extender"));
    }
}

/// Where the statuses of verdicts are among the diagnosis's distinct ones: looked up once each.
#[derive(Default)]
struct Places(Vec<(VerdictId, u16)>);

impl Places {
    /// The place of a verdict's status, noting its plugin on first sight. An Error ends the
    /// search.
    fn of(
        &mut self,
        verdict: VerdictId,
        table: &VerdictTable,
        diagnosis: &mut Diagnosis,
    ) -> Result<u16, Status> {
        if let Some((_, place)) = self.0.iter().find(|(known, _)| *known == verdict) {
            return Ok(*place);
        }
        let status = table.get(verdict).cloned().unwrap_or_default();
        if status.code() == Code::Error {
            return Err(status);
        }
        diagnosis.add_plugin_status(&status);
        let place = diagnosis.statuses.place_of(&status);
        self.0.push((verdict, place));
        Ok(place)
    }
}

/// Where a search notes what it finds.
struct Lists<'a> {
    official: &'a mut [VerdictId],
    evaluated: &'a mut Vec<NodeId>,
    /// The nominated node, which was evaluated before: it alone can come twice.
    known: Option<NodeId>,
    feasible: &'a mut Vec<NodeId>,
}
