//! Wrong input and wrong usage: one clear error each, and nothing is run.

use std::io::Write;
use std::net::TcpListener;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::harness::Call;

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
";

/// A pod `shop/web` whose container has that line.
fn pod(line: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         containers:\n  - name: main\n    {line}\n"
    )
}

/// A file `cluster.yaml` with that text, run.
fn of_text(name: &str, text: &str) {
    Call::new().file("cluster.yaml", text).says(&format!("errors/{name}"), "run -f cluster.yaml");
}

/// A configuration with that text beside a node, run.
fn of_config(name: &str, text: &str) {
    let call = Call::new().file("cluster.yaml", NODE).file("scheduler.yaml", text);
    // A plugin with a typo would be opaque.
    let line = match name {
        "config-plugin" => "run -f cluster.yaml --config scheduler.yaml --unknown-plugins reject",
        _ => "run -f cluster.yaml --config scheduler.yaml",
    };
    call.says(&format!("errors/{name}"), line);
}

#[test]
fn text_without_end_and_without_bottom() {
    let of = |text: &str, name: &str, line: &str| {
        Call::new().bytes("cluster.yaml", text.as_bytes()).says(name, line);
    };
    let comments = "# a comment\n".repeat(20_000);
    of(&comments, "errors/too-long", "run -f cluster.yaml --input-limit 1");
    let deep = pod(&format!("args: {}", "[".repeat(10_000)));
    of(&deep, "errors/too-deep", "run -f cluster.yaml");
}

/// A call with a node in `cluster.yaml`.
fn of_usage(name: &str, line: &str) {
    Call::new().bytes("cluster.yaml", NODE.as_bytes()).says(&format!("errors/{name}"), line);
}

#[test]
fn a_wrong_amount() {
    of_text("amount", &format!("{NODE}---\n{}", pod("resources: {requests: {cpu: lots}}")));
}

#[test]
fn a_number_where_a_text_belongs() {
    of_text("label-number", &pod("name: 5").replace("namespace: shop", "labels: {version: 2}"));
}

#[test]
fn a_text_where_a_number_belongs() {
    of_text("port-text", &pod("ports: [{containerPort: http}]"));
}

#[test]
fn a_text_where_a_list_belongs() {
    of_text(
        "list-text",
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec:\n  taints: none\n",
    );
}

#[test]
fn a_field_twice() {
    of_text("field-twice", &pod("image: web\n    image: web:2"));
}

#[test]
fn an_object_twice() {
    let again = format!("{}---\n{NODE}---\n{}", pod("image: web"), pod("image: web:2"));
    of_text("object-twice", &again);
}

#[test]
fn an_object_twice_in_two_files() {
    let call = Call::new().file("a.yaml", NODE).file("b.yaml", NODE);
    call.says("errors/object-twice-in-files", "run -f a.yaml -f b.yaml");
}

#[test]
fn an_object_without_a_name() {
    of_text("no-name", "apiVersion: v1\nkind: Node\nmetadata: {}\n");
}

#[test]
fn a_document_without_a_kind() {
    of_text("no-kind", &format!("{NODE}---\nmetadata: {{name: web}}\n"));
}

#[test]
fn text_that_is_no_object() {
    of_text("no-object", "Error from server (Forbidden): nodes is forbidden\n");
}

#[test]
fn indented_with_a_tab() {
    of_text("tab", "apiVersion: v1\nkind: Node\nmetadata:\n\tname: n\n");
}

#[test]
fn indented_wrongly() {
    of_text("indent", "apiVersion: v1\nkind: Node\nmetadata:\n    name: n\n  labels: {}\n");
}

#[test]
fn json_that_is_cut_off() {
    let call = Call::new().file("pods.json", "{\n  \"kind\": \"PodList\",\n  \"items\": [\n    {");
    call.says("errors/json-cut-off", "run -f pods.json");
}

#[test]
fn a_wrong_field_in_json() {
    let text = "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n  {\"kind\": \"Node\", \
                \"metadata\": {\"name\": \"n\"},\n   \"spec\": {\"unschedulable\": \"yes\"}}\n]}\n";
    Call::new().file("nodes.json", text).says("errors/json-field", "run -f nodes.json");
}

#[test]
fn a_wrong_amount_in_a_simulators_export() {
    let text = "pods:\n- metadata: {name: web}\n  spec:\n    containers:\n    - name: main\n      \
                resources: {requests: {cpu: 1 core}}\nnodes: null\n";
    Call::new().file("export.yaml", text).says("errors/export", "run -f export.yaml");
}

