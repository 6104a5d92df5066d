//! Decoding of single objects: kinds, leniency, errors.

use super::*;
use crate::{Pod, ResourceClaim, ResourceSlice};

fn yaml(text: &str) -> Result<Decoded, DecodeError> {
    decode(Text::Yaml(text), None)
}

fn pod(text: &str) -> Pod {
    match decode(Text::Yaml(text), Some(Kind::Pod)) {
        Ok(Decoded::Object(Object::Pod(pod))) => (*pod).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn json_and_yaml_give_the_same_object() {
    let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},
        "spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"100m","memory":1024}}}]}}"#;
    let yaml_text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {app: web}\nspec:\n  containers:\n  - name: c\n    resources:\n      requests: {cpu: 100m, memory: 1024}\n";
    let (from_json, from_yaml) =
        (decode(Text::Json(json), None).unwrap(), yaml(yaml_text).unwrap());
    assert_eq!(from_json, from_yaml);
    let Decoded::Object(Object::Pod(pod)) = from_json else { panic!() };
    assert_eq!(pod.metadata.labels.get_str("app").map(|value| value.text()), Some("web".into()));
    let requests = pod.spec.containers[0].resources.requests.clone().unwrap();
    assert_eq!(requests.get_str("cpu").unwrap().milli_value(), 100);
    assert_eq!(requests.get_str("memory").unwrap().value(), 1024);
}

#[test]
fn null_is_the_zero_value_everywhere() {
    let pod = pod(
        "metadata: {name: a, labels: null, ownerReferences: null, creationTimestamp: null}\nspec: {containers: null, affinity: null, nodeSelector: null, tolerations: null, schedulerName: null, hostNetwork: null, priority: null, restartPolicy: null}\nstatus: null\n",
    );
    let mut expected = Pod::default();
    expected.metadata.name = "a".into();
    assert_eq!(pod, expected);
}

#[test]
fn absent_and_empty_differ_where_upstream_tells_them_apart() {
    let pod = pod(
        "spec: {nodeSelector: {}, affinity: {}, containers: [{name: c, resources: {requests: {}}}], topologySpreadConstraints: [{labelSelector: {}}, {}]}",
    );
    assert_eq!(pod.spec.node_selector, Some(Default::default()));
    assert_eq!(pod.spec.affinity, Some(Default::default()));
    assert_eq!(pod.spec.containers[0].resources.requests, Some(Default::default()));
    assert_eq!(pod.spec.containers[0].resources.limits, None);
    let selectors: Vec<bool> =
        pod.spec.topology_spread_constraints.iter().map(|c| c.label_selector.is_some()).collect();
    assert_eq!(selectors, [true, false]);
}

#[test]
fn kinds_that_the_scheduler_does_not_read_are_named() {
    for text in ["kind: ConfigMap\ndata: {a: 1}", "apiVersion: x.io/v1\nkind: Pod\n", "{kind: X}"] {
        assert!(matches!(yaml(text), Ok(Decoded::Unread(_))), "{text}");
    }
    assert_eq!(
        yaml("kind: Deployment\napiVersion: apps/v1"),
        Ok(Decoded::Unread("Deployment".into()))
    );
}

#[test]
fn quoted_and_commented_kinds_are_understood() {
    for text in ["kind: 'Node' # a node\n", "\"kind\": \"Node\"\n", "{kind: Node, apiVersion: v1}"]
    {
        assert!(matches!(yaml(text), Ok(Decoded::Object(Object::Node(_)))), "{text}");
    }
}

#[test]
fn errors_name_object_field_and_place() {
    let error = yaml(
        "kind: Pod\nmetadata:\n  namespace: shop\n  name: web\nspec:\n  containers:\n  - name: c\n    resources:\n      requests:\n        cpu: 1GB\n",
    )
    .unwrap_err();
    assert_eq!(error.object, "Pod shop/web");
    assert_eq!(error.path, "spec.containers[0].resources.requests.cpu");
    assert!(error.message.starts_with("\"1GB\" is not a quantity"), "{}", error.message);
    assert_eq!(error.position, Some((10, 14)));
    let error =
        decode(Text::Json("{\"kind\":\"Node\",\n\"spec\":{\"unschedulable\":\"yes\"}}"), None);
    assert_eq!(
        error.unwrap_err().to_string(),
        "Node: spec.unschedulable: invalid type: string \"yes\", expected a boolean"
    );
}

#[test]
fn closed_enumerations_list_their_choices() {
    let error = yaml("kind: Pod\nspec: {topologySpreadConstraints: [{whenUnsatisfiable: Never}]}");
    assert_eq!(
        error.unwrap_err().to_string(),
        "Pod: spec.topologySpreadConstraints[0].whenUnsatisfiable: unknown value \"Never\", \
         expected `DoNotSchedule` or `ScheduleAnyway`"
    );
}

#[test]
fn a_missing_kind_and_broken_text_are_errors() {
    assert_eq!(
        yaml("metadata: {name: lost}").unwrap_err().to_string(),
        "lost: kind: is missing, so nothing says what this object is"
    );
    let error = yaml("kind: Pod\nspec:\n\tcontainers: []\n").unwrap_err();
    assert_eq!(error.position.map(|at| at.0), Some(3), "{error}");
    let error = decode(Text::Json("{\"kind\":\"Pod\""), None).unwrap_err();
    assert_eq!(error.message, "EOF while parsing an object");
    assert!(yaml("- a").is_err());
    assert!(yaml("").is_err());
}

#[test]
fn numbers_and_booleans_where_text_belongs_are_rejected_as_by_the_api() {
    let error = yaml("kind: Node\nmetadata: {name: n, labels: {count: 1}}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Node n: metadata.labels.count: invalid type: integer `1`, expected a string"
    );
    let error = yaml("kind: Pod\nspec: {containers: [{ports: [{hostPort: 0o644}]}]}");
    let Ok(Decoded::Object(Object::Pod(pod))) = error else { panic!("{error:?}") };
    assert_eq!(pod.spec.containers[0].ports[0].host_port, 420);
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let pod = pod(
        "x: &small {requests: {cpu: 50m}}\nspec:\n  containers:\n  - name: a\n    resources: *small\n  - name: b\n    resources:\n      <<: *small\n      limits: {cpu: 1}\n",
    );
    let cpu = |at: usize| pod.spec.containers[at].resources.request("cpu".into()).cloned();
    assert_eq!(cpu(0).map(|cpu| cpu.milli_value()), Some(50));
    assert_eq!(cpu(1).map(|cpu| cpu.milli_value()), Some(50));
    assert_eq!(
        pod.spec.containers[1].resources.limit("cpu".into()).map(|cpu| cpu.value()),
        Some(1)
    );
}

#[test]
fn older_resource_versions_are_brought_into_shape() {
    let claim = yaml(
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: {devices: {requests: [{name: r, deviceClassName: gpu, count: 2}, {name: s, firstAvailable: [{name: t, deviceClassName: big}]}]}}",
    );
    let Ok(Decoded::Object(Object::ResourceClaim(claim))) = claim else { panic!("{claim:?}") };
    let ResourceClaim { spec, .. } = &*claim;
    let exactly = spec.devices.requests[0].exactly.clone().unwrap();
    assert_eq!((exactly.device_class_name, exactly.count), ("gpu".into(), 2));
    assert_eq!(spec.devices.requests[1].exactly, None);
    assert_eq!(spec.devices.requests[1].first_available[0].device_class_name, "big");
    let slice = yaml(
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nspec: {driver: d, devices: [{name: x, basic: {capacity: {mem: {value: 4Gi}}}}]}",
    );
    let Ok(Decoded::Object(Object::ResourceSlice(slice))) = slice else { panic!("{slice:?}") };
    let ResourceSlice { spec, .. } = &*slice;
    assert_eq!(spec.devices[0].capacity[&"mem".into()].value.to_string(), "4Gi");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {app: web}\nspec:\n  priority: 7\n  nodeSelector: {zone: a}\n  containers:\n  - name: c\n    image: nginx\n    ports: [{hostPort: 80}]\n    resources:\n      requests: {cpu: 100m}\n  tolerations: [{operator: Exists}]\n  topologySpreadConstraints:\n  - {maxSkew: 1, whenUnsatisfiable: DoNotSchedule}\nstatus: {phase: Pending}\n";

    proptest! {
        /// Whatever is removed from or inserted into a document, decoding yields an object or an
        /// error, without a panic.
        #[test]
        fn mutated_documents_never_panic(
            from in 0..SAMPLE.len(), cut in 0..12usize, put in "[ -~\n\t]{0,6}",
        ) {
            let to = (from + cut).min(SAMPLE.len());
            let text = format!("{}{put}{}", &SAMPLE[..from], &SAMPLE[to..]);
            let _either = decode(Text::Yaml(&text), None);
            let _either = decode(Text::Json(&text), Some(Kind::Pod));
        }
    }

    #[test]
    fn the_sample_is_a_pod() {
        assert!(matches!(yaml(SAMPLE), Ok(Decoded::Object(Object::Pod(_)))));
    }
}

#[test]
fn the_leading_object_of_a_text_is_read_in_one_pass() {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":[1,{}]}}"#;
    let nameless = r#"{"metadata":{"name":"b"}}"#;
    let read = |text: &str, kind| {
        let (decoded, length) = decode_leading(text, kind)?;
        let said = match decoded {
            Decoded::Object(object) => object.key().to_string(),
            Decoded::Unread(kind) => kind.to_string(),
        };
        Some((said, length))
    };
    assert_eq!(read(&format!("{pod} , {map}"), None), Some(("Pod a".into(), pod.len())));
    assert_eq!(read(&format!("{map}]"), None), Some(("ConfigMap".into(), map.len())));
    let named = Some(("Pod b".into(), nameless.len()));
    assert_eq!(read(&format!("{nameless},"), Some(Kind::Pod)), named);
    assert_eq!(read(nameless, None), None);
    assert_eq!(read(&pod[..30], None), None);
    assert_eq!(leading_kind(pod), Some("Pod".into()));
    assert_eq!(leading_kind(nameless), None);
}
