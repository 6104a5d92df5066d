//! Executing a preemption: nominations of less important pods are cleared, victims are marked and
//! deleted, and meanwhile the preemptor is gated.
//!
//! With the SchedulerAsyncPreemption gate (the default) upstream does this in the background of the
//! scheduling cycle, and events reach the queue in between. So an [`Eviction`] proceeds in steps,
//! and the caller delivers events after each. Without the gate, [`evict_at_once`] does it all
//! within PostFilter.
//!
//! Upstream: `pkg/scheduler/framework/preemption/executor.go`.

use std::sync::Arc;
use std::task::{Poll, ready};

use crate::host::{ApiEvent, Host, HostError, PodStatusPatch, RelatedObject};
use crate::objects::Objects;
use crate::plugin::Preemption;
use crate::pod::conditions;
use crate::pod::nominated::NominatedPods;
use crate::pod::{NamespacedName, PodInfo};
use crate::preemption::eligibility::{DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER};
use crate::preemption::group_victims::group_priority;
use crate::shared::{PluginStore, Preempting};
use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, ConditionStatus, Name, PodGroup, Time, Uid};
use kubestep_config::versions::{Behaviour, Switch};

/// The message of a victim that is not bound yet.
const PREEMPTED: &str = "preempted";

/// What the scheduler can do with a victim that is not bound yet.
pub trait VictimHooks {
    /// Sends the pod back to the queue if it waits at Permit, as after an error of `plugin` with
    /// `message`. `Some(true)` if that was still possible; `None` if it does not wait.
    fn preempt_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> Option<bool>;

    /// Rejects the pod if it waits at Permit, with `plugin` as the rejector and with `message`.
    /// `false` if it does not wait there.
    fn reject_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> bool;

    /// Cancels the pod's binding if it is in PreBind, with `cause`. `Some(true)` if that was still
    /// possible; `None` if the pod is not in PreBind.
    fn cancel_binding(&mut self, uid: Uid, cause: &str) -> Option<bool>;
}

/// What an eviction needs.
pub struct EvictionContext<'a> {
    /// The interface to the outside.
    pub host: &'a mut dyn Host,
    /// Victims that wait at Permit or are being bound.
    pub hooks: &'a mut dyn VictimHooks,
    /// The nominations as of now, not of the cycle.
    pub nominated: &'a NominatedPods,
    /// The current time; virtual in a simulation.
    pub now: Time,
}

/// The pod or pod group that preempts.
#[derive(Clone, PartialEq, Debug)]
pub struct Preemptor {
    /// `pod` or `podgroup`, as in messages.
    kind: &'static str,
    /// The UID of that pod.
    pub uid: Uid,
    scheduler: Symbol,
    priority: i32,
    /// The pod, or the pods of the group.
    pub pods: Vec<NamespacedName>,
    /// The group; `None` for a pod.
    group: Option<NamespacedName>,
}

impl Preemptor {
    /// A pod that preempts for itself.
    pub fn pod(pod: &PodInfo) -> Preemptor {
        Preemptor {
            kind: "pod",
            uid: pod.uid(),
            scheduler: pod.pod.spec.scheduler_name,
            priority: pod.priority(),
            pods: vec![pod.key()],
            group: None,
        }
    }

    /// A group, with those of its pods that are not scheduled.
    pub fn group(group: &PodGroup, pods: &[Arc<PodInfo>]) -> Preemptor {
        let scheduler = pods.first().map(|pod| pod.pod.spec.scheduler_name);
        Preemptor {
            kind: "podgroup",
            uid: group.metadata.uid,
            scheduler: scheduler.unwrap_or_default(),
            priority: group_priority(group),
            pods: pods.iter().map(|pod| pod.key()).collect(),
            group: Some(NamespacedName::new(group.metadata.namespace, group.metadata.name)),
        }
    }
}

/// The progress of an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvictionStage {
    /// Nothing was evicted yet.
    Begun,
    /// All victims but the last were evicted.
    LastPending,
    /// All victims were evicted.
    Done,
    /// All victims were evicted within the cycle, and some answers are pending.
    Answering,
    /// Evicting a victim or clearing a nomination failed. The preemptor must be activated, because
    /// no event may ever requeue it.
    Failed,
}

