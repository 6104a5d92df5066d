//! What the controllers create for manifests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use kubestep_framework::testing::node;

fn yaml(text: &str) -> Value {
    kubestep_api::yaml::from_str(text).unwrap()
}

fn made(text: &str, replicas: Option<usize>) -> ExpandedWorkload {
    expand(&yaml(text), &WorkloadInputs { replicas, nodes: &[] }).unwrap().unwrap()
}

/// Names and JSON of the objects.
fn objects(workload: &ExpandedWorkload) -> Vec<(String, Value)> {
    let object = |object: &Object| (object.key().to_string(), object.to_json().unwrap());
    workload.objects().iter().map(object).collect()
}

fn names(workload: &ExpandedWorkload) -> Vec<String> {
    objects(workload).into_iter().map(|(name, _)| name).collect()
}

const TEMPLATE: &str =
    "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}";

#[test]
fn a_pod_is_tried_without_its_node_and_copied_on_request() {
    let text = "kind: Pod
metadata: {name: web, namespace: shop, uid: u, creationTimestamp: 2020-01-01T00:00:00Z}
spec: {nodeName: n1, containers: [{name: c}]}
status: {phase: Running}";
    let one = made(text, None);
    assert_eq!(one.notices, ["Pod shop/web: is tried without its node n1"]);
    assert_eq!(
        objects(&one),
        [(
            "Pod shop/web".to_owned(),
            json!({"metadata": {"name": "web", "namespace": "shop"},
                "spec": {"containers": [{"name": "c"}]}})
        )]
    );
    assert_eq!(names(&made(text, Some(2))), ["Pod shop/web-1", "Pod shop/web-2"]);
    let more = one.replica(1)[0].key().to_string();
    assert_eq!(more, "Pod shop/web-2");
    let generated = made("kind: Pod\nmetadata: {generateName: web-}\nspec: {}", None);
    assert_eq!(names(&generated), ["Pod default/web-1"]);
}

#[test]
fn a_deployment_makes_a_replica_set_and_its_pods() {
    let text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, uid: d}}\nspec: {{replicas: \
         2, selector: {{matchLabels: {{app: web}}}}, {TEMPLATE}}}"
    );
    let workload = made(&text, None);
    let hash = &names(&workload)[0]["ReplicaSet default/web-".len()..];
    assert_eq!(hash.len(), 10);
    let found = objects(&workload);
    let labels = json!({"app": "web", "pod-template-hash": hash});
    let set = &found[0].1;
    assert_eq!(set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(set["metadata"]["ownerReferences"][0]["kind"], "Deployment");
    let pod = &found[2].1;
    assert_eq!(found[2].0, format!("Pod default/web-{hash}-2"));
    assert_eq!(pod["metadata"]["labels"], labels);
    assert_eq!(
        pod["metadata"]["ownerReferences"],
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("web-{hash}"),
            "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(names(&made(&text, Some(5))).len(), 6);
}

#[test]
fn sets_and_controllers_own_their_pods() {
    let spec = format!("spec: {{selector: {{matchLabels: {{app: web}}}}, {TEMPLATE}}}");
    let set = made(
        &format!("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: web}}\n{spec}"),
        None,
    );
    assert_eq!(names(&set), ["ReplicaSet default/web", "Pod default/web-1"]);
    let text = format!(
        "apiVersion: v1\nkind: ReplicationController\nmetadata: {{name: web}}\nspec: {{replicas: 2, \
         selector: {{app: web}}, {TEMPLATE}}}"
    );
    let controller = made(&text, None);
    assert_eq!(names(&controller)[1..], ["Pod default/web-1", "Pod default/web-2"]);
    let pod = &objects(&controller)[1].1;
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
}

#[test]
fn pods_of_a_stateful_set_have_numbers_and_claims() {
    let workload = made(
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  ordinals: {start: 3}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c}]
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
        None,
    );
    assert_eq!(
        names(&workload),
        [
            "StatefulSet shop/db",
            "PersistentVolumeClaim shop/data-db-3",
            "Pod shop/db-3",
            "PersistentVolumeClaim shop/data-db-4",
            "Pod shop/db-4",
        ]
    );
    assert_eq!(workload.notices.len(), 1);
    let pod = &objects(&workload)[2].1;
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-3"}},
            {"name": "tmp", "emptyDir": {}}])
    );
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "3");
    assert_eq!(pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "db-3");
}

fn nodes() -> Vec<Arc<Node>> {
    let tainted = |name: &str, key: &str| {
        let mut node = node(name);
        node.spec.taints =
            serde_json::from_value(json!([{"key": key, "effect": "NoSchedule"}])).unwrap();
        Arc::new(node)
    };
    vec![
        Arc::new(node("a")),
        tainted("cordoned", "node.kubernetes.io/unschedulable"),
        tainted("kept", "mine"),
    ]
}

#[test]
fn a_daemon_set_has_a_pod_for_each_node_that_it_suits() {
    let text = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log}
