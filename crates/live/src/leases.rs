//! The leases of a cluster's components and their candidates: read once, or again and again while
//! the cluster is followed. Leases of nodes are left out, which are many.

use std::time::Duration;

use kubestep_api::{LeaseCandidate, Leases};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget, Link};
use crate::periodic::Periodic;

/// All leases, except those of nodes, which have a namespace of their own.
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases\
                      ?fieldSelector=metadata.namespace%21%3Dkube-node-lease";
/// The leases of the control plane, for users who may not read those of all namespaces.
const CONTROL_PLANE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
/// The candidates, by version of their API.
const CANDIDATES: [&str; 2] = [
    "/apis/coordination.k8s.io/v1beta1/leasecandidates",
    "/apis/coordination.k8s.io/v1alpha2/leasecandidates",
];
/// How often leases are read while a cluster is followed.
const EVERY: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct TypedList<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// The leases and candidates; `None` if this user may not read leases or the server has none.
pub async fn read(link: &Link) -> Option<Leases> {
    let leases = match list(link, LEASES).await {
        Err(RequestFailure::Refused(_)) => list(link, CONTROL_PLANE).await,
        answer => answer,
    };
    let leases = leases.ok()?;
    let mut candidates: Vec<LeaseCandidate> = Vec::new();
    for path in CANDIDATES {
        if let Ok(found) = list(link, path).await {
            candidates = found;
            break;
        }
    }
    Some(Leases { leases, candidates })
}

async fn list<T: DeserializeOwned>(link: &Link, path: &str) -> Result<Vec<T>, RequestFailure> {
    let text = link.get(path).await?;
    let list: Result<TypedList<T>, _> = serde_json::from_slice(&text);
    list.map(|list| list.items).map_err(|error| RequestFailure::Malformed(error.to_string()))
}

/// The leases of a cluster that is followed. Those that cannot be read any more count as unknown.
pub fn follow(target: KubeconfigTarget) -> Periodic<Leases> {
    let latest = async |link: &Link| Some(read(link).await.unwrap_or_default());
    Periodic::start("leases", target, EVERY, latest)
}
