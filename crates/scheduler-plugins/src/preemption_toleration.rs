//! PreemptionToleration: DefaultPreemption, but the priority class of a victim can protect it, for
//! good or for some time after it was scheduled.
//!
//! Upstream: `pkg/preemptiontoleration` of kubernetes-sigs/scheduler-plugins.

use std::sync::Arc;

use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{ConditionStatus, Duration, PriorityClass, find_condition};
use kubestep_framework::config::validation::Findings;
use kubestep_framework::config::{
    ArgsType, Arguments, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, ProfileArgs,
    arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Plugin, PostFilterAnswer, PostFilterContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::preemption::EnoughCandidates;
use kubestep_framework::preemption::eligibility::{may_preempt, rejection_while_terminating};
use kubestep_framework::preemption::victims::{VictimSearch, Victims};
use kubestep_framework::preemption::{PreemptionRules, evaluator};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::NodeStatuses;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    args: Some(ArgsType::of::<PreemptionTolerationArgs>()),
    doc: "preempts pods of lower priority unless their priority class protects them",
    long_doc: "Replaces DefaultPreemption. A PriorityClass with the annotation \
               preemption-toleration.scheduling.x-k8s.io/toleration-seconds protects its pods \
               that long after they were scheduled (for good, if negative) from preemptors whose \
               priority is lower than the annotation \
               preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority, by default \
               the class's value plus 1.",
    example: "A class of value 10 has minimum-preemptable-priority 1000 and toleration-seconds 3600: \
              a pod of priority 500 does not preempt its pods in their first hour, one of priority \
              1000 does.",
    ..PluginDescriptor::new("PreemptionToleration", &[ExtensionPoint::PostFilter])
};

const MINIMUM_PRIORITY: &str =
    "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority";
const TOLERATION_SECONDS: &str = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds";

arguments! {
    /// How many candidates preemption looks at: the larger of the two numbers.
    #[derive(Copy, Eq)]
    pub struct PreemptionTolerationArgs for "PreemptionToleration" {
        min_candidate_nodes_percentage: i32 = 10,
            put "minCandidateNodesPercentage", "0 to 100",
            "Minimum share of the nodes that are searched for victims, in percent.";
        min_candidate_nodes_absolute: i32 = 100,
            put "minCandidateNodesAbsolute", "a number",
            "Minimum number of nodes that are searched for victims; the larger of both minimums applies.";
    }
}

impl PreemptionTolerationArgs {
    fn enough(&self) -> EnoughCandidates {
        let percentage = self.min_candidate_nodes_percentage;
        EnoughCandidates { percentage, absolute: self.min_candidate_nodes_absolute }
    }
}

impl Arguments for PreemptionTolerationArgs {
    const CHECKED_WHEN_BUILT: bool = true;

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        self.enough().validate(found, path);
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(PreemptionToleration(args.of())))
}

struct PreemptionToleration(PreemptionTolerationArgs);

impl Plugin for PreemptionToleration {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        evaluator::preempt(self, cx, state)
    }
}

impl PreemptionRules for PreemptionToleration {
    fn plugin(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn candidates(&self, nodes: usize) -> usize {
        self.0.enough().of(nodes)
    }

    /// Any terminating pod of lower priority counts, also one that nobody preempted.
    fn rejection(
        &self,
        cx: &CycleContext<'_>,
        _: &CycleState,
        statuses: &NodeStatuses,
    ) -> Option<&'static str> {
        let leaves = |pod: &PodInfo| pod.pod.is_terminating() && may_preempt(cx.pod, pod);
        rejection_while_terminating(cx, statuses, leaves)
    }

    fn select_victims(
        &self,
        search: &VictimSearch<'_>,
        node: &NodeInfo,
    ) -> Result<Victims, Status> {
        let mut potential = Vec::new();
        for pod in node.pods.iter().filter(|pod| may_preempt(search.cx.pod, pod)) {
            if !is_protected(&search.cx, pod)? {
                potential.push(pod.clone());
            }
        }
        if potential.is_empty() {
            let pod = search.cx.pod.key().name;
            let text = format!("No victims found on node {} for preemptor pod {pod}", node.name);
            return Err(Status::unresolvable(&text));
        }
        search.select_victims(node, potential)
    }
}

/// Whether the priority class of `victim` protects it from the cycle's pod.
///
/// # Errors
/// The class does not exist.
pub(crate) fn is_protected(cx: &CycleContext<'_>, victim: &PodInfo) -> Result<bool, Status> {
    let class = victim.pod.spec.priority_class_name;
    if class.is_empty() {
        return Ok(false);
    }
    let key = NamespacedName::new(Symbol::EMPTY, class.into());
    let Some(class) = cx.objects.priority_classes.get(&key) else {
        // Every API server has these two, but files seldom do.
        if class.starts_with("system-") {
            return Ok(false);
        }
        let text = format!("priorityclass.scheduling.k8s.io {:?} not found", class);
        return Err(Status::error(&text));
    };
    // Annotations that cannot be read protect nothing.
    Ok(PreemptionTolerance::of(class).is_some_and(|toleration| toleration.protects(cx, victim)))
}

