//! Problems that keep a pod from every node, whatever resources are free, mostly those that the
//! scheduler does not report: an unknown scheduler name, a gate, a group with too few pods, a
//! missing object that the pod refers to.

use super::gate;
use super::group::{self, GroupSimulation};
use super::model::{PodLocation, PodProblem, ProblemKind};
use super::references::{self, Reference, ReferenceField};
use crate::edit::owner;
use kubestep_api::intern::Symbol;
use kubestep_api::words::{count, span};
use kubestep_api::{Kind, Name, Pod, PodPhase, Time};
use kubestep_cluster::World;
use kubestep_config::suggest;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::pod_groups::group_of;
use kubestep_framework::pod_groups::policy::{MissingGroup, min_count, policy_of};

/// Classes that every cluster has.
const BUILT_IN_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// All problems of a pod; few for one that has its node or has ended. `was_tried`: this
/// simulation has tried to place it.
pub(super) fn of(
    world: &World,
    pod: &Pod,
    place: &PodLocation,
    was_tried: bool,
) -> Vec<PodProblem> {
    match place {
        PodLocation::Bound { node } => {
            // The real cluster has not placed it.
            let problems = no_scheduler(world, pod).filter(|_| was_tried);
            let problems = problems.into_iter();
            return problems.chain(of_bound(world, pod, *node, was_tried)).collect();
        }
        PodLocation::Ended { .. } => return Vec::new(),
        _ => {}
    }
    let mut problems = Vec::new();
    problems.extend(no_scheduler(world, pod));
    problems.extend(no_profile(world, pod));
    problems.extend(terminating(pod));
    problems.extend(gated(world, pod));
    problems.extend(held(place, world.now()));
    if problems.is_empty() {
        let in_vain = || GroupSimulation::in_vain(world, pod).map(GroupSimulation::problem);
        problems.extend(group::incomplete(world, pod).or_else(in_vain));
    }
    problems.extend(missing(world.api().objects(), pod));
    problems.extend(unbound(world.api().objects(), pod));
    if world.scheduler().cache().node_count() == 0 {
        problems.push(PodProblem {
            kind: ProblemKind::NoNodes,
            blocking: true,
            text: "the cluster has no nodes".into(),
            advice: "add nodes".into(),
        });
    }
    problems
}

/// A problem with the node of a bound pod.
fn of_bound(world: &World, pod: &Pod, node: Name, was_tried: bool) -> Option<PodProblem> {
    if world.api().node(node).is_none() {
        let names = world.api().nodes().map(|node| node.metadata.name);
        let near = suggest::closest_name(node, names);
        return Some(PodProblem {
            kind: ProblemKind::MissingNode,
            blocking: true,
            text: format!("spec.nodeName is {node}, which does not exist"),
            advice: match near {
                Some(near) => {
                    format!("did you mean {near:?}? nodeName is immutable: recreate the pod")
                }
                None => "no kubelet runs the pod: recreate it without nodeName".to_owned(),
            },
        });
    }
    let (kind, text, advice) = if owner::is_static(pod) {
        let advice = format!("the kubelet of {node} runs it from a file, without a scheduler");
        (ProblemKind::StaticPod, "static pod", advice)
    } else if !was_tried && was_created_with_node(pod) {
        let advice = format!("no scheduler placed it on {node}");
        (ProblemKind::OwnNodeName, "created with spec.nodeName", advice)
    } else {
        return None;
    };
    Some(PodProblem { kind, blocking: false, text: text.to_owned(), advice })
}

/// Whether spec.nodeName was there from the beginning: an API server that binds a pod sets its
/// condition PodScheduled, and so does the kubelet once it has seen a pod.
fn was_created_with_node(pod: &Pod) -> bool {
    let status = &pod.status;
    let is_scheduled = status.conditions.iter().any(|it| it.type_ == "PodScheduled");
    status.phase == PodPhase::Pending && status.start_time.is_none() && !is_scheduled
}

