//! GangScheduling: schedules the pods of a gang together or not at all (alpha).
//!
//! PreEnqueue keeps them out of the queue until `minCount` pods exist, and Permit makes them wait
//! until as many have a node. Upstream: `pkg/scheduler/framework/plugins/gangscheduling`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Pod, PodGroup};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange, PluginDescriptor,
    ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{Action, EventResource, Hint, Registration};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{BindContext, PermitAnswer, Plugin, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::pod_groups::group_of;
use kubestep_framework::registry::Built;
use kubestep_framework::status::{Code, Status};

/// How long a pod waits at Permit for the rest of its gang.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    default_profile: DefaultProfile::Gated(Feature::GangScheduling),
    history: &[PluginChange::Exists(Switch::GangSchedulingPlugin)],
    doc: "schedules a pod group only if enough of its pods fit",
    long_doc: "Pods of a group stay out of the queue until minCount of them exist, and wait in \
               Permit until minCount of them have a node.",
    example: "A group with minCount 4 has three pods: they are not tried. When the fourth is \
              created, all four are, and they are bound together or not at all.",
    ..PluginDescriptor::new("GangScheduling", &[ExtensionPoint::PreEnqueue, ExtensionPoint::Permit])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(GangScheduling))
}

struct GangScheduling;

impl Plugin for GangScheduling {
    fn name(&self) -> Symbol {
        "GangScheduling".into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::hinted(EventResource::Pod, Action::ADD, |_, pod, objects| {
                Ok(is_of_group(pod, objects.pods()?.1.and_then(group_of)))
            }),
            Registration::hinted(EventResource::PodGroup, Action::ADD, |_, pod, objects| {
                Ok(is_of_group(pod, objects.pod_groups()?.1.map(key)))
            }),
        ])
    }

    /// A pod of a gang stays out of the queue until its group and `minCount` of its pods exist.
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        let Some(group) = group_of(&pod.pod) else { return Status::SUCCESS };
        let Some(object) = cx.objects.pod_groups.get(&group) else {
            let name = group.name;
            return Status::unresolvable(&format!(
                "waiting for pods's pod group {name:?} to appear in scheduling queue"
            ));
        };
        let Some(needed) = min_count(object) else { return Status::SUCCESS };
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
        match quorum(cx.objects, &cx.pod.pod) {
            Err(text) => Status::error(&text).into(),
            Ok(None) => PermitAnswer::default(),
            Ok(Some((group, needed))) => self.permit_in_gang(cx, state, group, needed),
        }
    }
}

/// Requeues the pods of the group that the event is about.
fn is_of_group(pod: &PodInfo, group: Option<NamespacedName>) -> Hint {
    let own = group_of(&pod.pod);
    Hint::queue_if(own.is_some() && own == group)
}

impl GangScheduling {
    fn permit_in_gang(
        &self,
        cx: &BindContext<'_>,
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
            let text = "waiting for minCount pods from a gang to be scheduled";
            return PermitAnswer { status: Status::new(Code::Wait, text), timeout: TIMEOUT };
        }
        state.allow_at_once.extend(members.assumed().map(|uid| (uid, self.name())));
        PermitAnswer::default()
    }
}

fn key(group: &PodGroup) -> NamespacedName {
    NamespacedName::new(group.metadata.namespace, group.metadata.name)
}

/// The `minCount` of a gang; `None` for groups with another policy.
fn min_count(group: &PodGroup) -> Option<usize> {
    let gang = group.spec.scheduling_policy.gang.as_ref()?;
    Some(usize::try_from(gang.min_count).unwrap_or(0))
}

/// The pod's gang and its `minCount`; `None` if the pod is in none.
fn quorum(objects: &Objects, pod: &Pod) -> Result<Option<(NamespacedName, usize)>, PluginError> {
    let Some(group) = group_of(pod) else { return Ok(None) };
    let Some(object) = objects.pod_groups.get(&group) else {
        let name = group.name;
        return Err(format!(
            "failed to get podGroup {group}: podgroup.scheduling.k8s.io {name:?} not found"
        )
        .into());
    };
    Ok(min_count(object).map(|needed| (group, needed)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::Time;
    use kubestep_framework::testing::{Cluster, FakeHost, PodBuilder, info, key, object, pod};

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
        members.iter().for_each(|name| cluster.shared.pod_groups.add(&member(name)));
        let cx = QueueContext {
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: Time(0),
        };
        GangScheduling.pre_enqueue(&cx, &info(pod)).message()
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
        ["a", "b", "c"].iter().for_each(|name| groups.add(&member(name)));
        groups.assume(&member("a"));
        let (a, mut host) = (info(member("a")), FakeHost::default());
        let mut permit = |cluster: &mut Cluster| {
            let mut state = CycleState::default();
            let mut cx = BindContext {
                pod: &a,
                node: "n".into(),
                snapshot: &cluster.snapshot,
                objects: &cluster.objects,
                features: &cluster.features,
                shared: &mut cluster.shared,
                host: &mut host,
                now: Time(0),
            };
            (GangScheduling.permit(&mut cx, &mut state), state)
        };
        let (answer, state) = permit(&mut cluster);
        assert_eq!((answer.status.code(), answer.timeout), (Code::Wait, TIMEOUT));
        assert_eq!(state.activate_at_once, [key("b"), key("c")]);
        cluster.shared.pod_groups.assume(&member("b"));
        let (answer, state) = permit(&mut cluster);
        assert_eq!(answer.status, Status::SUCCESS);
        let uids: Vec<Symbol> = state.allow_at_once.iter().map(|(uid, _)| *uid).collect();
        assert_eq!(uids, ["default-a", "default-b"].map(Symbol::new));
    }

    #[test]
    fn only_its_own_group_helps_a_pod() {
        let cluster = Cluster::default();
        let plugin: Arc<dyn Plugin> = Arc::new(GangScheduling);
        let hint = |new| cluster.hint(&plugin, &info(member("a")), None, Some(new));
        assert_eq!(hint(gang(1)), Hint::Queue);
        assert_eq!(hint(member("b").into()), Hint::Queue);
        assert_eq!(hint(pod("b").into()), Hint::Skip);
    }
}
