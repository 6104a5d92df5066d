//! Input in all supported formats.

use std::io::Write;
use std::path::Path;

use super::*;
use kubestep_api::Kind;

fn read_yaml(text: &str) -> ReadInput {
    read_as("in.yaml", text)
}

fn read_as(name: &str, text: &str) -> ReadInput {
    match read_text(name, text.into(), &Filter::default()) {
        Ok(input) => input,
        Err(error) => panic!("{error}"),
    }
}

fn error_of(name: &str, text: &str) -> Box<SourceError> {
    read_text(name, text.into(), &Filter::default()).unwrap_err()
}

/// `Kind namespace/name @document:line` of each object.
fn summary(input: &ReadInput) -> Vec<String> {
    let describe = |loaded: &Loaded| {
        let ObjectOrigin { document, line, .. } = loaded.origin;
        format!("{} @{document}:{line}", loaded.object.key())
    };
    input.objects.iter().map(describe).collect()
}

fn skipped(input: &ReadInput) -> Vec<(&str, usize)> {
    input.skipped.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

const TWO_DOCUMENTS: &str = "# a comment\napiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n---\n\n# nothing here\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p1}\n";

#[test]
fn yaml_documents_keep_their_order_and_lines() {
    let input = read_yaml(TWO_DOCUMENTS);
    assert_eq!(summary(&input), ["Node n1 @1:2", "Pod default/p1 @2:10"]);
    assert_eq!(input.warnings, [""; 0]);
    let uid = input.objects[1].object.metadata().uid;
    assert_eq!(uid.to_string().len(), 36);
}

#[test]
fn lists_as_kubectl_writes_them() {
    let list = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    script: |\n      - not an item\n      kind: Nothing\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p1\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    let input = read_yaml(list);
    assert_eq!(summary(&input), ["Node n1 @1:3", "Pod default/p1 @1:13"]);
    assert_eq!(skipped(&input), [("ConfigMap", 1)]);
}

#[test]
fn lists_as_people_write_them() {
    let list = "kind: PodList\napiVersion: v1\nitems:\n  # the first\n  - metadata:\n      name: a\n\n  -\n    metadata: {name: b}\n  -   metadata:\n        name: c\n";
    assert_eq!(
        summary(&read_yaml(list)),
        ["Pod default/a @1:5", "Pod default/b @1:8", "Pod default/c @1:10"]
    );
    let sequence =
        "- {kind: Node, apiVersion: v1, metadata: {name: a}}\n- kind: Pod\n  metadata: {name: b}\n";
    assert_eq!(summary(&read_yaml(sequence)), ["Node a @1:1", "Pod default/b @1:2"]);
    let flow = "{kind: NodeList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}";
    assert_eq!(summary(&read_yaml(flow)), ["Node a @1:1", "Node b @1:1"]);
}

#[test]
fn json_objects_lists_arrays_and_streams() {
    let pod = |name: &str| {
        format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#)
    };
    let stream = format!("{}\n\n {}", pod("a"), pod("b"));
    assert_eq!(summary(&read_as("x.json", &stream)), ["Pod default/a @1:1", "Pod default/b @2:3"]);
    let list = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\n\"items\":[\n{},\n{}]}}",
        pod("a"),
        pod("b")
    );
    assert_eq!(summary(&read_as("x.json", &list)), ["Pod default/a @1:3", "Pod default/b @1:4"]);
    let array = format!("[{}, null, {}]", pod("a"), pod("b"));
    assert_eq!(summary(&read_as("-", &array)), ["Pod default/a @1:1", "Pod default/b @1:1"]);
}

#[test]
fn typed_lists_say_what_their_items_are() {
    let pods = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a","namespace":"x"}}]}"#;
    assert_eq!(summary(&read_as("pods.json", pods)), ["Pod x/a @1:1"]);
    let events = r#"{"kind":"EventList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{}]}"#;
    let input = read_as("events.json", events);
    assert_eq!((summary(&input).len(), skipped(&input)), (0, vec![("Event", 2)]));
    for empty in ["kind: PodList\n", "kind: List\nitems: null\n", "kind: List\nitems: []\n"] {
        let input = read_yaml(empty);
        assert_eq!((summary(&input).len(), skipped(&input)), (0, vec![]), "{empty}");
    }
    // A kind of another group whose name ends in `List` is not a list.
    let custom = read_yaml("apiVersion: x.io/v1\nkind: AllowList\nmetadata: {name: a}\n");
    assert_eq!(skipped(&custom), [("AllowList", 1)]);
}

