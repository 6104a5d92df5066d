//! ManualPermit: holds pods at Permit until the user allows or rejects them.
//!
//! kubestep's own plugin, off unless a configuration enables it: while a pod is held and its node
//! reserved, the user can inspect the cluster. Hold rules do the same for a session; this plugin
//! belongs to a configuration, and has its turn among the Permit plugins of the profile.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{Duration, LabelSelector};
use kubestep_config::validation::Findings;
use kubestep_config::{
    ArgsType, Arguments, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, ProfileArgs,
    arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::Registration;
use kubestep_framework::plugin::{BindContext, PermitAnswer, Plugin};
use kubestep_framework::registry::Built;
use kubestep_framework::status::{Code, Status};

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    args: Some(ArgsType::of::<ManualPermitArgs>()),
    doc: "holds pods in Permit until you allow or reject them (kubestep's own)",
    long_doc: "Not part of Kubernetes and off unless a configuration enables it. Pods that match \
               the selector of its arguments wait in Permit with their node reserved, until you \
               allow or reject them; after timeoutSeconds they are rejected.",
    example: "With selector {matchLabels: {app: db}} every database pod waits at Permit until you \
              press \"a\" (allow) or \"x\" (reject) in the view of waiting pods.",
    ..PluginDescriptor::new("ManualPermit", &[ExtensionPoint::Permit])
};

arguments! {
    /// Which pods ManualPermit holds, and for how long.
    pub struct ManualPermitArgs for "ManualPermit" {
        selector: LabelSelector = LabelSelector::default(),
            put "selector", "a label selector",
            "The pods to hold; an empty selector holds every pod.";
        timeout_seconds: i64 = 900,
            put "timeoutSeconds", "1 to 900",
            "A held pod is rejected after this many seconds.";
    }
}

impl Arguments for ManualPermitArgs {
    /// Upstream allows pods to wait at Permit for 15 minutes.
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        let timeout = self.timeout_seconds;
        if !(1..=900).contains(&timeout) {
            found.invalid(&path.field("timeoutSeconds"), timeout, "not in valid range [1, 900]");
        }
        found.label_selector(&self.selector, &path.field("selector"));
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    let args: ManualPermitArgs = args.of();
    Ok(Arc::new(ManualPermit {
        selector: Selector::new(Some(&args.selector))?,
        timeout: Duration::from_secs(args.timeout_seconds),
        held: Status::new(Code::Wait, "held for a manual decision"),
    }))
}

struct ManualPermit {
    /// Selects the pods to hold.
    selector: Selector,
    /// The maximum time to hold a pod.
    timeout: Duration,
    held: Status,
}

impl Plugin for ManualPermit {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    /// Registers no events: a pod that the user rejected is not held again at once, but stays
    /// unschedulable until the queue flushes it.
    fn events(&self) -> Option<Vec<Registration>> {
        Some(Vec::new())
    }

    fn permit(&self, cx: &mut BindContext<'_>, _state: &mut CycleState) -> PermitAnswer {
        if !self.selector.matches(&cx.pod.pod.metadata.labels) {
            return PermitAnswer::default();
        }
        PermitAnswer { status: self.held.clone(), timeout: self.timeout }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::Pod;
    use kubestep_framework::testing::{Cluster, FakeHost, PodBuilder, info, pod};

    fn permit(args: ManualPermitArgs, pod: Pod) -> PermitAnswer {
        let args = ProfileArgs::default().with(args);
        let plugin = build(&args, &FeatureGates::default()).unwrap();
        let (mut cluster, mut host, pod) = (Cluster::default(), FakeHost::default(), info(pod));
        let mut cx = cluster.binding(&pod, "n1", &mut host);
        plugin.permit(&mut cx, &mut CycleState::default())
    }

    #[test]
    fn every_pod_waits_a_quarter_of_an_hour_by_default() {
        let answer = permit(ManualPermitArgs::default(), pod("a"));
        assert!(answer.status.is_wait());
        assert_eq!(answer.status.message(), "held for a manual decision");
        assert_eq!(answer.timeout, Duration::from_secs(900));
    }

    #[test]
    fn no_event_undoes_a_rejection() {
        let plugin = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
        assert_eq!(plugin.events().map(|events| events.len()), Some(0));
    }

    #[test]
    fn a_selector_leaves_other_pods_alone() {
        let selector = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
        let args = ManualPermitArgs { selector, timeout_seconds: 5 };
        assert_eq!(
            permit(args.clone(), pod("a").label("app", "web")).timeout,
            Duration::from_secs(5)
        );
        assert!(permit(args, pod("a")).status.is_success());
    }
}
