//! Pods of controllers, and objects whose fields are immutable.

use super::*;
use crate::edit::tests::edit;

fn owned(kind: &str, name: &str) -> String {
    format!("ownerReferences: [{{kind: {kind}, name: {name}, uid: u, controller: true}}]")
}

fn notes(cluster: &str, change: &str) -> Vec<String> {
    edit(change).apply(&mut settled(cluster)).unwrap().notes
}

#[test]
fn the_template_is_what_has_to_change() {
    let of = |owner: &str, labels: &str| {
        let metadata = format!("name: web, {owner}, labels: {{app: web, {labels}}}");
        web("1", "").replace("name: web, labels: {app: web}", &metadata)
    };
    let hash = "pod-template-hash: 5b6c";
    let deployment = of(&owned("ReplicaSet", "shop-5b6c"), hash);
    let change = "select pod web x=y";
    assert_eq!(
        notes(&deployment, change),
        [
            "pod default/web is recreated: spec.nodeSelector is immutable",
            "to make it last, change the template of Deployment shop",
        ]
    );
    let alone = of(&owned("ReplicaSet", "shop-5b6c"), "");
    let in_place = notes(&alone, "label pod web x=y");
    assert_eq!(in_place, ["to make it last, change the template of ReplicaSet shop-5b6c"]);
    let job = notes(&of(&owned("Job", "batch"), ""), change);
    assert_eq!(job[1], "its template is immutable: recreate Job batch");
}

fn replicas(others: &str) -> World {
    let metadata = format!("name: api-1, {}", owned("ReplicaSet", "api"));
    let api = bound("api", "a", &container("resources: {requests: {cpu: 3}}"));
    let api = api.replace("name: api, ", &(metadata + ", "));
    settled(&(node("a", "", "") + others + &api + &web("2", "")))
}

/// The controller recreates the pod at once: deleting it helps only if it fits on another node.
#[test]
fn a_pod_of_a_controller_is_deleted_only_where_that_helps() {
    let alone: Vec<String> = found(&replicas("")).found.iter().map(edits).collect();
    assert!(!alone.iter().any(|edits| edits.contains("delete")), "{alone:?}");
    let with_room = node("b", "", "").replace("cpu: 4", "cpu: 3");
    let tainted = with_room.replace("spec: {", "spec: {taints: [{key: k, effect: NoSchedule}]");
    assert!(!found(&replicas(&tainted)).found.iter().any(|fix| edits(fix).contains("delete")));
}

#[test]
fn where_the_replacement_goes_is_said() {
    // The pending pod can only run on node a, the pod on it anywhere.
    let here = "nodeSelector: {kubernetes.io/hostname: a},";
    let metadata = format!("name: api-1, {}, ", owned("ReplicaSet", "api"));
    let api = bound("api", "a", &container("resources: {requests: {cpu: 3}}"));
    let api = api.replace("name: api, ", &metadata);
    let world = settled(&(node("a", "", "") + &node("b", "", "") + &api + &web("2", here)));
    let found = found(&world);
    let delete = found.found.iter().find(|fix| edits(fix) == "delete pod default/api-1").unwrap();
    assert_eq!(delete.notes, ["ReplicaSet api replaces the deleted pod on b"]);
}

