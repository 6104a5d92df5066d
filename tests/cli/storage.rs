//! `kubestep explain --fix` for volumes and devices: it names the claim, class or pod that causes
//! the rejection, and its fixes work.

use crate::harness::Call;

/// A node, with its labels.
fn node(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nstatus: \
         {{allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}\n---\n"
    )
}

fn class(name: &str, provisioner: &str, mode: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\n\
         provisioner: {provisioner}\nvolumeBindingMode: {mode}\n---\n"
    )
}

/// A class with delayed binding.
fn waiting(name: &str) -> String {
    class(name, "disk.csi.example.com", "WaitForFirstConsumer")
}

fn claim(name: &str, class: &str, size: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: \
         {{accessModes: [ReadWriteOnce], storageClassName: {class}, resources: {{requests: \
         {{storage: {size}}}}}}}\nstatus: {{phase: Pending}}\n---\n"
    )
}

/// A volume of the class `local` on the node `n1`.
fn local_volume(name: &str, size: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec:\n  \
         capacity: {{storage: {size}}}\n  accessModes: [ReadWriteOnce]\n  storageClassName: local\n  \
         local: {{path: /mnt}}\n  nodeAffinity: {{required: {{nodeSelectorTerms: \
         [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [n1]}}]}}]}}}}\n\
         status: {{phase: Available}}\n---\n"
    )
}

/// A pod with additional spec fields.
fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: {name}}}\nspec:\n  \
         containers: [{{name: c, image: x}}]\n{spec}---\n"
    )
}

/// A pod that uses claims.
fn claiming(name: &str, claims: &[&str], more: &str) -> String {
    let volume = |claim: &&str| {
        format!("  - {{name: v-{claim}, persistentVolumeClaim: {{claimName: {claim}}}}}\n")
    };
    let volumes: String = claims.iter().map(volume).collect();
    pod(name, &format!("  volumes:\n{volumes}{more}"))
}

fn on(parts: &[String]) -> Call {
    Call::new().bytes("cluster.yaml", parts.concat().as_bytes())
}

/// The explanation of the pod `web`.
fn explained(call: &Call) -> String {
    call.run("explain web -f cluster.yaml --fix").stdout
}

/// Asserts that the answer contains all fragments.
fn says(call: &Call, fragments: &[&str]) {
    let text = explained(call);
    for fragment in fragments {
        assert!(text.contains(fragment), "{fragment:?} is not in:\n{text}");
    }
}

/// Asserts that the edits make the pod `web` schedulable.
fn places(call: &Call, edits: &[&str]) {
    // An edit is printed in quotation marks, so those of YAML may be missing.
    let plain = |edit: &&str| format!("--edit \"{}\"", edit.replace('"', ""));
    let edits: Vec<String> = edits.iter().map(plain).collect();
    let said = call.run(&format!("run -f cluster.yaml {}", edits.join(" ")));
    assert!(said.stdout.contains("default/web  on "), "{}{}", said.stdout, said.stderr);
}

const N1: &str = "kubernetes.io/hostname: n1";
const LOCAL: &str = "kubernetes.io/no-provisioner";

#[test]
fn of_two_claims_the_one_that_goes_without_is_named() {
    for order in [["big", "small"], ["small", "big"]] {
        let call = on(&[
            node("n1", N1),
            class("local", LOCAL, "WaitForFirstConsumer"),
            local_volume("v5", "5Gi"),
            claim("big", "local", "5Gi"),
            claim("small", "local", "1Gi"),
            claiming("web", &order, ""),
        ]);
        says(
            &call,
            &["claim default/big: class \"local\" provisions no volumes, and no existing volume \
               matches: v5 is used for claim default/small of the same pod"],
        );
        assert!(!explained(&call).contains("VolumeBinding: claim default/small"));
    }
}

