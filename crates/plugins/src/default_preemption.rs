//! DefaultPreemption: if no node fits, evicts less important pods to make one fit, and keeps the
//! pod out of the queue while the preemption is in progress.
//!
//! [`kubestep_framework::preemption`] finds, selects and evicts the candidates. Upstream:
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`.

use std::sync::Arc;

use kubestep_api::PodGroup;
use kubestep_api::intern::Symbol;
use kubestep_config::validation::Findings;
use kubestep_config::versions::Switch;
use kubestep_config::{
    ArgsType, Arguments, DefaultProfile, ExtensionPoint, Feature, FeatureGates, FieldPath,
    PluginChange, PluginDescriptor, PointSet, ProfileArgs, arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventObjects, EventResource, QueueingHint, Registration};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{Plugin, PostFilterAnswer, PostFilterContext, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::preemption::EnoughCandidates;
use kubestep_framework::preemption::PreemptionRules;
use kubestep_framework::preemption::evaluator;
use kubestep_framework::preemption::executor::is_preempting;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

const NAME: &str = "DefaultPreemption";

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    args: Some(ArgsType::of::<DefaultPreemptionArgs>()),
    default_profile: DefaultProfile::Present,
    history: &[PluginChange::Implements(
        Switch::PreemptionGates,
        PointSet::of(&[ExtensionPoint::PreEnqueue]),
    )],
    doc: "preempts pods of lower priority",
    long_doc: "If no node is feasible, finds the node with the fewest and least important victims, \
               respecting disruption budgets where possible, and nominates it. While the victims \
               are being deleted, the pod stays out of the queue.",
    example: "A pod of priority 1000 fits on no node; it would fit on n1 without a pod of priority \
              0: that pod is deleted, and n1 becomes the nominated node.",
    ..PluginDescriptor::new(
        "DefaultPreemption",
        &[ExtensionPoint::PreEnqueue, ExtensionPoint::PostFilter],
    )
};

arguments! {
    /// How many candidates preemption looks at: the larger of the two numbers.
    #[derive(Copy, Eq)]
    pub struct DefaultPreemptionArgs for "DefaultPreemption" {
        min_candidate_nodes_percentage: i32 = 10,
            put "minCandidateNodesPercentage", "0 to 100",
            "Minimum share of the nodes that are searched for victims, in percent.";
        min_candidate_nodes_absolute: i32 = 100,
            put "minCandidateNodesAbsolute", "a number",
            "Minimum number of nodes that are searched for victims; the larger of both minimums applies.";
    }
}

impl DefaultPreemptionArgs {
    fn enough(&self) -> EnoughCandidates {
        let percentage = self.min_candidate_nodes_percentage;
        EnoughCandidates { percentage, absolute: self.min_candidate_nodes_absolute }
    }
}

impl Arguments for DefaultPreemptionArgs {
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        self.enough().validate(found, path);
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let asynchronous = features.enabled(Feature::SchedulerAsyncPreemption);
    let registers = asynchronous && features.has(Switch::PreemptionRegistersPodDelete);
    Ok(Arc::new(DefaultPreemption { args: args.of(), asynchronous, registers }))
}

struct DefaultPreemption {
    args: DefaultPreemptionArgs,
    /// Whether victims are evicted asynchronously, in the background of the scheduling cycle.
    asynchronous: bool,
    /// Whether it registers deletions of pods.
    registers: bool,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> Symbol {
        NAME.into()
    }

    /// Pod deletions must reconsider gated preemptors. The hint itself always skips: only the
    /// plugins that rejected the pod can say whether the deletion helps.
    fn events(&self) -> Option<Vec<Registration>> {
        let skip = |_: &QueueContext<'_>, _: &PodInfo, _: &EventObjects| Ok(QueueingHint::Skip);
        let deleted = Registration::hinted(EventResource::Pod, Action::DELETE, skip);
        Some(if self.registers { vec![deleted] } else { Vec::new() })
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }

    /// A preemptor stays out of the queue while its preemption is in progress.
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        if !self.asynchronous {
            return Status::SUCCESS;
        }
        let (uid, what) = match &pod.pod.spec.scheduling_group {
            Some(_) if cx.features.enabled(Feature::WorkloadAwarePreemption) => {
                match pod_group(cx.objects, pod) {
                    Some(group) => (group.metadata.uid, "pod group"),
                    None => return Status::SUCCESS,
                }
            }
            _ => (pod.uid(), "pod"),
        };
        if !is_preempting(cx.shared, cx.objects, uid) {
            return Status::SUCCESS;
        }
        Status::unresolvable(&format!("waiting for the preemption for this {what} to be finished"))
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        let prefix = self.message_prefix();
        if let Some(reason) = group_rejection(cx) {
            return Status::unschedulable(&format!("{prefix}{reason}")).into();
        }
        let answer = evaluator::preempt(self, cx, state);
        let message = answer.status.message();
        if message.is_empty() {
            return answer;
        }
        let status = Status::new(answer.status.code(), &format!("{prefix}{message}"));
        PostFilterAnswer { status, ..answer }
    }
}

impl PreemptionRules for DefaultPreemption {
    fn plugin(&self) -> Symbol {
        NAME.into()
    }

    fn candidates(&self, nodes: usize) -> usize {
        self.args.enough().of(nodes)
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    fn preempts_for_groups(&self) -> bool {
        true
    }

    fn goes_by_priority(&self) -> bool {
        true
    }

    fn message_prefix(&self) -> &'static str {
        "preemption: "
    }
}

/// Why a pod of a group may not preempt on its own.
fn group_rejection(cx: &PostFilterContext<'_>) -> Option<&'static str> {
    let cycle = &cx.cycle;
    cycle.pod.pod.spec.scheduling_group.as_ref()?;
    if cycle.features.enabled(Feature::TopologyAwareWorkloadScheduling) {
        match pod_group(cycle.objects, cycle.pod) {
            None => return Some("pod group for pod not found"),
            Some(group) if group.spec.scheduling_constraints.is_some() => {
                return Some("not eligible due to placement-based pod group scheduling limitation");
            }
            Some(_) => {}
        }
    }
    let as_group = cycle.features.enabled(Feature::WorkloadAwarePreemption);
    as_group.then_some("not eligible due to workload aware preemption enabled")
}

/// The pod group that the pod's spec names.
fn pod_group<'a>(objects: &'a Objects, pod: &PodInfo) -> Option<&'a Arc<PodGroup>> {
    let name = pod.pod.spec.scheduling_group.as_ref()?.pod_group_name?;
    objects.pod_groups.get(&NamespacedName::new(pod.pod.metadata.namespace, name))
}

#[cfg(test)]
mod tests {
    use kubestep_api::Name;
    use serde_json::json;

    use super::*;
    use crate::testing::framework;
    use kubestep_api::Pod;
    use kubestep_framework::node::NodeId;
    use kubestep_framework::record::Candidate;
    use kubestep_framework::runtime::{Framework, PostFilterOutcome};
    use kubestep_framework::shared::Preempting;
    use kubestep_framework::status::Code;
    use kubestep_framework::status::node_statuses::NodeStatuses;
    use kubestep_framework::testing::{
        Cluster, FakeHost, PodBuilder, info, key, node, object, pod,
    };

    fn preemptor() -> Pod {
        pod("p").priority(9).requests("cpu", "2")
    }

    /// A cluster of full nodes, one victim with each of these priorities, and the preemptor.
    fn full(priorities: &[i32]) -> Cluster {
        let names = || (1..=priorities.len()).map(|n| format!("n{n}"));
        let victims = names().zip(priorities).map(|(node, priority)| {
            pod(&format!("on-{node}")).priority(*priority).requests("cpu", "4").on(&node)
        });
        Cluster::new(names().map(|name| node(&name)), victims.chain([preemptor()]))
    }

    /// PostFilter for `pod`, with these statuses of the nodes in order.
    fn post_filter(cluster: &Cluster, pod: Pod, statuses: &[Status]) -> PostFilterOutcome {
        let framework = framework(&["NodeResourcesFit", NAME]);
        run(&framework, cluster, pod, statuses)
    }

    fn run(
        framework: &Framework,
        cluster: &Cluster,
        pod: Pod,
        statuses: &[Status],
    ) -> PostFilterOutcome {
        let pod = info(pod);
        let (cx, mut state) = (cluster.cx(&pod), CycleState::default());
        framework.run_pre_filter(&cx, &mut state);
        let mut nodes = NodeStatuses::default();
        for (slot, status) in statuses.iter().enumerate() {
            nodes.set(NodeId(slot as u32), status.clone());
        }
        framework.run_post_filter(cx, &state, &nodes, &mut FakeHost::default(), None)
    }

    fn short() -> Status {
        Status::unschedulable("Insufficient cpu")
    }

    #[test]
    fn the_best_candidate_is_nominated() {
        let outcome = post_filter(&full(&[5, 3, 4]), preemptor(), &[short(), short(), short()]);
        assert_eq!(outcome.status, Status::SUCCESS);
        assert_eq!(outcome.answer.nominate, Some("n2".into()));
        let candidate = |node: &str| Candidate {
            node: node.into(),
            victims: vec![key(&format!("on-{node}"))],
            pdb_violations: 0,
            reasons: Vec::new(),
        };
        assert_eq!(outcome.answer.candidates, ["n1", "n2", "n3"].map(candidate));
        let preemption = outcome.answer.preemption.unwrap();
        assert_eq!((preemption.plugin, preemption.node), (NAME.into(), "n2".into()));
        assert_eq!(preemption.candidate, candidate("n2"));
        assert_eq!(preemption.victims[0].key(), key("on-n2"));
        assert_eq!(outcome.answers[0].nominated, Some("n2".into()));
    }

    #[test]
    fn where_nothing_helps_the_nomination_is_cleared() {
        let hopeless = Status::unresolvable("node(s) were unschedulable");
        let statuses = [short(), hopeless.clone(), hopeless];
        let outcome = post_filter(&full(&[9, 1, 1]), preemptor(), &statuses);
        assert_eq!(outcome.status.code(), Code::Unschedulable);
        assert_eq!(
            outcome.status.message(),
            "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming \
             pod, 2 Preemption is not helpful for scheduling."
        );
        assert_eq!(outcome.answer.nominate, Some(Name::EMPTY));
        assert!(outcome.answer.candidates.is_empty() && outcome.answer.preemption.is_none());
    }

    #[test]
    fn what_refuses_leaves_the_nomination() {
        let rejected = |cluster: &Cluster, pod: Pod| {
            let outcome = post_filter(cluster, pod, &[short()]);
            assert_eq!(outcome.answer.nominate, None);
            (outcome.status.code(), outcome.status.message())
        };
        let never = preemptor().spec(json!({"preemptionPolicy": "Never"}));
        let mut cluster = full(&[1]);
        cluster.objects.insert(never.clone().into());
        let text = "preemption: not eligible due to preemptionPolicy=Never.";
        assert_eq!(rejected(&cluster, never), (Code::Unschedulable, text.into()));
        let text = "preemption: pod \"gone\" not found";
        assert_eq!(rejected(&full(&[1]), pod("gone")), (Code::Error, text.into()));
        let empty = Cluster::new([], [preemptor()]);
        let text = "preemption: no nodes available";
        assert_eq!(rejected(&empty, preemptor()), (Code::Error, text.into()));
    }

    #[test]
    fn errors_count_only_without_a_candidate() {
        let nobody_to_evict = || {
            let victims = [pod("a").on("n1"), pod("b").on("n2"), preemptor()];
            Cluster::new([node("n1"), node("n2")], victims)
        };
        let outcome = post_filter(&nobody_to_evict(), preemptor(), &[short(), short()]);
        assert_eq!(outcome.status.code(), Code::Error);
        assert_eq!(
            outcome.status.message(),
            "preemption: [expected at least one victim pod on node \"n1\", expected at least one \
             victim pod on node \"n2\"]"
        );
        let pods = [pod("a").on("n1"), pod("b").requests("cpu", "4").on("n2"), preemptor()];
        let cluster = Cluster::new([node("n1"), node("n2")], pods);
        let outcome = post_filter(&cluster, preemptor(), &[short(), short()]);
        assert_eq!(outcome.answer.nominate, Some("n2".into()));
    }

    fn grouped() -> Pod {
        preemptor().spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    fn group(spec: serde_json::Value) -> kubestep_api::Object {
        let metadata = json!({"name": "g", "namespace": "default", "uid": "group-uid"});
        object(json!({"kind": "PodGroup", "metadata": metadata, "spec": spec}))
    }

    #[test]
    fn pods_of_groups_are_limited_by_gates() {
        let message = |gate, group: Option<kubestep_api::Object>| {
            let mut cluster = full(&[1]);
            cluster.features = cluster.features.with(gate, true);
            if let Some(group) = group {
                cluster.objects.insert(group);
            }
            post_filter(&cluster, grouped(), &[short()]).status.message()
        };
        let placement = Feature::TopologyAwareWorkloadScheduling;
        let constrained = json!({"schedulingConstraints": {"topology": [{"key": "zone"}]}});
        assert_eq!(message(placement, None), "preemption: pod group for pod not found");
        assert_eq!(
            message(placement, Some(group(constrained))),
            "preemption: not eligible due to placement-based pod group scheduling limitation"
        );
        assert_eq!(message(placement, Some(group(json!({})))), "");
        assert_eq!(
            message(Feature::WorkloadAwarePreemption, None),
            "preemption: not eligible due to workload aware preemption enabled"
        );
    }

    /// PreEnqueue's message for `pod` while the preemption by `uid` is in progress.
    fn gate(cluster: &mut Cluster, uid: &str, last_victim: Option<&str>, pod: &Pod) -> String {
        let last_victim = last_victim.map(key);
        cluster.shared.preempting.insert(uid.into(), Preempting { last_victim });
        let Cluster { objects, features, shared, now, .. } = cluster;
        let cx = QueueContext { objects, features, shared, now: *now };
        let plugin = build(&ProfileArgs::default(), features).unwrap();
        plugin.pre_enqueue(&cx, &info(pod.clone())).message()
    }

    #[test]
    fn a_preemptor_stays_out_of_the_queue_until_its_last_victim_goes() {
        let waiting = "waiting for the preemption for this pod to be finished";
        let mut cluster = full(&[1]);
        let uid = "default-p";
        assert_eq!(gate(&mut cluster, "other", None, &preemptor()), "");
        assert_eq!(gate(&mut cluster, uid, None, &preemptor()), waiting);
        assert_eq!(gate(&mut cluster, uid, Some("on-n1"), &preemptor()), waiting);
        assert_eq!(gate(&mut cluster, uid, Some("gone"), &preemptor()), "");
        let mut leaving = pod("on-n1").on("n1");
        leaving.metadata.deletion_timestamp = Some(kubestep_api::Time(1));
        cluster.objects.insert(leaving.into());
        assert_eq!(gate(&mut cluster, uid, Some("on-n1"), &preemptor()), "");
        cluster.features = cluster.features.with(Feature::SchedulerAsyncPreemption, false);
        assert_eq!(gate(&mut cluster, uid, None, &preemptor()), "");
    }

    #[test]
    fn with_workload_aware_preemption_the_group_is_held() {
        let mut cluster = full(&[1]);
        cluster.features = cluster.features.with(Feature::WorkloadAwarePreemption, true);
        assert_eq!(gate(&mut cluster, "group-uid", None, &grouped()), "");
        cluster.objects.insert(group(json!({})));
        assert_eq!(
            gate(&mut cluster, "group-uid", None, &grouped()),
            "waiting for the preemption for this pod group to be finished"
        );
    }

    #[test]
    fn how_many_are_enough() {
        let wanted = |percentage, absolute, nodes| {
            let args = DefaultPreemptionArgs {
                min_candidate_nodes_percentage: percentage,
                min_candidate_nodes_absolute: absolute,
            };
            args.enough().of(nodes)
        };
        assert_eq!(wanted(10, 100, 7), 7);
        assert_eq!(wanted(10, 100, 500), 100);
        assert_eq!(wanted(10, 100, 5000), 500);
        assert_eq!(wanted(0, 1, 5000), 1);
        assert_eq!(wanted(33, 0, 10), 3);
        assert_eq!(wanted(100, 0, i32::MAX as usize), 0, "wraps below zero as upstream");
    }

    #[test]
    fn deletions_are_heard_of_but_never_enough() {
        let gates = FeatureGates::default();
        let plugin = build(&ProfileArgs::default(), &gates).unwrap();
        let labels = |plugin: &Arc<dyn Plugin>| -> Vec<String> {
            let events = plugin.events().unwrap();
            events.iter().map(|registration| registration.event.label()).collect()
        };
        assert_eq!(labels(&plugin), ["PodDelete"]);
        let deleted = Some(pod("other").on("n1").into());
        assert_eq!(full(&[1]).hint(&plugin, &info(preemptor()), deleted, None), QueueingHint::Skip);
        let gates = gates.with(Feature::SchedulerAsyncPreemption, false);
        assert!(labels(&build(&ProfileArgs::default(), &gates).unwrap()).is_empty());
    }
}