const SIMULATOR: &str = "pods:\n- metadata:\n    name: p1\n    namespace: default\nnodes:\n- metadata:\n    name: n1\npvs: null\npvcs: []\nstorageClasses:\n- metadata: {name: fast}\n  provisioner: x\npriorityClasses: null\nschedulerConfig:\n  kind: KubeSchedulerConfiguration\n  percentageOfNodesToScore: 50\nnamespaces:\n- metadata:\n    name: default\n";

#[test]
fn the_simulators_export_as_yaml() {
    let input = read_yaml(SIMULATOR);
    assert_eq!(
        summary(&input),
        [
            "Pod default/p1 @1:2",
            "Node n1 @1:6",
            "StorageClass fast @1:11",
            "Namespace default @1:18"
        ]
    );
    let config = input.scheduler_config.unwrap();
    assert_eq!(
        config.text,
        "kind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 50\napiVersion: kubescheduler.config.k8s.io/v1\n"
    );
    assert_eq!(config.origin.line, 15);
}

#[test]
fn the_simulators_export_as_json() {
    let value: serde_json::Value = kubestep_api::yaml::from_str(SIMULATOR).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    for text in [value.to_string(), pretty] {
        let input = read_as("export.json", &text);
        let mut kinds: Vec<_> = input.objects.iter().map(|o| o.object.kind()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [Kind::Node, Kind::Pod, Kind::Namespace, Kind::StorageClass]);
        let config = input.scheduler_config.unwrap().text;
        let config: serde_json::Value = kubestep_api::yaml::from_str(&config).unwrap();
        assert_eq!(
            config["percentageOfNodesToScore"],
            value["schedulerConfig"]["percentageOfNodesToScore"]
        );
    }
    let bare = read_as("export.json", r#"{"pods":null,"nodes":[],"schedulerConfig":null}"#);
    assert_eq!((bare.objects.len(), bare.scheduler_config), (0, None));
}

#[test]
fn anchors_and_merge_keys_reach_across_items() {
    let text = "kind: List\nitems:\n- kind: Pod\n  metadata: {name: a, labels: &l {app: web}}\n- kind: Pod\n  metadata:\n    name: b\n    labels:\n      <<: *l\n      tier: back\n";
    let input = read_yaml(text);
    let labels = &input.objects[1].object.metadata().labels;
    assert_eq!(*labels, kubestep_api::Labels::from([("app", "web"), ("tier", "back")]));
}

#[test]
fn a_configuration_among_the_objects_is_kept_aside() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let input =
        read_yaml(&format!("{config}---\nkind: Node\nmetadata: {{name: n}}\n---\n{config}"));
    assert_eq!(input.scheduler_config.unwrap().text, config);
    assert_eq!(skipped(&ReadInput { skipped: input.skipped, ..Default::default() }), []);
    assert_eq!(
        input.warnings[0],
        "a second scheduler configuration at in.yaml:7 (document 3) is not used: the one at in.yaml:1 is"
    );
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_not_matter() {
    let windows = format!("\u{feff}{}", TWO_DOCUMENTS.replace('\n', "\r\n"));
    assert_eq!(summary(&read_yaml(&windows)), ["Node n1 @1:2", "Pod default/p1 @2:10"]);
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[test]
fn gzip_is_recognised_by_its_content() {
    let input = read_text("cluster", packed(TWO_DOCUMENTS), &Filter::default()).unwrap();
    assert_eq!(input.objects.len(), 2);
    let mut cut = packed(TWO_DOCUMENTS);
    cut.truncate(cut.len() - 12);
    let error = read_text("cluster.gz", cut, &Filter::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cluster.gz: is gzip data, truncated\n  help: copy the file again; nothing was read from it"
    );
}

#[test]
fn an_error_shows_file_document_line_column_object_and_field() {
    let text = format!(
        "{TWO_DOCUMENTS}spec:\n  containers:\n  - name: c\n    resources:\n      requests:\n        memory: 1GB\n"
    );
    let error = error_of("web.yaml", &text);
    assert_eq!(
        (error.document, error.line, error.column, error.object.as_str()),
        (2, 18, 17, "Pod p1")
    );
    assert_eq!(
        error.to_string(),
        "Pod p1: spec.containers[0].resources.requests.memory: \"1GB\" is not a quantity: \
         quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  --> web.yaml:18:17 (document 2)
    |
 18 |         memory: 1GB
    |                 ^
  help: write an amount such as 500m, 2 or 1Gi"
    );
}

#[test]
fn errors_within_list_items_have_the_files_lines_and_columns() {
    let yaml = "kind: List\nitems:\n- kind: Node\n  metadata: {name: a}\n- kind: Node\n  metadata:\n    name: b\n  spec:\n    unschedulable: yes\n";
    let error = error_of("n.yaml", yaml);
    assert_eq!((error.line, error.column, error.object.as_str()), (9, 20, "Node b"));
    assert_eq!(error.help, "write true or false, without quotes");
    let json = "{\"kind\":\"List\",\"items\":[\n  {\"kind\":\"Node\"},\n  {\"kind\":\"Node\",\"spec\":{\"unschedulable\":1}}\n]}";
    let error = error_of("n.json", json);
    assert_eq!((error.line, error.path.as_str()), (3, "spec.unschedulable"));
    assert_eq!(error.snippet.as_ref().map(|(text, at)| &text[*at..]), Some("1}}"));
}

#[test]
fn numbers_with_leading_zeros_are_rejected_where_they_count() {
    let pod = |fields: &str| format!("kind: Pod\nmetadata: {{name: a}}\nspec: {fields}\n");
    let ignored = "{volumes: [{configMap: {defaultMode: 0644}}]}";
    assert_eq!(read_yaml(&pod(ignored)).objects.len(), 1);
    let error = error_of("p.yaml", &pod("{containers: [{ports: [{hostPort: 0600}]}]}"));
    assert_eq!(
        (error.path.as_str(), error.message.as_str()),
        ("spec.containers[0].ports[0].hostPort", "expected a whole number, got the text \"0600\"")
    );
    assert_eq!(error.help, "write a whole number, without quotes and without leading zeros");
}

#[test]
fn broken_text_is_an_error_at_its_place() {
    let tab = error_of("t.yaml", "kind: Pod\nspec:\n\tcontainers: []\n");
    assert_eq!((tab.line, tab.help.as_str()), (3, "indent with spaces instead of tabs"));
    let cut = error_of("c.json", "{\"kind\":\"List\",\"items\":[\n{\"kind\":\"Pod\"},");
    assert_eq!(
        (cut.line, cut.help.as_str()),
        (2, "the text ends too early: is the file truncated?")
    );
    let text = error_of("x.yaml", "hello world\n");
    assert_eq!(text.message, "document 1 is a text, not a Kubernetes object or a list of objects");
    let number = error_of("x.yaml", "kind: Node\nmetadata: {name: n}\n---\n5\n");
    assert_eq!(
        (number.line, number.message.as_str()),
        (4, "document 2 is a number, not a Kubernetes object or a list of objects")
    );
    let kindless = error_of("x.yaml", "metadata:\n  name: lost\n");
    assert_eq!(kindless.help, "add apiVersion and kind, or omit the file");
    let binary = read_text("b", vec![b'a', b'\n', 0xc3, 0x28], &Filter::default()).unwrap_err();
    assert_eq!((binary.line, binary.message.as_str()), (2, "is not text: byte 2 is not UTF-8"));
    let wide = read_text("w", vec![0xff, 0xfe, 0x61, 0], &Filter::default()).unwrap_err();
    assert_eq!(wide.message, "is UTF-16 text");
}

#[test]
fn a_name_may_occur_once() {
    let text = "kind: Node\nmetadata: {name: n}\n---\nkind: Node\nmetadata: {name: n}\n";
    assert_eq!(
        error_of("n.yaml", text).to_string(),
        "Node n: is already defined at n.yaml:1
  --> n.yaml:4 (document 2)
   |
 4 | kind: Node
   | ^
  help: keep one of the two, or exclude both with --exclude"
    );
    let other =
        "kind: Pod\nmetadata: {name: n}\n---\nkind: Pod\nmetadata: {name: n, namespace: x}\n";
    assert_eq!(read_yaml(other).objects.len(), 2);
    assert_eq!(error_of("n.yaml", "kind: Pod\n").message, "has no name");
}

#[test]
fn oddities_are_warnings() {
    assert_eq!(read_yaml("").warnings, ["the input holds no object that the scheduler reads"]);
    assert_eq!(read_yaml("# nothing\n---\n").objects.len(), 0);
    let placed = "kind: PodList\nitems:\n- metadata: {name: a}\n  spec: {nodeName: n1}\n- metadata: {name: b}\n  spec: {nodeName: n1}\n";
    assert_eq!(
        read_yaml(placed).warnings,
        [
            "2 pods are on 1 node that the input does not contain: n1",
            "no pod is pending: there is nothing to schedule",
            "there is no node: no pod can be scheduled"
        ]
    );
}

#[test]
fn filters_leave_out_and_say_so() {
    let text = "kind: List\nitems:\n- {kind: Node, metadata: {name: n}}\n- {kind: Pod, metadata: {name: a, namespace: x}}\n- {kind: Pod, metadata: {name: b, namespace: y}, spec: {nodeName: n}}\n- {kind: Pod, metadata: {name: c, namespace: x}}\n";
    let filter = Filter {
        namespaces: vec!["x".into()],
        exclude: vec![Exclude::parse("pods/c*").unwrap()],
        ..Default::default()
    };
    let input = read_text("in.yaml", text.into(), &filter).unwrap();
    assert_eq!(summary(&input), ["Node n @1:3", "Pod x/a @1:4"]);
    assert_eq!(
        input.warnings,
        [
            "running pods were excluded: they use no capacity of their nodes",
            "2 objects excluded by -n, -l or --exclude"
        ]
    );
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn folders_are_read_by_name_and_no_file_twice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pods =
        r#"{"kind":"PodList","items":[{"metadata":{"name":"p","namespace":"kube-system"}}]}"#;
    let nodes = r#"{"kind":"NodeList","items":[{"metadata":{"name":"n"}}]}"#;
    let direct = write(folder, "nodes.json", nodes);
    write(folder, "kube-system/pods.json.gz", packed(pods));
    write(folder, "kube-system/p/logs.txt", "not for us");
    write(folder, ".hidden/x.yaml", "not: for us");
    let progress = Progress::default();
    let paths = [folder.to_path_buf(), direct];
    let input = read(&paths, &Filter::default(), &progress).unwrap();
    assert_eq!(summary(&input), ["Pod kube-system/p @1:1", "Node n @1:1"]);
    assert_eq!(progress.decoded.into_inner(), 2);
    assert_eq!(progress.bytes.into_inner() as usize, pods.len() + nodes.len());
}

#[test]
fn files_that_are_not_there_and_empty_folders_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let read = |path: PathBuf| read(&[path], &Filter::default(), &Progress::default());
    let missing = read(folder.path().join("gone.yaml")).unwrap_err();
    assert_eq!(missing.message, "there is no such file");
    let empty = read(folder.path().to_path_buf()).unwrap_err();
    assert_eq!(empty.message, "is a folder without .yaml, .yml or .json files");
}

#[test]
fn reading_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.yaml", TWO_DOCUMENTS);
    let progress = Progress::default();
    progress.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = super::read(&[path], &Filter::default(), &progress).unwrap_err();
    assert!(error.is_cancelled());
}