/// A bound claim and its volume.
fn for_one_pod(namespace: &str, name: &str, mode: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {name}\n  namespace: \
         {namespace}\n  annotations: {{pv.kubernetes.io/bind-completed: \"yes\"}}\nspec: \
         {{accessModes: [{mode}], storageClassName: fast, volumeName: {namespace}-{name}, \
         resources: {{requests: {{storage: 1Gi}}}}}}\nstatus: {{phase: Bound}}\n---\napiVersion: \
         v1\nkind: PersistentVolume\nmetadata: {{name: {namespace}-{name}}}\nspec: {{accessModes: \
         [{mode}], capacity: {{storage: 1Gi}}, storageClassName: fast, claimRef: {{namespace: \
         {namespace}, name: {name}}}, csi: {{driver: d, volumeHandle: {namespace}-{name}}}}}\n\
         status: {{phase: Bound}}\n---\n"
    )
}

/// Of two claims for one pod, only the one in use is named, though a claim of another namespace has
/// the same name as the other.
#[test]
fn a_claim_of_that_name_in_another_namespace_is_no_cause() {
    let on_node = claiming("innocent", &["data"], "  nodeName: n1\n")
        .replace("name: innocent,", "name: innocent, namespace: other,");
    let call = on(&[
        node("n1", N1),
        waiting("fast"),
        for_one_pod("default", "data", "ReadWriteOncePod"),
        for_one_pod("default", "cache", "ReadWriteOncePod"),
        for_one_pod("other", "data", "ReadWriteOnce"),
        claiming("holder", &["cache"], "  nodeName: n1\n"),
        on_node,
        claiming("web", &["data", "cache"], ""),
    ]);
    says(
        &call,
        &[
            "claim default/cache is ReadWriteOncePod, and pod default/holder uses it",
            "1. delete pod default/holder",
        ],
    );
    assert!(!explained(&call).contains("innocent"));
    places(&call, &["delete pod default/holder"]);
}

#[test]
fn a_claim_for_one_pod_is_freed_by_its_holder() {
    let call = on(&[
        node("n1", N1),
        waiting("fast"),
        for_one_pod("default", "data", "ReadWriteOncePod"),
        claiming("report", &["data"], "  nodeName: n1\n"),
        claiming("web", &["data"], ""),
    ]);
    says(
        &call,
        &[
            "claim default/data is ReadWriteOncePod, and pod default/report uses it",
            "1. delete pod default/report",
        ],
    );
    places(&call, &["delete pod default/report"]);
}

#[test]
fn a_disk_for_one_pod_is_freed_by_its_holder() {
    let disk = "  volumes: [{name: d, gcePersistentDisk: {pdName: data}}]\n";
    let call =
        on(&[node("n1", N1), pod("report", &format!("{disk}  nodeName: n1\n")), pod("web", disk)]);
    says(
        &call,
        &["pod default/report on the node uses the same disk", "1. delete pod default/report"],
    );
}

#[test]
fn an_unbound_claim_is_named_with_its_class_and_provisioner() {
    let call = on(&[
        node("n1", N1),
        class("slow", "nfs.example.com", "Immediate"),
        waiting("fast"),
        claim("data", "slow", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    says(
        &call,
        &[
            "claim default/data has no volume: class slow (Immediate) does not wait for the pod, \
             and nfs.example.com has not provisioned one",
            "or use a class that waits for the pod: fast",
            "1. set persistentvolumeclaim default/data spec.storageClassName=\"fast\"",
        ],
    );
    places(&call, &["set persistentvolumeclaim default/data spec.storageClassName=\"fast\""]);
}

#[test]
fn a_mistyped_name_of_a_claim_or_class_is_corrected() {
    let cluster = |named: &str, class: &str| {
        let parts = [node("n1", N1), waiting("fast"), claim("data-web", class, "10Gi")];
        on(&[parts.concat(), claiming("web", &[named], "")])
    };
    let edit = "set pod default/web spec.volumes[0].persistentVolumeClaim.claimName=\"data-web\"";
    let call = cluster("data-wbe", "fast");
    says(
        &call,
        &[
            "PersistentVolumeClaim default/data-wbe does not exist\n  did you mean \"data-web\"?",
            &format!("1. {edit}"),
        ],
    );
    places(&call, &[edit]);
    let edit = "set persistentvolumeclaim default/data-web spec.storageClassName=\"fast\"";
    let call = cluster("data-web", "fsat");
    says(
        &call,
        &["claim default/data-web references it: did you mean \"fast\"?", &format!("1. {edit}")],
    );
    places(&call, &[edit]);
}

#[test]
fn a_claim_that_is_too_large_for_existing_volumes_is_made_smaller() {
    let call = on(&[
        node("n1", N1),
        class("local", LOCAL, "WaitForFirstConsumer"),
        local_volume("disk", "5Gi"),
        claim("data", "local", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    let edit = "set persistentvolumeclaim default/data spec.resources.requests.storage=\"5Gi\"";
    says(&call, &["no existing volume matches: disk has only 5Gi", &format!("1. {edit}")]);
    places(&call, &[edit]);
}

/// The API server rejects other access modes for an existing claim, but not for a new one.
#[test]
fn a_claim_asks_for_the_access_modes_that_a_volume_has() {
    let wants = |modes: &str, size: &str| {
        let claim = claim("data", "local", size);
        on(&[
            node("n1", N1),
            class("local", LOCAL, "WaitForFirstConsumer"),
            local_volume("disk", "5Gi"),
            claim.replace("[ReadWriteOnce]", modes),
            claiming("web", &["data"], ""),
        ])
    };
    let modes = "set persistentvolumeclaim default/data spec.accessModes=[\"ReadWriteOnce\"]";
    let size = "set persistentvolumeclaim default/data spec.resources.requests.storage=\"5Gi\"";
    let call = wants("[ReadWriteMany]", "1Gi");
    let recreated =
        "PersistentVolumeClaim default/data is recreated: spec.accessModes is immutable";
    says(&call, &["disk lacks an access mode", &format!("1. {modes}"), recreated]);
    places(&call, &[modes]);
    let call = wants("[ReadWriteOnce, ReadOnlyMany]", "10Gi");
    says(&call, &[&format!("1. {size} (now \"10Gi\"), and {modes}")]);
    places(&call, &[size, modes]);
}

/// A volume accessible from nodes with a label.
fn bound_behind(key: &str, value: &str) -> String {
    let expression = format!("{{key: {key}, operator: In, values: [{value}]}}");
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n  annotations: \
         {{pv.kubernetes.io/bind-completed: \"yes\"}}\nspec: {{accessModes: [ReadWriteOnce], \
         storageClassName: local, volumeName: disk, resources: {{requests: {{storage: 1Gi}}}}}}\n\
         status: {{phase: Bound}}\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: \
         disk}}\nspec: {{accessModes: [ReadWriteOnce], capacity: {{storage: 1Gi}}, \
         storageClassName: local, claimRef: {{namespace: default, name: data}}, local: {{path: \
         /mnt}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: \
         [{expression}]}}]}}}}}}\nstatus: {{phase: Bound}}\n---\n"
    )
}

#[test]
fn a_node_gets_the_label_that_a_volume_asks_for_where_people_set_it() {
    let cluster = |key: &str, more: &str| {
        let parts = [node("n1", N1), bound_behind(key, "blue"), more.to_owned()];
        on(&[parts.concat(), claiming("web", &["data"], "")])
    };
    let call = cluster("fabric", "");
    says(&call, &["1. label node n1 fabric=blue"]);
    places(&call, &["label node n1 fabric=blue"]);

    let immutable = |key: &str| {
        format!(
            "the node affinity of volume disk is immutable: only a node with {key}=blue \
             reaches it"
        )
    };
    let call = cluster("kubernetes.io/hostname", "");
    says(&call, &["No change is known", &immutable("kubernetes.io/hostname")]);
    let driver = "apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: \
                  {drivers: [{name: d, nodeID: n1, topologyKeys: [fabric]}]}\n---\n";
    let call = cluster("fabric", driver);
    says(&call, &["No change is known", &immutable("fabric")]);
}

#[test]
fn a_volume_of_another_zone_is_said_to_stay_there() {
    let zoned = bound_behind("kubernetes.io/hostname", "n1")
        .replace("{name: disk}", "{name: disk, labels: {topology.kubernetes.io/zone: z2}}");
    let labels = format!("{N1}, topology.kubernetes.io/zone: z1");
    let call = on(&[node("n1", &labels), zoned, claiming("web", &["data"], "")]);
    let stays = "the zone of volume disk is immutable: only a node in \
                 topology.kubernetes.io/zone=z2 can attach it";
    says(&call, &["No change is known", stays]);
    let json = call.run("explain web -f cluster.yaml --fix -o json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["fixes"]["unchangeable"], serde_json::json!([stays]));
}

#[test]
fn storage_capacity_and_allowed_topologies_have_remedies() {
    let driver = "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: \
                  disk.csi.example.com}\nspec: {storageCapacity: true}\n---\napiVersion: \
                  storage.k8s.io/v1\nkind: CSIStorageCapacity\nmetadata: {name: c}\n\
                  storageClassName: fast\nnodeTopology: {}\ncapacity: 4Gi\n---\n";
    let call = on(&[
        node("n1", N1),
        waiting("fast"),
        driver.to_owned(),
        claim("data", "fast", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    let edit = "set persistentvolumeclaim default/data spec.resources.requests.storage=\"4Gi\"";
    says(
        &call,
        &[
            "class fast has less than 10Gi of free storage reachable from the node; at most 4Gi",
            &format!("1. {edit}"),
        ],
    );
    places(&call, &[edit]);

    let zoned = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: zoned}\n\
                 provisioner: disk.csi.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
                 allowedTopologies: [{matchLabelExpressions: [{key: \
                 topology.kubernetes.io/zone, values: [z1]}]}]\n---\n";
    let call = on(&[
        node("n1", N1),
        zoned.to_owned(),
        waiting("fast"),
        claim("data", "zoned", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    let edit = "set persistentvolumeclaim default/data spec.storageClassName=\"fast\"";
    says(&call, &["class zoned provisions volumes only for", edit, "unset storageclass zoned"]);
    places(&call, &[edit]);
}

#[test]
fn a_provisioned_volume_can_be_reached_where_nodes_have_no_host_name() {
    let zoned = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: zoned}\n\
                 provisioner: disk.csi.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
                 allowedTopologies: [{matchLabelExpressions: [{key: \
                 topology.kubernetes.io/zone, values: [z1]}]}]\n---\n";
    let call = on(&[
        node("n1", "topology.kubernetes.io/zone: z1"),
        zoned.to_owned(),
        claim("data", "zoned", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    places(&call, &[]);
}

/// A node with two devices, each in its own NUMA node.
fn devices() -> String {
    node("n1", N1)
        + "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: \
           {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: device.driver == \
           \"gpu.example.com\"}}]}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n\
           metadata: {name: n1}\nspec:\n  driver: gpu.example.com\n  nodeName: n1\n  pool: {name: \
           n1, generation: 1, resourceSliceCount: 1}\n  devices:\n  - {name: dev-0, attributes: \
           {numa: {int: 0}}}\n  - {name: dev-1, attributes: {numa: {int: 1}}}\n---\n"
}

fn resource_claim(name: &str, devices: &str, status: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}}}\nspec: \
         {{devices: {{{devices}}}}}\n{status}---\n"
    )
}

/// The pod `render` uses a device through the claim `held`.
fn holder(device: &str) -> String {
    let status = format!(
        "status:\n  allocation: {{devices: {{results: [{{request: gpu, driver: gpu.example.com, \
         pool: n1, device: {device}}}]}}}}\n  reservedFor: [{{resource: pods, name: render, uid: \
         render}}]\n"
    );
    resource_claim("held", "requests: [{name: gpu, exactly: {deviceClassName: gpu}}]", &status)
        + &pod("render", "  resourceClaims: [{name: g, resourceClaimName: held}]\n  nodeName: n1\n")
}

fn using(claim: &str) -> String {
    pod("web", &format!("  resourceClaims: [{{name: g, resourceClaimName: {claim}}}]\n"))
}

#[test]
fn who_wants_all_devices_hears_who_holds_one() {
    let all = "requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: All}}]";
    let call = on(&[devices(), holder("dev-0"), resource_claim("data", all, ""), using("data")]);
    says(
        &call,
        &[
            "claim default/data, request gpu needs all 2 devices of class gpu: 1 of 2 suitable, \
             pod render holds dev-0 (claim default/held)",
            "delete pod default/render",
        ],
    );
    places(&call, &["delete pod default/render"]);
}

#[test]
fn the_constraint_that_fails_is_named_with_the_values_of_the_devices() {
    let wants = "requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: two, exactly: \
                 {deviceClassName: gpu}}], constraints: [{requests: [one, two], matchAttribute: \
                 gpu.example.com/numa}]";
    let call = on(&[devices(), resource_claim("data", wants, ""), using("data")]);
    let edit = "unset resourceclaim default/data spec.devices.constraints[0]";
    says(
        &call,
        &[
            "claim default/data: the devices of requests one, two must agree in \
             gpu.example.com/numa, but dev-0 has 0, dev-1 has 1",
            &format!("1. {edit}"),
        ],
    );
    places(&call, &[edit]);
}

#[test]
fn requests_that_compete_are_counted() {
    let wants = "requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: two, exactly: \
                 {deviceClassName: gpu}}]";
    let call = on(&[devices(), holder("dev-0"), resource_claim("data", wants, ""), using("data")]);
    says(
        &call,
        &[
            "not enough devices for all requests: claim default/data, request one needs 1, 1 \
             suitable; claim default/data, request two needs 1, 1 suitable; pod render holds dev-0 \
             (claim default/held)",
            "1. delete pod default/render",
        ],
    );
}

#[test]
fn a_mistyped_resource_claim_or_device_class_is_corrected() {
    let cluster = |claim: &str, class: &str| {
        let wants = format!("requests: [{{name: gpu, exactly: {{deviceClassName: {class}}}}}]");
        on(&[devices(), resource_claim("data-web", &wants, ""), using(claim)])
    };
    let edit = "set pod default/web spec.resourceClaims[0].resourceClaimName=\"data-web\"";
    let call = cluster("data-wbe", "gpu");
    says(&call, &["did you mean \"data-web\"?", &format!("1. {edit}")]);
    places(&call, &[edit]);
    let edit = "set resourceclaim default/data-web \
                spec.devices.requests[0].exactly.deviceClassName=\"gpu\"";
    let call = cluster("data-web", "gup");
    says(&call, &["did you mean \"gpu\"?", &format!("1. {edit}")]);
    places(&call, &[edit]);
}

#[test]
fn devices_for_an_extended_resource_are_called_by_its_name() {
    let web = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, \
               image: x, resources: {requests: {example.com/gpu: \"3\"}, limits: \
               {example.com/gpu: \"3\"}}}]\n---\n";
    let call = on(&[devices(), web.to_owned()]);
    let said =
        call.run("explain web -f cluster.yaml --fix --feature-gates DRAExtendedResource=true");
    let cause = "example.com/gpu needs 3 devices of class gpu: 2 of 2 suitable";
    assert!(said.stdout.contains(cause), "{}{}", said.stdout, said.stderr);
    let edit = "1. resize pod default/web example.com/gpu=2";
    assert!(said.stdout.contains(edit), "{}{}", said.stdout, said.stderr);
}

#[test]
fn a_volume_that_is_too_small_can_be_made_larger() {
    let call = on(&[
        node("n1", N1),
        class("local", LOCAL, "WaitForFirstConsumer"),
        local_volume("v5", "5Gi"),
        claim("data", "local", "10Gi"),
        claiming("web", &["data"], ""),
    ]);
    let edit = "set persistentvolume v5 spec.capacity.storage=\"10Gi\"";
    says(&call, &["no existing volume matches: v5 has only 5Gi", edit]);
    places(&call, &[edit]);
}
