//! Pods and their containers (`core/v1`), as far as the scheduler reads them.

use serde::{Deserialize, Serialize};

use crate::intern::Symbol;
use crate::macros::{api_structs, closed_enum, is_default, open_enum, or_default};
use crate::shared::pooled;
use crate::{Affinity, Condition, LabelSelector, Labels, Name, ObjectMeta, Quantity};
use crate::{Pooled, ResourceList, SharedList, Time, Volume};

api_structs! {
    /// `v1.Pod`, with what scheduling decisions read.
    pub struct Pod {
        pub metadata: ObjectMeta,
        pub spec: PodSpec,
        pub status: PodStatus,
    }

    /// The specification of a pod.
    pub struct PodSpec {
        pub node_name: Name,
        pub scheduler_name: Symbol,
        pub priority: Option<i32>,
        pub priority_class_name: Symbol,
        pub preemption_policy: Option<PreemptionPolicy>,
        pub node_selector: Option<Labels>,
        pub affinity: Option<Pooled<Affinity>>,
        pub tolerations: SharedList<Toleration>,
        pub topology_spread_constraints: SharedList<TopologySpreadConstraint>,
        pub containers: SharedList<Container>,
        pub init_containers: SharedList<Container>,
        pub overhead: Option<ResourceList>,
        pub resources: Option<Box<ResourceRequirements>>,
        pub volumes: SharedList<Volume>,
        pub resource_claims: Vec<PodResourceClaim>,
        pub scheduling_gates: Vec<PodSchedulingGate>,
        pub scheduling_group: Option<PodSchedulingGroup>,
        pub workload_ref: Option<Box<WorkloadReference>>,
        pub host_network: bool,
        pub host_users: Option<bool>,
        pub restart_policy: RestartPolicy,
        pub termination_grace_period_seconds: Option<i64>,
        pub runtime_class_name: Option<Symbol>,
        pub service_account_name: Symbol,
        pub os: Option<PodOs>,
    }

    /// The operating system of a pod.
    pub struct PodOs {
        pub name: Symbol,
    }

    /// A container, an init container, or (with `restart_policy` Always) a sidecar.
    pub struct Container {
        pub name: Symbol,
        pub image: Symbol,
        pub resources: ResourceRequirements,
        pub ports: Vec<ContainerPort>,
        pub restart_policy: Option<ContainerRestartPolicy>,
        pub restart_policy_rules: Vec<ContainerRestartRule>,
    }

    /// A port of a container; the scheduler reads those with a `host_port`.
    pub struct ContainerPort {
        pub name: Symbol,
        pub container_port: i32,
        pub host_port: i32,
        #[serde(rename = "hostIP")]
        pub host_ip: Symbol,
        pub protocol: Protocol,
    }

    /// When and how one container restarts.
    pub struct ContainerRestartRule {
        pub action: ContainerRestartRuleAction,
        pub exit_codes: Option<ContainerRestartRuleOnExitCodes>,
    }

    /// The exit codes to which a restart rule applies.
    pub struct ContainerRestartRuleOnExitCodes {
        pub operator: Symbol,
        pub values: Vec<i32>,
    }

    /// Requests and limits. `requests: None` and an empty map differ: see `defaults`.
    pub struct ResourceRequirements {
        pub requests: Option<ResourceList>,
        pub limits: Option<ResourceList>,
        pub claims: Vec<ContainerResourceClaim>,
    }

    /// A container's use of one of the pod's `resource_claims`.
    pub struct ContainerResourceClaim {
        pub name: Symbol,
        pub request: Symbol,
    }

    /// A toleration; matching is in [`crate::selector`].
    pub struct Toleration {
        pub key: Symbol,
        pub operator: TolerationOperator,
        pub value: Symbol,
        pub effect: TaintEffect,
        pub toleration_seconds: Option<i64>,
    }

    /// A named resource claim of a pod: one of the two references is set.
    pub struct PodResourceClaim {
        pub name: Symbol,
        pub resource_claim_name: Option<Name>,
        pub resource_claim_template_name: Option<Name>,
    }

    /// A gate that keeps a pod from being scheduled until it is removed.
    pub struct PodSchedulingGate {
        pub name: Symbol,
    }

    /// The pod group a pod belongs to.
    pub struct PodSchedulingGroup {
        pub pod_group_name: Option<Name>,
    }

    /// The group a pod belongs to, in the API of 1.35: a pod group of a workload, or one of its
    /// replicas.
    pub struct WorkloadReference {
        pub name: Name,
        pub pod_group: Symbol,
        pub pod_group_replica_key: Symbol,
    }

    /// The status of a pod.
    pub struct PodStatus {
        pub phase: PodPhase,
        pub conditions: Vec<Condition>,
        pub reason: Symbol,
        pub message: String,
        pub nominated_node_name: Name,
        pub start_time: Option<Time>,
        pub observed_generation: i64,
        pub container_statuses: SharedList<ContainerStatus>,
        pub init_container_statuses: SharedList<ContainerStatus>,
        pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
        pub extended_resource_claim_status: Option<Box<PodExtendedResourceClaimStatus>>,
        pub node_allocatable_resource_claim_statuses: Vec<NodeAllocatableResourceClaimStatus>,
        pub allocated_resources: Option<ResourceList>,
        pub resources: Option<Box<ResourceRequirements>>,
    }

    /// A container's status, as far as in-place resizing needs it.
    pub struct ContainerStatus {
        pub name: Symbol,
        pub allocated_resources: Option<ResourceList>,
        pub resources: Option<ResourceRequirements>,
    }

    /// The claim generated for a `PodResourceClaim`; none if the claim was not needed.
    pub struct PodResourceClaimStatus {
        pub name: Symbol,
        pub resource_claim_name: Option<Name>,
    }

    /// The claim that the scheduler created for a pod's extended resources.
    pub struct PodExtendedResourceClaimStatus {
        pub request_mappings: Vec<ContainerExtendedResourceRequest>,
        pub resource_claim_name: Name,
    }

    /// The request of that claim for a container's extended resource.
    pub struct ContainerExtendedResourceRequest {
        pub container_name: Symbol,
        pub resource_name: Symbol,
        pub request_name: Symbol,
    }

    /// Node-allocatable resources that a pod consumes through a resource claim.
    pub struct NodeAllocatableResourceClaimStatus {
        pub resource_claim_name: Name,
        pub containers: Vec<Symbol>,
        pub resources: ResourceList,
    }
}

