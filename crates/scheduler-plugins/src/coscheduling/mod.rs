//! Coscheduling: schedules the pods of a PodGroup together or not at all.
//!
//! PreFilter rejects a pod while its group is too small, Permit makes it wait until `minMember`
//! pods have a node, and PostFilter rejects the waiting pods of a group that cannot be completed.
//! `check` has the rules of PreFilter, [`group`] is the PodGroup, `state` what the plugin keeps
//! between cycles.
//!
//! Upstream: `pkg/coscheduling` of kubernetes-sigs/scheduler-plugins.

mod check;
pub mod group;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::coscheduling::check::Checked;
use crate::coscheduling::group::{PODGROUPS, PodGroup, group_of};
use crate::coscheduling::state::{GroupOrder, GroupTimes, Members};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Duration, Kind, Object, ObjectKey, Pod, Uid};
use kubestep_framework::config::validation::Findings;
use kubestep_framework::config::{
    ArgsType, Arguments, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, ProfileArgs,
    arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::effects::{StateUpdate, WaitingRejection};
use kubestep_framework::events::{Action, EventObjects, EventResource, Registration};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{
    BindContext, CycleContext, Explanation, HandlerContext, JointPods, PermitAnswer, Plugin,
    PostFilterAnswer, PostFilterContext, PreFilterAnswer, QueueContext, QueueOrder,
};
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::registry::Built;
use kubestep_framework::status::{Code, Status};

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    args: Some(ArgsType::of::<CoschedulingArgs>()),
    doc: "schedules the pods of a PodGroup together or not at all",
    long_doc: "Pods with the label scheduling.x-k8s.io/pod-group belong to the PodGroup of that \
               name. They are rejected while fewer than minMember of them exist or the cluster \
               lacks minResources, and wait in Permit until minMember of them have a node. If one \
               fits nowhere, those that wait are rejected. The active queue is ordered by priority, \
               then by the creation or the last failure of the group.",
    example: "A PodGroup with minMember 3 has three pods, and two fit: they wait in Permit until the \
              third fits nowhere, then all three are unschedulable.",
    ..PluginDescriptor::new(
        "Coscheduling",
        &[
            ExtensionPoint::QueueSort,
            ExtensionPoint::PreFilter,
            ExtensionPoint::PostFilter,
            ExtensionPoint::Reserve,
            ExtensionPoint::Permit,
        ],
    )
};

/// How long a pod waits in Permit if neither group nor arguments say so, in seconds.
const DEFAULT_WAIT: i64 = 60;

arguments! {
    /// How long the pods of a group wait for each other, and when the group is rejected.
    #[derive(Copy, Eq)]
    pub struct CoschedulingArgs for "Coscheduling" {
        permit_waiting_time_seconds: i64 = 60,
            put "permitWaitingTimeSeconds", "0 or more",
            "How long a pod waits in Permit for its group, unless the PodGroup has \
             scheduleTimeoutSeconds; 0 means 60.";
        pod_group_backoff_seconds: i64 = 0,
            put "podGroupBackoffSeconds", "0 or more",
            "How long the pods of a group that was rejected are rejected in PreFilter.";
        pod_group_reject_percentage: i32 = 10,
            put "podGroupRejectPercentage", "0 to 100",
            "A group is not rejected if at most this share of minMember has no node yet.";
    }
}

impl Arguments for CoschedulingArgs {
    const CHECKED_WHEN_BUILT: bool = true;

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        for (name, seconds) in [
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ] {
            if seconds < 0 {
                found.invalid(&path.field(name), seconds, "must not be negative");
            }
        }
        found.percent(&path.field("podGroupRejectPercentage"), self.pod_group_reject_percentage);
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(Coscheduling(args.of())))
}

struct Coscheduling(CoschedulingArgs);

/// The group that a pod names, and the PodGroup if it exists.
fn lookup<'a>(objects: &'a Objects, pod: &Pod) -> Option<(NamespacedName, Option<&'a PodGroup>)> {
    let group = group_of(pod)?;
    Some((group, objects.custom::<PodGroup>(group)))
}

