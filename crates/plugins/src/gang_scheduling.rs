//! GangScheduling: schedules the pods of a gang together or not at all (alpha).
//!
//! PreEnqueue keeps them out of the queue until `minCount` pods exist, and Permit makes them wait
//! until as many have a node. A gang is a PodGroup, and up to 1.35 a pod group in a Workload.
//! Upstream: `pkg/scheduler/framework/plugins/gangscheduling`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, ObjectMeta, Pod};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange, PluginDescriptor,
    PointSet, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, QueueingHint, Registration};
use kubestep_framework::plugin::{BindContext, PermitAnswer, Plugin, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::pod_groups::group_of;
use kubestep_framework::pod_groups::policy::{MissingGroup, min_count, policy_of};
use kubestep_framework::registry::Built;
use kubestep_framework::status::{Code, Status};

/// How long a pod waits at Permit for the rest of its gang.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    default_profile: DefaultProfile::Gated(Feature::GangScheduling),
    history: &[
        PluginChange::Exists(Switch::GangSchedulingPlugin),
        // Up to 1.35, Reserve counts the pod as assumed; the scheduler itself does so here.
        PluginChange::Implemented(Switch::PodGroupCycles, PointSet::of(&[ExtensionPoint::Reserve])),
    ],
    doc: "schedules a pod group only if enough of its pods fit",
    long_doc: "Pods of a group stay out of the queue until minCount of them exist, and wait in \
               Permit until minCount of them have a node.",
    example: "A group with minCount 4 has three pods: they are not tried. When the fourth is \
              created, all four are, and they are bound together or not at all.",
    ..PluginDescriptor::new("GangScheduling", &[ExtensionPoint::PreEnqueue, ExtensionPoint::Permit])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    Ok(Arc::new(GangScheduling { has_cycles: features.has(Switch::PodGroupCycles) }))
}

struct GangScheduling {
    /// Whether gangs are PodGroups with a cycle of their own.
    has_cycles: bool,
}

impl Plugin for GangScheduling {
    fn name(&self) -> Symbol {
        "GangScheduling".into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let of_gang = if self.has_cycles {
            Registration::hinted(EventResource::PodGroup, Action::ADD, |cx, pod, objects| {
                let own = group_of(&pod.pod, cx.features);
                Ok(is_same(own, objects.pod_groups()?.1.map(|group| key(&group.metadata))))
            })
        } else {
            Registration::hinted(EventResource::Workload, Action::ADD, |_, pod, objects| {
                let added = objects.workloads()?.1.map(|workload| key(&workload.metadata));
                Ok(is_same(workload_of(&pod.pod), added))
            })
        };
        let of_member =
            Registration::hinted(EventResource::Pod, Action::ADD, |cx, pod, objects| {
                let group = |pod: &Pod| group_of(pod, cx.features);
                Ok(is_same(group(&pod.pod), objects.pods()?.1.and_then(group)))
            });
        Some(vec![of_member, of_gang])
    }

    /// A pod of a gang stays out of the queue until its group and `minCount` of its pods exist.
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        let needed = match policy_of(&pod.pod, cx.objects, cx.features) {
            None => None,
            Some(Err(missing)) => return Status::unresolvable(&waits_for(missing)),
            Some(Ok(policy)) => min_count(policy),
        };
        let group = group_of(&pod.pod, cx.features);
        let (Some(group), Some(needed)) = (group, needed) else { return Status::SUCCESS };
        match cx.shared.pod_groups.get(group) {
            Err(text) => Status::error(text),
            Ok(state) if state.all() < needed => Status::unresolvable(
                "waiting for minCount pods from a gang to appear in scheduling queue",
            ),
            Ok(_) => Status::SUCCESS,
        }
    }

    /// A pod waits until `minCount` pods of its gang are assumed or bound, then allows them all.
    fn permit(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> PermitAnswer {
        let needed = match policy_of(&cx.pod.pod, cx.objects, cx.features) {
            None => None,
            Some(Err(missing)) => return Status::error(not_found(missing)).into(),
            Some(Ok(policy)) => min_count(policy),
        };
        match (group_of(&cx.pod.pod, cx.features), needed) {
            (Some(group), Some(needed)) => self.permit_in_gang(cx, state, group, needed),
            _ => PermitAnswer::default(),
        }
    }
}

/// Requeues the pods of the group that an event is about.
fn is_same(own: Option<NamespacedName>, meant: Option<NamespacedName>) -> QueueingHint {
    QueueingHint::queue_if(own.is_some() && own == meant)
}

impl GangScheduling {
    fn permit_in_gang(
        &self,
        cx: &mut BindContext<'_>,
        state: &mut CycleState,
        group: NamespacedName,
        needed: usize,
    ) -> PermitAnswer {
        let members = match cx.shared.pod_groups.get(group) {
            Ok(members) => members,
            Err(text) => return Status::error(text).into(),
        };
        if members.scheduled() < needed {
            // The pods still in the queue are activated at once, as this one waits for them.
            state.activate_at_once.extend(members.unscheduled());
            return self.wait(cx, group);
        }
        state.allow_at_once.extend(members.assumed().map(|uid| (uid, self.name())));
        PermitAnswer::default()
    }

