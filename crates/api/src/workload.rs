//! Objects that select or group pods: services and controllers (for default spreading), disruption
//! budgets, priority classes and namespaces.

use serde::{Deserialize, Serialize};

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::{Condition, LabelSelector, Labels, Name, ObjectMeta, PodSpec, PreemptionPolicy};

api_structs! {
    /// A namespace; its labels are matched by namespace selectors.
    pub struct Namespace {
        pub metadata: ObjectMeta,
        pub status: NamespaceStatus,
    }

    /// `Active`, or `Terminating` while the namespace is deleted.
    pub struct NamespaceStatus {
        pub phase: Symbol,
    }

    /// `v1.Service`; its selector spreads pods by default.
    pub struct Service {
        pub metadata: ObjectMeta,
        pub spec: ServiceSpec,
    }

    /// The selector of a service; without one it selects no pods.
    pub struct ServiceSpec {
        pub selector: Option<Labels>,
    }

    /// `v1.ReplicationController`; its selector spreads pods by default.
    pub struct ReplicationController {
        pub metadata: ObjectMeta,
        pub spec: ReplicationControllerSpec,
    }

    /// The selector of a replication controller.
    pub struct ReplicationControllerSpec {
        pub replicas: Option<i32>,
        pub selector: Option<Labels>,
        pub template: Option<PodTemplateSpec>,
    }

    /// `apps/v1.ReplicaSet`; its selector spreads pods by default.
    pub struct ReplicaSet {
        pub metadata: ObjectMeta,
        pub spec: ReplicaSetSpec,
    }

    /// The selector of a replica set.
    pub struct ReplicaSetSpec {
        pub replicas: Option<i32>,
        pub selector: Option<LabelSelector>,
        pub template: PodTemplateSpec,
    }

    /// `apps/v1.StatefulSet`; its selector spreads pods by default.
    pub struct StatefulSet {
        pub metadata: ObjectMeta,
        pub spec: StatefulSetSpec,
    }

    /// The pods of a stateful set, and how they are updated.
    pub struct StatefulSetSpec {
        pub replicas: Option<i32>,
        pub service_name: Symbol,
        pub selector: Option<LabelSelector>,
        pub template: PodTemplateSpec,
        pub pod_management_policy: Symbol,
        pub update_strategy: UpdateStrategy,
        pub min_ready_seconds: i32,
        pub ordinals: Option<StatefulSetOrdinals>,
    }

    /// The number of a stateful set's first pod.
    pub struct StatefulSetOrdinals {
        pub start: i32,
    }

    /// A deployment; a scheduler sees only its replica sets and their pods.
    pub struct Deployment {
        pub metadata: ObjectMeta,
        pub spec: DeploymentSpec,
    }

    /// How many pods a deployment has, and how they are updated.
    pub struct DeploymentSpec {
        pub replicas: Option<i32>,
        pub selector: Option<LabelSelector>,
        pub strategy: UpdateStrategy,
        pub min_ready_seconds: i32,
        pub paused: bool,
    }

    /// How a deployment, stateful set or daemon set replaces the pods of an earlier template.
    pub struct UpdateStrategy {
        pub type_: Symbol,
        pub rolling_update: Option<RollingUpdate>,
    }

    /// The limits of a rolling update. Which fields there are, and how percentages are rounded,
    /// depends on the kind of the workload.
    pub struct RollingUpdate {
        pub max_surge: Option<IntOrString>,
        pub max_unavailable: Option<IntOrString>,
        pub partition: Option<i32>,
    }

    /// The template of the pods that a controller creates.
    pub struct PodTemplateSpec {
        pub metadata: ObjectMeta,
        pub spec: PodSpec,
    }

    /// A pod disruption budget.
    pub struct PodDisruptionBudget {
        pub metadata: ObjectMeta,
        pub spec: PodDisruptionBudgetSpec,
        pub status: PodDisruptionBudgetStatus,
    }

    /// The pods that a budget protects. An absent selector selects none.
    pub struct PodDisruptionBudgetSpec {
        pub min_available: Option<IntOrString>,
        pub max_unavailable: Option<IntOrString>,
        pub selector: Option<LabelSelector>,
    }

    /// The status of a budget. The scheduler reads `disruptions_allowed` and `disrupted_pods`.
    pub struct PodDisruptionBudgetStatus {
        pub disruptions_allowed: i32,
        pub current_healthy: i32,
        pub desired_healthy: i32,
        pub expected_pods: i32,
        pub observed_generation: i64,
        pub disrupted_pods: std::collections::BTreeMap<Name, crate::Time>,
        pub conditions: Vec<Condition>,
    }

    /// `scheduling.k8s.io/v1` PriorityClass: the priority that admission gives to pods.
    pub struct PriorityClass {
        pub metadata: ObjectMeta,
        pub value: i32,
        pub global_default: bool,
        pub description: String,
        pub preemption_policy: Option<PreemptionPolicy>,
    }
}

/// A count or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// An absolute number of pods.
    Int(i32),
    /// A percentage such as `50%`.
    Text(Symbol),
}

impl Default for IntOrString {
    fn default() -> IntOrString {
        IntOrString::Int(0)
    }
}
