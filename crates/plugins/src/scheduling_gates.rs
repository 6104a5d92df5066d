//! SchedulingGates: keeps a pod out of the active queue while it has scheduling gates.
//!
//! Upstream: `pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::events::{
    Action, EventResource, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::plugin::{Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    default_profile: DefaultProfile::Present,
    doc: "keeps a pod out of the queue while it has scheduling gates",
    long_doc: "A pod with entries in spec.schedulingGates is not tried. It enters the active queue \
               when the last gate is removed.",
    example: "A pod with schedulingGates [{name: example.com/quota}] is listed as gated. It is \
              tried once a controller has removed that entry.",
    ..PluginDescriptor::new("SchedulingGates", &[ExtensionPoint::PreEnqueue])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(SchedulingGates))
}

struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> Symbol {
        "SchedulingGates".into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let gates_removed = Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED;
        Some(vec![Registration::hinted(EventResource::Pod, gates_removed, |_, pod, objects| {
            Ok(QueueingHint::queue_if(objects.updated_pod(pod.uid())?.is_some()))
        })])
    }

    /// Without queueing hints, removed gates are no events.
    fn older_registration(&self) -> OlderRegistration {
        |rules, newest| rules.hints.then_some(newest)
    }

    fn gates_by_spec(&self) -> bool {
        true
    }

    fn pre_enqueue(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        let gates: Vec<&str> =
            pod.pod.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
        if gates.is_empty() {
            return Status::SUCCESS;
        }
        Status::unresolvable(&format!("waiting for scheduling gates: [{}]", gates.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::Object;
    use kubestep_api::Time;
    use kubestep_framework::testing::{Cluster, PodBuilder, info, pod};

    /// A pod with gates of these names.
    fn gated(name: &str, gates: &[&str]) -> Arc<PodInfo> {
        let gates: Vec<_> = gates.iter().map(|name| json!({"name": name})).collect();
        info(pod(name).spec(json!({"schedulingGates": gates})))
    }

    #[test]
    fn gates_hold_a_pod_and_are_named() {
        let cluster = Cluster::default();
        let cx = QueueContext {
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: Time(0),
        };
        assert_eq!(SchedulingGates.pre_enqueue(&cx, &gated("a", &[])), Status::SUCCESS);
        assert_eq!(
            SchedulingGates.pre_enqueue(&cx, &gated("a", &["x", "y"])),
            Status::unresolvable("waiting for scheduling gates: [x y]")
        );
    }

    #[test]
    fn only_the_loss_of_its_own_gates_helps_a_pod() {
        let cluster = Cluster::default();
        let plugin: Arc<dyn Plugin> = Arc::new(SchedulingGates);
        let object = |pod: &PodInfo| Some(Object::Pod(pod.pod.clone()));
        let hint = |changed: &str| {
            let (old, new) = (object(&gated(changed, &["x"])), object(&gated(changed, &[])));
            cluster.hint(&plugin, &gated("a", &["x"]), old, new)
        };
        assert_eq!((hint("a"), hint("b")), (QueueingHint::Queue, QueueingHint::Skip));
    }
}
