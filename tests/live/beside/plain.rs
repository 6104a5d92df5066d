//! Pods that fit, pods that do not, with upstream's messages, and the events that requeue them.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] = &[
    ("plain", plain),
    ("rejections", rejections),
    ("gates", gates),
    ("wake", wake),
    ("spread", spread),
];

fn plain(stage: &mut Stage) {
    // In no version do two nodes have the same score.
    stage.create(vec![node("n4", "4"), node("n9", "9"), node("n22", "22")]);
    let pods = (0..5).map(|at| stage.pod(&format!("p{at}"), "1100m")).collect();
    stage.create(pods);
    stage.until("all are bound", |seen| (0..5).all(|at| seen.is_bound(&format!("p{at}"))));
    stage.until("all have their events", |seen| {
        (0..5).all(|at| seen.has_event(&format!("p{at}"), "Scheduled"))
    });
}

/// Each pod is rejected for a different reason.
fn rejections(stage: &mut Stage) {
    let (mut tainted, mut closed, mut labelled) = (node("a", "4"), node("b", "4"), node("c", "2"));
    tainted["spec"]["taints"] = json!([{"key": "gpu", "value": "only", "effect": "NoSchedule"}]);
    closed["spec"]["unschedulable"] = true.into();
    labelled["metadata"]["labels"]["disk"] = "ssd".into();
    stage.create(vec![tainted, closed, labelled]);
    let mut holder = stage.pod("holder", "100m");
    holder["metadata"]["labels"] = json!({"app": "holder"});
    holder["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
    stage.create(vec![holder.clone()]);
    stage.until("one is bound", |seen| seen.is_bound("holder"));
    let with = |name: &str, cpu: &str, change: &dyn Fn(&mut Value)| {
        let mut pod = stage.pod(name, cpu);
        change(&mut pod);
        pod
    };
    let term = json!([{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "holder"}}}]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
    let absent = json!([{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "nobody"}}}]);
    let absent = json!({"requiredDuringSchedulingIgnoredDuringExecution": absent});
    let hdd = json!([{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]}]);
    let hdd = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": hdd}});
    let named =
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["z"]}]}]);
    let named =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": named}});
    let pods = vec![
        with("large", "3", &|_| {}),
        with("huge-memory", "1", &|pod| {
            pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Ti".into();
        }),
        with("unknown-resource", "1", &|pod| {
            let resources = json!({"example.com/foo": "1"});
            pod["spec"]["containers"][0]["resources"] =
                json!({"requests": resources, "limits": resources});
        }),
        with("selector", "1", &|pod| pod["spec"]["nodeSelector"] = json!({"disk": "tape"})),
        with("affinity", "1", &|pod| pod["spec"]["affinity"]["nodeAffinity"] = hdd.clone()),
        with("named", "1", &|pod| pod["spec"]["affinity"]["nodeAffinity"] = named.clone()),
        with("port", "1", &|pod| {
            pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": 8080}]);
        }),
        with("away", "1", &|pod| pod["spec"]["affinity"]["podAntiAffinity"] = required.clone()),
        with("beside-nobody", "1", &|pod| pod["spec"]["affinity"]["podAffinity"] = absent.clone()),
        with("no-claim", "1", &|pod| {
            let claim = json!({"claimName": "nowhere"});
            pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": claim}]);
        }),
        with("no-devices", "1", &|pod| {
            pod["spec"]["resourceClaims"] = json!([{"name": "d", "resourceClaimName": "nowhere"}]);
        }),
        with("from-template", "1", &|pod| {
            pod["spec"]["resourceClaims"] =
                json!([{"name": "d", "resourceClaimTemplateName": "t"}]);
        }),
        with("other-scheduler", "1", &|pod| pod["spec"]["schedulerName"] = "somebody".into()),
    ];
    // The last three have no attempt.
    let tried = pods[..pods.len() - 3].iter();
    let tried: Vec<String> =
        tried.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    stage.create(pods);
    for name in tried {
        stage.until(&format!("{name} is rejected"), |seen| seen.is_rejected(&name));
    }
}

fn gates(stage: &mut Stage) {
    stage.create(vec![node("n", "4")]);
    let mut gated = stage.pod("gated", "1");
    gated["spec"]["schedulingGates"] =
        json!([{"name": "example.com/a"}, {"name": "example.com/b"}]);
    stage.create(vec![gated]);
    let condition = "its condition says so";
    stage.until(condition, |seen| {
        seen.condition("gated", "PodScheduled")["reason"] == "SchedulingGated"
    });
    let patch = r#"{"spec":{"schedulingGates":[{"name":"example.com/b"}]}}"#;
    stage.kubectl_here(&format!("patch pod gated --type merge -p {patch}"), "");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let patch = r#"{"spec":{"schedulingGates":null}}"#;
    stage.kubectl_here(&format!("patch pod gated --type merge -p {patch}"), "");
    stage.until("it is bound", |seen| {
        seen.is_bound("gated") && seen.has_event("gated", "Scheduled")
    });
}

/// A node is added, one is uncordoned, and a pod is deleted: each requeues one pod.
fn wake(stage: &mut Stage) {
    let mut closed = node("closed", "8");
    closed["spec"]["unschedulable"] = true.into();
    let mut full = node("full", "2");
    full["metadata"]["labels"]["kind"] = "full".into();
    stage.create(vec![closed, full]);
    let mut first = stage.pod("first", "2");
    first["spec"]["nodeSelector"] = json!({"kind": "full"});
    let mut second = first.clone();
    second["metadata"]["name"] = "second".into();
    stage.create(vec![first]);
    stage.until("the first is bound", |seen| seen.is_bound("first"));
    stage.create(vec![
        stage.pod("for-a-new-node", "30"),
        stage.pod("for-an-open-node", "5"),
        second,
    ]);
    for name in ["for-a-new-node", "for-an-open-node", "second"] {
        stage.until(&format!("{name} is rejected"), |seen| seen.is_rejected(name));
    }
    stage.create(vec![node("new", "32")]);
    stage.until("one is on the new node", |seen| seen.is_bound("for-a-new-node"));
    stage.kubectl("uncordon closed", "");
    stage.until("one is on the open node", |seen| seen.is_bound("for-an-open-node"));
    stage.kubectl_here("delete pod first --force --grace-period=0", "");
    stage.until("the second is bound", |seen| seen.is_bound("second"));
}

/// Hard spread over zones, with one pod too many.
fn spread(stage: &mut Stage) {
    let zoned = |name: &str, cpu: &str, zone: &str| {
        let mut node = node(name, cpu);
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
        node
    };
    stage.create(vec![zoned("a", "2", "west"), zoned("b", "16", "east"), node("c", "4")]);
    let constraint = json!([{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    for at in 0..4 {
        let mut pod = stage.pod(&format!("web-{at}"), "1500m");
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod["spec"]["topologySpreadConstraints"] = constraint.clone();
        stage.create(vec![pod]);
    }
    stage.until("three are bound", |seen| (0..3).all(|at| seen.is_bound(&format!("web-{at}"))));
    stage.until("one is rejected", |seen| seen.is_rejected("web-3"));
}
