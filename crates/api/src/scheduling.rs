//! Pod groups and workloads (`scheduling.k8s.io`, v1alpha2 as in 1.36, and what 1.37 added).

use crate::intern::Symbol;
use crate::macros::{api_structs, open_enum};
use crate::{Condition, Name, ObjectMeta};

api_structs! {
    /// A group of pods that are scheduled together.
    pub struct PodGroup {
        pub metadata: ObjectMeta,
        pub spec: PodGroupSpec,
        pub status: PodGroupStatus,
    }

    /// How the group is scheduled.
    pub struct PodGroupSpec {
        pub parent_composite_pod_group_name: Option<Name>,
        pub pod_group_template_ref: Option<PodGroupTemplateReference>,
        pub scheduling_policy: PodGroupSchedulingPolicy,
        pub scheduling_constraints: Option<PodGroupSchedulingConstraints>,
        pub resource_claims: Vec<PodGroupResourceClaim>,
        pub disruption_mode: Option<DisruptionMode>,
        pub priority_class_name: Symbol,
        pub priority: Option<i32>,
    }

    /// One of the two policies is set.
    pub struct PodGroupSchedulingPolicy {
        pub basic: Option<BasicSchedulingPolicy>,
        pub gang: Option<GangSchedulingPolicy>,
    }

    /// The pods are scheduled one by one, as without a group.
    pub struct BasicSchedulingPolicy {}

    /// All or nothing: scheduling starts with `min_count` pods.
    pub struct GangSchedulingPolicy {
        pub min_count: i32,
    }

    /// Where the group may be placed.
    pub struct PodGroupSchedulingConstraints {
        pub topology: Vec<TopologyConstraint>,
    }

    /// All pods of the group run within one value of this node label.
    pub struct TopologyConstraint {
        pub key: Symbol,
    }

    /// A resource claim shared by the group.
    pub struct PodGroupResourceClaim {
        pub name: Symbol,
        pub resource_claim_name: Option<Name>,
        pub resource_claim_template_name: Option<Name>,
    }

    /// The status of a group.
    pub struct PodGroupStatus {
        pub conditions: Vec<Condition>,
        pub resource_claim_statuses: Vec<PodGroupResourceClaimStatus>,
    }

    /// The claim generated for a group's resource claim.
    pub struct PodGroupResourceClaimStatus {
        pub name: Symbol,
        pub resource_claim_name: Option<Name>,
    }

    /// The template from which a group was created.
    pub struct PodGroupTemplateReference {
        pub workload: Option<WorkloadPodGroupTemplateReference>,
    }

    /// The workload and name of that template.
    pub struct WorkloadPodGroupTemplateReference {
        pub workload_name: Name,
        pub pod_group_template_name: Symbol,
    }

    /// A workload: templates of pod groups.
    pub struct Workload {
        pub metadata: ObjectMeta,
        pub spec: WorkloadSpec,
    }

    /// The templates and their controller.
    pub struct WorkloadSpec {
        pub controller_ref: Option<TypedLocalObjectReference>,
        pub pod_group_templates: Vec<PodGroupTemplate>,
    }

    /// A reference within the namespace.
    pub struct TypedLocalObjectReference {
        pub api_group: Symbol,
        pub kind: Symbol,
        pub name: Name,
    }

    /// A template of a pod group.
    pub struct PodGroupTemplate {
        pub name: Symbol,
        pub scheduling_policy: PodGroupSchedulingPolicy,
        pub scheduling_constraints: Option<PodGroupSchedulingConstraints>,
        pub resource_claims: Vec<PodGroupResourceClaim>,
        pub disruption_mode: Option<DisruptionMode>,
        pub priority_class_name: Symbol,
        pub priority: Option<i32>,
    }
}

open_enum! {
    /// Whether a group's pods are disrupted one by one or as a whole.
    pub enum DisruptionMode { Pod = "Pod", PodGroup = "PodGroup" }
}