/// A preemption that is executed in the background of the scheduling cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct Eviction {
    preemptor: Preemptor,
    preemption: Preemption,
    /// The victims that were not terminating when the eviction began.
    victims: Vec<Arc<PodInfo>>,
    stage: EvictionStage,
    /// Whether clearing the nominations succeeded, once it was done.
    nominations_cleared: Option<bool>,
    /// For each victim, whether it was evicted.
    evicted: Vec<bool>,
    behaviour: Behaviour,
}

impl Eviction {
    /// The eviction for a preemption. `None`: all victims are already terminating.
    pub fn new(
        preemptor: Preemptor,
        preemption: Preemption,
        behaviour: Behaviour,
    ) -> Option<Eviction> {
        let victims: Vec<_> = staying(&preemption, behaviour).cloned().collect();
        let (stage, evicted) = (EvictionStage::Begun, vec![false; victims.len()]);
        let nominations_cleared = None;
        let eviction = Eviction {
            preemptor,
            preemption,
            victims,
            stage,
            nominations_cleared,
            evicted,
            behaviour,
        };
        (!eviction.victims.is_empty()).then_some(eviction)
    }

    /// The rest of a preemption within the cycle: `victims` whose answers are pending.
    pub fn unanswered(
        preemptor: Preemptor,
        preemption: Preemption,
        victims: Vec<Arc<PodInfo>>,
        behaviour: Behaviour,
    ) -> Eviction {
        let (stage, evicted) = (EvictionStage::Answering, vec![false; victims.len()]);
        let nominations_cleared = Some(true);
        Eviction { preemptor, preemption, victims, stage, nominations_cleared, evicted, behaviour }
    }

    /// The pod or pod group that preempts.
    pub fn preemptor(&self) -> &Preemptor {
        &self.preemptor
    }

    /// The node and the victims.
    pub fn preemption(&self) -> &Preemption {
        &self.preemption
    }