#[test]
fn standard_input_is_named() {
    Call::new().stdin("kind: Node\nmetadata: 5\n").says("errors/stdin", "run -f -");
}

#[test]
fn files_that_cannot_be_read() {
    Call::new().says("errors/no-file", "run -f cluster.yaml");
    Call::new().file("empty/notes.txt", "").says("errors/empty-folder", "run -f empty");
    Call::new()
        .bytes("nodes.yaml", b"kind: Node\nmetadata: {name: \xff}\n")
        .says("errors/not-utf8", "run -f nodes.yaml");
}

#[test]
fn gzip_that_is_cut_off() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(NODE.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    Call::new()
        .bytes("nodes.yaml.gz", &packed[..packed.len() / 2])
        .says("errors/gzip-cut-off", "run -f nodes.yaml.gz");
}

#[test]
fn configurations() {
    const HEAD: &str =
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    of_config("config-syntax", &format!("{HEAD}profiles:\n- schedulerName: [\n"));
    of_config("config-version", &HEAD.replace("/v1", "/v1beta3"));
    of_config("config-field", &format!("{HEAD}percentageOfNodesToScores: 50\n"));
    of_config("config-range", &format!("{HEAD}percentageOfNodesToScore: 101\n"));
    of_config(
        "config-plugin",
        &format!(
            "{HEAD}profiles:\n- plugins:\n    score: {{enabled: [{{name: NodeResourceFit}}]}}\n"
        ),
    );
    of_config(
        "config-no-bind",
        &format!("{HEAD}profiles:\n- plugins:\n    bind: {{disabled: [{{name: '*'}}]}}\n"),
    );
    of_usage("config-missing", "run -f cluster.yaml --config scheduler.yaml");
}

#[test]
fn a_wrong_configuration_among_the_objects() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  parallelism: many\n";
    of_text("config-among-objects", &format!("{NODE}---\n{config}"));
}

#[test]
fn wrong_options() {
    of_usage("nothing-to-open", "");
    of_usage("nothing-to-run", "run");
    of_usage("unknown-option", "--file cluster.yaml");
    of_usage("unknown-subcommand", "start");
    of_usage("option-selector-wrong", "run -f cluster.yaml -l app==web==db");
    of_usage("option-exclude", "run -f cluster.yaml --exclude web");
    of_usage("option-exclude-kind", "run -f cluster.yaml --exclude configmap/web");
    of_usage("option-gate", "run -f cluster.yaml --feature-gates GenericWorkloads=true");
    of_usage("option-gate-value", "run -f cluster.yaml --feature-gates GenericWorkload=yes");
    of_usage("option-percentage", "run -f cluster.yaml --percentage-of-nodes-to-score 101");
    of_usage("option-detail", "run -f cluster.yaml --trace-detail all");
    of_usage("option-color", "demo --color sometimes");
    of_usage("unknown-story", "run --demo tuor");
}

#[test]
fn a_trace_that_cannot_be_written() {
    of_usage("trace-folder", "run -f cluster.yaml --trace missing/trace.jsonl");
}

#[test]
fn two_files_behind_diff() {
    let call = Call::new().file("a.yaml", NODE).file("b.yaml", NODE);
    call.says("errors/diff-files", "diff a.yaml b.yaml");
    call.says("errors/diff-one-file", "diff a.yaml");
}

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: \"http://127.0.0.1:PORT\"}}]
users: [{name: me, user: {}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
";

/// A port on which no process listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn nobody_answers() {
    let port = free_port().to_string();
    let call = Call::new().file("config", &KUBECONFIG.replace("PORT", &port));
    for line in ["run", "capture -o c.json"] {
        let said = call.run(&format!("{line} --kubeconfig config"));
        assert_eq!((said.stdout.as_str(), said.code), ("", Some(4)), "{}", said.stderr);
        let reported = said.stderr.replace(&port, "PORT");
        assert!(
            reported.starts_with("kubestep: http://127.0.0.1:PORT: Connection refused"),
            "{reported}"
        );
        assert!(reported.contains("\n  help: does \"kubectl get nodes\" work?"), "{reported}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used() {
    let call = Call::new().file("config", KUBECONFIG);
    call.says("errors/context", "run --kubeconfig config --context attic");
    Call::new().says("errors/kubeconfig", "run --kubeconfig nowhere");
    call.says("errors/namespaces", "run --kubeconfig config -A -n shop");
}