/// A topology spread constraint.
///
/// Not among the structs above because `when_unsatisfiable` is also written if it is the default:
/// extenders are sent pods and have no default for it.
#[derive(Clone, Debug, Default, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct TopologySpreadConstraint {
    #[serde(deserialize_with = "or_default")]
    pub max_skew: i32,
    #[serde(deserialize_with = "or_default")]
    pub topology_key: Symbol,
    #[serde(deserialize_with = "or_default")]
    pub when_unsatisfiable: UnsatisfiableConstraintAction,
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
    #[serde(skip_serializing_if = "is_default")]
    pub min_domains: Option<i32>,
    #[serde(skip_serializing_if = "is_default")]
    pub node_affinity_policy: Option<NodeInclusionPolicy>,
    #[serde(skip_serializing_if = "is_default")]
    pub node_taints_policy: Option<NodeInclusionPolicy>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub match_label_keys: Vec<Symbol>,
}

pooled!(
    Affinity,
    Vec<Container>,
    Vec<ContainerStatus>,
    Vec<Toleration>,
    Vec<TopologySpreadConstraint>,
    Vec<Volume>,
);

closed_enum! {
    /// Whether a pod may preempt others.
    pub enum PreemptionPolicy {
        PreemptLowerPriority = "PreemptLowerPriority", Never = "Never",
    } default PreemptLowerPriority
}

open_enum! {
    /// A pod's restart policy; the API's default is Always.
    pub enum RestartPolicy { Always = "Always", OnFailure = "OnFailure", Never = "Never" }
}

closed_enum! {
    /// What to do if a spread constraint cannot be met.
    pub enum UnsatisfiableConstraintAction {
        DoNotSchedule = "DoNotSchedule", ScheduleAnyway = "ScheduleAnyway",
    } default DoNotSchedule
}

closed_enum! {
    /// Whether a spread constraint ignores nodes that the pod could not use.
    pub enum NodeInclusionPolicy { Honor = "Honor", Ignore = "Ignore" } default Honor
}

open_enum! {
    /// A container's own restart policy; `Always` makes an init container a sidecar.
    pub enum ContainerRestartPolicy { Always = "Always", OnFailure = "OnFailure", Never = "Never" }
}

open_enum! {
    /// What a restart rule does.
    pub enum ContainerRestartRuleAction {
        Restart = "Restart", RestartAllContainers = "RestartAllContainers",
    }
}

