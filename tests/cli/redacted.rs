//! `--redact`: a pseudonymized bundle runs to the same result and does not contain the original
//! names.

use crate::harness::Call;

const CLUSTER: &str = "\
{apiVersion: v1, kind: Node, metadata: {name: paris-1, labels: {team: blue, topology.kubernetes.io/zone: paris}}, spec: {taints: [{key: secret, value: plan, effect: NoSchedule}]}, status: {allocatable: {cpu: 4, pods: 9, acme.example/laser: 2}}}
---
{apiVersion: v1, kind: Node, metadata: {name: rome-1, labels: {team: red, rank: '7'}, annotations: {owner: jane}}, status: {allocatable: {cpu: 2, pods: 9}, images: [{names: ['reg.example/shop:v1'], sizeBytes: 500000000}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: payroll, namespace: finance}, spec: {nodeSelector: {team: blue}, tolerations: [{key: secret, operator: Equal, value: plan}], containers: [{name: c, image: reg.example/shop, resources: {requests: {cpu: 1, acme.example/laser: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: billing, namespace: finance}, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: rank, operator: Gt, values: ['5']}]}]}}}, containers: [{name: c, image: 'reg.example/shop:v1', resources: {requests: {cpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: audit, namespace: finance}, spec: {nodeSelector: {team: green}, containers: [{name: c}]}}
";

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: finance-scheduler
";

#[test]
fn a_bundle_by_other_names() {
    let call = Call::new()
        .bytes("cluster.yaml", CLUSTER.as_bytes())
        .bytes("config.yaml", CONFIG.as_bytes());
    let line = "bundle -f cluster.yaml --config config.yaml --redact --expect -o bug.jsonl";
    call.says_with("redacted/bundle", line, "bug.jsonl");
    let written = call.written("bug.jsonl");
    for secret in [
        "paris",
        "rome",
        "team",
        "blue",
        "red\"",
        "secret",
        "plan",
        "rank",
        "owner",
        "jane",
        "payroll",
        "finance",
        "billing",
        "audit",
        "shop",
        "acme",
        "laser",
        "cluster.yaml",
    ] {
        assert!(!written.contains(secret), "{secret}");
    }
    assert!(call.run("test bug.jsonl").stdout.contains("1 passed"));
    call.says("redacted/run", "run -f bug.jsonl");
}