impl Plugin for Coscheduling {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let groups = EventResource::Custom(PODGROUPS);
        Some(vec![
            Registration::always(EventResource::Pod, Action::ADD),
            Registration::always(groups, Action::ADD | Action::UPDATE),
        ])
    }

    fn handles_events(&self) -> bool {
        true
    }

    fn handle_event(&self, cx: &mut HandlerContext<'_>, objects: &EventObjects) {
        let members = &mut cx.shared.plugins;
        match (&objects.old, &objects.new) {
            (old, Some(Object::Pod(pod))) => {
                let left = match old {
                    Some(Object::Pod(old)) if group_of(old) != group_of(pod) => group_of(old),
                    _ => None,
                };
                if left.is_some() || group_of(pod).is_some() {
                    members.update(|members: &mut Members| {
                        members.leave(left, pod);
                        members.see(pod, old.is_none());
                    });
                }
            }
            (Some(Object::Pod(pod)), None) if group_of(pod).is_some() => {
                members.update(|members: &mut Members| members.delete(pod));
            }
            _ => {}
        }
    }

    fn queue_order(&self, cx: &QueueContext<'_>) -> Option<Arc<dyn QueueOrder>> {
        Some(Arc::new(GroupOrder::new(cx)))
    }

    /// Without the groups: by priority, then by the first attempt.
    fn less(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        GroupOrder::default().less(a, b)
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        match self.check(cx) {
            Some(Checked::Rejected(reason, _)) => Status::unresolvable(&reason).into(),
            Some(Checked::Permitted(update)) => {
                state.updates.push(update);
                PreFilterAnswer::default()
            }
            None => PreFilterAnswer::default(),
        }
    }

    fn explain_pre_filter(&self, cx: &CycleContext<'_>, _: &CycleState) -> Vec<Explanation> {
        match self.check(cx) {
            Some(Checked::Rejected(_, explanation)) => vec![explanation],
            _ => Vec::new(),
        }
    }

    fn joint_pods(&self, cx: &QueueContext<'_>, pod: &Pod) -> Option<JointPods> {
        let (key, Some(spec)) = lookup(cx.objects, pod)? else { return None };
        let plugins = &cx.shared.plugins;
        let (members, times) = (plugins.get::<Members>()?, plugins.get::<GroupTimes>());
        let (namespace, name) = (key.namespace, key.name);
        Some(JointPods {
            group: ObjectKey { kind: Kind::Custom(PODGROUPS), namespace, name },
            size_field: "spec.minMember",
            needed: usize::try_from(spec.min_member()).unwrap_or(0),
            placed: members.assigned(key),
            pending: members.pending(key).map(|pod| NamespacedName::new(namespace, pod)).collect(),
            rejected_until: times.and_then(|times| times.backoff_end(key, cx.now)),
        })
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, _: &CycleState) -> PostFilterAnswer {
        let (cycle, mut answer) = (cx.cycle, PostFilterAnswer::default());
        let Some((group, Some(spec))) = lookup(cycle.objects, &cycle.pod.pod) else {
            answer.status = Status::unschedulable("can not find pod group");
            return answer;
        };
        let members = cycle.shared.plugins.get::<Members>();
        let assigned = members.map_or(0, |members| members.assigned(group));
        if !self.rejects_group(spec.min_member(), assigned) {
            answer.status = Status::with_reasons(Code::Unschedulable, Vec::new());
            return answer;
        }
        let pods = members.into_iter().flat_map(|members| members.uids(group));
        let text = "optimistic rejection in PostFilter";
        answer.effects.reject_waiting.extend(pods.map(|uid| self.rejection(uid, text)));
        let all = members.map_or(0, |members| members.count(group));
        let backoff = Duration::from_secs(self.0.pod_group_backoff_seconds);
        let backs_off = backoff > Duration::ZERO && all as i64 >= i64::from(spec.min_member());
        let (now, pod) = (cycle.now, cycle.pod.key());
        answer.effects.updates.push(StateUpdate::new(move |times: &mut GroupTimes| {
            if backs_off {
                times.back_off(pod, group, backoff, now);
            }
            times.failed(group, now);
        }));
        let pod = pod.name;
        answer.status = Status::unschedulable(&format!(
            "PodGroup {group} gets rejected due to Pod {pod} is unschedulable even after PostFilter"
        ));
        answer
    }

    fn permit(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> PermitAnswer {
        let Some((group, spec)) = lookup(cx.objects, &cx.pod.pod) else {
            return PermitAnswer::default();
        };
        let Some(spec) = spec else { return Status::unschedulable("PodGroup not found").into() };
        let (pod, plugins) = (cx.pod.key(), &mut cx.shared.plugins);
        let assigned = plugins.update(|members: &mut Members| members.assign(group, pod.name));
        let members = plugins.get::<Members>();
        if assigned as i64 >= i64::from(spec.min_member()) {
            let uids = members.into_iter().flat_map(|members| members.uids(group));
            state.allow_at_once.extend(uids.map(|uid| (uid, self.name())));
            plugins.update(|times: &mut GroupTimes| times.succeeded(group));
            return PermitAnswer::default();
        }
        if assigned == 1 {
            let siblings = members.into_iter().flat_map(|members| members.names(group));
            let siblings = siblings.filter(|name| *name != pod.name);
            state.pods_to_activate.extend(siblings.map(|name| (group.namespace, name)));
        }
        PermitAnswer { status: Status::wait(), timeout: self.wait(spec) }
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        let Some((group, Some(_))) = lookup(cx.objects, &cx.pod.pod) else { return };
        let (pod, now, plugins) = (cx.pod.key(), cx.now, &mut cx.shared.plugins);
        plugins.update(|members: &mut Members| members.unassign(group, pod.name));
        let uids = plugins.get::<Members>().into_iter().flat_map(|members| members.uids(group));
        state.reject_at_once.extend(uids.map(|uid| self.rejection(uid, "rejection in Unreserve")));
        plugins.update(|times: &mut GroupTimes| times.failed(group, now));
    }
}

impl Coscheduling {
    /// Whether a group of which `assigned` pods have a node is rejected: not if enough have one, or
    /// so few are missing that the next pods may complete the group.
    fn rejects_group(&self, min_member: i32, assigned: usize) -> bool {
        let missing = f64::from(min_member) - assigned as f64;
        let tolerated = f64::from(self.0.pod_group_reject_percentage) / 100.0;
        missing > 0.0 && missing / f64::from(min_member) > tolerated
    }

    fn rejection(&self, uid: Uid, text: &'static str) -> WaitingRejection {
        WaitingRejection { uid, plugin: self.name(), text }
    }

    /// How long a pod of the group waits in Permit.
    fn wait(&self, group: &PodGroup) -> Duration {
        let seconds = match (group.spec.schedule_timeout_seconds, self.0) {
            (Some(seconds), _) if seconds != 0 => i64::from(seconds),
            (Some(_), args) => args.permit_waiting_time_seconds,
            (None, CoschedulingArgs { permit_waiting_time_seconds: 0, .. }) => DEFAULT_WAIT,
            (None, args) => args.permit_waiting_time_seconds,
        };
        Duration::from_secs(seconds)
    }
}
