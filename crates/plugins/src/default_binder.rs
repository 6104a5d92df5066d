//! DefaultBinder: binds a pod through the API server.
//!
//! Upstream: `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go`.

use std::sync::Arc;
use std::task::Poll;

use kubestep_api::intern::Symbol;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::plugin::{BindContext, Plugin};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    default_profile: DefaultProfile::Present,
    doc: "binds the pod to the selected node",
    long_doc: "Creates the Binding through the API.",
    example: "The last step of a successful cycle: it sets the pod's spec.nodeName.",
    ..PluginDescriptor::new("DefaultBinder", &[ExtensionPoint::Bind])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(DefaultBinder))
}

struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> Symbol {
        "DefaultBinder".into()
    }

    fn bind(&self, cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        match cx.host.bind(cx.pod.key(), cx.pod.uid(), cx.node) {
            Poll::Pending => Status::wait(),
            Poll::Ready(Ok(())) => Status::SUCCESS,
            Poll::Ready(Err(text)) => Status::error(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::testing::{Asked, Cluster, FakeHost, info, key, node, pod};

    #[test]
    fn binds_through_the_host_and_passes_its_rejection_on() {
        let mut cluster = Cluster::new([node("n1")], [pod("web")]);
        let pod = info(pod("web"));
        let mut host = FakeHost::default();
        let mut bind = |host: &mut FakeHost| {
            let mut cx = cluster.binding(&pod, "n1", host);
            DefaultBinder.bind(&mut cx, &mut CycleState::default())
        };
        assert_eq!(bind(&mut host), Status::SUCCESS);
        host.refuse.push("web".into());
        assert_eq!(bind(&mut host), Status::error("rejected"));
        assert_eq!(host.asked[0], Asked::Bind(key("web"), "n1".into()));
    }
}