open_enum! {
    /// A port's protocol; the API's default is TCP.
    pub enum Protocol { Tcp = "TCP", Udp = "UDP", Sctp = "SCTP" }
}

open_enum! {
    /// A taint's effect; unset in a toleration means all effects.
    pub enum TaintEffect {
        NoSchedule = "NoSchedule", PreferNoSchedule = "PreferNoSchedule", NoExecute = "NoExecute",
    }
}

open_enum! {
    /// A toleration's operator; unset means Equal.
    pub enum TolerationOperator { Equal = "Equal", Exists = "Exists", Lt = "Lt", Gt = "Gt" }
}

open_enum! {
    /// `status.phase` of a pod.
    pub enum PodPhase {
        Pending = "Pending", Running = "Running", Succeeded = "Succeeded", Failed = "Failed",
        Unknown = "Unknown",
    }
}

/// The conditions that the scheduler reads or writes.
const READ_CONDITIONS: [&str; 4] =
    ["PodScheduled", "DisruptionTarget", "PodResizePending", "PodResizeInProgress"];

impl Pod {
    /// Namespace and name: `shop/web-0`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// The pod's priority, 0 if none is set (`corev1helpers.PodPriority`).
    pub fn priority(&self) -> i32 {
        self.spec.priority.unwrap_or(0)
    }

    /// Whether the pod has ended (phase Succeeded or Failed).
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether the pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl Pod {
    /// Drops the parts of the status that the scheduler does not read, which are most of a running
    /// pod's status. Clusters have very many pods.
    pub fn compact(&mut self) {
        let status = &mut self.status;
        status.conditions.retain(|condition| READ_CONDITIONS.contains(&condition.type_.as_str()));
        status.conditions.shrink_to_fit();
        for statuses in [&mut status.container_statuses, &mut status.init_container_statuses] {
            let says_nothing = |container: &ContainerStatus| {
                container.resources.is_none() && container.allocated_resources.is_none()
            };
            if statuses.iter().any(says_nothing) {
                statuses.update(|statuses| statuses.retain(|status| !says_nothing(status)));
            }
        }
    }
}

impl ResourceRequirements {
    /// The request for `resource`.
    pub fn request(&self, resource: Symbol) -> Option<&Quantity> {
        self.requests.as_ref().and_then(|requests| requests.get(resource))
    }

    /// The limit for `resource`.
    pub fn limit(&self, resource: Symbol) -> Option<&Quantity> {
        self.limits.as_ref().and_then(|limits| limits.get(resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_out_are_only_the_fields_that_are_set() {
        let pod: Pod = crate::yaml::from_str(
            "{metadata: {name: a}, spec: {hostNetwork: true, nodeSelector: {}, containers: [{ports: [{hostIP: 1.2.3.4, hostPort: 80}]}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z}]}}",
        )
        .unwrap();
        assert_eq!(
            serde_json::to_string(&pod).unwrap(),
            r#"{"metadata":{"name":"a"},"spec":{"nodeSelector":{},"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],"containers":[{"ports":[{"hostPort":80,"hostIP":"1.2.3.4"}]}],"hostNetwork":true}}"#
        );
    }

    #[test]
    fn priority_phase_and_names() {
        let mut pod = Pod::default();
        pod.metadata.namespace = "shop".into();
        pod.metadata.name = "web".into();
        assert_eq!(
            (pod.full_name(), pod.priority(), pod.is_terminal()),
            ("shop/web".into(), 0, false)
        );
        pod.spec.priority = Some(-5);
        pod.status.phase = PodPhase::Succeeded;
        assert_eq!((pod.priority(), pod.is_terminal(), pod.is_terminating()), (-5, true, false));
    }

    #[test]
    fn a_compacted_status_has_what_the_scheduler_reads() {
        let mut pod: Pod = crate::yaml::from_str(
            "{status: {conditions: [{type: Ready}, {type: PodScheduled, status: 'True'}], containerStatuses: [{name: a, ready: true}, {name: b, allocatedResources: {cpu: 1}}]}}",
        )
        .unwrap();
        pod.compact();
        assert_eq!(pod.status.conditions.len(), 1);
        assert_eq!(pod.status.conditions[0].type_, "PodScheduled");
        let names: Vec<&str> =
            pod.status.container_statuses.iter().map(|status| status.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }
}