#[test]
fn text_that_is_deeper_than_can_be_decoded_is_rejected_before_it_is_parsed() {
    for deep in ["[".repeat(50_000), "{a: ".repeat(50_000)] {
        let pod = format!("kind: Pod\nmetadata:\n  name: a\n  annotations: {deep}\n");
        let error = read_text("a.yaml", pod.into(), &Filter::default()).unwrap_err();
        assert_eq!(error.message, "more than 128 levels are nested in each other, in line 4");
    }
}

#[test]
fn more_text_than_the_limit_is_rejected_packed_or_not() {
    let (folder, filter) = (tempfile::tempdir().unwrap(), Filter::default());
    let json = format!("[{}1]", "{\"kind\": \"Event\"},\n".repeat(100_000));
    let comments = "# a comment\n".repeat(20_000);
    for (name, text, holds) in [("a.json", &json, 1), ("a.yaml", &comments, 8)] {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, text.as_bytes()).unwrap();
        let packed = folder.path().join(format!("{name}.gz"));
        std::fs::write(&packed, packer.finish().unwrap()).unwrap();
        for path in [write(folder.path(), name, text), packed] {
            let paths = [path];
            let read =
                |mebibytes| super::read(&paths, &filter, &Progress::with_limit(Some(mebibytes)));
            let error = read(1).unwrap_err();
            assert!(error.message.ends_with("KiB of text"), "{error}");
            assert!(!matches!(read(2 * holds), Err(error) if error.message.ends_with("of text")));
        }
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Splitting, and parsing as a whole, never panics on any text.
        #[test]
        fn mutated_input_never_panics(
            from in 0..SIMULATOR.len(), cut in 0..40usize, put in "[-a-z:{}\\[\\]\"#&*| \n\t]{0,8}",
        ) {
            let to = (from + cut).min(SIMULATOR.len());
            let text = format!("{}{put}{}", &SIMULATOR[..from], &SIMULATOR[to..]);
            let _either = read_text("a.yaml", text.clone().into(), &Filter::default());
            let _either = read_text("a.json", text.into(), &Filter::default());
        }

        /// Splitting lists by lines gives the same result as parsing them as a whole.
        #[test]
        fn cutting_agrees_with_parsing(
            names in proptest::collection::vec("[a-z]{1,5}", 1..6), indent in 0..4usize,
            value in "[a-z -]{0,6}(\n[a-z -]{1,6}){0,2}",
        ) {
            let pad = " ".repeat(indent);
            let mut text = String::from("kind: List\nitems:\n");
            for (at, name) in names.iter().enumerate() {
                let value = serde_json::to_string(&value).unwrap();
                text += &format!("{pad}- kind: Pod\n{pad}  metadata:\n{pad}    name: {name}{at}x\n{pad}    annotations:\n{pad}      a: {value}\n");
            }
            let cut = read_yaml(&text);
            let whole = read_yaml(&text.replacen("kind: List\n", "kind: List\nmetadata: {a: &a 1}\n", 1));
            let objects = |input: ReadInput| input.objects.into_iter().map(|loaded| loaded.object).collect::<Vec<_>>();
            prop_assert_eq!(objects(cut), objects(whole));
        }
    }
}

