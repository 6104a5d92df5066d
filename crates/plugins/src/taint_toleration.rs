//! TaintToleration: rejects nodes with taints that a pod does not tolerate, and prefers nodes
//! with few untolerated PreferNoSchedule taints.
//!
//! Upstream: `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go`.

use std::sync::Arc;

use super::normalize::relative_to_highest;
use super::signers;
use crate::keys;
use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::find_untolerated_taint;
use kubestep_api::{Node, Taint, TaintEffect, Toleration};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, QueueContext, ScoreBasis};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(3),
    default_profile: DefaultProfile::Present,
    doc: "taints that the pod does not tolerate",
    long_doc: "Nodes with a NoSchedule or NoExecute taint that the pod does not tolerate are \
               rejected. Untolerated PreferNoSchedule taints lower the score.",
    example: "A node with the taint gpu=yes:NoSchedule accepts only pods with a toleration of the \
              key gpu (operator Exists, or value yes).",
    ..PluginDescriptor::new(
        "TaintToleration",
        &[ExtensionPoint::Filter, ExtensionPoint::PreScore, ExtensionPoint::Score],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    let name = Symbol::new("TaintToleration");
    Ok(Arc::new(TaintToleration {
        name,
        comparisons: features.enabled(Feature::TaintTolerationComparisonOperators),
        untolerated: features
            .has(Switch::TaintMessageFixed)
            .then(|| rejection(&Taint::default(), features).by(name)),
    }))
}

struct TaintToleration {
    name: Symbol,
    /// Whether tolerations may use `Lt` and `Gt`.
    comparisons: bool,
    /// The status of every rejected node; `None` where the reason names the taint.
    untolerated: Option<Status>,
}

/// The tolerations used for scoring: those for PreferNoSchedule or for all effects.
#[derive(Clone)]
struct ScoreTolerations(Vec<Toleration>);

/// Whether the taint's effect keeps pods from being scheduled: NoSchedule or NoExecute.
fn forbids(taint: &Taint) -> bool {
    matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
}

/// The taints that keep a pod off a node: Filter stops at the first, an explanation names all.
pub fn blocking_taints<'n>(
    node: &'n Node,
    pod: &PodInfo,
    features: &FeatureGates,
) -> impl Iterator<Item = &'n Taint> {
    blocking(node, pod, features.enabled(Feature::TaintTolerationComparisonOperators))
}

fn blocking<'n>(
    node: &'n Node,
    pod: &PodInfo,
    comparisons: bool,
) -> impl Iterator<Item = &'n Taint> {
    node.spec.taints.iter().filter(move |taint| {
        let taint = std::slice::from_ref(*taint);
        find_untolerated_taint(taint, &pod.pod.spec.tolerations, comparisons, forbids).is_some()
    })
}

/// The status of a node with such a taint.
pub fn rejection(taint: &Taint, features: &FeatureGates) -> Status {
    if features.has(Switch::TaintMessageFixed) {
        return Status::unresolvable("node(s) had untolerated taint(s)");
    }
    let Taint { key, value, .. } = taint;
    Status::unresolvable(&format!("node(s) had untolerated taint {{{key}: {value}}}"))
}

/// The PreferNoSchedule taints of a node that a pod does not tolerate.
pub fn avoided_taints<'n>(
    node: &'n Node,
    pod: &PodInfo,
    features: &FeatureGates,
) -> impl Iterator<Item = &'n Taint> {
    let comparisons = features.enabled(Feature::TaintTolerationComparisonOperators);
    avoided(node, &pod.pod.spec.tolerations, comparisons)
}

fn avoided<'n>(
    node: &'n Node,
    tolerations: &[Toleration],
    comparisons: bool,
) -> impl Iterator<Item = &'n Taint> {
    let soft = |taint: &Taint| taint.effect == TaintEffect::PreferNoSchedule;
    node.spec.taints.iter().filter(move |taint| {
        let taint = std::slice::from_ref(*taint);
        find_untolerated_taint(taint, tolerations, comparisons, soft).is_some()
    })
}

impl TaintToleration {
    /// The first taint that excludes the node for the pod.
    fn blocking_taint<'n>(&self, node: &'n Node, pod: &PodInfo) -> Option<&'n Taint> {
        blocking(node, pod, self.comparisons).next()
    }
}

