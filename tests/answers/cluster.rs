//! A generated cluster: nodes with known free resources, the pod of the question, and unrelated
//! objects. The expected explanation is computed here, independently of the program.

use serde_json::{Value, json};

use crate::random::Random;
use crate::truth::Truth;

pub const MI: i64 = 1 << 20;
/// The label with a node's zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The label with a node's name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node and its requested resources, in millicores and mebibytes.
#[derive(Clone)]
pub struct NodeRoom {
    pub name: String,
    pub zone: String,
    pub cpu: i64,
    pub memory: i64,
    pub used_cpu: i64,
    pub used_memory: i64,
    pub pods: i64,
}

impl NodeRoom {
    pub fn free_cpu(&self) -> i64 {
        self.cpu - self.used_cpu
    }

    pub fn free_memory(&self) -> i64 {
        self.memory - self.used_memory
    }
}

/// A cluster with the question and the expected answer.
pub struct Case {
    pub rooms: Vec<NodeRoom>,
    /// All objects except the pod of the question, in order of creation.
    pub objects: Vec<Value>,
    /// The pod of the question.
    pub pod: Value,
    /// The scheduler configuration, without `apiVersion` and `kind`.
    pub config: Option<String>,
    /// Feature gates, as on the command line.
    pub gates: &'static str,
    pub truth: Truth,
    numbers: usize,
}

impl Case {
    /// Nodes with a light load, and a small pod that would fit on each.
    pub fn new(r: &mut Random) -> Case {
        let count = 2 + r.below(11);
        Case::sized(r, count)
    }

    pub fn sized(r: &mut Random, nodes: usize) -> Case {
        let prefix = *r.pick(&[&"node", &"worker", &"ip-10-0-7"]);
        let zones = 2 + r.below(2);
        let room = |at: usize, r: &mut Random| NodeRoom {
            name: format!("{prefix}-{at}"),
            zone: format!("eu-1{}", char::from(b'a' + (at % zones) as u8)),
            cpu: 1000 * (4 + r.below(13) as i64),
            memory: 1024 * (8 + r.below(25) as i64),
            used_cpu: 0,
            used_memory: 0,
            pods: 0,
        };
        let rooms: Vec<NodeRoom> = (0..nodes).map(|at| room(at, r)).collect();
        let mut case = Case {
            objects: rooms.iter().map(node_object).collect(),
            rooms,
            pod: pod_object("web", 100 + 50 * r.below(4) as i64, 64 + 32 * r.below(4) as i64),
            config: None,
            gates: "",
            truth: Truth::default(),
            numbers: 0,
        };
        for at in 0..nodes {
            case.light_load(r, at);
        }
        case.add_unrelated(r);
        case
    }

    /// The input as a list of documents, with the pod of the question last.
    pub fn documents(&self) -> Vec<Value> {
        self.objects.iter().chain([&self.pod]).cloned().collect()
    }

    /// The pod of the question, as namespace/name.
    pub fn asked(&self) -> String {
        key_of(&self.pod)
    }

    pub fn nodes(&self) -> std::ops::Range<usize> {
        0..self.rooms.len()
    }

    pub fn name(&self, at: usize) -> String {
        self.rooms[at].name.clone()
    }

    /// The manifest of a node, to be changed.
    pub fn node(&mut self, at: usize) -> &mut Value {
        let name = &self.rooms[at].name;
        let is_meant = |o: &&mut Value| o["kind"] == "Node" && o["metadata"]["name"] == **name;
        self.objects.iter_mut().find(is_meant).unwrap()
    }

    pub fn label(&mut self, at: usize, key: &str, value: &str) {
        self.node(at)["metadata"]["labels"][key] = json!(value);
    }

    pub fn taint(&mut self, at: usize, taint: Value) {
        match self.node(at)["spec"]["taints"].as_array_mut() {
            Some(taints) => taints.push(taint),
            None => self.node(at)["spec"]["taints"] = json!([taint]),
        }
    }

    /// Sets the allocatable amount of a resource.
    pub fn offer(&mut self, at: usize, resource: &str, amount: &str) {
        for list in ["allocatable", "capacity"] {
            self.node(at)["status"][list][resource] = json!(amount);
        }
    }

    /// A number that is unique in this case.
    pub fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    pub fn add(&mut self, object: Value) {
        self.objects.push(object);
    }

