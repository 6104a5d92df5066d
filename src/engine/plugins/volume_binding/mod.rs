//! VolumeBinding: finds volumes for a pod's claims on each node, takes them at Reserve and
//! binds them before the pod is bound.
//!
//! Upstream: `pkg/scheduler/framework/plugins/volumebinding/`.

use std::sync::Arc;

use crate::config::{FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::{
    BindContext, CycleContext, Plugin, PreFilterAnswer, QueueContext,
};
use crate::engine::node::NodeId;
use crate::engine::pod::PodInfo;
use crate::engine::status::Status;
use crate::engine::volumes;
use crate::intern::Symbol;

mod claims;

/// Builds the plugin.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    Ok(Arc::new(VolumeBinding { name: "VolumeBinding".into() }))
}

struct VolumeBinding {
    name: Symbol,
}

impl Plugin for VolumeBinding {
    fn name(&self) -> Symbol {
        self.name
    }

    /// VB-001, VB-002
    fn pre_filter(&self, cx: &CycleContext<'_>, _state: &mut CycleState) -> PreFilterAnswer {
        match claims::check(&cx.pod.pod, cx.objects) {
            Err(text) => volumes::unresolvable(text).into(),
            Ok(false) => Status::skip().into(),
            Ok(true) => PreFilterAnswer::default(),
        }
    }

    /// VB-020
    fn pre_score(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _nodes: &[NodeId],
    ) -> Status {
        Status::skip()
    }

    /// VB-031
    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, _state: &CycleState) -> Status {
        Status::skip()
    }

    fn sign(
        &self,
        _cx: &QueueContext<'_>,
        pod: &PodInfo,
    ) -> Result<Vec<(&'static str, String)>, Symbol> {
        Ok(volumes::sign(&pod.pod))
    }
}