/// What a priority class tolerates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PreemptionTolerance {
    /// The lowest priority that may always preempt its pods.
    minimum_priority: i32,
    /// How long it protects its pods after they were scheduled; negative: for good.
    seconds: i64,
}

impl PreemptionTolerance {
    fn of(class: &PriorityClass) -> Option<PreemptionTolerance> {
        let annotation = |key: &str| class.metadata.annotations.get_str(key);
        let minimum = annotation(MINIMUM_PRIORITY).map(|text| text.parse());
        let seconds = annotation(TOLERATION_SECONDS).map(|text| text.parse());
        Some(PreemptionTolerance {
            minimum_priority: minimum.unwrap_or(Ok(class.value.wrapping_add(1))).ok()?,
            seconds: seconds.unwrap_or(Ok(0)).ok()?,
        })
    }

    fn protects(self, cx: &CycleContext<'_>, victim: &PodInfo) -> bool {
        if cx.pod.priority() >= self.minimum_priority {
            return false;
        }
        let condition = find_condition(&victim.pod.status.conditions, "PodScheduled".into());
        let scheduled = condition.filter(|condition| condition.status == ConditionStatus::True);
        match scheduled.filter(|_| self.seconds >= 0) {
            Some(condition) => {
                let since = condition.last_transition_time.unwrap_or_default();
                since + Duration::from_secs(self.seconds) > cx.now
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_framework::api::{Condition, Pod, Time};
    use kubestep_framework::testing::{Cluster, PodBuilder, info, object, pod};

    const NOW: Time = Time(1_000_000_000);

    fn class(value: i32, annotations: Value) -> kubestep_framework::api::Object {
        let metadata = json!({"name": "class", "annotations": annotations});
        object(json!({"kind": "PriorityClass", "metadata": metadata, "value": value}))
    }

    /// A pod of the class that was scheduled this many seconds ago.
    fn victim(priority: i32, scheduled: i64) -> Pod {
        let mut pod = pod("v").priority(priority).spec(json!({"priorityClassName": "class"}));
        pod.status.conditions = vec![Condition {
            type_: "PodScheduled".into(),
            status: ConditionStatus::True,
            last_transition_time: Some(NOW - Duration::from_secs(scheduled)),
            ..Condition::default()
        }];
        pod
    }

    fn protected(class: Value, value: i32, scheduled: i64, preemptor: i32) -> bool {
        let mut cluster = Cluster::default().with(self::class(value, class));
        cluster.now = NOW;
        let preemptor = info(pod("p").priority(preemptor));
        is_protected(&cluster.cx(&preemptor), &info(victim(value, scheduled))).unwrap()
    }

    #[test]
    fn a_class_protects_its_pods() {
        let minimum = |priority: &str| json!({ MINIMUM_PRIORITY: priority });
        let both = |seconds: &str| json!({MINIMUM_PRIORITY: "200", TOLERATION_SECONDS: seconds});
        for (annotations, value, scheduled, preemptor, expected) in [
            (json!({}), 1, 0, 2, false),
            (minimum("200"), 100, 0, 201, false),
            (minimum("200"), 100, 0, 200, false),
            (both("0"), 100, 0, 199, false),
            (both("-1"), 100, 999, 199, true),
            (both("100"), 100, 101, 199, false),
            (both("100"), 100, 100, 199, false),
            (both("100"), 100, 10, 199, true),
            // What cannot be parsed protects nothing.
            (minimum("a"), 1, 0, 2, false),
            (json!({MINIMUM_PRIORITY: "10", TOLERATION_SECONDS: "a"}), 1, 0, 2, false),
        ] {
            let got = protected(annotations.clone(), value, scheduled, preemptor);
            assert_eq!(got, expected, "{annotations} {preemptor}");
        }
    }

    #[test]
    fn annotations_are_read() {
        let read = |annotations| {
            let kubestep_framework::api::Object::PriorityClass(class) = class(1, annotations)
            else {
                panic!("a priority class")
            };
            PreemptionTolerance::of(&class).map(|it| (it.minimum_priority, it.seconds))
        };
        assert_eq!(read(json!({})), Some((2, 0)));
        let both =
            |priority, seconds| json!({MINIMUM_PRIORITY: priority, TOLERATION_SECONDS: seconds});
        assert_eq!(read(both("100", "10")), Some((100, 10)));
        assert_eq!(read(both("100", "-1")), Some((100, -1)));
        assert_eq!(read(both("a", "1")), None);
        assert_eq!(read(both("1", "a")), None);
    }

    #[test]
    fn a_class_that_does_not_exist_is_an_error() {
        let cluster = Cluster::default();
        let preemptor = info(pod("p").priority(9));
        let judge = |victim: Pod| is_protected(&cluster.cx(&preemptor), &info(victim));
        let text = "priorityclass.scheduling.k8s.io \"class\" not found";
        assert_eq!(judge(victim(1, 0)), Err(Status::error(text)));
        assert_eq!(judge(pod("v")), Ok(false));
    }
}