    fn wait(&self, cx: &mut BindContext<'_>, group: NamespacedName) -> PermitAnswer {
        let (text, timeout) = if self.has_cycles {
            ("waiting for minCount pods from a gang to be scheduled", TIMEOUT)
        } else {
            let left = cx.shared.pod_groups.time_at_permit(group, TIMEOUT, cx.now);
            ("waiting for minCount pods from a gang to be waiting on permit", left)
        };
        PermitAnswer { status: Status::new(Code::Wait, text), timeout }
    }
}

fn key(metadata: &ObjectMeta) -> NamespacedName {
    NamespacedName::new(metadata.namespace, metadata.name)
}

/// The Workload that a pod names, up to 1.35.
fn workload_of(pod: &Pod) -> Option<NamespacedName> {
    let reference = pod.spec.workload_ref.as_ref()?;
    Some(NamespacedName::new(pod.metadata.namespace, reference.name))
}

/// PreEnqueue's message while something is missing.
fn waits_for(missing: MissingGroup) -> String {
    match missing {
        MissingGroup::PodGroup(NamespacedName { name, .. }) => {
            format!("waiting for pods's pod group {name:?} to appear in scheduling queue")
        }
        MissingGroup::Workload(NamespacedName { name, .. }) => {
            format!("waiting for pods's workload {name:?} to appear in scheduling queue")
        }
        MissingGroup::GroupOf { workload, group } => {
            format!("pod group {group:?} doesn't exist for a workload {:?}", workload.name)
        }
    }
}