/// An object in each API version of its kind, and a field of the shape that all are converted to.
const VERSIONS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "resource.k8s.io/v1alpha3",
        "ResourceSlice",
        r#"{"devices": [{"name": "d", "basic": {"capacity": {"memory": "5Gi"}}}]}"#,
        "/spec/devices/0/capacity/memory/value",
        "\"5Gi\"",
    ),
    (
        "resource.k8s.io/v1beta1",
        "ResourceSlice",
        r#"{"devices": [{"name": "d", "basic": {"capacity": {"memory": {"value": "5Gi"}}}}]}"#,
        "/spec/devices/0/capacity/memory/value",
        "\"5Gi\"",
    ),
    (
        "resource.k8s.io/v1beta2",
        "ResourceSlice",
        r#"{"devices": [{"name": "d", "capacity": {"memory": {"value": "5Gi"}}}]}"#,
        "/spec/devices/0/capacity/memory/value",
        "\"5Gi\"",
    ),
    (
        "resource.k8s.io/v1beta1",
        "ResourceClaim",
        r#"{"devices": {"requests": [{"name": "r", "deviceClassName": "gpu", "count": 2}]}}"#,
        "/spec/devices/requests/0/exactly/count",
        "2",
    ),
    (
        "resource.k8s.io/v1alpha3",
        "DeviceTaintRule",
        r#"{"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}}"#,
        "/spec/deviceSelector/driver",
        "\"d\"",
    ),
    (
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        r#"{"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}}"#,
        "/spec/taint/key",
        "\"k\"",
    ),
    (
        "scheduling.k8s.io/v1alpha1",
        "Workload",
        r#"{"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 3}}}]}"#,
        "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount",
        "3",
    ),
    (
        "scheduling.k8s.io/v1alpha2",
        "PodGroup",
        r#"{"disruptionMode": "PodGroup", "schedulingPolicy": {"gang": {"minCount": 3}}}"#,
        "/spec/disruptionMode",
        "\"PodGroup\"",
    ),
    (
        "scheduling.k8s.io/v1alpha3",
        "PodGroup",
        r#"{"disruptionMode": {"single": {}}, "schedulingPolicy": {"gang": {"minCount": 3}}}"#,
        "/spec/disruptionMode",
        "\"Pod\"",
    ),
    (
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        r#"{"disruptionMode": {"all": {}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}"#,
        "/spec/podGroupTemplateRef/workload/podGroupTemplateName",
        "\"t\"",
    ),
    (
        "scheduling.k8s.io/v1beta1",
        "Workload",
        r#"{"podGroupTemplates": [{"name": "g", "disruptionMode": {"all": {}}}]}"#,
        "/spec/podGroupTemplates/0/disruptionMode",
        "\"PodGroup\"",
    ),
    (
        "policy/v1beta1",
        "PodDisruptionBudget",
        r#"{"selector": {}}"#,
        "/spec/selector/matchExpressions/0/operator",
        "\"Exists\"",
    ),
    ("policy/v1", "PodDisruptionBudget", r#"{"selector": {}}"#, "/spec/selector", "{}"),
];

