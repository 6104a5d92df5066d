//! The paths of kinds, as the API server serves them.

use hashbrown::HashMap;
use serde_json::Value;

use super::requests::Requests;
use crate::failure::RequestFailure;

/// Where the objects of a kind are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourcePath {
    /// The path before the namespace: `/api/v1`, `/apis/resource.k8s.io/v1`.
    prefix: String,
    /// The resource in paths: `pods`.
    pub plural: String,
    pub namespaced: bool,
    /// Whether the status is not stored when the object is created. That of a node is.
    pub has_own_status: bool,
}

impl ResourcePath {
    /// The path of all objects in a namespace; "" for kinds without.
    pub fn path(&self, namespace: &str) -> String {
        let ResourcePath { prefix, plural, .. } = self;
        match self.namespaced {
            true => format!("{prefix}/namespaces/{namespace}/{plural}"),
            false => format!("{prefix}/{plural}"),
        }
    }
}

/// The resources that were asked for.
#[derive(Default)]
pub(super) struct Resources {
    found: HashMap<(String, String), ResourcePath>,
}

impl Resources {
    /// The resource of a kind.
    pub async fn find(
        &mut self,
        requests: &Requests,
        version: &str,
        kind: &str,
    ) -> Result<ResourcePath, RequestFailure> {
        let key = (version.to_owned(), kind.to_owned());
        if let Some(found) = self.found.get(&key) {
            return Ok(found.clone());
        }
        let prefix = match version.contains('/') {
            true => format!("/apis/{version}"),
            false => format!("/api/{version}"),
        };
        let served = requests.read(&prefix).await?;
        let found = find(&served, &prefix, kind).ok_or_else(|| {
            RequestFailure::Absent(format!("the server has no {kind} of version {version}"))
        })?;
        self.found.insert(key, found.clone());
        Ok(found)
    }
}

/// The resource in what the server answers about a version.
fn find(served: &Value, prefix: &str, kind: &str) -> Option<ResourcePath> {
    let all = served["resources"].as_array()?;
    let name = |it: &Value| it["name"].as_str().map(str::to_owned);
    let one = all.iter().find(|it| {
        it["kind"] == kind && it["name"].as_str().is_some_and(|name| !name.contains('/'))
    })?;
    let plural = name(one)?;
    let status = format!("{plural}/status");
    let has_status = all.iter().any(|it| it["name"] == status.as_str());
    Some(ResourcePath {
        prefix: prefix.to_owned(),
        namespaced: one["namespaced"] == true,
        has_own_status: has_status && kind != "Node" && kind != "Pod",
        plural,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_those_that_the_server_names() {
        let served = json!({"resources": [
            {"name": "nodes/proxy", "kind": "Node", "namespaced": false},
            {"name": "nodes", "kind": "Node", "namespaced": false},
            {"name": "nodes/status", "kind": "Node", "namespaced": false},
            {"name": "persistentvolumeclaims", "kind": "PersistentVolumeClaim", "namespaced": true},
            {"name": "persistentvolumeclaims/status", "kind": "PersistentVolumeClaim",
             "namespaced": true},
        ]});
        let node = find(&served, "/api/v1", "Node").unwrap();
        assert_eq!((node.path(""), node.has_own_status), ("/api/v1/nodes".into(), false));
        let claim = find(&served, "/api/v1", "PersistentVolumeClaim").unwrap();
        assert_eq!(claim.path("a"), "/api/v1/namespaces/a/persistentvolumeclaims");
        assert!(claim.has_own_status);
        assert_eq!(find(&served, "/api/v1", "Pod"), None);
    }
}
