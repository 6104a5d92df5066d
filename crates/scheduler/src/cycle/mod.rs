//! One scheduling cycle, from the pop to the start of the binding cycle (S-001…S-023).

pub(crate) mod again;
mod assume;
pub(crate) mod batch;
mod extenders;
pub(crate) mod failure;
mod find;
pub(crate) mod kept;
pub(crate) mod matrix;
mod prioritize;
pub(crate) mod recorded;
mod select;

use std::sync::Arc;

use crate::Scheduler;
use crate::host::{Milestone, SchedulerHost};
use crate::interventions::by_hand;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::host::ApiEvent;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{NamespacedName, QueuedPod};
use kubestep_framework::preemption::executor::Preemptor;
use kubestep_framework::record::intervention::Intervention;
use kubestep_framework::record::{CycleRecord, NodeNames, Outcome, PluginStatus, VerdictId};
use kubestep_framework::runtime::Framework;
use kubestep_framework::status::node_statuses::Diagnosis;
use kubestep_framework::status::{Code, Status};

/// Why a cycle failed, as the failure handler needs it.
#[derive(Clone)]
pub(crate) struct Failure {
    /// The final status; its message is the pod's.
    pub status: Status,
    /// Set for a FitError: which plugins rejected the pod.
    pub diagnosis: Option<Box<Diagnosis>>,
    /// Nominates a node; empty clears; `None` leaves the nomination.
    pub nominate: Option<Symbol>,
}

impl Failure {
    /// A failure that clears the nomination and names no plugin.
    pub fn plain(status: Status) -> Failure {
        Failure { status, diagnosis: None, nominate: Some(Symbol::EMPTY) }
    }

    /// A FitError about `nodes` nodes.
    pub fn fit(
        code: Code,
        diagnosis: Diagnosis,
        nodes: usize,
        nominate: Option<Symbol>,
    ) -> Failure {
        let status = Status::new(code, &diagnosis.message(nodes));
        Failure { status, diagnosis: Some(Box::new(diagnosis)), nominate }
    }
}

/// A cycle under way: the pod, its profile, its state, and the record being written.
#[derive(Clone)]
pub(crate) struct Cycle {
    pub framework: Arc<Framework>,
    pub queued: QueuedPod,
    pub state: CycleState,
    pub nominated: NominatedPods,
    /// The nodes that passed filters and extenders, as extenders gave them; empty where there
    /// are no extenders.
    pub nodes: Vec<Arc<NodeInfo>>,
    /// By slot: the verdict of the first filter plugin that refuses the node, each run alone.
    pub first_refusals: Vec<VerdictId>,
    /// By slot: the official verdict, as far as it is known.
    pub official: Vec<VerdictId>,
    /// The nodes evaluated so far, in order.
    pub evaluated: Vec<NodeId>,
    pub record: CycleRecord,
    /// What the placement depends on, for batching.
    pub signature: Option<Arc<String>>,
    pub now: Time,
}

impl Scheduler {
    /// Pops a pod and runs its scheduling cycle and, unless it has to wait at Permit, its
    /// binding cycle. `None` when no pod can be popped.
    pub fn schedule_one(&mut self, now: Time, host: &mut dyn SchedulerHost) -> Option<CycleRecord> {
        let (queue, cx) = self.queue_context(now);
        let queued = queue.pop(&cx)?;
        Some(self.schedule(queued, now, host))
    }

