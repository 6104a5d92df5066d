//! Scheduling gates by the controllers that remove them, and what Kueue reports about a pod that it
//! holds back. Upstream: `pkg/controller/constants` and `apis/kueue/v1beta2` of
//! kubernetes-sigs/kueue.

use super::model::{PodProblem, ProblemKind};
use kubestep_api::intern::Symbol;
use kubestep_api::words::span;
use kubestep_api::{AdmissionCheckState, KueueWorkload, Name, OwnerReference, Pod, Time};
use kubestep_cluster::World;

/// Gates of well-known controllers, and when these remove them.
const REMOVED_BY: [(&str, &str); 5] = [
    ("kueue.x-k8s.io/admission", "Kueue removes it when it admits the pod's Workload"),
    (
        "kueue.x-k8s.io/topology",
        "Kueue removes it when it has assigned a topology domain to the pod",
    ),
    (
        "kueue.x-k8s.io/elastic-job",
        "Kueue removes it when it admits the Workload slice with this pod",
    ),
    (
        "multiarch.openshift.io/scheduling-gate",
        "the Multiarch Tuning Operator removes it when it knows the architectures of the images",
    ),
    ("grove.io/podgang-pending-creation", "Grove removes it when the pod's PodGang is complete"),
];
const KUEUE: &str = "kueue.x-k8s.io/";
/// The annotation with the name of a pod's Workload.
const WORKLOAD: &str = "kueue.x-k8s.io/workload";
/// The label with the name of a group of pods, which is also that of its Workload.
const POD_GROUP: &str = "kueue.x-k8s.io/pod-group-name";

/// The problem that a scheduling gate holds the pod back.
pub(super) fn problem(world: &World, pod: &Pod, gate: Symbol) -> PodProblem {
    let text = format!("scheduling gate {:?} holds it back", gate.as_str());
    let workload = gate.starts_with(KUEUE).then(|| workload_of(world, pod)).flatten();
    let (text, advice) = match workload.map(|workload| waiting(workload, world.now())) {
        Some(WorkloadGate { text: cause, advice }) => (format!("{text}: {cause}"), advice),
        None => (text, advice(gate)),
    };
    PodProblem { kind: ProblemKind::Gate, blocking: true, text, advice }
}

fn advice(gate: Symbol) -> String {
    let known = REMOVED_BY.iter().find(|(name, _)| gate == **name);
    let who = known.map_or("remove it from spec.schedulingGates", |(_, who)| who);
    format!("{who}; until then the scheduler does not try the pod and writes no event")
}

/// The Workload that Kueue admits the pod with.
fn workload_of<'a>(world: &'a World, pod: &Pod) -> Option<&'a KueueWorkload> {
    let metadata = &pod.metadata;
    let annotated = metadata.annotations.get_str(WORKLOAD).map(|name| &**name);
    let named = annotated.map(Name::new).or(metadata.labels.get_str(POD_GROUP).copied());
    let itself = |owner: &OwnerReference| owner.kind == "Pod" && owner.name == metadata.name;
    let owned = |owner: &OwnerReference| {
        itself(owner) || metadata.owner_references.iter().any(|of_pod| is_same(owner, of_pod))
    };
    let mut workloads = world.controllers().workloads.iter();
    workloads.find(|workload| {
        workload.metadata.namespace == metadata.namespace
            && (named == Some(workload.metadata.name)
                || workload.metadata.owner_references.iter().any(owned))
    })
}

/// Whether two references are to the same object of a namespace.
fn is_same(one: &OwnerReference, other: &OwnerReference) -> bool {
    one.kind == other.kind && one.name == other.name
}

/// What a Workload waits for, and what to do about it.
pub(crate) struct WorkloadGate {
    /// The state of the Workload, with Kueue's own message.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

/// What a Workload waits for.
pub(crate) fn waiting(workload: &KueueWorkload, now: Time) -> WorkloadGate {
    let name = workload.metadata.name;
    if workload.is("Admitted") {
        return WorkloadGate {
            text: format!("Kueue has admitted its Workload {name}, but the gate is still there"),
            advice: "look at the logs of kueue-controller-manager".to_owned(),
        };
    }
    let text = |cause: String| {
        let queue = workload.spec.queue_name;
        format!("Kueue has not admitted its Workload {name} (queue {queue}){cause}")
    };
    if workload.spec.active == Some(false) {
        return WorkloadGate {
            text: text(format!(": it is not active{}", message(workload, "Evicted"))),
            advice: format!("set spec.active of Workload {name} to true"),
        };
    }
    if let Some(check) = blocking_check(workload) {
        let said = if check.message.is_empty() { "" } else { ": " };
        return WorkloadGate {
            text: text(format!(
                ": its admission check {} is {}{said}{}",
                check.name, check.state, check.message
            )),
            advice: advice_on(check),
        };
    }
    if let Some(at) = workload.status.requeue_state.requeue_at.filter(|at| *at > now) {
        return WorkloadGate {
            text: text(message(workload, "Evicted")),
            advice: format!("Kueue tries it again in {}", span(at.0 - now.0)),
        };
    }
    WorkloadGate {
        text: text(message(workload, "QuotaReserved")),
        advice: advice_on_quota(workload),
    }
}

/// The message of a condition, after a colon.
fn message(workload: &KueueWorkload, type_: &str) -> String {
    let said = workload.condition(type_).map(|condition| condition.message.trim_end_matches('.'));
    said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default()
}

/// The first admission check that is not ready, once quota is reserved.
fn blocking_check(workload: &KueueWorkload) -> Option<&AdmissionCheckState> {
    let mut checks = workload.status.admission_checks.iter();
    checks.find(|check| check.state != "Ready").filter(|check| {
        // Checks begin with the reservation; one that failed ends it.
        workload.is("QuotaReserved") || check.state != "Pending"
    })
}

fn advice_on(check: &AdmissionCheckState) -> String {
    match check.state.as_str() {
        "Rejected" => "the check rejected it: Kueue deactivates the Workload".to_owned(),
        "Retry" => "Kueue releases the quota and tries it again later".to_owned(),
        _ => format!("the controller of the AdmissionCheck {} decides", check.name),
    }
}

fn advice_on_quota(workload: &KueueWorkload) -> String {
    let reason = workload.condition("QuotaReserved").map(|condition| condition.reason);
    match reason.unwrap_or_default().as_str() {
        "Inadmissible" | "Misconfigured" => {
            "correct the LocalQueue or ClusterQueue; Kueue tries it again then"
        }
        "ExceedsMaxQuota" => "raise the quota of the ClusterQueue, or request less",
        _ => "Kueue admits it once the queue has quota for it: others end, or the quota grows",
    }
    .to_owned()
}