impl Plugin for TaintToleration {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        keys::tolerations(pod)
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::HighestScore
    }

    fn score_key(&self, pod: &PodInfo) -> Option<String> {
        keys::tolerations(pod)
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let nodes = Action::ADD | Action::UPDATE_NODE_TAINT;
        let comparisons = self.comparisons;
        Some(vec![
            Registration::hinted(EventResource::Node, nodes, move |_, pod, objects| {
                after_node_change(pod, objects, comparisons)
            }),
            Registration::hinted(
                EventResource::Pod,
                Action::UPDATE_POD_TOLERATION,
                |_, pod, objects| {
                    Ok(QueueingHint::queue_if(objects.updated_pod(pod.uid())?.is_some()))
                },
            ),
        ])
    }

    /// Without queueing hints, tolerations are no events.
    fn older_registration(&self) -> OlderRegistration {
        |rules, newest| {
            let counts = rules.hints || newest.event.resource != EventResource::Pod;
            older_events::all_node_updates(rules, newest).filter(|_| counts)
        }
    }

    fn admits(&self, _cx: &QueueContext<'_>, pod: &PodInfo, node: &NodeInfo) -> bool {
        let forbids = |taint: &Taint| taint.effect == TaintEffect::NoSchedule;
        let taints = node.node.as_ref().map_or(&[][..], |node| &node.spec.taints);
        let tolerations = &pod.pod.spec.tolerations;
        find_untolerated_taint(taints, tolerations, self.comparisons, forbids).is_none()
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        let Some(node) = &node.node else { return Status::SUCCESS };
        match self.blocking_taint(node, cx.pod) {
            Some(taint) => match &self.untolerated {
                Some(fixed) => fixed.clone(),
                None => rejection(taint, cx.features).by(self.name),
            },
            None => Status::SUCCESS,
        }
    }

    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        let counts = |toleration: &&Toleration| {
            toleration.effect.is_unset() || toleration.effect == TaintEffect::PreferNoSchedule
        };
        let tolerations = cx.pod.pod.spec.tolerations.iter().filter(counts).cloned().collect();
        state.write(ScoreTolerations(tolerations));
        Status::SUCCESS
    }

    /// The number of PreferNoSchedule taints that the pod does not tolerate.
    fn score(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let Some(ScoreTolerations(tolerations)) = state.read() else {
            // Unlike in NodeAffinity, a missing PreScore state is an error upstream.
            let text = r#"failed to read "PreScoreTaintToleration" from cycleState: not found"#;
            return Err(Status::error(text));
        };
        let count = |node: &Arc<Node>| avoided(node, tolerations, self.comparisons).count() as i64;
        Ok(node.node.as_ref().map_or(0, count))
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

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        signers::tolerations(&pod.pod)
    }
}