/// Nobody schedules the pod in the real cluster.
fn no_scheduler(world: &World, pod: &Pod) -> Option<PodProblem> {
    let schedulers = world.schedulers();
    if let Some(text) = schedulers.absence(pod.spec.scheduler_name, schedulers.as_of) {
        return Some(PodProblem {
            kind: ProblemKind::NoScheduler,
            blocking: true,
            text,
            advice:
                "what follows is what a scheduler would decide; look at its pods and their logs"
                    .into(),
        });
    }
    Some(PodProblem {
        kind: ProblemKind::MixedVersions,
        blocking: false,
        text: schedulers.version_words()?,
        advice: "decisions may differ after a change of the leader".into(),
    })
}

fn no_profile(world: &World, pod: &Pod) -> Option<PodProblem> {
    let (profiles, wanted) = (world.scheduler().frameworks(), pod.spec.scheduler_name);
    if profiles.contains_key(&wanted) {
        return None;
    }
    let known: Vec<&str> = profiles.keys().map(|name| name.as_str()).collect();
    let near = suggest::closest(&wanted, known.iter().copied());
    let advice = match near {
        Some(near) => {
            format!("did you mean {near:?}? schedulerName is immutable: recreate the pod")
        }
        None => format!(
            "run a scheduler of that name, or recreate the pod with one of: {}",
            known.join(", ")
        ),
    };
    Some(PodProblem {
        kind: ProblemKind::NoProfile,
        blocking: true,
        text: format!(
            "no profile serves the scheduler name {:?}: the pod is in no queue, and no event \
             says so",
            wanted.as_str()
        ),
        advice,
    })
}

fn terminating(pod: &Pod) -> Option<PodProblem> {
    pod.is_terminating().then(|| PodProblem {
        kind: ProblemKind::Terminating,
        blocking: true,
        text: "the pod is being deleted and is not scheduled".into(),
        advice: "check its finalizers if it remains".into(),
    })
}

fn gated(world: &World, pod: &Pod) -> Vec<PodProblem> {
    let gates = pod.spec.scheduling_gates.iter();
    let mut problems: Vec<PodProblem> =
        gates.map(|gate| gate::problem(world, pod, gate.name)).collect();
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    let queued = world.scheduler().queue().get(key);
    let plugin = queued.and_then(|queued| queued.gating_plugin);
    match (plugin, queued) {
        (Some(plugin), Some(queued)) if plugin != "SchedulingGates" => {
            problems.push(held_back(world, pod, queued, plugin));
        }
        _ => {}
    }
    problems
}

/// The problem that a PreEnqueue plugin other than SchedulingGates gates the pod.
fn held_back(world: &World, pod: &Pod, queued: &QueuedPodInfo, plugin: Symbol) -> PodProblem {
    if let (true, Some(problem)) = (plugin == "GangScheduling", quorum(world, pod)) {
        return problem;
    }
    let said = queued.gating_message.unwrap_or_default();
    PodProblem {
        kind: ProblemKind::Gate,
        blocking: true,
        text: format!("{plugin} keeps it out of the queue: {said}"),
        advice: "it enters the queue once the plugin allows it".into(),
    }
}

fn quorum(world: &World, pod: &Pod) -> Option<PodProblem> {
    let scheduler = world.scheduler();
    let group = group_of(pod, scheduler.features())?;
    let (text, advice) = match policy_of(pod, scheduler.objects(), scheduler.features())? {
        Err(missing) => (format!("its {missing} does not exist"), create(missing)),
        Ok(policy) => {
            let needed = min_count(policy)?;
            let there = scheduler.pod_group(group)?.all();
            (
                format!("its pod group {group} has {there} of the {needed} pods it needs"),
                format!(
                    "create {} of the group, or lower its minCount",
                    count(needed.saturating_sub(there), "more pod")
                ),
            )
        }
    };
    Some(PodProblem { kind: ProblemKind::Quorum, blocking: true, text, advice })
}

fn create(missing: MissingGroup) -> String {
    match missing {
        MissingGroup::PodGroup(group) => format!("create the PodGroup {group}"),
        MissingGroup::Workload(workload) => format!("create the Workload {workload}"),
        MissingGroup::GroupOf { workload, group } => {
            format!("create the Workload {workload} again, with the pod group {group}")
        }
    }
}

