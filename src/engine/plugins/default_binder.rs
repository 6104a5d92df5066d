//! DefaultBinder: binds a pod through the API.
//!
//! Upstream: `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go`.

use std::sync::Arc;

use crate::config::{FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::{BindContext, Plugin};
use crate::engine::status::Status;
use crate::intern::Symbol;

/// Builds the plugin.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    Ok(Arc::new(DefaultBinder))
}

struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> Symbol {
        "DefaultBinder".into()
    }

    /// DB-001
    fn bind(&self, cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        match cx.host.bind(cx.pod.key(), cx.pod.uid(), cx.node) {
            Ok(()) => Status::SUCCESS,
            Err(text) => Status::error(&text),
        }
    }
}
