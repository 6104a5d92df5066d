//! TaintToleration: keeps pods off nodes whose taints they do not tolerate, and prefers nodes
//! with few untolerated PreferNoSchedule taints.
//!
//! Upstream: `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go`.

use std::sync::Arc;

use super::normalize::relative_to_highest;
use super::signers;
use crate::api::selector::find_untolerated_taint;
use crate::api::{Node, Taint, TaintEffect, Toleration};
use crate::config::{Feature, FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::events::{
    Action, ClusterEvent, EventObjects, EventResource, Hint, Registration,
};
use crate::engine::framework::plugin::{CycleContext, Plugin, QueueContext};
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::pod::PodInfo;
use crate::engine::status::Status;
use crate::intern::Symbol;

/// Builds the plugin.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    let name = Symbol::new("TaintToleration");
    Ok(Arc::new(TaintToleration {
        name,
        comparisons: features.enabled(Feature::TaintTolerationComparisonOperators),
        untolerated: Status::unresolvable("node(s) had untolerated taint(s)").by(name),
    }))
}

struct TaintToleration {
    name: Symbol,
    /// Whether tolerations may use `Lt` and `Gt`.
    comparisons: bool,
    untolerated: Status,
}

/// The tolerations that count for scores: those for PreferNoSchedule or for all effects.
#[derive(Clone)]
struct ScoreTolerations(Vec<Toleration>);

impl TaintToleration {
    /// The first taint that keeps the pod off the node.
    fn blocking_taint<'n>(&self, node: &'n Node, pod: &PodInfo) -> Option<&'n Taint> {
        let taints = node.spec.taints.as_slice();
        find_untolerated_taint(taints, &pod.pod.spec.tolerations, self.comparisons, |taint| {
            matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
        })
    }

    fn after_node_change(&self, pod: &PodInfo, objects: &EventObjects) -> Result<Hint, String> {
        let (old, new) = objects.nodes()?;
        let blocked = |node: &Node| self.blocking_taint(node, pod).is_some();
        let opens = old.is_none_or(blocked) && new.is_some_and(|node| !blocked(node));
        Ok(if opens { Hint::Queue } else { Hint::Skip })
    }
}

impl Plugin for TaintToleration {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let nodes = Action::ADD | Action::UPDATE_NODE_TAINT;
        Some(vec![
            Registration::hinted(EventResource::Node, nodes),
            Registration::hinted(EventResource::Pod, Action::UPDATE_POD_TOLERATION),
        ])
    }

    fn hint(
        &self,
        _cx: &QueueContext<'_>,
        pod: &PodInfo,
        event: &ClusterEvent,
        objects: &EventObjects,
    ) -> Result<Hint, String> {
        if event.resource == EventResource::Node {
            return self.after_node_change(pod, objects);
        }
        let (_, changed) = objects.pods()?;
        let itself = changed.is_some_and(|changed| changed.metadata.uid == pod.uid());
        Ok(if itself { Hint::Queue } else { Hint::Skip })
    }

    /// TT-001
    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        let Some(node) = &node.node else { return Status::SUCCESS };
        match self.blocking_taint(node, cx.pod) {
            Some(_) => self.untolerated.clone(),
            None => Status::SUCCESS,
        }
    }

    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &[NodeId],
    ) -> Status {
        let counts = |toleration: &&Toleration| {
            toleration.effect.is_unset() || toleration.effect == TaintEffect::PreferNoSchedule
        };
        let tolerations = cx.pod.pod.spec.tolerations.iter().filter(counts).cloned().collect();
        state.write(ScoreTolerations(tolerations));
        Status::SUCCESS
    }

    /// TT-003
    fn score(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let Some(ScoreTolerations(tolerations)) = state.read() else {
            // TT-004
            let text = r#"failed to read "PreScoreTaintToleration" from cycleState: not found"#;
            return Err(Status::error(text));
        };
        let taints = node.node.iter().flat_map(|node| &node.spec.taints);
        let soft = taints.filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
        let untolerated = soft.filter(|taint| {
            let taint = std::slice::from_ref(*taint);
            find_untolerated_taint(taint, tolerations, self.comparisons, |_| true).is_some()
        });
        Ok(untolerated.count() as i64)
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        relative_to_highest(scores, true);
        Status::SUCCESS
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> signers::Fragments {
        signers::tolerations(&pod.pod)
    }
}