fn held(place: &PodLocation, now: Time) -> Option<PodProblem> {
    let PodLocation::Waiting { node, holds, in_pre_bind, .. } = place else { return None };
    let stage = if *in_pre_bind { "in PreBind" } else { "at Permit" };
    let left = span(holds.iter().map(|held| held.deadline).min()?.0.saturating_sub(now.0));
    let plugins: Vec<&str> = holds.iter().map(|held| held.plugin.as_str()).collect();
    Some(PodProblem {
        kind: ProblemKind::Held,
        blocking: true,
        text: format!(
            "{} holds it {stage}; its resources on {node} are reserved",
            plugins.join(", ")
        ),
        advice: match in_pre_bind {
            true => format!("the plugin checks again in {left}"),
            false => format!("it continues when the plugin allows it; in {left} it is rejected"),
        },
    })
}

/// Missing objects that the pod refers to.
fn missing(objects: &Objects, pod: &Pod) -> Vec<PodProblem> {
    let mut problems = Vec::new();
    let odd = |kind: Kind, name: Name, advice: &str| PodProblem {
        kind: ProblemKind::MissingObject,
        blocking: false,
        text: format!("{} {name} does not exist", kind.as_str()),
        advice: advice.to_owned(),
    };
    let cluster_wide = |name: Name| NamespacedName::new(Symbol::EMPTY, name);
    let namespace = cluster_wide(pod.metadata.namespace.into());
    // Input files often contain no namespaces.
    if !objects.namespaces.is_empty() && !objects.namespaces.contains_key(&namespace) {
        let advice = "without it, namespace selectors do not match the pod";
        problems.push(odd(Kind::Namespace, namespace.name, advice));
    }
    let class = pod.spec.priority_class_name;
    let known = objects.priority_classes.contains_key(&cluster_wide(class.into()));
    if !class.is_empty() && !known && !BUILT_IN_CLASSES.contains(&class.as_str()) {
        let advice = "the pod keeps the priority it has; a new pod of that class is rejected";
        problems.push(odd(Kind::PriorityClass, class.into(), advice));
    }
    let needed = references::missing(objects, pod);
    problems.extend(needed.iter().map(|reference| missing_object(objects, reference)));
    problems
}

/// The problem that an object does not exist without which the pod is not scheduled.
fn missing_object(objects: &Objects, reference: &Reference) -> PodProblem {
    let Reference { kind, key, field } = reference;
    let advice = match (field, reference.near(objects)) {
        (ReferenceField::Generated, _) if *kind == Kind::PersistentVolumeClaim => {
            "the controller of ephemeral volumes creates it".to_owned()
        }
        (ReferenceField::Generated, _) => "a controller references it: create it".to_owned(),
        (ReferenceField::OfPod(_), Some(near)) => format!("did you mean {near:?}?"),
        (ReferenceField::OfPod(_), None) => "create it, or correct its name in the pod".to_owned(),
        (ReferenceField::OfClaim(claim, _) | ReferenceField::ClassOf(claim), Some(near)) => {
            format!("claim {claim} references it: did you mean {near:?}?")
        }
        (ReferenceField::OfClaim(claim, _) | ReferenceField::ClassOf(claim), None) => {
            format!("claim {claim} references it: create it, or reference another one")
        }
    };
    let text = format!("{} {key} does not exist", kind.as_str());
    PodProblem { kind: ProblemKind::MissingObject, blocking: true, text, advice }
}

/// Claims that must be bound before the pod is scheduled, and are not.
fn unbound(objects: &Objects, pod: &Pod) -> Vec<PodProblem> {
    let problem = |claim: &references::Unbound<'_>| PodProblem {
        kind: ProblemKind::UnboundClaim,
        blocking: true,
        text: claim.text(),
        advice: claim.advice(objects),
    };
    references::unbound(objects, pod).iter().map(problem).collect()
}
