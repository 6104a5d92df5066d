//! Input that is odd but usable: what is done with it, and what is said about it.

use crate::harness::Call;

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
";

/// A pod that wants 500m CPU, with more of `metadata` and `spec`.
fn pod(metadata: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{{metadata}}}\nspec:\n{spec}  containers:\n  \
         - name: main\n    resources: {{requests: {{cpu: 500m}}}}\n"
    )
}

fn says(name: &str, text: &str, options: &str) {
    let line = format!("run -f cluster.yaml {options}");
    Call::new().file("cluster.yaml", text).says(&format!("odd/{name}"), line.trim_end());
}

#[test]
fn an_empty_cluster() {
    says("empty", "", "");
    says("only-comments", "# nothing here\n---\n", "");
}

#[test]
fn no_pending_pod() {
    says("no-pending-pod", &format!("{NODE}{}", pod("name: web", "  nodeName: node-0\n")), "");
}

#[test]
fn no_node() {
    says("no-node", &pod("name: web", ""), "");
}

#[test]
fn a_pod_on_a_node_that_is_not_there() {
    let pods = [pod("name: lost", "  nodeName: node-7\n"), pod("name: web", "")].concat();
    says("unknown-node", &format!("{NODE}{pods}"), "");
}

#[test]
fn kinds_that_the_scheduler_does_not_read() {
    let others = "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\nkind: ConfigMap\n\
                  apiVersion: v1\nmetadata: {name: b}\n---\nkind: Deployment\napiVersion: apps/v1\n\
                  metadata: {name: web}\n";
    says("other-kinds", &format!("{NODE}{}{others}", pod("name: web", "")), "");
}

#[test]
fn a_priority_class_that_is_not_there() {
    says(
        "no-priority-class",
        &format!("{NODE}{}", pod("name: web", "  priorityClassName: high\n")),
        "",
    );
}

#[test]
fn pods_that_have_ended() {
    let ended = pod("name: done", "  nodeName: node-0\n") + "status: {phase: Succeeded}\n";
    says("ended-pod", &format!("{NODE}{ended}{}", pod("name: web", "")), "");
}

/// Two namespaces, two applications, a class of its own.
fn choice() -> String {
    let pods = [
        pod("name: web-0, namespace: shop, labels: {app: web}", ""),
        pod("name: web-1, namespace: shop, labels: {app: web}", ""),
        pod("name: db-0, namespace: shop, labels: {app: db}", ""),
        pod("name: web-0, namespace: test, labels: {app: web}", "  nodeName: node-0\n"),
    ];
    format!("{NODE}{}", pods.concat())
}

#[test]
fn taint_effects_that_do_not_exist() {
    let tainted =
        NODE.replace("status:", "spec:\n  taints: [{key: a, effect: NoScheduling}]\nstatus:");
    let tolerant = pod("name: web", "  tolerations: [{operator: Exists, effect: Any}]\n");
    let all = pod("name: db", "  tolerations: [{operator: Exists}]\n");
    says("taint-effect", &format!("{tainted}{tolerant}{all}"), "");
}

#[test]
fn a_selector_that_is_not_valid() {
    let term = "  affinity:\n    podAffinity:\n      \
                requiredDuringSchedulingIgnoredDuringExecution:\n      - topologyKey: zone\n        \
                labelSelector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}\n";
    says("selector", &format!("{NODE}{}", pod("name: web", term)), "");
}

#[test]
fn what_is_chosen_is_taken() {
    says("namespace", &choice(), "-n shop");
    says("two-namespaces", &choice(), "-n shop -n test");
    says("labels", &choice(), "-l app=web");
    says("exclude", &choice(), "--exclude pod/web-* --exclude Pod/test/*");
    says("nothing-left", &choice(), "-n nowhere");
}

#[test]
fn a_configuration_beside_another() {
    let config = |name: &str| {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             profiles:\n- schedulerName: {name}\n"
        )
    };
    let cluster = format!("{NODE}{}---\n{}---\n{}", pod("name: web", ""), config("a"), config("b"));
    says("two-configurations", &cluster, "");
    Call::new()
        .file("cluster.yaml", &format!("{NODE}{}---\n{}", pod("name: web", ""), config("a")))
        .file("scheduler.yaml", &config("default-scheduler"))
        .says("odd/own-configuration", "run -f cluster.yaml --config scheduler.yaml");
}

#[test]
fn a_gate_that_changes_what_happens() {
    says(
        "gate",
        &format!("{NODE}{}", pod("name: web", "")),
        "--feature-gates GenericWorkload=true",
    );
}

/// Fields that Kubernetes does not know, and one that stands twice.
fn misspelt() -> String {
    let pods =
        ["web-0", "web-1"].map(|name| pod(&format!("name: {name}"), "  nodeSelectors: {a: b}\n"));
    let twice = pod("name: twice", "  hostIPC: true\n  hostIPC: true\n");
    let custom = "---\napiVersion: example.com/v1\nkind: Pod\nmetadata: {name: c}\nspecc: {}\n";
    format!("{NODE}  capacitty: {{}}\n{}{twice}{custom}", pods.concat())
}

#[test]
fn fields_that_kubernetes_does_not_know() {
    says("unknown-fields", &misspelt(), "");
    says("unknown-fields-strict", &misspelt(), "--strict");
}

#[test]
fn a_workload_without_pods() {
    let workload = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n";
    says("workload", workload, "");
    let text =
        format!("{workload}spec:\n  template:\n    spec:\n      containers:\n      - nam: a\n");
    let call = Call::new().file("cluster.yaml", NODE).file("web.yaml", &text);
    call.says("odd/workload-field", "run -f cluster.yaml --pod web.yaml");
    call.says("odd/workload-field-strict", "run -f cluster.yaml --pod web.yaml --strict");
}

#[test]
fn wide_names_are_aligned() {
    let pods = ["web", "数据库"].map(|name| pod(&format!("name: {name}"), ""));
    says("wide-names", &format!("{NODE}{}", pods.concat()), "");
}