    /// Whether it succeeded or failed.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, EvictionStage::Done | EvictionStage::Failed)
    }

    /// Whether evicting a victim or clearing a nomination failed.
    pub fn has_failed(&self) -> bool {
        self.stage == EvictionStage::Failed
    }

    /// Takes the next step: first it clears nominations and evicts all victims but the last, then
    /// it evicts the last. If one of the former fails, the last is not evicted. Pending while the
    /// host has no answer about a victim.
    pub fn step(&mut self, cx: &mut EvictionContext<'_>) -> Poll<EvictionStage> {
        self.stage = match self.stage {
            EvictionStage::Begun => ready!(self.evict_all_but_last(cx)),
            EvictionStage::LastPending => ready!(self.evict_last(cx)),
            EvictionStage::Answering => {
                ready!(self.evict_up_to(self.victims.len(), EvictionStage::Done, cx))
            }
            ended => ended,
        };
        Poll::Ready(self.stage)
    }

    /// Stores the progress of the eviction, which gates the preemptor until the last victim is
    /// terminating or deleted.
    pub fn mark(&self, shared: &mut PluginStore) {
        let uid = self.preemptor.uid;
        let last = self.victims.last().filter(|_| self.stage == EvictionStage::LastPending);
        let waits_for_last = self.behaviour.has(Switch::LastVictimChecked);
        match self.stage {
            // Up to 1.34 the preemptor is let in before the last victim is evicted.
            EvictionStage::LastPending if !waits_for_last => shared.preempting.remove(&uid),
            EvictionStage::Begun | EvictionStage::LastPending => {
                let last_victim = last.map(|victim| victim.key());
                shared.preempting.insert(uid, Preempting { last_victim })
            }
            EvictionStage::Done | EvictionStage::Failed => shared.preempting.remove(&uid),
            EvictionStage::Answering => None,
        };
    }

    fn evict_all_but_last(&mut self, cx: &mut EvictionContext<'_>) -> Poll<EvictionStage> {
        if self.nominations_cleared.is_none() {
            // Preemption works without it.
            let cleared = clear_nominations(cx, &self.preemptor, self.preemption.node).is_ok();
            self.nominations_cleared = Some(cleared);
        }
        let others = self.victims.len().saturating_sub(1);
        self.evict_up_to(others, EvictionStage::LastPending, cx)
    }

    /// Evicts the first victims and ends in `stage`.
    fn evict_up_to(
        &mut self,
        count: usize,
        stage: EvictionStage,
        cx: &mut EvictionContext<'_>,
    ) -> Poll<EvictionStage> {
        let mut answered = Poll::Ready(stage);
        for at in 0..count {
            match self.evict(cx, at) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => {
                    if stage == EvictionStage::LastPending {
                        self.reject_last_after_failure(cx);
                    }
                    return Poll::Ready(EvictionStage::Failed);
                }
                Poll::Pending => answered = Poll::Pending,
            }
        }
        answered
    }

    /// Up to 1.35 the last victim is evicted even after a failure. The failure has cancelled the
    /// requests to the API server, so that this concerns only a victim that is not bound yet.
    fn reject_last_after_failure(&mut self, cx: &mut EvictionContext<'_>) {
        if self.behaviour.has(Switch::FailedVictimEndsPreemption) {
            return;
        }
        if let Some(last) = self.victims.last() {
            evict_unbound(cx, &self.preemptor, &self.preemption, last, self.behaviour);
        }
    }

    fn evict_last(&mut self, cx: &mut EvictionContext<'_>) -> Poll<EvictionStage> {
        let last = self.victims.len().saturating_sub(1);
        Poll::Ready(match ready!(self.evict(cx, last)) {
            Ok(()) if self.nominations_cleared == Some(true) => EvictionStage::Done,
            _ => EvictionStage::Failed,
        })
    }

    fn evict(&mut self, cx: &mut EvictionContext<'_>, at: usize) -> Poll<Result<(), HostError>> {
        if !self.evicted[at] {
            let (preemptor, victim) = (&self.preemptor, &self.victims[at]);
            ready!(evict(cx, preemptor, &self.preemption, victim, self.behaviour))?;
            self.evicted[at] = true;
        }
        Poll::Ready(Ok(()))
    }
}

/// The victims to evict: those that are not terminating; up to 1.34, all.
fn staying(preemption: &Preemption, behaviour: Behaviour) -> impl Iterator<Item = &Arc<PodInfo>> {
    let skips = behaviour.has(Switch::TerminatingVictimSkipped);
    preemption.victims.iter().filter(move |victim| !(skips && victim.pod.is_terminating()))
}

/// Executes a preemption within PostFilter, when SchedulerAsyncPreemption is off.
///
/// # Errors
/// A victim could not be evicted: PostFilter then returns this error.
pub fn evict_at_once(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    preemption: &Preemption,
    behaviour: Behaviour,
) -> Result<Vec<Arc<PodInfo>>, HostError> {
    let mut unanswered = Vec::new();
    for victim in staying(preemption, behaviour) {
        match evict(cx, preemptor, preemption, victim, behaviour) {
            Poll::Ready(evicted) => evicted?,
            Poll::Pending => unanswered.push(victim.clone()),
        }
    }
    // Not critical: pods that keep their nomination are only scheduled later.
    let _not_critical = clear_nominations(cx, preemptor, preemption.node);
    Ok(unanswered)
}

/// Whether a preemption by the pod (or pod group) is in progress, which gates it. Once the last
/// victim is terminating or deleted it is no longer gated, so that the deletion event can requeue
/// it.
pub fn is_preempting(shared: &PluginStore, objects: &Objects, uid: Uid) -> bool {
    let Some(preempting) = shared.preempting.get(&uid) else { return false };
    let Some(last) = preempting.last_victim else { return true };
    objects.pod(last).is_some_and(|pod| !pod.is_terminating())
}

