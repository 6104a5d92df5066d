//! `kubestep run` with additional pods and workloads, and with capacity counts.

use crate::harness::Call;

/// Two nodes of 2 CPUs, and a third one with a taint.
const NODES: &str = "\
kind: List
apiVersion: v1
items:
- kind: Node
  apiVersion: v1
  metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a}}
  status: {allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}}
- kind: Node
  apiVersion: v1
  metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b}}
  status: {allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}}
- kind: Node
  apiVersion: v1
  metadata: {name: node-c}
  spec: {taints: [{key: kept, effect: NoSchedule}]}
  status: {allocatable: {cpu: \"8\", memory: 16Gi, pods: \"10\"}}
";

/// The last line of a container's template.
const SPEC: &str = "spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}";

fn workload(kind: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         selector: {{matchLabels: {{app: web}}}}\n{more}  template:\n    metadata: {{labels: \
         {{app: web}}}}\n    {SPEC}\n"
    )
}

fn says(name: &str, pod: &str, options: &str) {
    let line = format!("run -f nodes.yaml --pod try.yaml {options}");
    let call = Call::new().file("nodes.yaml", NODES).file("try.yaml", pod);
    call.says(&format!("tries/{name}"), line.trim_end());
}

fn pod() -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n{SPEC}\n")
}

#[test]
fn workloads_are_tried_as_their_controllers_make_them() {
    says("pod", &pod(), "");
    says("deployment", &workload("Deployment", "  replicas: 3\n"), "");
    says("daemon-set", &workload("DaemonSet", ""), "");
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: sum}}\nspec:\n  \
         parallelism: 2\n  template:\n    {SPEC}\n"
    );
    says("two-kinds", &format!("{}---\n{job}", pod()), "");
}

#[test]
fn a_stateful_set_brings_its_claims() {
    let more = "  replicas: 2\n  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: \
                {storageClassName: late, resources: {requests: {storage: 1Gi}}}\n";
    let class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: late}\n\
                 provisioner: example.com/disk\nvolumeBindingMode: WaitForFirstConsumer\n";
    says("stateful-set", &format!("{}{class}", workload("StatefulSet", more)), "");
}

#[test]
fn replicas_take_the_place_of_what_is_written() {
    says("replicas", &pod(), "--replicas 12");
    says("no-replicas", &workload("Deployment", ""), "--replicas 0 --capacity");
}

#[test]
fn room_is_counted() {
    says("capacity", &pod(), "--capacity");
    says("capacity-limit", &pod(), "--capacity --max-cycles 2");
    let both = format!("{}---\n{}", pod(), workload("Deployment", "").replace("500m", "1500m"));
    says("capacity-two", &both, "--capacity");
    says("capacity-json", &both, "--capacity -o json");
}

#[test]
fn what_cannot_be_tried_is_reported() {
    says("wrong-field", &workload("Deployment", "").replace("500m", "half"), "");
    says("no-kind", "metadata: {name: web}\n", "");
    says("nothing", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "");
    says("daemon-replicas", &workload("DaemonSet", ""), "--replicas 2");
    says("daemon-capacity", &workload("DaemonSet", ""), "--capacity");
    says("twice", &format!("{}---\n{}", pod(), pod()), "");
    says("syntax", "kind: [\n", "");
    Call::new().file("nodes.yaml", NODES).says("tries/missing", "run -f nodes.yaml --pod try.yaml");
    Call::new()
        .file("nodes.yaml", NODES)
        .says("tries/capacity-alone", "run -f nodes.yaml --capacity");
}
