//! What controllers in front of the scheduler report: Kueue's workloads, job sets, quotas, agents
//! of new nodes.

use crate::harness::Call;

const NODE: &str = "
kind: Node
apiVersion: v1
metadata: {name: n1}
spec: {taints: [{key: ebs.csi.aws.com/agent-not-ready, effect: NoExecute}]}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}
---
kind: Pod
apiVersion: v1
metadata: {name: web}
spec:
  containers: [{name: c, image: x}]
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
---
";

/// Kueue's Workload of the pod `web`.
fn workload(spec: &str, status: &str) -> String {
    format!(
        "kind: Workload\napiVersion: kueue.x-k8s.io/v1beta2\nmetadata:\n  name: pod-web-1f2e\n  \
         ownerReferences: [{{kind: Pod, name: web, apiVersion: v1, uid: u}}]\nspec:\n  queueName: \
         team-a\n  podSets: [{{name: main, count: 1}}]\n{spec}status:\n{status}"
    )
}

fn explained(objects: &str) -> String {
    let call = Call::new().bytes("cluster.yaml", format!("{NODE}{objects}").as_bytes());
    call.run("explain web -f cluster.yaml").stdout
}

#[test]
fn a_gate_of_kueue_is_explained_by_its_workload() {
    let quota = "conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: \
                 \"couldn't assign flavors to pod set main: insufficient quota for cpu\"}]";
    let check = "conditions: [{type: QuotaReserved, status: 'True', reason: QuotaReserved}]\n  \
                 admissionChecks: [{name: nodes, state: Pending, message: 'no capacity yet'}]";
    let admitted = "conditions: [{type: Admitted, status: 'True', reason: Admitted}]";
    for (spec, status, cause, advice) in [
        (
            "",
            quota,
            "Kueue has not admitted its Workload pod-web-1f2e (queue team-a): couldn't assign \
             flavors to pod set main: insufficient quota for cpu",
            "Kueue admits it once the queue has quota for it",
        ),
        (
            "",
            check,
            "its admission check nodes is Pending: no capacity yet",
            "the controller of the AdmissionCheck nodes decides",
        ),
        (
            "  active: false\n",
            quota,
            "it is not active",
            "set spec.active of Workload pod-web-1f2e",
        ),
        (
            "",
            admitted,
            "has admitted its Workload pod-web-1f2e",
            "logs of kueue-controller-manager",
        ),
    ] {
        let text = explained(&workload(spec, &format!("  {status}\n")));
        assert!(text.contains(cause) && text.contains(advice), "{cause}: {advice}:\n{text}");
    }
}

#[test]
fn a_gate_names_who_removes_it_and_a_startup_taint_too() {
    let text = explained("");
    for part in [
        "Kueue removes it when it admits the pod's Workload",
        "the agent of ebs.csi.aws.com removes it once it runs on the node",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn a_startup_taint_of_a_node_pool_is_distinguished() {
    let objects = "
kind: NodePool
apiVersion: karpenter.sh/v1
metadata: {name: general}
spec: {template: {spec: {startupTaints: [{key: example.com/setup, effect: NoSchedule}]}}}
---
kind: Node
apiVersion: v1
metadata: {name: n2, labels: {karpenter.sh/nodepool: general}}
spec: {taints: [{key: example.com/setup, effect: NoSchedule}]}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}
";
    let text = explained(objects);
    let startup = "example.com/setup:NoSchedule is not tolerated; a startup taint of NodePool \
                   general: what sets the node up removes it";
    assert!(text.contains(startup) && text.matches("a startup taint").count() == 1, "{text}");
    let call = Call::new().bytes("cluster.yaml", format!("{NODE}{objects}").as_bytes());
    let new = call.run("explain web --new-node -f cluster.yaml").stdout;
    assert!(
        new.contains("startup taint example.com/setup:NoSchedule, which does not count"),
        "{new}"
    );
}

#[test]
fn pods_that_do_not_exist_are_reported_with_their_cause() {
    let objects = "
kind: Workload
apiVersion: kueue.x-k8s.io/v1beta1
metadata:
  name: job-train-9a8b
  namespace: ml
  ownerReferences: [{kind: Job, name: train, apiVersion: batch/v1, uid: u}]
spec: {queueName: gpus, podSets: [{name: main, count: 4}]}
status: {conditions: [{type: QuotaReserved, status: 'False', reason: Inadmissible, message: LocalQueue gpus doesn't exist}]}
---
kind: JobSet
apiVersion: jobset.x-k8s.io/v1alpha2
metadata: {name: sim, namespace: ml}
spec: {suspend: true}
---
kind: Event
apiVersion: v1
metadata: {name: e, namespace: shop}
reason: FailedCreate
message: 'Error creating: pods \"web-1\" is forbidden: exceeded quota: compute'
involvedObject: {kind: ReplicaSet, namespace: shop, name: web-5b6c}
";
    let call = Call::new().bytes("cluster.yaml", format!("{NODE}{objects}").as_bytes());
    let said = call.run("run -f cluster.yaml").stderr;
    for line in [
        "Job ml/train: its 4 pods do not exist yet: Kueue has not admitted its Workload \
         job-train-9a8b (queue gpus): LocalQueue gpus doesn't exist; correct the LocalQueue or \
         ClusterQueue; Kueue tries it again then",
        "JobSet ml/sim: it is suspended, so its pods do not exist",
        "ReplicaSet shop/web-5b6c: a pod was not created: Error creating: pods \"web-1\" is \
         forbidden: exceeded quota: compute",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}:\n{said}");
    }
}