/// Permit's message if something was deleted since PreEnqueue.
fn not_found(missing: MissingGroup) -> String {
    match missing {
        MissingGroup::PodGroup(group) => {
            let name = group.name;
            format!("failed to get podGroup {group}: podgroup.scheduling.k8s.io {name:?} not found")
        }
        MissingGroup::Workload(workload) => {
            let name = workload.name;
            format!(
                "failed to get workload {workload}: workload.scheduling.k8s.io {name:?} not found"
            )
        }
        MissingGroup::GroupOf { .. } => waits_for(missing),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::{Time, Uid};
    use kubestep_framework::testing::{Cluster, FakeHost, PodBuilder, info, key, object, pod};

    const PLUGIN_OF_NEWEST: GangScheduling = GangScheduling { has_cycles: true };

    fn member(name: &str) -> Pod {
        pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    fn gang(min_count: i32) -> kubestep_api::Object {
        object(json!({
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
        }))
    }

    /// PreEnqueue's message for `pod`, with `members` in the group.
    fn pre_enqueue(mut cluster: Cluster, pod: Pod, members: &[&str]) -> String {
        let groups = &mut cluster.shared.pod_groups;
        members.iter().for_each(|name| groups.add(key("g"), &member(name)));
        let cx = QueueContext {
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: Time(0),
        };
        PLUGIN_OF_NEWEST.pre_enqueue(&cx, &info(pod)).message()
    }

    #[test]
    fn a_gang_stays_outside_until_it_is_there() {
        let missing = "waiting for pods's pod group \"g\" to appear in scheduling queue";
        assert_eq!(pre_enqueue(Cluster::default(), member("a"), &["a"]), missing);
        assert_eq!(pre_enqueue(Cluster::default(), pod("a"), &[]), "");
        let few = "waiting for minCount pods from a gang to appear in scheduling queue";
        let with_gang = || Cluster::default().with(gang(2));
        assert_eq!(pre_enqueue(with_gang(), member("a"), &["a"]), few);
        assert_eq!(pre_enqueue(with_gang(), member("a"), &["a", "b"]), "");
    }

    #[test]
    fn a_gang_waits_for_its_quorum_and_then_lets_all_go() {
        let mut cluster = Cluster::default().with(gang(2));
        let groups = &mut cluster.shared.pod_groups;
        ["a", "b", "c"].iter().for_each(|name| groups.add(key("g"), &member(name)));
        groups.assume(&member("a"));
        let (a, mut host) = (info(member("a")), FakeHost::default());
        let mut permit = |cluster: &mut Cluster| {
            let mut state = CycleState::default();
            let mut cx = cluster.binding(&a, "n", &mut host);
            (PLUGIN_OF_NEWEST.permit(&mut cx, &mut state), state)
        };
        let (answer, state) = permit(&mut cluster);
        assert_eq!((answer.status.code(), answer.timeout), (Code::Wait, TIMEOUT));
        assert_eq!(state.activate_at_once, [key("b"), key("c")]);
        cluster.shared.pod_groups.assume(&member("b"));
        let (answer, state) = permit(&mut cluster);
        assert_eq!(answer.status, Status::SUCCESS);
        let uids: Vec<Uid> = state.allow_at_once.iter().map(|(uid, _)| *uid).collect();
        assert_eq!(uids, ["default-a", "default-b"].map(Uid::from));
    }

    #[test]
    fn only_its_own_group_helps_a_pod() {
        let cluster = Cluster::default();
        let plugin: Arc<dyn Plugin> = Arc::new(PLUGIN_OF_NEWEST);
        let hint = |new| cluster.hint(&plugin, &info(member("a")), None, Some(new));
        assert_eq!(hint(gang(1)), QueueingHint::Queue);
        assert_eq!(hint(member("b").into()), QueueingHint::Queue);
        assert_eq!(hint(pod("b").into()), QueueingHint::Skip);
    }

    /// Up to 1.35 a gang is a pod group in a Workload.
    mod of_workloads {
        use super::*;
        use kubestep_config::KubeVersion;

        const PLUGIN: GangScheduling = GangScheduling { has_cycles: false };

        fn member(name: &str, group: &str) -> Pod {
            pod(name).spec(json!({"workloadRef": {"name": "w", "podGroup": group}}))
        }

        fn group() -> NamespacedName {
            NamespacedName::new("default".into(), "w/g".into())
        }

        fn workload() -> kubestep_api::Object {
            object(json!({
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "Workload",
                "metadata": {"name": "w", "namespace": "default"},
                "spec": {"podGroupTemplates": [
                    {"name": "g", "schedulingPolicy": {"gang": {"minCount": 2}}},
                ]},
            }))
        }

        fn cluster() -> Cluster {
            let features = FeatureGates::of(KubeVersion::of_minor(35).unwrap());
            Cluster { features, ..Cluster::default() }
        }

        fn context(cluster: &Cluster, now: i64) -> QueueContext<'_> {
            let Cluster { objects, features, shared, .. } = cluster;
            QueueContext { objects, features, shared, now: Time(now) }
        }

        #[test]
        fn what_a_pod_waits_for_outside() {
            let said = |cluster: &Cluster, pod| {
                PLUGIN.pre_enqueue(&context(cluster, 0), &info(pod)).message()
            };
            let missing = "waiting for pods's workload \"w\" to appear in scheduling queue";
            assert_eq!(said(&cluster(), member("a", "g")), missing);
            let mut there = cluster().with(workload());
            let wrong = "pod group \"x\" doesn't exist for a workload \"w\"";
            assert_eq!(said(&there, member("a", "x")), wrong);
            there.shared.pod_groups.add(group(), &member("a", "g"));
            let few = "waiting for minCount pods from a gang to appear in scheduling queue";
            assert_eq!(said(&there, member("a", "g")), few);
            there.shared.pod_groups.add(group(), &member("b", "g"));
            assert_eq!(said(&there, member("a", "g")), "");
            // The API of 1.36 is none of 1.35.
            assert_eq!(said(&there, super::member("a")), "");
        }

        #[test]
        fn only_its_own_workload_helps_a_pod() {
            let cluster = cluster();
            let plugin: Arc<dyn Plugin> = Arc::new(PLUGIN);
            let hint = |pod: Pod, new| cluster.hint(&plugin, &info(pod), None, Some(new));
            let own = || member("a", "g");
            assert_eq!(hint(own(), workload()), QueueingHint::Queue);
            assert_eq!(hint(pod("a"), workload()), QueueingHint::Skip);
            assert_eq!(hint(own(), member("b", "g").into()), QueueingHint::Queue);
            assert_eq!(hint(own(), member("b", "h").into()), QueueingHint::Skip);
        }

        #[test]
        fn the_pods_at_permit_have_one_deadline() {
            let mut cluster = cluster().with(workload());
            let a = info(member("a", "g"));
            cluster.shared.pod_groups.add(group(), &a.pod);
            let permit = |cluster: &mut Cluster, after: Duration| {
                let mut host = FakeHost::default();
                cluster.now = Time(0) + after;
                let mut cx = cluster.binding(&a, "n", &mut host);
                PLUGIN.permit(&mut cx, &mut CycleState::default())
            };
            let (start, second) = (Duration::ZERO, Duration::from_secs(1));
            let first = permit(&mut cluster, start);
            let text = "waiting for minCount pods from a gang to be waiting on permit";
            assert_eq!((first.status.message().as_str(), first.timeout), (text, TIMEOUT));
            assert_eq!(permit(&mut cluster, second).timeout, TIMEOUT - second);
            assert_eq!(permit(&mut cluster, TIMEOUT + second).timeout, TIMEOUT);
            cluster.objects.remove(&workload());
            let message =
                "failed to get workload default/w: workload.scheduling.k8s.io \"w\" not found";
            assert_eq!(permit(&mut cluster, start).status.message(), message);
        }
    }
}
