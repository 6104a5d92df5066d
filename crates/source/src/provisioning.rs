//! Objects that no scheduler reads, but that say where new nodes come from: karpenter's, the report
//! of cluster-autoscaler, DaemonSets.
//!
//! They are read leniently: one that is not understood becomes a warning, because a scheduler
//! decides the same without it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use kubestep_api::intern::Symbol;
use kubestep_api::{AutoscalerStatus, Provisioning};

/// The ConfigMap in which cluster-autoscaler reports.
const AUTOSCALER_STATUS: &str = "cluster-autoscaler-status";

/// Whether objects of that kind are read; `text` is the object as written.
pub(super) fn is_read(kind: &str, text: &str) -> bool {
    match kind {
        "NodePool" | "NodeClaim" | "NodeOverlay" => true,
        // A list leaves the kind of its items out.
        "DaemonSet" => text.contains("template"),
        "ConfigMap" => text.contains(AUTOSCALER_STATUS),
        _ => false,
    }
}

/// Adds an object. `false` if it also counts as skipped: it is none of these, or a DaemonSet, of
/// which a scheduler only sees the pods.
///
/// # Errors
/// It is not understood; the text is a warning.
pub(super) fn take(
    into: &mut Provisioning,
    kind: Symbol,
    mut value: Value,
) -> Result<bool, String> {
    let group = value["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    let is_of_karpenter = group.is_none_or(|(group, _)| group == "karpenter.sh");
    let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let taken = match kind.as_str() {
        "NodePool" if is_of_karpenter => push(&mut into.node_pools, value),
        "NodeClaim" if is_of_karpenter => push(&mut into.node_claims, value),
        "NodeOverlay" if is_of_karpenter => push(&mut into.node_overlays, value),
        "ConfigMap" if name == AUTOSCALER_STATUS => autoscaler_status(into, &value),
        "DaemonSet" => {
            value["apiVersion"] = "apps/v1".into();
            value["kind"] = "DaemonSet".into();
            into.daemon_sets.push(value);
            return Ok(false);
        }
        _ => return Ok(false),
    };
    taken
        .map(|()| true)
        .map_err(|error| format!("{kind} {name} is not used for new nodes: {error}"))
}

fn push<T: DeserializeOwned>(list: &mut Vec<T>, value: Value) -> Result<(), String> {
    list.push(serde_json::from_value(value).map_err(|error| error.to_string())?);
    Ok(())
}

/// The report is YAML in the field `status`; before cluster-autoscaler 1.30 it was plain text.
fn autoscaler_status(into: &mut Provisioning, config_map: &Value) -> Result<(), String> {
    let text = config_map["data"]["status"].as_str().unwrap_or_default();
    let other = || "it is not in the format that cluster-autoscaler has since 1.30".to_owned();
    let report: Value = kubestep_api::yaml::from_str(text).map_err(|_| other())?;
    // The older text can be read as YAML, too.
    if report.get("autoscalerStatus").is_none() {
        return Err(other());
    }
    let status: AutoscalerStatus = serde_json::from_value(report).map_err(|_| other())?;
    into.autoscaler = Some(status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Filter, read_text};

    fn read(text: &str) -> (Provisioning, Vec<String>) {
        let input = read_text("f", text.into(), &Filter::default()).unwrap();
        (input.provisioning, input.warnings)
    }

    #[test]
    fn objects_that_create_nodes_are_kept_beside_the_skipped() {
        let input = "
kind: NodePool
apiVersion: karpenter.sh/v1
metadata: {name: general}
spec:
  limits: {cpu: '10'}
  template:
    metadata: {labels: {team: a}}
    spec:
      startupTaints: [{key: setup, effect: NoSchedule}]
      requirements: [{key: zone, operator: In, values: [a, b], minValues: 2}]
---
kind: List
apiVersion: v1
items:
- {kind: NodeClaim, apiVersion: karpenter.sh/v1, metadata: {name: general-x}, status: {nodeName: n}}
- {kind: DaemonSet, apiVersion: apps/v1, metadata: {name: logs}, spec: {template: {}}}
- {kind: ConfigMap, apiVersion: v1, metadata: {name: other}, data: {status: x}}
---
kind: NodePool
apiVersion: cloud.example.com/v1
metadata: {name: of-another-group}
";
        let input = read_text("f", input.into(), &Filter::default()).unwrap();
        let found = &input.provisioning;
        let pool = &found.node_pools[0];
        assert_eq!((pool.metadata.name.as_str(), found.node_pools.len()), ("general", 1));
        assert_eq!(pool.spec.template.spec.startup_taints[0].key, "setup");
        assert_eq!(pool.spec.template.spec.requirements[0].values.len(), 2);
        assert_eq!(found.node_claims[0].status.node_name, "n");
        assert_eq!(found.daemon_sets.len(), 1);
        assert!(found.autoscaler.is_none());
        let skipped = |kind: &str| input.skipped.get(&Symbol::new(kind)).copied();
        assert_eq!([skipped("NodePool"), skipped("DaemonSet")], [Some(1), Some(1)]);
        assert_eq!([skipped("NodeClaim"), skipped("ConfigMap")], [None, Some(1)]);
    }

    #[test]
    fn typed_lists_and_large_files_are_read_alike() {
        let pool = |number| json!({"metadata": {"name": format!("p{number}")}, "spec": {}});
        let pools: Vec<Value> = (0..3).map(pool).collect();
        let list = json!({"kind": "NodePoolList", "apiVersion": "karpenter.sh/v1", "items": pools});
        let text = list.to_string();
        assert_eq!(read(&text).0.node_pools.len(), 3);
        let limits = crate::Limits { whole: 10, chunk: 64, object: 1 << 20 };
        let streamed = crate::read_bytes("f", text.as_bytes(), &Filter::default(), limits).unwrap();
        assert_eq!(streamed.provisioning.node_pools.len(), 3);
    }

    #[test]
    fn items_that_are_no_objects_are_warnings() {
        let list = r#"{"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": ["template"]}"#;
        assert!(read(list).0.daemon_sets.is_empty());
    }

    #[test]
    fn the_report_of_cluster_autoscaler_is_decoded() {
        let map = |status: &str| {
            json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"status": status},
                "metadata": {"name": AUTOSCALER_STATUS, "namespace": "kube-system"}})
            .to_string()
        };
        let status = "
time: 2023-11-24 04:28:19.546750398 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: pool-a
  health: {status: Healthy, cloudProviderTarget: 3, minSize: 1, maxSize: 3}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no quota}}
";
        let group = read(&map(status)).0.autoscaler.unwrap().node_groups.remove(0);
        assert_eq!((group.health.max_size, group.health.cloud_provider_target), (3, 3));
        assert_eq!(group.scale_up.backoff_info.error_code, "QUOTA_EXCEEDED");
        let (_, warnings) = read(&map("Cluster-autoscaler status at 2019:\n  Health: x (a=1)"));
        assert!(warnings.iter().any(|text| text.contains("since 1.30")), "{warnings:?}");
    }
}
