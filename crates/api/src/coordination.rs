//! Leases: which replica of a component works, and which are candidates (coordination.k8s.io).

use crate::macros::api_structs;
use crate::{Name, ObjectMeta, Time};

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
        pub lease_name: Name,
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

impl Leases {
    /// The candidate that works under the lease of that name: its holder, or any if all candidates
    /// have the same versions.
    pub fn working_candidate(&self, lease: &str) -> Option<&LeaseCandidate> {
        let holder = self.leases.iter().find(|one| one.metadata.name == lease);
        let mut candidates = self.candidates.iter().filter(|one| one.spec.lease_name == lease);
        let is_holder = |one: &&LeaseCandidate| {
            holder.is_some_and(|lease| {
                lease.spec.holder_identity == one.metadata.name.text().as_str()
            })
        };
        if let Some(found) = candidates.clone().find(is_holder) {
            return Some(found);
        }
        let versions = |one: &LeaseCandidate| {
            (one.spec.binary_version.clone(), one.spec.emulation_version.clone())
        };
        let first = candidates.next()?;
        candidates.all(|one| versions(one) == versions(first)).then_some(first)
    }
}
