//! Leases: which replica of a component works, and which are candidates (coordination.k8s.io).

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::{ObjectMeta, Time};

api_structs! {
    /// A lease: its holder works, the others wait.
    pub struct Lease {
        pub metadata: ObjectMeta,
        pub spec: LeaseSpec,
    }

    /// Who holds a lease, and when it was renewed.
    pub struct LeaseSpec {
        pub holder_identity: String,
        pub lease_duration_seconds: i64,
        pub acquire_time: Option<Time>,
        pub renew_time: Option<Time>,
        pub lease_transitions: i64,
    }

    /// A replica that would take a lease (coordinated leader election).
    pub struct LeaseCandidate {
        pub metadata: ObjectMeta,
        pub spec: LeaseCandidateSpec,
    }

    /// The lease and the versions of a candidate.
    pub struct LeaseCandidateSpec {
        pub lease_name: Symbol,
        pub binary_version: String,
        pub emulation_version: String,
        pub renew_time: Option<Time>,
    }

    /// The leases of a cluster, except those of its nodes, and their candidates.
    pub struct Leases {
        pub leases: Vec<Lease>,
        pub candidates: Vec<LeaseCandidate>,
    }
}
