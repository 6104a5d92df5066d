//! The same small cluster in every input format: the result must be the same.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::harness::{Call, CallOutput};

const OUTCOME: &str = "shop/web  on node-0\n1 placed, 0 pending, 1 scheduling cycle";

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
";

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - name: main
    resources:
      requests: {cpu: 500m}
";

fn yaml() -> String {
    format!("{NODE}---\n{POD}")
}

fn node() -> Value {
    kubestep_api::yaml::from_str(NODE).unwrap()
}

fn pod() -> Value {
    kubestep_api::yaml::from_str(POD).unwrap()
}

fn list(api_version: &str, kind: &str, items: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"resourceVersion": ""}, "items": items})
}

/// The object without kind and version, as in typed lists and the simulator's export.
fn bare(mut object: Value) -> Value {
    object.as_object_mut().unwrap().retain(|field, _| field != "kind" && field != "apiVersion");
    object
}

fn places_web(said: &CallOutput) {
    assert_eq!((said.pods(), said.stderr.as_str()), (OUTCOME, ""));
    assert_eq!(said.code, Some(0));
}

/// Writes the text to a file of that name and checks its result.
fn as_file(name: &str, text: &str) {
    places_web(&Call::new().file(name, text).run(&format!("run -f {name}")));
}

fn pack(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// An export of kube-scheduler-simulator, with the fields it omits and those it sets to null.
fn export() -> Value {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}],
    });
    json!({
        "pods": [bare(pod())],
        "nodes": [bare(node())],
        "pvs": [],
        "pvcs": null,
        "storageClasses": [],
        "priorityClasses": [],
        "schedulerConfig": config,
    })
}

#[test]
fn yaml_with_many_documents() {
    as_file("cluster.yaml", &yaml());
    as_file("cluster.yml", &format!("# a comment\n---\n---\n{}...\n---\n", yaml()));
    as_file("no-extension", &yaml());
}

#[test]
fn windows_line_ends_and_a_byte_order_mark() {
    as_file("cluster.yaml", &format!("\u{feff}{}", yaml().replace('\n', "\r\n")));
}

#[test]
fn what_kubectl_get_prints_for_several_kinds() {
    let list = list("v1", "List", json!([node(), pod()]));
    as_file("cluster.json", &serde_json::to_string_pretty(&list).unwrap());
    as_file("cluster.json", &list.to_string());
    as_file("cluster.yaml", &serde_yaml::to_string(&list).unwrap());
}

#[test]
fn typed_lists_whose_items_say_no_kind() {
    let nodes = list("v1", "NodeList", json!([bare(node())]));
    let pods = list("v1", "PodList", json!([bare(pod())]));
    as_file("cluster.json", &format!("{nodes}\n{pods}"));
    let (nodes, pods) = (serde_yaml::to_string(&nodes), serde_yaml::to_string(&pods));
    as_file("cluster.yaml", &format!("{}---\n{}", nodes.unwrap(), pods.unwrap()));
}

#[test]
fn a_folder_as_cluster_info_dump_writes_it() {
    let nodes = list("v1", "NodeList", json!([bare(node())]));
    let pods = list("v1", "PodList", json!([bare(pod())]));
    let dump = Call::new()
        .file("dump/nodes.json", &serde_json::to_string_pretty(&nodes).unwrap())
        .file("dump/shop/pods.json", &serde_json::to_string_pretty(&pods).unwrap())
        .file("dump/shop/web/logs.txt", "2026-01-01 no object: this is a log\n");
    places_web(&dump.run("run -f dump"));
}

#[test]
fn an_export_of_the_simulator() {
    as_file("export.json", &export().to_string());
    as_file("export.yaml", &serde_yaml::to_string(&export()).unwrap());
}

#[test]
fn the_configuration_in_an_export_counts() {
    let mut export = export();
    export["schedulerConfig"]["profiles"][0]["schedulerName"] = "another".into();
    let said = Call::new().file("export.json", &export.to_string()).run("run -f export.json");
    assert_eq!(
        said.pods(),
        "shop/web  pending, in no queue\n    no profile serves the scheduler name \
         \"default-scheduler\": the pod is in no queue, and no event says so\n0 placed, 1 pending, 0 \
         scheduling cycles\n\"kubestep explain POD --fix\" with the same input searches for \
         changes that help."
    );
    assert_eq!(said.code, Some(1));
}

#[test]
fn packed_with_gzip() {
    let call = Call::new().bytes("cluster.yaml.gz", &pack(&yaml()));
    places_web(&call.run("run -f cluster.yaml.gz"));
    places_web(
        &Call::new().bytes("dump/all.json.gz", &pack(&export().to_string())).run("run -f dump"),
    );
}

#[test]
fn standard_input() {
    places_web(&Call::new().stdin(&yaml()).run("run -f -"));
    places_web(&Call::new().stdin(POD).file("node.yaml", NODE).run("run -f node.yaml -f -"));
}

#[test]
fn several_files() {
    let call = Call::new().file("node.yaml", NODE).file("pods/web.yaml", POD);
    places_web(&call.run("run -f pods -f node.yaml"));
    places_web(&call.run("run -f node.yaml -f pods/web.yaml -f pods"));
}