    /// Runs the cycle of one pod ahead of all others, wherever in the queue it waits. `None`
    /// if it is in no queue, or gated. No scheduler does this: it is for asking what if.
    pub fn schedule_ahead(
        &mut self,
        key: NamespacedName,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Option<CycleRecord> {
        let (queue, cx) = self.queue_context(now);
        let queued = queue.pop_specific(&cx, key)?;
        Some(self.schedule(queued, now, host))
    }

    pub(crate) fn schedule(
        &mut self,
        queued: QueuedPod,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        if let Some(group) = self.group(&queued.info.pod) {
            return self.schedule_group(queued, group, now, host);
        }
        match self.begin(queued, now, host) {
            Ok(cycle) => self.schedule_begun(cycle, host),
            Err(dropped) => *dropped,
        }
    }

    /// Runs a cycle of one pod that has begun.
    pub(crate) fn schedule_begun(
        &mut self,
        mut cycle: Cycle,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        match self.scheduling_algorithm(&mut cycle, host) {
            Ok(node) => {
                cycle.record.node = Some(node);
                self.start_binding(cycle, node, host)
            }
            Err(failure) => {
                self.fail(&mut cycle, failure, host);
                cycle.record
            }
        }
    }

    /// Brings the snapshot up to date for the cycle of a pod. The error is the record of a pod
    /// that is not worth one (S-002).
    pub(crate) fn begin(
        &mut self,
        queued: QueuedPod,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Result<Cycle, Box<CycleRecord>> {
        let mut record = CycleRecord {
            pod: queued.key(),
            uid: queued.uid(),
            info: Some(queued.info.clone()),
            attempt: queued.attempts,
            profile: queued.info.pod.spec.scheduler_name,
            time: now,
            outcome: Outcome::Dropped,
            tie_break: self.tie_break,
            ..CycleRecord::default()
        };
        self.cycles += 1;
        record.cycle = self.cycles;
        host.reached(self, record.cycle, Milestone::Popped);
        let framework = self.frameworks.get(&record.profile).cloned();
        let Some(framework) = framework.filter(|_| !self.skips(&queued, host)) else {
            self.queue.done(record.uid);
            return Err(Box::new(record));
        };
        let changed = self.cache.update_snapshot(&mut self.snapshot);
        self.kept.note(&changed, self.snapshot.len());
        self.refresh_node_names();
        record.nodes = self.node_names.clone();
        record.start_index = self.next_start_node_index;
        record.interventions = self.interventions.take(&queued.info);
        let mut cycle = Cycle {
            framework,
            queued,
            state: by_hand::state(&record.interventions),
            nominated: self.queue.nominated_pods(),
            nodes: Vec::new(),
            first_refusals: Vec::new(),
            official: Vec::new(),
            evaluated: Vec::new(),
            record,
            signature: None,
            now,
        };
        // What a person decides is no guide for the pods that follow; a hold decides nothing.
        let mut decided = cycle.record.interventions.iter();
        if decided.all(|one| matches!(one, Intervention::Hold(_))) {
            cycle.signature = cycle.queued.signature.clone();
        }
        Ok(cycle)
    }

    /// Whether the pod is not worth a cycle (S-002).
    fn skips(&self, queued: &QueuedPod, host: &mut dyn SchedulerHost) -> bool {
        let key = queued.key();
        if queued.info.pod.is_terminating() {
            host.event(ApiEvent {
                regarding: key,
                uid: queued.uid(),
                related: None,
                reporter: queued.info.pod.spec.scheduler_name,
                kind: "Warning",
                reason: "FailedScheduling",
                action: "Scheduling",
                note: format!("skip schedule deleting pod: {key}"),
            });
            return true;
        }
        self.cache.is_assumed(queued.uid())
    }

    /// Filter and Score, or PostFilter when no node was left (S-005…S-022).
    pub(crate) fn scheduling_algorithm(
        &mut self,
        cycle: &mut Cycle,
        host: &mut dyn SchedulerHost,
    ) -> Result<Symbol, Failure> {
        if self.snapshot.placement().is_empty() {
            let text = "no nodes available to schedule pods";
            return Err(Failure::plain(Status::unresolvable(text))); // S-005
        }
        let found = self.find_nodes_that_fit(cycle, host);
        cycle.record.verdicts = self.verdicts.clone();
        cycle.record.filter.official = self.recorded.official(&cycle.official);
        cycle.record.filter.evaluated = self.recorded.evaluated(&cycle.evaluated);
        let found = found.map_err(Failure::plain)?;
        cycle.record.evaluated_nodes = found.feasible.len() + found.diagnosis.statuses.len();
        cycle.record.feasible = self.recorded.feasible(&found.feasible);
        match *cycle.record.feasible {
            [] => Err(self.post_filter(cycle, found.diagnosis, host)),
            [only] => {
                let only = cycle.record.nodes.name(only); // S-016
                self.remember_choice(cycle, only, || None);
                Ok(only)
            }
            _ => self.prioritize(cycle, host).map_err(Failure::plain),
        }
    }

    /// Runs PostFilter on what Filter left behind (S-021).
    fn post_filter(
        &mut self,
        cycle: &mut Cycle,
        mut diagnosis: Diagnosis,
        host: &mut dyn SchedulerHost,
    ) -> Failure {
        let nodes = self.snapshot.placement().len();
        if cycle.framework.at(kubestep_config::ExtensionPoint::PostFilter).is_empty() {
            return Failure::fit(Code::Unschedulable, diagnosis, nodes, Some(Symbol::EMPTY));
        }
        let cx = self.cycle_context(cycle);
        let outcome = cycle.framework.run_post_filter(cx, &cycle.state, &diagnosis.statuses, host);
        diagnosis.post_filter_message = outcome.status.message();
        let mut nominate = outcome.answer.nominate;
        cycle.record.post_filter = outcome.answers;
        cycle.record.candidates = outcome.answer.candidates;
        if let Some(preemption) = outcome.answer.preemption {
            cycle.record.preemption = Some(preemption.candidate.clone());
            let preemptor = Preemptor::pod(&cycle.queued.info);
            if let Err(text) = self.start_preemption(preemptor, preemption, cycle.now, host) {
                let status = Status::error(&format!("preemption: {text}")); // PR-054
                diagnosis.post_filter_message = status.message();
                nominate = None;
                // The plugin that preempts is the last one that was asked.
                if let Some(answer) = cycle.record.post_filter.last_mut() {
                    *answer = PluginStatus::new(answer.plugin, status.by(answer.plugin));
                }
            }
        }
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::PostFilter));
        Failure::fit(Code::Unschedulable, diagnosis, nodes, nominate)
    }

    /// What plugins see in this cycle.
    pub(crate) fn cycle_context<'a>(&'a self, cycle: &'a Cycle) -> CycleContext<'a> {
        CycleContext {
            pod: &cycle.queued.info,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            nominated: &cycle.nominated,
            shared: &self.shared,
            now: cycle.now,
            chance: self.tie_break.chance(cycle.record.cycle),
        }
    }

    /// Forgets what plugins said that count the nodes.
    fn forget_counted_nodes(&mut self) {
        let plugins =
            self.frameworks.values().flat_map(|framework| framework.at(ExtensionPoint::Score));
        let counting = plugins.filter(|plugin| plugin.counts_nodes()).map(|plugin| plugin.name());
        self.kept.forget(&counting.collect::<Vec<Symbol>>());
    }

    /// Makes the list of node names anew when the set or order of nodes changed.
    fn refresh_node_names(&mut self) {
        if Arc::ptr_eq(&self.named_order, self.snapshot.order())
            && !self.node_names.order.is_empty()
        {
            return;
        }
        self.forget_counted_nodes();
        let mut names = vec![Symbol::EMPTY; self.snapshot.slots()];
        for node in self.snapshot.iter() {
            names[node.id.index()] = node.name;
        }
        self.named_order = self.snapshot.order().clone();
        self.node_names = Arc::new(NodeNames { order: self.snapshot.order().to_vec(), names });
    }
}
