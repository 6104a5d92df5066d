//! Objects that no scheduler reads, but that say where new nodes come from (karpenter's, the report
//! of cluster-autoscaler, DaemonSets), what holds pods back before the scheduler (Kueue's
//! workloads, job sets, events of objects that were not created), or how pods are updated
//! (Deployments, DaemonSets).
//!
//! They are read leniently: one that is not understood becomes a warning, because a scheduler
//! decides the same without it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use kubestep_api::intern::Symbol;
use kubestep_api::{
    AutoscalerStatus, ControllerReports, ObjectMeta, PodTemplateSpec, Provisioning,
};

/// The ConfigMap in which cluster-autoscaler reports.
const AUTOSCALER_STATUS: &str = "cluster-autoscaler-status";
/// The reasons of events that say why an object was not created.
const REJECTIONS: [&str; 3] = ["FailedCreate", "ProvisioningFailed", "FailedResourceClaimCreation"];

/// Whether objects of that kind are read; `text` is the object as written.
pub(super) fn is_read(kind: &str, text: &str) -> bool {
    match kind {
        "NodePool" | "NodeClaim" | "NodeOverlay" | "JobSet" | "Deployment" => true,
        "Workload" => text.contains("podSets"),
        "Event" => REJECTIONS.iter().any(|reason| text.contains(reason)),
        // A list leaves the kind of its items out.
        "DaemonSet" => text.contains("template"),
        "ConfigMap" => text.contains(AUTOSCALER_STATUS),
        _ => false,
    }
}

/// The objects that no scheduler reads, but that help to explain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auxiliary {
    /// Where new nodes come from.
    pub provisioning: Provisioning,
    /// What controllers in front of the scheduler report.
    pub controllers: ControllerReports,
}

impl Auxiliary {
    /// From objects with `apiVersion` and `kind`; those that are not understood are left out.
    pub fn of_objects(objects: impl IntoIterator<Item = Value>) -> Auxiliary {
        let mut auxiliary = Auxiliary::default();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default().into();
            let _left_out = auxiliary.take(kind, object);
        }
        auxiliary
    }

    /// The objects for a file: what is read of them and nothing else, because annotations and
    /// environments of containers may contain secrets.
    ///
    /// # Errors
    /// An object cannot be serialized; no such object is known.
    pub fn objects(&self) -> serde_json::Result<Vec<Value>> {
        let Provisioning { node_pools, node_claims, node_overlays, .. } = &self.provisioning;
        let ControllerReports { workloads, job_sets, events, deployments } = &self.controllers;
        let mut objects = [
            headed("karpenter.sh/v1", "NodePool", node_pools)?,
            headed("karpenter.sh/v1", "NodeClaim", node_claims)?,
            headed("karpenter.sh/v1alpha1", "NodeOverlay", node_overlays)?,
            headed("kueue.x-k8s.io/v1beta2", "Workload", workloads)?,
            headed("jobset.x-k8s.io/v1alpha2", "JobSet", job_sets)?,
            headed("v1", "Event", events)?,
            headed("apps/v1", "Deployment", deployments)?,
        ]
        .concat();
        // One that is not understood has no pods on new nodes.
        let sets = self.provisioning.daemon_sets.iter();
        objects.extend(sets.filter_map(|set| minimal_daemon_set(set).ok()));
        if let Some(status) = &self.provisioning.autoscaler {
            let mut report = serde_json::to_value(status)?;
            report["autoscalerStatus"] = "Running".into();
            objects.push(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": AUTOSCALER_STATUS, "namespace": "kube-system"},
                "data": {"status": report.to_string()},
            }));
        }
        Ok(objects)
    }

    /// Adds an object. `false` if it also counts as skipped: it is none of these, or a DaemonSet or
    /// Deployment, of which a scheduler only sees the pods.
    ///
    /// # Errors
    /// It is not understood; the text is a warning.
    pub(super) fn take(&mut self, kind: Symbol, mut value: Value) -> Result<bool, String> {
        let group = value["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        let is_of = |other| group.is_none_or(|(group, _)| group == other);
        let (is_of_karpenter, is_of_kueue) = (is_of("karpenter.sh"), is_of("kueue.x-k8s.io"));
        let (is_of_job_set, is_of_apps) = (is_of("jobset.x-k8s.io"), is_of("apps"));
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if ["Workload", "JobSet", "DaemonSet", "Deployment"].contains(&kind.as_str())
            && value["metadata"]["namespace"].is_null()
        {
            value["metadata"]["namespace"] = "default".into();
        }
        let (nodes, reports) = (&mut self.provisioning, &mut self.controllers);
        let (taken, purpose) = match kind.as_str() {
            "NodePool" if is_of_karpenter => (push(&mut nodes.node_pools, value), NEW_NODES),
            "NodeClaim" if is_of_karpenter => (push(&mut nodes.node_claims, value), NEW_NODES),
            "NodeOverlay" if is_of_karpenter => (push(&mut nodes.node_overlays, value), NEW_NODES),
            "ConfigMap" if name == AUTOSCALER_STATUS => {
                (autoscaler_status(nodes, &value), NEW_NODES)
            }
            "Workload" if is_of_kueue => (push(&mut reports.workloads, value), PODS),
            "JobSet" if is_of_job_set => (push(&mut reports.job_sets, value), PODS),
            "Event" if is_rejection(&value) => (push(&mut reports.events, core_event(value)), PODS),
            // A Deployment that is not understood is updated as by default.
            "Deployment" if is_of_apps => {
                reports.deployments.extend(serde_json::from_value(value).ok());
                return Ok(false);
            }
            "DaemonSet" => {
                value["apiVersion"] = "apps/v1".into();
                value["kind"] = "DaemonSet".into();
                nodes.daemon_sets.push(value);
                return Ok(false);
            }
            _ => return Ok(false),
        };
        taken
            .map(|()| true)
            .map_err(|error| format!("{kind} {name} is not used for {purpose}: {error}"))
    }
}