    /// A running pod with these requests.
    pub fn running(&mut self, at: usize, cpu: i64, memory: i64) -> Value {
        let name = format!("app-{}", self.number());
        self.running_as(&name, at, cpu, memory)
    }

    pub fn running_as(&mut self, name: &str, at: usize, cpu: i64, memory: i64) -> Value {
        let room = &mut self.rooms[at];
        room.used_cpu += cpu;
        room.used_memory += memory;
        room.pods += 1;
        let mut pod = pod_object(name, cpu, memory);
        pod["spec"]["nodeName"] = json!(room.name);
        pod["status"] = json!({"phase": "Running", "startTime": "2025-12-31T12:00:00Z"});
        pod["metadata"]["creationTimestamp"] = json!("2025-12-31T12:00:00Z");
        pod
    }

    /// Adds pods that leave that many millicores free on the node.
    pub fn leave_cpu(&mut self, at: usize, left: i64, r: &mut Random) {
        let mut rest = self.rooms[at].free_cpu() - left;
        while rest > 0 {
            let part = if r.chance(40) { rest } else { (rest / 2).max(1) };
            let pod = self.running(at, part, 8);
            self.add(pod);
            rest -= part;
        }
    }

    /// Adds pods that leave that many mebibytes free on the node.
    pub fn leave_memory(&mut self, at: usize, left: i64, r: &mut Random) {
        let mut rest = self.rooms[at].free_memory() - left;
        while rest > 0 {
            let part = if r.chance(40) { rest } else { (rest / 2).max(1) };
            let pod = self.running(at, 1, part);
            self.add(pod);
            rest -= part;
        }
    }

    /// Sets the request of the container in the pod of the question.
    pub fn ask(&mut self, resource: &str, amount: &str) {
        self.pod["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount);
    }

    fn light_load(&mut self, r: &mut Random, at: usize) {
        let agent = format!("agent-{}", self.name(at));
        let mut pod = self.running_as(&agent, at, 50, 32);
        pod["metadata"]["namespace"] = json!("kube-system");
        own(&mut pod, "DaemonSet", "agent");
        self.add(pod);
        for _ in 0..r.below(3) {
            let pod = self.running(at, 50 * (1 + r.below(8) as i64), 64);
            self.add(pod);
        }
    }

    /// Adds objects that do not affect the pod.
    fn add_unrelated(&mut self, r: &mut Random) {
        let at = r.below(self.rooms.len());
        if r.chance(60) {
            let mut ended = pod_object("ended", 64_000, 64 * 1024);
            ended["spec"]["nodeName"] = json!(self.rooms[at].name);
            ended["status"] = json!({"phase": "Succeeded"});
            self.add(ended);
        }
        if r.chance(50) {
            let effect = "PreferNoSchedule";
            self.taint(at, json!({"key": "example.com/old", "effect": effect}));
        }
        if r.chance(50) {
            self.add(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "calm", "namespace": "shop"},
                "spec": {"selector": {"matchLabels": {"app": "calm"}}},
                "status": {"disruptionsAllowed": 0}}));
        }
        if r.chance(50) {
            self.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": "archive"}, "provisioner": "archive.example.com",
                "volumeBindingMode": "Immediate"}));
        }
        self.label(at, "example.com/rack", "r7");
    }
}

fn node_object(room: &NodeRoom) -> Value {
    let NodeRoom { name, zone, cpu, memory, .. } = room;
    let amounts = json!({"cpu": milli(*cpu), "memory": format!("{memory}Mi"),
        "ephemeral-storage": "100Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone}}, "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A pending pod with one container.
pub fn pod_object(name: &str, cpu: i64, memory: i64) -> Value {
    let requests = json!({"cpu": milli(cpu), "memory": format!("{memory}Mi")});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name},
            "creationTimestamp": "2026-01-01T08:00:00Z"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1",
            "resources": {"requests": requests}}]},
        "status": {"phase": "Pending"}})
}

/// Millicores as a quantity.
pub fn milli(cpu: i64) -> String {
    format!("{cpu}m")
}

/// Sets a controller as the pod's owner.
pub fn own(pod: &mut Value, kind: &str, name: &str) {
    let version = match kind {
        "Job" => "batch/v1",
        "Node" => "v1",
        _ => "apps/v1",
    };
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": version, "kind": kind,
        "name": name, "uid": name, "controller": true}]);
}

/// The key `namespace/name`, or the name of a cluster-scoped object.
pub fn key_of(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