/// A node helps if its taints excluded the pod, or it is new, and they no longer do.
fn after_node_change(pod: &PodInfo, objects: &EventObjects, comparisons: bool) -> HintResult {
    let (old, new) = objects.nodes()?;
    let blocked = |node: &Node| blocking(node, pod, comparisons).next().is_some();
    Ok(QueueingHint::queue_if(old.is_none_or(blocked) && new.is_some_and(|node| !blocked(node))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::{Object, Pod};
    use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

    #[test]
    fn scoring_needs_what_pre_score_leaves() {
        let cluster = cluster(&[&[]]);
        let pod = info_of(json!({"metadata": {"name": "p"}}));
        let plugin = plugin(build, &ProfileArgs::default());
        let node = cluster.snapshot.by_name("n0".into()).unwrap();
        let missing = plugin.score(&cluster.cx(&pod), &CycleState::default(), node);
        let text = "failed to read \"PreScoreTaintToleration\" from cycleState: not found";
        assert_eq!(missing, Err(Status::error(text)));
    }

    /// Taints as kubectl writes them: `key=value:Effect`.
    fn node(at: usize, taints: &[&str]) -> Value {
        let taint = |text: &&str| {
            let (key, rest) = text.split_once('=').unwrap();
            let (value, effect) = rest.split_once(':').unwrap();
            json!({"key": key, "value": value, "effect": effect})
        };
        let taints: Vec<Value> = taints.iter().map(taint).collect();
        json!({"metadata": {"name": format!("n{at}")}, "spec": {"taints": taints}})
    }

    fn cluster(nodes: &[&[&str]]) -> Cluster {
        let nodes = nodes.iter().enumerate().map(|(at, taints)| node(at, taints));
        Cluster::of(nodes.collect(), vec![])
    }

    /// Tolerations written as `key operator value effect`; `-` stands for an unset field.
    fn tolerating(tolerations: &[&str]) -> Arc<PodInfo> {
        let toleration = |text: &&str| {
            let parts: Vec<&str> =
                text.split(' ').map(|part| if part == "-" { "" } else { part }).collect();
            json!({"key": parts[0], "operator": parts[1], "value": parts[2], "effect": parts[3]})
        };
        let tolerations: Vec<Value> = tolerations.iter().map(toleration).collect();
        info_of(json!({"metadata": {"uid": "1"}, "spec": {"tolerations": tolerations}}))
    }

    fn taints() -> Arc<dyn Plugin> {
        plugin(build, &ProfileArgs::default())
    }

    fn comparing() -> Arc<dyn Plugin> {
        let gate = Feature::TaintTolerationComparisonOperators;
        build(&ProfileArgs::default(), &FeatureGates::default().with(gate, true)).unwrap()
    }

    #[test]
    fn untolerated_taints_that_forbid_scheduling_refuse_the_node() {
        for (taints_on_node, tolerations, fits) in [
            (&["dedicated=user1:NoSchedule"][..], &[][..], false),
            (&["dedicated=user1:NoSchedule"], &["dedicated - user1 NoSchedule"], true),
            (&["dedicated=user2:NoSchedule"], &["dedicated Equal user1 NoSchedule"], false),
            (&["foo=bar:NoSchedule"], &["foo Exists - NoSchedule"], true),
            (
                &["dedicated=user2:NoSchedule", "foo=bar:NoSchedule"],
                &["dedicated Equal user2 NoSchedule", "foo Exists - NoSchedule"],
                true,
            ),
            (&["foo=bar:NoSchedule"], &["foo Equal bar PreferNoSchedule"], false),
            (&["foo=bar:NoSchedule"], &["foo Equal bar -"], true),
            (&["foo=bar:PreferNoSchedule"], &[], true),
            (&["foo=bar:NoExecute"], &[], false),
            (&["foo=bar:NoExecute"], &["foo Equal bar NoSchedule"], false),
            (&["foo=bar:NoSchedule", "foo=bar:NoExecute"], &["- Exists - -"], true),
            (&["foo=bar:NoSchedule"], &["foo In bar -"], false),
            (&["foo=5:NoSchedule"], &["foo Gt 4 -"], false),
            (&[], &[], true),
        ] {
            let statuses = cluster(&[taints_on_node]).filter(&taints(), &tolerating(tolerations));
            let reason = "node(s) had untolerated taint(s)";
            let expected = if fits { Status::SUCCESS } else { Status::unresolvable(reason) };
            let expected = expected.by("TaintToleration".into());
            assert_eq!(statuses.unwrap(), [expected], "{taints_on_node:?} {tolerations:?}");
        }
    }

    #[test]
    fn numbers_are_compared_behind_their_gate() {
        let cluster = cluster(&[
            &["sla=950:NoSchedule"],
            &["sla=-5:NoSchedule"],
            &["sla=0950:NoSchedule"],
            &["sla=high:NoSchedule"],
        ]);
        let passes = |toleration: &str| {
            let statuses = cluster.filter(&comparing(), &tolerating(&[toleration])).unwrap();
            statuses.iter().map(Status::is_success).collect::<Vec<_>>()
        };
        assert_eq!(passes("sla Gt 750 NoSchedule"), [true, false, false, false]);
        assert_eq!(passes("sla Gt 950 NoSchedule"), [false, false, false, false]);
        assert_eq!(passes("sla Lt 950 NoSchedule"), [false, true, false, false]);
        assert_eq!(passes("sla Lt 951 NoExecute"), [false, false, false, false]);
        assert_eq!(passes("sla Lt 9x NoSchedule"), [false, false, false, false]);
    }

    #[test]
    fn untolerated_preferences_are_named() {
        let cluster =
            cluster(&[&["a=1:PreferNoSchedule", "b=2:PreferNoSchedule", "c=3:NoSchedule"]]);
        let (pod, gates) = (tolerating(&["a Exists - -"]), FeatureGates::default());
        let node = cluster.snapshot.iter().next().unwrap().node.as_ref().unwrap();
        let named: Vec<_> = avoided_taints(node, &pod, &gates).map(|taint| taint.key).collect();
        assert_eq!(named, ["b"]);
    }

    #[test]
    fn untolerated_preferences_lower_the_score() {
        let (cpu, disk) = ("cpu-type=arm64:PreferNoSchedule", "disk-type=ssd:PreferNoSchedule");
        let hard = "cpu-type=arm64:NoSchedule";
        for (nodes, tolerations, expected) in [
            (
                &[&["foo=bar:PreferNoSchedule"][..], &["foo=blah:PreferNoSchedule"]][..],
                &["foo Equal bar PreferNoSchedule"][..],
                &[100, 0][..],
            ),
            (
                &[&[], &[cpu], &[cpu, disk]],
                &["cpu-type Equal arm64 PreferNoSchedule", "disk-type Equal ssd PreferNoSchedule"],
                &[100, 100, 100],
            ),
            (&[&[], &[cpu], &[cpu, disk]], &["foo Equal bar PreferNoSchedule"], &[100, 50, 0]),
            (
                &[&[], &[hard], &[cpu, disk]],
                &["cpu-type Equal arm64 NoSchedule", "disk-type Equal ssd NoSchedule"],
                &[100, 100, 0],
            ),
            (&[&[], &[cpu]], &[], &[100, 0]),
            (&[&[disk], &[cpu, disk]], &["cpu-type Exists - -"], &[0, 0]),
        ] {
            let scores = cluster(nodes).scores(&taints(), &tolerating(tolerations)).unwrap();
            assert_eq!(scores, expected, "{nodes:?} {tolerations:?}");
        }
        let cluster = cluster(&[&["sla=800:PreferNoSchedule"], &["sla=999:PreferNoSchedule"]]);
        let pod = tolerating(&["sla Gt 950 PreferNoSchedule"]);
        assert_eq!(cluster.scores(&comparing(), &pod).unwrap(), [0, 100]);
        assert_eq!(cluster.scores(&taints(), &pod).unwrap(), [0, 0]);
    }

    #[test]
    fn a_node_counts_when_its_taints_become_tolerated() {
        let hint = |old: Option<&[&str]>, new: &[&str]| {
            let node = |taints: &[&str]| Object::from(decoded::<Node>(node(0, taints)));
            let pod = tolerating(&["foo Equal bar NoSchedule"]);
            Cluster::default().hint(&taints(), &pod, old.map(node), Some(node(new)))
        };
        let (mine, other) = ("foo=bar:NoSchedule", "other=1:NoExecute");
        assert_eq!(hint(None, &[mine]), QueueingHint::Queue);
        assert_eq!(hint(None, &[other]), QueueingHint::Skip);
        assert_eq!(hint(Some(&[other, mine]), &[mine]), QueueingHint::Queue);
        assert_eq!(hint(Some(&[other]), &["x=1:NoSchedule"]), QueueingHint::Skip);
        assert_eq!(hint(Some(&[mine]), &[]), QueueingHint::Skip);
        assert_eq!(hint(Some(&[]), &[other]), QueueingHint::Skip);
        assert_eq!(hint(Some(&["x=1:PreferNoSchedule"]), &[]), QueueingHint::Skip);
    }

    #[test]
    fn a_pod_counts_if_it_is_the_one_that_waits() {
        let hint = |uid: &str| {
            let changed = Object::from(decoded::<Pod>(json!({"metadata": {"uid": uid}})));
            Cluster::default().hint(&taints(), &tolerating(&[]), None, Some(changed))
        };
        assert_eq!((hint("1"), hint("2")), (QueueingHint::Queue, QueueingHint::Skip));
    }
}
