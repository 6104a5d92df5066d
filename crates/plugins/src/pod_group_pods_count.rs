//! PodGroupPodsCount: prefers placements that fit more pods of the group (alpha, behind
//! TopologyAwareWorkloadScheduling).
//!
//! Upstream: `pkg/scheduler/framework/plugins/podgrouppodscount`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange, PluginDescriptor,
    ProfileArgs,
};
use kubestep_framework::plugin::{GroupContext, Plugin};
use kubestep_framework::pod_groups::Proposal;
use kubestep_framework::record::scores::MAX_NODE_SCORE;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(1),
    registers_events: false,
    signs: false,
    default_profile: DefaultProfile::Gated(Feature::TopologyAwareWorkloadScheduling),
    history: &[PluginChange::Exists(Switch::PlacementPoints)],
    doc: "prefers placements that fit more pods of the group",
    long_doc: "Scores a placement by the share of the group's pods that fit.",
    example: "Of two racks, one fits 6 of 8 pods of the group and one fits all 8: the second \
              scores higher.",
    ..PluginDescriptor::new("PodGroupPodsCount", &[ExtensionPoint::PlacementScore])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(PodGroupPodsCount))
}

struct PodGroupPodsCount;

impl Plugin for PodGroupPodsCount {
    fn name(&self) -> Symbol {
        "PodGroupPodsCount".into()
    }

    /// Pods that already have a node count too, so one pod more or less makes a smaller difference
    /// for a group that is mostly placed.
    fn score_placement(
        &self,
        cx: &GroupContext<'_>,
        proposal: &Proposal<'_>,
    ) -> Result<i64, Status> {
        let state = cx.shared.pod_groups.get(cx.group).map_err(Status::error)?;
        let pods = state.scheduled() + proposal.assignments.len();
        Ok(i64::try_from(pods).unwrap_or(i64::MAX))
    }

    /// The highest count becomes 100, the others are proportional to it.
    fn normalize_placements(&self, _cx: &GroupContext<'_>, scores: &mut [i64]) -> Status {
        let max = scores.iter().copied().max().unwrap_or_default();
        if max == 0 {
            let text = "no pods from pod group are assigned to any of the candidate placements";
            return Status::error(text);
        }
        scores.iter_mut().for_each(|score| *score = *score * MAX_NODE_SCORE / max);
        Status::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::Pod;
    use kubestep_framework::pod_groups::Placement;
    use kubestep_framework::status::Code;
    use kubestep_framework::testing::{Cluster, PodBuilder, info, key, pod};

    fn member(name: &str) -> Pod {
        pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    fn cx(cluster: &Cluster) -> GroupContext<'_> {
        GroupContext {
            group: key("g"),
            snapshot: &cluster.snapshot,
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: cluster.now,
        }
    }

    /// The score for two more pods, with these pods already assumed or bound.
    fn score(assumed: &[&str], bound: &[&str]) -> i64 {
        let mut cluster = Cluster::default();
        let groups = &mut cluster.shared.pod_groups;
        for name in assumed {
            groups.add(key("g"), &member(name));
            groups.assume(&member(name).on("n"));
        }
        bound.iter().for_each(|name| groups.add(key("g"), &member(name).on("n")));
        let proposed = ["x", "y"];
        proposed.iter().for_each(|name| groups.add(key("g"), &member(name)));
        let assignments = proposed.map(|name| (info(member(name)), "n1".into())).to_vec();
        let proposal = Proposal { placement: &Placement::default(), assignments };
        PodGroupPodsCount.score_placement(&cx(&cluster), &proposal).unwrap()
    }

    #[test]
    fn pods_with_a_place_count_whether_assumed_bound_or_proposed() {
        assert_eq!(score(&["a"], &["b", "c"]), 5);
        assert_eq!(score(&[], &["b"]), 3);
        assert_eq!(score(&["a"], &[]), 3);
        assert_eq!(score(&[], &[]), 2);
    }

    #[test]
    fn a_group_without_pods_is_an_error() {
        let proposal = Proposal { placement: &Placement::default(), assignments: Vec::new() };
        let status = PodGroupPodsCount.score_placement(&cx(&Cluster::default()), &proposal);
        let text = "pod group state not found for pod group default/g";
        assert_eq!(status, Err(Status::error(text)));
    }

    #[test]
    fn the_highest_count_becomes_100() {
        let cluster = Cluster::default();
        let normalized = |scores: &[i64]| {
            let mut scores = scores.to_vec();
            let status = PodGroupPodsCount.normalize_placements(&cx(&cluster), &mut scores);
            assert_eq!(status, Status::SUCCESS);
            scores
        };
        assert_eq!(normalized(&[10, 50, 110]), [9, 45, 100]);
        assert_eq!(normalized(&[50, 50]), [100, 100]);
        assert_eq!(normalized(&[50]), [100]);
        assert_eq!(normalized(&[11, 100, 101, 102]), [10, 98, 99, 100]);
        let status = PodGroupPodsCount.normalize_placements(&cx(&cluster), &mut [0, 0]);
        let text = "no pods from pod group are assigned to any of the candidate placements";
        assert_eq!((status.code(), status.message()), (Code::Error, text.into()));
    }
}
