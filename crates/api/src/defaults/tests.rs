//! Defaults, object by object.

use super::*;
use crate::Kind;
use crate::decode::{Decoded, Text, decode};

/// The object as JSON after defaulting; also checks that defaulting twice changes nothing.
fn defaulted(kind: Kind, yaml: &str) -> serde_json::Value {
    let Decoded::Object(mut object) = decode(Text::Yaml(yaml), Some(kind)).unwrap() else {
        panic!("{kind}")
    };
    apply(&mut object);
    let once = object.clone();
    apply(&mut object);
    assert_eq!(object, once);
    object.to_json().unwrap()
}

fn json(yaml: &str) -> serde_json::Value {
    crate::yaml::from_str(yaml).unwrap()
}

#[test]
fn an_empty_pod() {
    let expected = "{spec: {schedulerName: default-scheduler, restartPolicy: Always, terminationGracePeriodSeconds: 30}, status: {phase: Pending}}";
    assert_eq!(defaulted(Kind::Pod, "{}"), json(expected));
}

#[test]
fn requests_come_from_limits_and_round_up_to_thousandths() {
    let pod = defaulted(
        Kind::Pod,
        "spec: {containers: [{resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100u}}}], initContainers: [{resources: {limits: {cpu: 2}}}]}",
    );
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json("{limits: {cpu: '1', memory: 1Gi}, requests: {cpu: 1m, memory: 1Gi}}")
    );
    assert_eq!(
        pod["spec"]["initContainers"][0]["resources"],
        json("{limits: {cpu: '2'}, requests: {cpu: '2'}}")
    );
}

#[test]
fn ports_get_a_protocol_and_on_the_host_network_a_host_port() {
    let text = "spec: {hostNetwork: HOST, containers: [{ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP, hostPort: 54}]}]}";
    let ports = |host: &str| {
        defaulted(Kind::Pod, &text.replace("HOST", host))["spec"]["containers"][0]["ports"].clone()
    };
    assert_eq!(
        ports("true"),
        json(
            "[{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 53, hostPort: 54, protocol: UDP}]"
        )
    );
    assert_eq!(ports("false")[0], json("{containerPort: 80, protocol: TCP}"));
}

#[test]
fn pod_level_requests_come_from_containers_then_from_limits() {
    let pod = defaulted(
        Kind::Pod,
        "spec: {resources: {limits: {cpu: 4, memory: 4Gi}}, containers: [{resources: {requests: {cpu: 500m}}}, {resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 2}}}, {restartPolicy: Always, resources: {requests: {cpu: 300m}}}]}",
    );
    assert_eq!(pod["spec"]["resources"]["requests"], json("{cpu: '2', memory: 4Gi}"));
    let untouched = defaulted(
        Kind::Pod,
        "spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {requests: {memory: 1Gi}}}]}",
    );
    assert_eq!(untouched["spec"]["resources"], json("{requests: {cpu: '1'}}"));
}

#[test]
fn pod_level_huge_pages_follow_the_containers_limits() {
    let pod = defaulted(
        Kind::Pod,
        "spec: {resources: {limits: {cpu: 1}}, containers: [{resources: {limits: {hugepages-2Mi: 4Mi}}}]}",
    );
    assert_eq!(
        pod["spec"]["resources"],
        json("{limits: {cpu: '1', hugepages-2Mi: 4Mi}, requests: {cpu: '1', hugepages-2Mi: 4Mi}}")
    );
}

#[test]
fn nodes_without_allocatable_offer_their_capacity() {
    let node = defaulted(Kind::Node, "status: {capacity: {cpu: 0.0001, pods: 110}}");
    assert_eq!(
        node["status"],
        json("{capacity: {cpu: 1m, pods: '110'}, allocatable: {cpu: 1m, pods: '110'}}")
    );
    let node = defaulted(Kind::Node, "status: {capacity: {cpu: 4}, allocatable: {cpu: 3}}");
    assert_eq!(node["status"]["allocatable"], json("{cpu: '3'}"));
}

#[test]
fn storage_objects() {
    assert_eq!(
        defaulted(Kind::StorageClass, "provisioner: p"),
        json("{provisioner: p, reclaimPolicy: Delete, volumeBindingMode: Immediate}")
    );
    assert_eq!(
        defaulted(Kind::PersistentVolumeClaim, "{}"),
        json("{spec: {volumeMode: Filesystem}, status: {phase: Pending}}")
    );
    assert_eq!(
        defaulted(Kind::PersistentVolume, "spec: {rbd: {image: i}}"),
        json(
            "{spec: {volumeMode: Filesystem, persistentVolumeReclaimPolicy: Retain, rbd: {image: i, pool: rbd}}, status: {phase: Pending}}"
        )
    );
    assert_eq!(
        defaulted(Kind::CsiDriver, "{}"),
        json(
            "{spec: {attachRequired: true, storageCapacity: false, volumeLifecycleModes: [Persistent]}}"
        )
    );
}

#[test]
fn groups_of_pods() {
    assert_eq!(
        defaulted(Kind::Namespace, "metadata: {name: shop}"),
        json(
            "{metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}, status: {phase: Active}}"
        )
    );
    assert_eq!(
        defaulted(Kind::ReplicationController, "spec: {template: {metadata: {labels: {a: b}}}}"),
        json(
            "{metadata: {labels: {a: b}}, spec: {replicas: 1, selector: {a: b}, template: {metadata: {labels: {a: b}}}}}"
        )
    );
    assert_eq!(
        defaulted(Kind::PriorityClass, "value: 5"),
        json("{value: 5, preemptionPolicy: PreemptLowerPriority}")
    );
    assert_eq!(defaulted(Kind::PodGroup, "{}"), json("{spec: {disruptionMode: Pod}}"));
}

#[test]
fn device_requests_are_for_one_device_unless_they_say_otherwise() {
    let claim = defaulted(
        Kind::ResourceClaim,
        "spec: {devices: {requests: [{exactly: {deviceClassName: c, tolerations: [{key: k}]}}, {exactly: {allocationMode: All}}, {firstAvailable: [{count: 3}]}]}}",
    );
    assert_eq!(
        claim["spec"]["devices"]["requests"],
        json(
            "[{exactly: {deviceClassName: c, allocationMode: ExactCount, count: 1, tolerations: [{key: k, operator: Equal}]}}, {exactly: {allocationMode: All}}, {firstAvailable: [{allocationMode: ExactCount, count: 3}]}]"
        )
    );
}