spec:
  template:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: none, operator: DoesNotExist}]}]
      containers: [{name: c}]";
    let nodes = nodes();
    let of = |text: &str, replicas| {
        expand(&yaml(text), &WorkloadInputs { replicas, nodes: &nodes }).unwrap()
    };
    let workload = of(text, None).unwrap();
    assert_eq!(names(&workload), ["Pod default/log-a", "Pod default/log-cordoned"]);
    assert_eq!(workload.notices, ["DaemonSet default/log: is not for 1 other node"]);
    assert!(!workload.can_grow && workload.replica(2).is_empty());
    let pod = &objects(&workload)[1].1;
    let required =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let by_name = json!({"key": "metadata.name", "operator": "In", "values": ["cordoned"]});
    assert_eq!(required, &json!({"nodeSelectorTerms": [{"matchFields": [by_name]}]}));
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
    let one = of(&text.replace("containers", "nodeName: a\n      containers"), None).unwrap();
    assert_eq!(names(&one), ["Pod default/log-a"]);
    let host = of(&text.replace("containers", "hostNetwork: true\n      containers"), None);
    let pod = &objects(&host.unwrap())[0].1;
    assert_eq!(pod["spec"]["tolerations"][6]["key"], "node.kubernetes.io/network-unavailable");
    let error = of(text, Some(2)).err().unwrap().to_string();
    assert!(error.ends_with("a DaemonSet has one pod for each node: omit --replicas"), "{error}");
}

#[test]
fn jobs_run_as_many_pods_as_are_allowed_at_a_time() {
    let of = |kind: &str, spec: &str| {
        made(
            &format!(
                "apiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: sum}}\nspec: {{{spec}}}"
            ),
            None,
        )
    };
    let job = of("Job", &format!("parallelism: 3, completions: 2, {TEMPLATE}"));
    assert_eq!(names(&job), ["Pod default/sum-1", "Pod default/sum-2"]);
    let pod = &objects(&job)[0].1;
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], "sum");
    let uid = &pod["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(&pod["metadata"]["labels"]["controller-uid"], uid);
    let indexed = of("Job", &format!("suspend: true, completionMode: Indexed, {TEMPLATE}"));
    let pod = &objects(&indexed)[0].1;
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "0");
    assert_eq!(indexed.notices.len(), 1);
    let cron = of("CronJob", &format!("jobTemplate: {{spec: {{parallelism: 2, {TEMPLATE}}}}}"));
    assert_eq!(names(&cron), ["Pod default/sum-29453760-1", "Pod default/sum-29453760-2"]);
}

#[test]
fn what_is_wrong_is_reported_with_its_field() {
    let error = |text: &str| {
        let surroundings = WorkloadInputs { replicas: None, nodes: &[] };
        expand(&yaml(text), &surroundings).unwrap().err().unwrap().to_string()
    };
    let head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    assert_eq!(error(head), "Deployment default/web: spec.template.spec: is missing");
    assert_eq!(
        error(&format!("{head}spec: {{replicas: many, {TEMPLATE}}}")),
        "Deployment default/web: spec.replicas: \"many\" is not a number of 0 or more"
    );
    let many = error(&format!("{head}spec: {{replicas: 2000000000, {TEMPLATE}}}"));
    assert_eq!(many, "Deployment default/web: spec.replicas: 2000000000 is more than 1000000");
    for selector in ["web", "{matchLabels: [a]}"] {
        let text = format!("{head}spec: {{selector: {selector}, {TEMPLATE}}}");
        assert!(
            error(&text).starts_with("Deployment default/web: spec.selector"),
            "{}",
            error(&text)
        );
    }
    let wrong = "spec: {template: {spec: {containers: [{resources: {requests: {cpu: x}}}]}}}";
    let path = "Deployment default/web: spec.template.spec.containers[0].resources.requests";
    assert!(error(&format!("{head}{wrong}")).starts_with(path));
    assert!(error("kind: Job\nmetadata: {}\nspec: {}").contains("metadata.name: is missing"));
    let other = WorkloadInputs { replicas: None, nodes: &[] };
    assert!(expand(&yaml("apiVersion: serving.knative.dev/v1\nkind: Job"), &other).is_none());
    assert!(expand(&yaml("kind: Service"), &other).is_none());
}

/// Any value in any field gives an error, never a panic.
#[test]
fn odd_manifests_are_rejected() {
    let odd = [json!(null), json!(1), json!("x"), json!([]), json!({}), json!({"a": [null]})];
    for (kind, ..) in KINDS {
        let whole = json!({"kind": kind, "metadata": {"name": "web", "labels": {}}, "spec": {
            "selector": {"matchLabels": {}}, "replicas": 1, "volumeClaimTemplates": [],
            "template": {"metadata": {}, "spec": {"containers": []}},
            "jobTemplate": {"spec": {"template": {"spec": {}}}},
        }});
        let paths = [
            "/metadata",
            "/spec",
            "/spec/selector",
            "/spec/selector/matchLabels",
            "/spec/replicas",
            "/spec/volumeClaimTemplates",
            "/spec/template",
            "/spec/template/metadata",
            "/spec/template/spec",
            "/spec/jobTemplate",
        ];
        for path in paths {
            for value in &odd {
                let mut manifest = whole.clone();
                *manifest.pointer_mut(path).unwrap() = value.clone();
                let surroundings = WorkloadInputs { replicas: None, nodes: &[] };
                if let Some(Ok(workload)) = expand(&manifest, &surroundings) {
                    workload.objects();
                }
            }
        }
    }
}
