//! Objects that no scheduler reads, but that say where new nodes come from, what holds pods back and
//! how they are updated: read once, or again and again while a cluster is followed. Kinds that the
//! server does not serve, or that this user may not read, are left out without a word: no decision
//! depends on them.

use std::time::Duration;

use futures::future::join_all;
use kubestep_source::Auxiliary;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget, Link};
use crate::periodic::Periodic;

/// How often they are read while a cluster is followed.
const EVERY: Duration = Duration::from_secs(30);

/// A kind, its API versions in order of preference, the rest of the path of its list, and whether
/// that path is of one object.
struct AuxiliaryKind {
    kind: &'static str,
    versions: &'static [&'static str],
    path: &'static str,
    is_object: bool,
}

const fn list(
    kind: &'static str,
    versions: &'static [&'static str],
    path: &'static str,
) -> AuxiliaryKind {
    AuxiliaryKind { kind, versions, path, is_object: false }
}

const TABLE: &[AuxiliaryKind] = &[
    list("NodePool", &["karpenter.sh/v1"], "nodepools"),
    list("NodeClaim", &["karpenter.sh/v1"], "nodeclaims"),
    list("NodeOverlay", &["karpenter.sh/v1alpha1"], "nodeoverlays"),
    list("DaemonSet", &["apps/v1"], "daemonsets"),
    list("Deployment", &["apps/v1"], "deployments"),
    list("Workload", &["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"], "workloads"),
    list("JobSet", &["jobset.x-k8s.io/v1alpha2"], "jobsets"),
    list("Event", &["v1"], "events?fieldSelector=reason%3DFailedCreate"),
    list("Event", &["v1"], "events?fieldSelector=reason%3DProvisioningFailed"),
    AuxiliaryKind {
        kind: "ConfigMap",
        versions: &["v1"],
        path: "namespaces/kube-system/configmaps/cluster-autoscaler-status",
        is_object: true,
    },
];

/// The rules of a role that reads them.
pub(crate) const ROLE: &str = "\
# All of these may be left out: they explain new nodes, pods that controllers hold back, and
# rollouts.
- apiGroups: [\"karpenter.sh\"]
  resources: [nodepools, nodeclaims, nodeoverlays]
  verbs: [list]
- apiGroups: [\"apps\"]
  resources: [daemonsets, deployments]
  verbs: [list]
- apiGroups: [\"kueue.x-k8s.io\"]
  resources: [workloads]
  verbs: [list]
- apiGroups: [\"jobset.x-k8s.io\"]
  resources: [jobsets]
  verbs: [list]
- apiGroups: [\"\"]
  resources: [events]
  verbs: [list]
- apiGroups: [\"\"]
  resources: [configmaps]
  resourceNames: [cluster-autoscaler-status]
  verbs: [get]
";

#[derive(Deserialize)]
struct ValueList {
    #[serde(default)]
    items: Vec<Value>,
}

/// All of them that can be read.
pub async fn read(link: &Link) -> Auxiliary {
    let answers = join_all(TABLE.iter().map(|row| row.read(link))).await;
    Auxiliary::of_objects(answers.into_iter().flatten())
}

/// Those of a cluster that is followed.
pub fn follow(target: KubeconfigTarget) -> Periodic<Auxiliary> {
    Periodic::start("auxiliary", target, EVERY, async |link: &Link| Some(read(link).await))
}

impl AuxiliaryKind {
    async fn read(&self, link: &Link) -> Vec<Value> {
        for version in self.versions {
            let root = if version.contains('/') { "apis" } else { "api" };
            match link.get(&format!("/{root}/{version}/{}", self.path)).await {
                Ok(text) => return self.objects(version, &text).unwrap_or_default(),
                Err(RequestFailure::Absent(_)) => {}
                Err(_) => break,
            }
        }
        Vec::new()
    }

    /// The objects of an answer, each with its `apiVersion` and `kind`.
    fn objects(&self, version: &str, text: &[u8]) -> serde_json::Result<Vec<Value>> {
        let mut objects = match self.is_object {
            true => vec![serde_json::from_slice(text)?],
            false => serde_json::from_slice::<ValueList>(text)?.items,
        };
        objects.retain(Value::is_object);
        for object in &mut objects {
            object["apiVersion"] = version.into();
            object["kind"] = self.kind.into();
        }
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists_get_their_kind() {
        let row = &TABLE[5];
        let objects = row.objects("kueue.x-k8s.io/v1beta2", br#"{"items": [{"metadata": {}}, 3]}"#);
        let expected = serde_json::json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {}
        });
        assert_eq!(objects.unwrap(), [expected]);
    }
}
