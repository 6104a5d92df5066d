//! What is known of controllers in front of the scheduler: the workloads that Kueue admits, job sets,
//! events of objects that were not created, and deployments.
//!
//! A scheduler reads none of this; it says why a pod is held back or does not exist yet, and how
//! pods are updated. Upstream:
//! `apis/kueue/v1beta2/workload_types.go` of kubernetes-sigs/kueue, `api/jobset/v1alpha2` of
//! kubernetes-sigs/jobset, `core/v1` for events.

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::{Condition, ConditionStatus, Deployment, ObjectMeta, ObjectReference, Time};

api_structs! {
    /// What Kueue admits as a whole: the pods of a job, or single pods (`kueue.x-k8s.io`).
    pub struct KueueWorkload {
        pub metadata: ObjectMeta,
        pub spec: KueueWorkloadSpec,
        pub status: KueueWorkloadStatus,
    }

    /// The queue of a workload and its pods. One that is not active is not admitted.
    pub struct KueueWorkloadSpec {
        pub queue_name: Symbol,
        pub active: Option<bool>,
        pub pod_sets: Vec<KueuePodSet>,
    }

    /// Pods of a workload that are alike.
    pub struct KueuePodSet {
        pub name: Symbol,
        pub count: i64,
    }

    /// How far a workload is: `QuotaReserved`, then its checks, then `Admitted`.
    pub struct KueueWorkloadStatus {
        pub conditions: Vec<Condition>,
        pub admission_checks: Vec<AdmissionCheckState>,
        pub requeue_state: RequeueState,
    }

    /// A check that another controller makes: `Pending`, `Ready`, `Retry` or `Rejected`.
    pub struct AdmissionCheckState {
        pub name: Symbol,
        pub state: Symbol,
        pub message: String,
    }

    /// When an evicted workload enters its queue again.
    pub struct RequeueState {
        pub requeue_at: Option<Time>,
    }

    /// A set of jobs that start together (`jobset.x-k8s.io`).
    pub struct JobSet {
        pub metadata: ObjectMeta,
        pub spec: JobSetSpec,
    }

    /// A suspended set has no pods.
    pub struct JobSetSpec {
        pub suspend: Option<bool>,
    }

    /// What a component reports about an object (`core/v1`).
    pub struct Event {
        pub metadata: ObjectMeta,
        pub involved_object: ObjectReference,
        pub reason: Symbol,
        pub message: String,
        pub last_timestamp: Option<Time>,
        pub event_time: Option<Time>,
        pub series: Option<EventSeries>,
    }

    /// How often an event was repeated.
    pub struct EventSeries {
        pub last_observed_time: Option<Time>,
    }
}

/// What is known of controllers in front of the scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerReports {
    /// What Kueue admits or keeps waiting.
    pub workloads: Vec<KueueWorkload>,
    /// The sets of jobs that own pods.
    pub job_sets: Vec<JobSet>,
    /// Events of objects that were not created.
    pub events: Vec<Event>,
    /// Deployments, for how they update their pods.
    pub deployments: Vec<Deployment>,
}

impl KueueWorkload {
    /// The condition of a type, if it is set.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether a condition of that type is true.
    pub fn is(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }
}

impl Event {
    /// When it was seen last, as far as it says.
    pub fn last_seen(&self) -> Option<Time> {
        let repeated = self.series.as_ref().and_then(|series| series.last_observed_time);
        let times =
            [repeated, self.last_timestamp, self.event_time, self.metadata.creation_timestamp];
        times.into_iter().flatten().max()
    }
}
