//! DefaultPreemption: when no node is left, makes a place by evicting less important pods, and
//! keeps the pod out of the queue while that is under way.
//!
//! How candidates are found, chosen and evicted is in [`crate::engine::preemption`]. Upstream:
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`.

use std::sync::Arc;

use crate::api::PodGroup;
use crate::config::types::DefaultPreemptionArgs;
use crate::config::{Feature, FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::events::{
    Action, ClusterEvent, EventObjects, EventResource, Hint, Registration,
};
use crate::engine::framework::plugin::{Plugin, PostFilterAnswer, PostFilterContext, QueueContext};
use crate::engine::objects::Objects;
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::preemption::evaluator;
use crate::engine::preemption::executor::is_preempting;
use crate::engine::status::Status;
use crate::intern::Symbol;

const NAME: &str = "DefaultPreemption";

/// Builds the plugin.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    let asynchronous = features.enabled(Feature::SchedulerAsyncPreemption);
    Ok(Arc::new(DefaultPreemption { args: args.default_preemption, asynchronous }))
}

struct DefaultPreemption {
    args: DefaultPreemptionArgs,
    /// Whether victims are evicted beside the scheduling cycle.
    asynchronous: bool,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> Symbol {
        NAME.into()
    }

    /// Deleted pods make gated preemptors worth another look (PR-055).
    fn events(&self) -> Option<Vec<Registration>> {
        let deleted = Registration::hinted(EventResource::Pod, Action::DELETE);
        Some(if self.asynchronous { vec![deleted] } else { Vec::new() })
    }

    /// Whether the deletion helps is for the plugins to say that refused the pod.
    fn hint(
        &self,
        _cx: &QueueContext<'_>,
        _pod: &PodInfo,
        _event: &ClusterEvent,
        _objects: &EventObjects,
    ) -> Result<Hint, String> {
        Ok(Hint::Skip)
    }

    /// PR-051
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        if !self.asynchronous {
            return Status::SUCCESS;
        }
        let (uid, what) = match &pod.pod.spec.scheduling_group {
            Some(_) if cx.features.enabled(Feature::WorkloadAwarePreemption) => {
                match pod_group(cx.objects, pod) {
                    Some(group) => (group.metadata.uid, "pod group"),
                    None => return Status::SUCCESS,
                }
            }
            _ => (pod.uid(), "pod"),
        };
        if !is_preempting(cx.shared, cx.objects, uid) {
            return Status::SUCCESS;
        }
        Status::unresolvable(&format!("waiting for the preemption for this {what} to be finished"))
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        if let Some(reason) = group_refusal(cx) {
            let status = Status::unschedulable(&format!("preemption: {reason}"));
            return PostFilterAnswer { status, ..PostFilterAnswer::default() };
        }
        let answer = evaluator::preempt(&self.args, self.name(), cx, state);
        let message = answer.status.message();
        if message.is_empty() {
            return answer;
        }
        let status = Status::new(answer.status.code(), &format!("preemption: {message}")); // PR-003
        PostFilterAnswer { status, ..answer }
    }
}

/// Why a pod of a group may not preempt on its own (PR-002).
fn group_refusal(cx: &PostFilterContext<'_>) -> Option<&'static str> {
    let cycle = &cx.cycle;
    cycle.pod.pod.spec.scheduling_group.as_ref()?;
    if cycle.features.enabled(Feature::TopologyAwareWorkloadScheduling) {
        match pod_group(cycle.objects, cycle.pod) {
            None => return Some("pod group for pod not found"),
            Some(group) if group.spec.scheduling_constraints.is_some() => {
                return Some("not eligible due to placement-based pod group scheduling limitation");
            }
            Some(_) => {}
        }
    }
    let as_group = cycle.features.enabled(Feature::WorkloadAwarePreemption);
    as_group.then_some("not eligible due to workload aware preemption enabled")
}

/// The group that the pod says it belongs to.
fn pod_group<'a>(objects: &'a Objects, pod: &PodInfo) -> Option<&'a Arc<PodGroup>> {
    let name = pod.pod.spec.scheduling_group.as_ref()?.pod_group_name?;
    objects.pod_groups.get(&NamespacedName::new(pod.pod.metadata.namespace, name))
}
