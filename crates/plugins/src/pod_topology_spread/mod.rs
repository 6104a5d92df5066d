//! PodTopologySpread: spreads pods evenly over zones, hosts or other topology domains.
//!
//! `constraint` reads the pod's constraints or the defaults, `filter` checks the hard constraints,
//! `score` the soft ones, `hints` has the queueing hints.
//! Upstream: `pkg/scheduler/framework/plugins/podtopologyspread/`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_config::{
    ArgsType, DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::{DistinctStatuses, Status};

mod args;
mod constraint;
mod critical_paths;
mod default_selector;
mod filter;
mod hints;
mod score;

pub use args::{DefaultConstraint, PodTopologySpreadArgs};
pub use constraint::{Constraints, SpreadConstraint};
pub use filter::{SpreadFilterState, SpreadReason, SpreadRejections};

use constraint::Defaults;
pub use score::ScoreState;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(2),
    args: Some(ArgsType::of::<PodTopologySpreadArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "spreads matching pods over zones, nodes or other domains",
    long_doc: "Constraints with DoNotSchedule reject nodes where the skew would exceed maxSkew; \
               those with ScheduleAnyway score. Pods without constraints get the default \
               constraints of the plugin's arguments.",
    example: "With maxSkew 1 over zones, and 2, 2 and 1 matching pods in three zones, the next \
             pod can only go to the third.",
    ..PluginDescriptor::new(
        "PodTopologySpread",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PreScore,
            ExtensionPoint::Score,
        ],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let name = Symbol::new("PodTopologySpread");
    let defaults = Defaults::new(&args.of(), features);
    Ok(Arc::new(PodTopologySpread { name, defaults, rejections: SpreadRejections::new(name) }))
}

struct PodTopologySpread {
    name: Symbol,
    defaults: Defaults,
    rejections: SpreadRejections,
}

fn filter_state_missing() -> Status {
    Status::error("reading \"PreFilterPodTopologySpread\" from cycleState: not found")
}

fn score_state_missing() -> Status {
    Status::error("error reading \"PreScorePodTopologySpread\" from cycleState: not found")
}

impl PodTopologySpread {
    fn count(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        (pod, node): (&PodInfo, &NodeInfo),
        sign: i64,
    ) -> Status {
        let Some(state) = state.read_mut::<SpreadFilterState>() else {
            return filter_state_missing();
        };
        state.count_pod(cx.pod, pod, node, sign);
        Status::SUCCESS
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let labels = Action::UPDATE_POD_LABEL | Action::UPDATE_POD_TOLERATION;
        let node = Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT;
        let both = Action::ADD | Action::DELETE;
        let [of_pods, of_nodes] = [self.defaults.clone(), self.defaults.clone()];
        Some(vec![
            Registration::hinted(EventResource::Pod, both | labels, move |cx, pod, objects| {
                hints::after_pod_change(cx, &pod.pod, objects, &of_pods)
            }),
            Registration::hinted(EventResource::Node, both | node, move |cx, pod, objects| {
                hints::after_node_change(cx, &pod.pod, objects, &of_nodes)
            }),
        ])
    }

    /// Tolerations are events since 1.32, with queueing hints only.
    fn older_registration(&self) -> OlderRegistration {
        |_, mut registration| {
            if registration.event.resource == EventResource::Pod {
                let action = registration.event.action;
                registration.event.action = action.without(Action::UPDATE_POD_TOLERATION);
            }
            Some(registration)
        }
    }

    fn counts_pods_of_namespace(&self) -> bool {
        true
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        match Constraints::hard(&cx.pod.pod, cx.objects, &self.defaults) {
            Err(text) => Status::error(format!("get constraints from pod: {text}")).into(),
            Ok(constraints) if constraints.is_empty() => Status::skip().into(),
            Ok(constraints) => {
                state.write(SpreadFilterState::new(cx, constraints));
                PreFilterAnswer::default()
            }
        }
    }

    fn add_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.count(cx, state, (added, node), 1)
    }

    fn remove_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        self.count(cx, state, (removed, node), -1)
    }

    fn filter(&self, _cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        match state.read::<SpreadFilterState>() {
            Some(state) => state.filter(node.id, &self.rejections),
            None => filter_state_missing(),
        }
    }

    fn filters(&self, cx: &CycleContext<'_>, state: &CycleState) -> Option<DistinctStatuses> {
        Some(state.read::<SpreadFilterState>()?.filter_all(cx.snapshot.slots(), &self.rejections))
    }

    fn pre_score(&self, cx: &CycleContext<'_>, state: &mut CycleState, nodes: &NodeList) -> Status {
        match Constraints::soft(&cx.pod.pod, cx.objects, &self.defaults) {
            Err(text) => Status::error(format!("calculating preScoreState: {text}")),
            Ok(constraints) if constraints.is_empty() || cx.snapshot.is_empty() => Status::skip(),
            Ok(constraints) => {
                state.write(ScoreState::new(cx, &constraints, nodes));
                Status::SUCCESS
            }
        }
    }

    fn score(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let state = state.read::<ScoreState>().ok_or_else(score_state_missing)?;
        Ok(state.score(node))
    }

    fn scores(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        Some(state.read::<ScoreState>()?.scores(nodes))
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        let Some(state) = state.read::<ScoreState>() else { return score_state_missing() };
        state.normalize(nodes, scores);
        Status::SUCCESS
    }

    /// As upstream, pods with own or default constraints are not signable.
    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        if !pod.pod.spec.topology_spread_constraints.is_empty() {
            return Err("pods with topology constraints are not signable".into());
        }
        if !self.defaults.is_empty() {
            return Err("pods with default topology constraints are not signable".into());
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
