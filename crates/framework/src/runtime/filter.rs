//! Running filters: on one node, in two passes with and without nominated pods, and on copies of a
//! node for preemption.
//!
//! Upstream: `RunFilterPluginsWithNominatedPods` and the PreFilter extensions in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::node::NodeInfo;
use crate::plugin::{CycleContext, Handle, Plugin};
use crate::pod::PodInfo;
use crate::runtime::{Framework, wrap};
use crate::status::Status;
use kubestep_config::ExtensionPoint;
use kubestep_config::types::Extender;

impl Framework {
    /// Runs the filters on a node until one fails.
    pub fn run_filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        for plugin in self.at(ExtensionPoint::Filter) {
            if state.skips_filter(plugin.name()) {
                continue;
            }
            let status = run_one_filter(plugin, cx, state, node);
            if !status.is_success() {
                return status;
            }
        }
        Status::SUCCESS
    }

    /// Runs the filters on a node, first with the pods nominated to it added, then without them.
    /// Both passes must succeed, because nominated pods may or may not run there in the end.
    pub fn run_filter_with_nominated(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Status {
        match self.with_nominated(cx, state, node) {
            Ok(Some((state, node))) => {
                let status = self.run_filter(cx, &state, &node);
                if !status.is_success() {
                    return status;
                }
            }
            Ok(None) => {}
            Err(status) => return status,
        }
        self.run_filter(cx, state, node)
    }

    /// Copies of state and node with the relevant nominated pods added: those with at least the
    /// pod's priority, except the pod itself. `None` if there are none.
    pub fn with_nominated(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<Option<(CycleState, NodeInfo)>, Status> {
        let counts = |nominated: &&Arc<PodInfo>| {
            nominated.priority() >= cx.pod.priority() && nominated.uid() != cx.pod.uid()
        };
        let nominated: Vec<_> = cx.nominated.for_node(node.name).iter().filter(counts).collect();
        if nominated.is_empty() {
            return Ok(None);
        }
        let (mut state, mut node) = (state.clone(), node.clone());
        for pod in nominated {
            node.add_pod(pod.clone());
            let status = self.run_add_pod(cx, &mut state, pod, &node);
            if !status.is_success() {
                return Err(status);
            }
        }
        Ok(Some((state, node)))
    }

    fn run_extensions(
        &self,
        verb: &str,
        state: &mut CycleState,
        call: impl Fn(&Arc<dyn Plugin>, &mut CycleState) -> Status,
    ) -> Status {
        for plugin in self.at(ExtensionPoint::PreFilter) {
            let name = plugin.name();
            if state.skips_filter(name) {
                continue;
            }
            let status = call(plugin, state);
            if !status.is_success() {
                return Status::error(format!(
                    "running {verb} on PreFilter plugin {name:?}: {}",
                    status.message()
                ));
            }
        }
        Status::SUCCESS
    }
}

impl Handle for Framework {
    fn run_filter_with_nominated(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Status {
        Framework::run_filter_with_nominated(self, cx, state, node)
    }

    fn run_add_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.run_extensions("AddPod", state, |plugin, state| plugin.add_pod(cx, state, added, node))
    }

    fn run_remove_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.run_extensions("RemovePod", state, |plugin, state| {
            plugin.remove_pod(cx, state, removed, node)
        })
    }

    fn extenders(&self) -> &[Extender] {
        Framework::extenders(self)
    }
}

/// Runs one filter on one node. A rejection gets the plugin's name; any other failure becomes an
/// error that names the plugin.
pub fn run_one_filter(
    plugin: &Arc<dyn Plugin>,
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &NodeInfo,
) -> Status {
    let name = plugin.name();
    let fault = state.fault(ExtensionPoint::Filter, name);
    let status = fault.unwrap_or_else(|| plugin.filter(cx, state, node));
    if status.is_success() {
        return status;
    }
    match status.is_rejected() {
        true => status.by(name),
        false => wrap(&format!("running {name:?} filter plugin"), &status, name),
    }
}