#[test]
fn objects_of_all_api_versions_are_converted_in_files_and_lists() {
    for (version, kind, spec, path, expected) in VERSIONS {
        let header = format!(r#""apiVersion": "{version}", "kind": "{kind}""#);
        let rest = format!(r#""metadata": {{"name": "a"}}, "spec": {spec}"#);
        let inputs = [
            ("leading.json", format!("{{{header}, {rest}}}")),
            ("trailing.json", format!("{{{rest}, {header}}}")),
            (
                "object.yaml",
                format!(
                    "apiVersion: {version}\nkind: {kind}\nspec: {spec}\nmetadata: {{name: a}}\n"
                ),
            ),
            (
                "list.json",
                format!(
                    r#"{{"apiVersion": "{version}", "kind": "{kind}List", "items": [{{{rest}}}]}}"#
                ),
            ),
            (
                "list.yaml",
                format!("apiVersion: {version}\nkind: {kind}List\nitems:\n- {{{rest}}}\n"),
            ),
        ];
        for (name, text) in &inputs {
            // As a whole, and as a file that is too large for that.
            let small = MemoryLimits { whole: 16, chunk: 64, object: LIMITS.object };
            for limits in [LIMITS, small] {
                let read = read_bytes(name, text.as_bytes(), &Filter::default(), limits).unwrap();
                let [loaded] = read.objects.as_slice() else { panic!("{version} {name}") };
                let json = loaded.object.to_json().unwrap();
                let found = json.pointer(path).map(ToString::to_string);
                assert_eq!(found.as_deref(), Some(*expected), "{version} {kind} {name}: {json}");
                let versions: Vec<_> = read.api_versions.into_iter().collect();
                let named = ((Symbol::new(version), Symbol::new(kind)), 1);
                assert_eq!(versions, [named], "{version} {name}");
            }
        }
    }
}

#[test]
fn an_unknown_shape_of_an_alpha_api_leaves_the_object_out() {
    let group = |version: &str| {
        format!(
            "{TWO_DOCUMENTS}---\napiVersion: scheduling.k8s.io/{version}\nkind: PodGroup\n\
             metadata: {{name: g}}\nspec: {{disruptionMode: [later]}}\n"
        )
    };
    let input = read_yaml(&group("v1alpha2"));
    assert_eq!(summary(&input).len(), 2);
    let [warning] = input.warnings.as_slice() else { panic!("{:?}", input.warnings) };
    assert!(
        warning.starts_with("in.yaml:14 (document 3): skipped: unknown schema in scheduling"),
        "{warning}"
    );
    assert!(warning.contains("PodGroup g: spec.disruptionMode: "), "{warning}");
    let error = error_of("in.yaml", &group("v1beta1"));
    assert_eq!(error.path, "spec.disruptionMode");
}

#[test]
fn groups_of_composite_groups_are_noticed() {
    let group = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n\
                 spec: {parentCompositePodGroupName: root, schedulingPolicy: {gang: {minCount: 2}}}\n";
    let input = read_yaml(&format!("{TWO_DOCUMENTS}---\n{group}"));
    let [warning] = input.warnings.as_slice() else { panic!("{:?}", input.warnings) };
    assert!(warning.starts_with("1 pod group of a CompositePodGroup"), "{warning}");
}