/// An API server rejects a change of an immutable field; the object must be recreated.
#[test]
fn immutable_fields_recreate_the_object() {
    let cluster = "{kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: \
                   slow, resources: {requests: {storage: 1Gi}}}}\n---\n{kind: ResourceClaim, \
                   metadata: {name: gpu}, spec: {devices: {requests: [{name: r, exactly: \
                   {deviceClassName: x, count: 2}}]}}}\n---\n{kind: StorageClass, metadata: {name: \
                   slow}, provisioner: p}\n---\n{kind: PriorityClass, metadata: {name: low}, value: \
                   5}\n";
    for (change, expected) in [
        (
            "set pvc data spec.storageClassName=\"fast\"",
            "PersistentVolumeClaim default/data is recreated: spec.storageClassName is immutable",
        ),
        (
            "set pvc data spec.resources.requests.storage=\"2Gi\"",
            "PersistentVolumeClaim default/data is recreated: spec.resources is immutable",
        ),
        (
            "set resourceclaim gpu spec.devices.requests[0].exactly.count=1",
            "ResourceClaim default/gpu is recreated: spec is immutable",
        ),
        (
            "set storageclass slow provisioner=\"q\"",
            "StorageClass slow is recreated: provisioner is immutable",
        ),
        ("set priorityclass low value=6", "PriorityClass low is recreated: value is immutable"),
    ] {
        assert_eq!(notes(cluster, change), [expected], "{change}");
    }
    let grown = cluster.replace("storage: 1Gi}}}}", "storage: 1Gi}}}, status: {phase: Bound}}");
    let grow = "set pvc data spec.resources.requests.storage=\"2Gi\"";
    assert_eq!(notes(&grown, grow), [""; 0], "a bound claim may grow");
}

/// The node name that the binding set does not exclude other nodes.
#[test]
fn a_bound_pod_is_not_kept_from_other_nodes_by_its_binding() {
    let web = bound("web", "a", &container("resources: {requests: {cpu: 1}}"));
    let why = why(&(node("a", "", "") + &node("b", "", "") + &web));
    assert_eq!(why.fitting().count(), 2);
    assert!(why.problems.is_empty());
    let mirror = "name: web, annotations: {kubernetes.io/config.mirror: abc}, ";
    let world = settled(&(node("a", "", "") + &web.replace("name: web, ", mirror)));
    let why = why::why(&world, key("web")).unwrap();
    assert_eq!(why.problems[0].text, "static pod");
}

#[test]
fn a_mistyped_node_of_a_bound_pod_is_named() {
    let nodes = node("worker-a", "", "") + &node("worker-b", "", "");
    let web = bound("web", "wroker-a", &container("resources: {requests: {cpu: 1}}"));
    let why = why(&(nodes.clone() + &web));
    assert!(why.problems[0].blocking && !why.is_schedulable());
    assert!(why.problems[0].advice.starts_with("did you mean \"worker-a\"?"));
    let proposed = proposed(&(nodes + &web));
    let expected =
        ["set pod default/web spec.nodeName=\"worker-a\"", "unset pod default/web spec.nodeName"];
    assert_eq!(proposed, expected);
}

/// The pod has no constraint; the scheduler's configuration adds defaults.
#[test]
fn constraints_of_the_profile_are_said_to_be_the_profiles() {
    let config = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, \
                  profiles: [{schedulerName: default-scheduler, pluginConfig: [{name: \
                  PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, \
                  topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}, {name: NodeAffinity, args: \
                  {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                  {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: \
                  [main]}]}]}}}}]}]}";
    let service = "---\n{kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}\n";
    let web_0 = bound("web-0", "a", &container("")).replace("app: web-0", "app: web");
    let full = bound("full", "b", &container("resources: {requests: {cpu: 4}}"));
    let nodes = node("a", "zone: x, pool: main", "") + &node("b", "zone: y, pool: main", "");
    let mut world = world(&(nodes + &node("c", "zone: y", "") + service + &web_0 + &full));
    edit(&format!("config {config}")).apply(&mut world).unwrap();
    edit(&format!("put {}", web("1", "").trim_start_matches("---\n"))).apply(&mut world).unwrap();
    world.run(100);
    let why = why::why(&world, key("web")).unwrap();
    let words = |name: &str| {
        let node = why.node(name.into()).unwrap();
        node.causes().map(|(_, cause)| cause.gist()).collect::<Vec<_>>()
    };
    assert_eq!(words("a"), ["the profile's default spread over zone would exceed maxSkew"]);
    assert_eq!(words("c"), ["addedAffinity of the profile pool=main is not met"]);
    assert!(why.spread[0].of_profile);
    let found: Vec<String> = found(&world).found.iter().map(edits).collect();
    assert!(found.contains(&"label node c pool=main".to_owned()), "{found:?}");
    assert!(found.iter().any(|edits| edits.starts_with("spread pod default/web")), "{found:?}");
}
