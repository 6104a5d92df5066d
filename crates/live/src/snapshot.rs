//! A whole cluster at one time: all kinds, listed in parallel, and which of them are missing.

use futures::future::{join_all, try_join};
use serde::Deserialize;

use crate::access::MissingKindAccess;
use crate::backoff::{Backoff, Pace};
use crate::failure::RequestFailure;
use crate::kinds;
use crate::link::{Link, LinkError};
use crate::list::{ListScope, Listed, TRIES};
use kubestep_api::{Kind, Leases, Object, Time};
use kubestep_source::Auxiliary;

/// What part of a cluster to read.
#[derive(Clone, Debug, Default)]
pub struct NamespaceScope {
    /// Limits kinds with a namespace to these namespaces; empty: all.
    pub namespaces: Vec<String>,
}

/// A list and what it lists.
#[derive(Clone, Debug)]
pub struct ListedPart {
    /// The kind and namespace.
    pub place: ListScope,
    /// What the server gave.
    pub listed: Listed,
}

/// A cluster as it was listed. The lists are made in parallel, so each shows a slightly different
/// moment.
#[derive(Clone, Debug, Default)]
pub struct ClusterSnapshot {
    /// The server's version, `v1.36.2`.
    pub server_version: String,
    /// When it was complete, by the server's clock.
    pub taken_at: Time,
    /// One list for each kind, and each namespace if not all can be listed.
    pub parts: Vec<ListedPart>,
    /// The kinds that could not be read.
    pub missing: Vec<MissingKindAccess>,
    /// The leases, if they were read.
    pub leases: Option<Leases>,
    /// The objects that no scheduler reads, but that help to explain.
    pub auxiliary: Auxiliary,
    /// Warnings about the connection, one sentence each.
    pub warnings: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    git_version: String,
}

impl NamespaceScope {
    /// All lists to request.
    pub fn places(&self) -> Vec<ListScope> {
        let mut places = Vec::new();
        for row in kinds::all() {
            if !row.kind.is_namespaced() || self.namespaces.is_empty() {
                places.push(ListScope { row, namespace: None });
                continue;
            }
            let within = |name: &String| ListScope { row, namespace: Some(name.clone()) };
            places.extend(self.namespaces.iter().map(within));
        }
        places
    }
}

impl ClusterSnapshot {
    /// Lists everything in `scope`.
    ///
    /// # Errors
    /// The server cannot be reached. A kind that cannot be listed is not an error; it is missing.
    pub async fn take(link: &Link, scope: &NamespaceScope) -> Result<ClusterSnapshot, LinkError> {
        let places = scope.places();
        let pace = Pace::default();
        let lists = join_all(places.iter().map(async |place| {
            let mut backoff = Backoff::new(pace, &place.what());
            place.list(link, &mut backoff, TRIES).await
        }));
        // An error of the version ends the lists, which would be retried.
        let lists = async { Ok(lists.await) };
        let (server_version, lists) = try_join(server_version(link), lists).await?;
        let mut snapshot = ClusterSnapshot {
            server_version,
            warnings: link.notices(),
            ..ClusterSnapshot::default()
        };
        for (place, answer) in places.into_iter().zip(lists) {
            match answer {
                Ok(listed) => snapshot.parts.push(ListedPart { place, listed }),
                Err(failure) => snapshot.missing.push(MissingKindAccess { place, failure }),
            }
        }
        snapshot.check(link)?;
        snapshot.taken_at = link.now();
        Ok(snapshot)
    }

    /// Objects that already exist, as if a server had listed them.
    pub fn of_objects(objects: impl IntoIterator<Item = Object>) -> ClusterSnapshot {
        let part = |row| ListedPart {
            place: ListScope { row, namespace: None },
            listed: Listed::default(),
        };
        let mut parts: Vec<ListedPart> = kinds::all().iter().map(part).collect();
        for object in objects {
            let kind = object.kind();
            if let Some(part) = parts.iter_mut().find(|part| part.place.row.kind == kind) {
                part.listed.objects.push(object);
            }
        }
        ClusterSnapshot { parts, ..ClusterSnapshot::default() }
    }

    /// A server that rejects every list cannot be used.
    fn check(&self, link: &Link) -> Result<(), LinkError> {
        let Some(missing) = self.missing.first().filter(|_| self.parts.is_empty()) else {
            return Ok(());
        };
        let (server, failure) = (link.server().to_owned(), missing.failure.clone());
        Err(match failure {
            RequestFailure::Refused(_) => LinkError::Refused { server, failure },
            failure => LinkError::Unreachable { server, failure },
        })
    }

    /// All objects, in the order of the table of kinds.
    pub fn objects(&self) -> impl Iterator<Item = &Object> + Clone {
        self.parts.iter().flat_map(|part| &part.listed.objects)
    }

    /// The objects of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let parts = self.parts.iter().filter(move |part| part.place.row.kind == kind);
        parts.flat_map(|part| &part.listed.objects)
    }

    /// Takes all objects out.
    pub fn take_objects(&mut self) -> Vec<Object> {
        let parts = self.parts.iter_mut();
        parts.flat_map(|part| std::mem::take(&mut part.listed.objects)).collect()
    }

    /// Warnings for the user, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let unreadable = self.parts.iter().flat_map(|part| &part.listed.unreadable);
        let unreadable = unreadable.map(|problem| format!("skipped, unreadable: {problem}"));
        let missing = crate::access::notices(&self.missing);
        self.warnings.iter().cloned().chain(missing).chain(unreadable).collect()
    }
}

/// The version of the server, `v1.36.2`; empty if it is hidden. A request without retries, which
/// shows whether the server can be reached.
///
/// # Errors
/// The server cannot be reached.
pub async fn server_version(link: &Link) -> Result<String, LinkError> {
    let unreachable =
        |failure| LinkError::Unreachable { server: link.server().to_owned(), failure };
    match link.get("/version").await {
        Ok(text) => {
            let version: Version = serde_json::from_slice(&text).map_err(|error| {
                unreachable(RequestFailure::Malformed(format!(
                    "this is not an API server: {error}"
                )))
            })?;
            Ok(version.git_version)
        }
        // Some clusters hide their version from users who may read everything else.
        Err(RequestFailure::Refused(_)) => Ok(String::new()),
        Err(failure) => Err(unreachable(failure)),
    }
}