/// The objects as JSON with `apiVersion` and `kind`, without annotations.
fn headed<T: Serialize>(
    api_version: &str,
    kind: &str,
    objects: &[T],
) -> serde_json::Result<Vec<Value>> {
    let value = |object: &T| {
        let mut value = serde_json::to_value(object)?;
        value["apiVersion"] = api_version.into();
        value["kind"] = kind.into();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
        Ok(value)
    };
    objects.iter().map(value).collect()
}

fn minimal_daemon_set(set: &Value) -> serde_json::Result<Value> {
    let template: PodTemplateSpec = serde_json::from_value(set["spec"]["template"].clone())?;
    let metadata: ObjectMeta = serde_json::from_value(set["metadata"].clone())?;
    let mut spec = json!({"selector": set["spec"]["selector"], "template": template});
    for field in ["updateStrategy", "minReadySeconds"] {
        if let Some(value) = set["spec"].get(field) {
            spec[field] = value.clone();
        }
    }
    let mut set = json!({"metadata": metadata, "spec": spec});
    for path in ["/metadata", "/spec/template/metadata"] {
        if let Some(metadata) = set.pointer_mut(path).and_then(Value::as_object_mut) {
            metadata.remove("annotations");
        }
    }
    set["apiVersion"] = "apps/v1".into();
    set["kind"] = "DaemonSet".into();
    Ok(set)
}

/// What objects are read for.
const NEW_NODES: &str = "new nodes";
const PODS: &str = "the causes of pending pods";

fn is_rejection(event: &Value) -> bool {
    event["reason"].as_str().is_some_and(|reason| REJECTIONS.contains(&reason))
}

/// An event of either API with the names of `core/v1`.
fn core_event(mut event: Value) -> Value {
    for (new, old) in [("regarding", "involvedObject"), ("note", "message")] {
        if let Some(field) = event.as_object_mut().and_then(|fields| fields.remove(new)) {
            event[old] = field;
        }
    }
    event
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
    use super::*;
    use crate::{Filter, read_text};

    fn read(text: &str) -> (Provisioning, Vec<String>) {
        let input = read_text("f", text.into(), &Filter::default()).unwrap();
        (input.auxiliary.provisioning, input.warnings)
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
        let found = &input.auxiliary.provisioning;
        let pool = &found.node_pools[0];
        assert_eq!((pool.metadata.name, found.node_pools.len()), ("general".into(), 1));
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
        let limits = crate::MemoryLimits { whole: 10, chunk: 64, object: 1 << 20 };
        let streamed = crate::read_bytes("f", text.as_bytes(), &Filter::default(), limits).unwrap();
        assert_eq!(streamed.auxiliary.provisioning.node_pools.len(), 3);
    }

    #[test]
    fn reports_of_controllers_are_kept() {
        let text = "
{kind: Workload, apiVersion: kueue.x-k8s.io/v1beta2, metadata: {name: w}, spec: {podSets: [{name: main, count: 4}]}}
---
{kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: j}, spec: {suspend: true}}
---
{kind: Event, apiVersion: events.k8s.io/v1, metadata: {name: e}, reason: FailedCreate, note: exceeded quota, regarding: {kind: ReplicaSet, name: web}}
---
{kind: Event, apiVersion: v1, metadata: {name: f}, reason: Scheduled, message: no FailedCreate}
";
        let input = read_text("f", text.into(), &Filter::default()).unwrap();
        let found = &input.auxiliary.controllers;
        assert_eq!(found.workloads[0].spec.pod_sets[0].count, 4);
        assert_eq!(found.job_sets[0].spec.suspend, Some(true));
        let [event] = &found.events[..] else { panic!("{:?}", found.events) };
        assert_eq!(
            (event.message.as_str(), event.involved_object.name),
            ("exceeded quota", "web".into())
        );
        assert_eq!(input.skipped.values().sum::<usize>(), 1);
    }

    #[test]
    fn a_capture_is_read_back_and_has_no_secrets() {
        let text = "
{kind: NodePool, apiVersion: karpenter.sh/v1, metadata: {name: general, annotations: {a: SECRET}}, spec: {weight: 3}}
---
{kind: Workload, apiVersion: kueue.x-k8s.io/v1beta2, metadata: {name: w}, spec: {podSets: [{name: main, count: 4}]}}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: logs, namespace: kube-system, annotations: {a: SECRET}}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}, annotations: {a: SECRET}}
    spec:
      containers:
      - {name: c, env: [{name: TOKEN, value: SECRET}], args: [SECRET], resources: {requests: {cpu: 100m}}}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: cluster-autoscaler-status, namespace: kube-system}
data: {status: '{\"autoscalerStatus\": \"Running\", \"nodeGroups\": [{\"name\": \"a\"}]}'}
";
        let read =
            |text: String| read_text("f", text.into(), &Filter::default()).unwrap().auxiliary;
        let found = read(text.into());
        let objects = found.objects().unwrap();
        let written = json!({"pods": [], "auxiliary": objects}).to_string();
        assert!(!written.contains("SECRET") && written.contains("100m"), "{written}");
        let back = read(written);
        assert_eq!(back.objects().unwrap(), objects);
        assert_eq!((back.provisioning.daemon_sets.len(), back.controllers.workloads.len()), (1, 1));
        assert_eq!(back.provisioning.autoscaler, found.provisioning.autoscaler);
        assert_eq!(back.provisioning.node_pools[0].spec.weight, 3);
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
