//! PodState: prefers nodes with many terminating pods and few nominated ones.
//!
//! Upstream: `pkg/podstate/pod_state.go` of kubernetes-sigs/scheduler-plugins.

use std::sync::Arc;

use crate::scores::between_lowest_and_highest;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::{ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    doc: "prefers nodes with terminating pods and without nominated ones",
    long_doc: "A node's score is the number of its terminating pods minus the number of pods \
               nominated to it, scaled so that the lowest becomes 0 and the highest 100.",
    example: "On n1 three pods are terminating, on n2 none, and a pod is nominated to n3: n1 scores \
              100, n2 25 and n3 0.",
    ..PluginDescriptor::new("PodState", &[ExtensionPoint::Score])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(PodState))
}

struct PodState;

impl Plugin for PodState {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn score(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        let terminating = node.pods.iter().filter(|pod| pod.pod.is_terminating()).count();
        let nominated = cx.nominated.for_node(node.name).len();
        Ok(terminating as i64 - nominated as i64)
    }

    fn normalize(
        &self,
        _: &CycleContext<'_>,
        _: &CycleState,
        _: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        between_lowest_and_highest(scores);
        Status::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::api::Name;
    use kubestep_framework::api::Time;
    use kubestep_framework::testing::{Cluster, PodBuilder, info, node, pod};

    /// The scores of nodes with these numbers of terminating and nominated pods.
    fn scores(nodes: &[(usize, usize)]) -> Vec<i64> {
        let name = |at: usize| format!("n{at}");
        let on_node = |(at, (terminating, _)): (usize, &(usize, usize))| {
            let leaving = move |n| {
                let mut pod = pod(&format!("leaving-{at}-{n}")).on(&name(at));
                pod.metadata.deletion_timestamp = Some(Time(1));
                pod
            };
            let staying = move |n| pod(&format!("staying-{at}-{n}")).on(&name(at));
            (0..*terminating).map(leaving).chain((0..3).map(staying)).collect::<Vec<_>>()
        };
        let pods = nodes.iter().enumerate().flat_map(on_node);
        let mut cluster = Cluster::new((0..nodes.len()).map(|at| node(&name(at))), pods);
        for (at, (_, nominated)) in nodes.iter().enumerate() {
            for n in 0..*nominated {
                let pod = info(pod(&format!("nominated-{at}-{n}")));
                cluster.nominated.push(Name::new(&name(at)), pod);
            }
        }
        let plugin: Arc<dyn Plugin> = Arc::new(PodState);
        cluster.scores(&plugin, &info(pod("p"))).unwrap()
    }

    #[test]
    fn terminating_pods_count_for_a_node_and_nominated_ones_against_it() {
        for (nodes, expected) in [
            (vec![(6, 0), (3, 0), (0, 0)], vec![100, 50, 0]),
            (vec![(0, 2), (0, 1), (0, 0)], vec![0, 50, 100]),
            (vec![(5, 2), (3, 1)], vec![100, 0]),
            (vec![(5, 4), (3, 1)], vec![0, 100]),
            (vec![(5, 0), (3, 1), (2, 1), (0, 1)], vec![100, 50, 33, 0]),
            (vec![(1, 1), (2, 2)], vec![0, 0]),
        ] {
            assert_eq!(scores(&nodes), expected, "{nodes:?}");
        }
    }
}