/// Clears the nominations of less important pods to the node. As upstream, pods in flight are stubs
/// without a nomination in their status and keep it.
fn clear_nominations(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    node: Name,
) -> Result<(), HostError> {
    let mut outcome = Ok(());
    for pod in cx.nominated.for_node(node) {
        let has_nomination = !pod.pod.status.nominated_node_name.is_empty();
        if pod.priority() < preemptor.priority && has_nomination {
            let patch = PodStatusPatch { nominated_node: Some(Name::EMPTY), condition: None };
            outcome = outcome.and(cx.host.patch_pod_status(pod.key(), patch));
        }
    }
    outcome
}

/// Evicts one victim: in memory if it is not bound yet, otherwise through the API.
fn evict(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    preemption: &Preemption,
    victim: &PodInfo,
    behaviour: Behaviour,
) -> Poll<Result<(), HostError>> {
    let is_evicted = evict_unbound(cx, preemptor, preemption, victim, behaviour);
    // A victim that is already deleted gets no event.
    if !is_evicted && ready!(evict_through_api(cx, preemptor, victim))? {
        report(cx, preemptor, preemption, victim, "", behaviour);
    }
    Poll::Ready(Ok(()))
}

/// Evicts a victim that is not bound yet; `false` if it is none.
fn evict_unbound(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    preemption: &Preemption,
    victim: &PodInfo,
    behaviour: Behaviour,
) -> bool {
    let plugin = preemption.plugin;
    let (is_evicted, addition) = match behaviour.has(Switch::WaitingVictimRequeued) {
        true => (evict_in_memory(cx, plugin, victim), " (in kube-scheduler memory)."),
        // Up to 1.35 the event does not say that the victim was only rejected.
        false => (cx.hooks.reject_waiting(victim.uid(), plugin, PREEMPTED), ""),
    };
    if is_evicted {
        report(cx, preemptor, preemption, victim, addition, behaviour);
    }
    is_evicted
}

/// Writes the event of a victim.
fn report(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    preemption: &Preemption,
    victim: &PodInfo,
    addition: &str,
    behaviour: Behaviour,
) {
    let Preemptor { kind, uid, group, .. } = preemptor;
    // A pod is set through a wrapper type without a kind, so that the reference is dropped.
    let pod = preemptor.pods.first().filter(|_| !behaviour.has(Switch::PreemptorNotRelated));
    let related = group.as_ref().or(pod);
    cx.host.event(ApiEvent {
        regarding: victim.key(),
        uid: victim.uid(),
        related: related.map(|key| RelatedObject {
            is_group: group.is_some(),
            key: *key,
            uid: *uid,
        }),
        reporter: preemptor.scheduler,
        kind: "Normal",
        reason: "Preempted",
        action: "Preempting",
        note: format!("Preempted by {kind} {uid} on node {}{addition}", preemption.node),
    });
}

fn evict_in_memory(cx: &mut EvictionContext<'_>, plugin: Symbol, victim: &PodInfo) -> bool {
    let uid = victim.uid();
    let waited = cx.hooks.preempt_waiting(uid, plugin, PREEMPTED);
    let cancel = || {
        let cause = format!("preempted by {plugin}");
        cx.hooks.cancel_binding(uid, &cause).unwrap_or(false)
    };
    waited.unwrap_or_else(cancel)
}

/// Marks the victim and deletes it; `false` if it was already deleted.
fn evict_through_api(
    cx: &mut EvictionContext<'_>,
    preemptor: &Preemptor,
    victim: &PodInfo,
) -> Poll<Result<bool, HostError>> {
    let Preemptor { kind, scheduler, .. } = preemptor;
    let condition = Condition {
        type_: DISRUPTION_TARGET.into(),
        status: ConditionStatus::True,
        reason: PREEMPTION_BY_SCHEDULER.into(),
        message: format!("{scheduler}: preempting to accommodate a higher priority {kind}"),
        ..Condition::default()
    };
    let condition = conditions::updated(&victim.pod, condition, cx.now);
    cx.host.evict(victim.key(), victim.uid(), condition)
}

#[cfg(test)]
mod tests;
