//! InterPodAffinity: places pods in the same topology domain as other pods, or in another one.
//!
//! `filter` has the required terms, `score` the preferred terms, `hints` the queueing hints.
//! Upstream: `pkg/scheduler/framework/plugins/interpodaffinity/`.

use std::sync::Arc;

use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_config::validation::Findings;
use kubestep_config::{
    ArgsType, Arguments, DefaultProfile, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor,
    ProfileArgs, arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{
    CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext, ScoreBasis,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::{DistinctStatuses, Status};

mod filter;
mod hints;
mod score;
mod terms;

use filter::AffinityRejections;
pub use filter::{AffinityFilterState, AffinityReason, rejection};
pub use score::DomainWeights;
pub use terms::selects;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(2),
    args: Some(ArgsType::of::<InterPodAffinityArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "pods that attract or repel other pods",
    long_doc: "Nodes are rejected by required affinity and anti-affinity, of the pod and of the \
               pods on the nodes. Preferred terms score, and so do the required affinity terms of \
               pods on the nodes, with hardPodAffinityWeight.",
    example: "Required anti-affinity to its own label over kubernetes.io/hostname: each replica \
              gets a node of its own, and with more replicas than nodes the rest stay pending.",
    ..PluginDescriptor::new(
        "InterPodAffinity",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PreScore,
            ExtensionPoint::Score,
        ],
    )
};

arguments! {
    /// `InterPodAffinityArgs`: the weight of hard affinity, and which preferences count.
    #[derive(Copy, Eq)]
    pub struct InterPodAffinityArgs for "InterPodAffinity" {
        hard_pod_affinity_weight: i32 = 1,
            put "hardPodAffinityWeight", "0 to 100",
            "Weight of the required affinity terms of pods on the nodes in the score.";
        ignore_preferred_terms_of_existing_pods: bool = false,
            put "ignorePreferredTermsOfExistingPods", "true or false",
            "Ignores preferred terms of pods on the nodes in the score, which is faster.";
    }
}

impl Arguments for InterPodAffinityArgs {
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        found.percent(&path.field("hardPodAffinityWeight"), self.hard_pod_affinity_weight);
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    let (name, args) = (Symbol::new(PLUGIN.name), args.of());
    Ok(Arc::new(InterPodAffinity { name, args, rejections: AffinityRejections::new(name) }))
}

struct InterPodAffinity {
    name: Symbol,
    args: InterPodAffinityArgs,
    rejections: AffinityRejections,
}

fn filter_state_missing() -> Status {
    Status::error("error reading \"PreFilterInterPodAffinity\" from cycleState: not found")
}

fn score_state_missing() -> Status {
    Status::error("failed to read \"PreScoreInterPodAffinity\" from cycleState: not found")
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let pod = Action::ADD | Action::UPDATE_POD_LABEL | Action::DELETE;
        let node = Action::ADD | Action::UPDATE_NODE_LABEL;
        Some(vec![
            Registration::hinted(EventResource::Pod, pod, hints::after_pod_change),
            Registration::hinted(EventResource::Node, node, hints::after_node_change),
        ])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::labels_and_taints
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        if let Some(text) = cx.pod.parse_error() {
            return Status::unresolvable(&format!("parsing pod: {text}")).into();
        }
        let counted = AffinityFilterState::new(cx);
        if counted.is_idle() {
            return Status::skip().into();
        }
        state.write(counted);
        PreFilterAnswer::default()
    }

    fn add_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        let Some(state) = state.read_mut::<AffinityFilterState>() else {
            return filter_state_missing();
        };
        state.count_pod(cx, added, node, 1);
        Status::SUCCESS
    }

    fn remove_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Status {
        let Some(state) = state.read_mut::<AffinityFilterState>() else {
            return filter_state_missing();
        };
        state.count_pod(cx, removed, node, -1);
        Status::SUCCESS
    }

    fn filter(&self, _cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        match state.read::<AffinityFilterState>() {
            Some(state) => state.filter(node.id, &self.rejections),
            None => filter_state_missing(),
        }
    }

    fn filters(&self, cx: &CycleContext<'_>, state: &CycleState) -> Option<DistinctStatuses> {
        Some(state.read::<AffinityFilterState>()?.filter_all(cx.snapshot.slots(), &self.rejections))
    }

    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        match score::prepare(cx, &self.args) {
            Ok(Some(weights)) => {
                state.write(weights);
                Status::SUCCESS
            }
            Ok(None) => Status::skip(),
            Err(status) => status,
        }
    }

    fn score(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let weights = state.read::<score::DomainWeights>().ok_or_else(score_state_missing)?;
        Ok(weights.score(node.id))
    }

    fn scores(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        Some(state.read::<score::DomainWeights>()?.scores(nodes))
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::AllScores
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        _nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        if state.read::<score::DomainWeights>().is_none() {
            return score_state_missing();
        }
        score::normalize(scores);
        Status::SUCCESS
    }

    /// Pods without affinity are signed by their labels, as terms of existing pods may match them.
    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        if pod.has_affinity() {
            return Err("pods with InterPodAffinity are not signable".into());
        }
        if self.args.ignore_preferred_terms_of_existing_pods {
            return Ok(Vec::new());
        }
        let labels = serde_json::to_string(&pod.pod.metadata.labels).unwrap_or_default();
        Ok(vec![("v1.Pod.Labels", labels)])
    }
}

#[cfg(test)]
mod tests;
