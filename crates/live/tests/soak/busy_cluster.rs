//! The API server of a busy cluster, with its controllers, scheduler and kubelets, as far as a watch
//! shows them: pods of ReplicaSets with short and long names, pods of Jobs, and pods with a volume of their
//! own, on nodes that come and go.

use std::collections::VecDeque;
use std::time::Duration;

use kubestep_api::{Kind, Object, Time};
use kubestep_cluster::START;
use kubestep_debug::Session;
use kubestep_framework::pod::NamespacedName;
use kubestep_live::kinds::{ReadKind, TABLE};
use kubestep_live::{Delta, Shadow, list};
use serde_json::{Value, json};

/// Nodes at any time.
const NODES: usize = 40;
/// How long a pod lives, in pods that come meanwhile.
const LIFE: usize = 150;
/// Microseconds from one pod to the next.
const PACE: i64 = 2_000_000;
/// Pods from one new node to the next.
const NODE_PACE: usize = 300;
pub struct BusyCluster {
    now: Time,
    version: u64,
    random: u64,
    changes: usize,
    pods: usize,
    nodes: VecDeque<String>,
    running: VecDeque<RunningPod>,
}

/// A pod that runs, and the number of the pods that came before it.
struct RunningPod {
    key: NamespacedName,
    born: usize,
    /// Its volume, by name; the claim has the name of the pod.
    volume: Option<String>,
}

fn row(kind: Kind) -> &'static ReadKind {
    TABLE.iter().find(|row| row.kind == kind).unwrap()
}

impl BusyCluster {
    /// A cluster with its nodes and no pods.
    pub fn new(session: &mut Session, shadow: &mut Shadow) -> BusyCluster {
        let mut cluster = BusyCluster {
            now: START,
            version: 1_000,
            random: 7,
            changes: 0,
            pods: 0,
            nodes: VecDeque::new(),
            running: VecDeque::new(),
        };
        (0..NODES).for_each(|_| cluster.add_node(session, shadow));
        cluster
    }

    /// The changes so far.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Plays until so many pods have come.
    pub fn run(&mut self, session: &mut Session, shadow: &mut Shadow, pods: usize) {
        for _ in 0..pods {
            self.now.0 += PACE;
            self.pods += 1;
            self.schedule_pod(session, shadow);
            if self.pods.is_multiple_of(NODE_PACE) {
                self.add_node(session, shadow);
                self.remove_node(session, shadow);
            }
            while self.running.front().is_some_and(|pod| pod.born + LIFE <= self.pods) {
                let pod = self.running.pop_front().unwrap();
                self.delete_pod(session, shadow, pod);
            }
            shadow.tick(session, self.now);
        }
    }

    /// A pod comes, both schedulers decide about it, and it runs.
    fn schedule_pod(&mut self, session: &mut Session, shadow: &mut Shadow) {
        let mut pod = self.new_pod();
        let volume = (self.pods % 5 == 2).then(|| self.give_volume(session, shadow, &mut pod));
        self.puts(session, shadow, Kind::Pod, &mut pod);
        assert!(!shadow.work(session, Duration::from_secs(60)));
        let node = &self.nodes[self.pods % self.nodes.len()];
        pod["spec"]["nodeName"] = json!(node);
        pod["status"] = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        self.now.0 += 20_000;
        self.puts(session, shadow, Kind::Pod, &mut pod);
        pod["status"]["phase"] = json!("Running");
        let id = format!("{:016x}{:016x}", self.draw(), self.draw());
        pod["metadata"]["annotations"] = json!({"cni.projectcalico.org/containerID": id});
        self.puts(session, shadow, Kind::Pod, &mut pod);
        let text = |field: &str| pod["metadata"][field].as_str().unwrap();
        let key = NamespacedName::new(text("namespace").into(), text("name").into());
        self.running.push_back(RunningPod { key, born: self.pods, volume });
    }

    fn new_pod(&mut self) -> Value {
        let number = self.pods;
        let (workload, kind, owner) = match number % 4 {
            0 => (format!("report-{}", 29_000_000 + number), "Job", self.uid()),
            1 => {
                let name = format!("checkout-payments-worker-{}-7d4b9c6f5", number % 20);
                (name, "ReplicaSet", format!("rs-{}", number % 20))
            }
            _ => (
                format!("web-{}-7d4b9c6f5", number % 20),
                "ReplicaSet",
                format!("rs-{}", number % 20),
            ),
        };
        let mut labels = json!({"app": format!("app-{}", number % 20)});
        if kind == "Job" {
            labels["batch.kubernetes.io/job-name"] = json!(workload);
            labels["batch.kubernetes.io/controller-uid"] = json!(owner);
        }
        let token = format!("kube-api-access-{}", self.suffix());
        json!({
            "metadata": {
                "name": format!("{workload}-{}", self.suffix()), "namespace": "shop", "uid": self.uid(),
                "generateName": format!("{}-", workload.split('-').next().unwrap()), "labels": labels,
                "creationTimestamp": self.now,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": kind, "name": workload, "uid": owner, "controller": true,
                }],
            },
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [{
                    "name": "main", "image": format!("registry.example/app:{}", number % 7),
                    "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
                }],
                "volumes": [{"name": token, "projected": {"sources": []}}],
            },
            "status": {"phase": "Pending"},
        })
    }

    /// A volume of its own for the pod, and the claim that is bound to it. Returns the volume's name.
    fn give_volume(
        &mut self,
        session: &mut Session,
        shadow: &mut Shadow,
        pod: &mut Value,
    ) -> String {
        let (claim, name) = (pod["metadata"]["name"].clone(), format!("pvc-{}", self.uid()));
        let mut volume = json!({
            "metadata": {"name": name, "uid": self.uid()},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "shop", "name": claim},
                "csi": {"driver": "csi.example", "volumeHandle": format!("vol-{}", self.suffix())},
            },
            "status": {"phase": "Bound"},
        });
        let mut bound = json!({
            "metadata": {"name": claim, "namespace": "shop", "uid": self.uid(), "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
            }},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        });
        self.puts(session, shadow, Kind::PersistentVolume, &mut volume);
        self.puts(session, shadow, Kind::PersistentVolumeClaim, &mut bound);
        let data = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        pod["spec"]["volumes"].as_array_mut().unwrap().push(data);
        name
    }

    /// The pod goes, and its claim and its volume with it.
    fn delete_pod(&mut self, session: &mut Session, shadow: &mut Shadow, pod: RunningPod) {
        let RunningPod { key, volume, .. } = pod;
        self.says(session, shadow, Delta::Delete { kind: Kind::Pod, key });
        if let Some(volume) = volume {
            self.says(session, shadow, Delta::Delete { kind: Kind::PersistentVolumeClaim, key });
            let key = NamespacedName::new("".into(), volume.into());
            self.says(session, shadow, Delta::Delete { kind: Kind::PersistentVolume, key });
        }
    }

    fn add_node(&mut self, session: &mut Session, shadow: &mut Shadow) {
        let name = format!("node-{}", self.suffix());
        let mut node = json!({
            "metadata": {
                "name": name, "uid": self.uid(),
                "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "a"},
            },
            "spec": {"providerID": format!("aws:///eu-1a/i-{:017x}", self.draw())},
            "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
        });
        self.puts(session, shadow, Kind::Node, &mut node);
        self.nodes.push_back(name);
    }

    /// The oldest node goes, and its pods with it.
    fn remove_node(&mut self, session: &mut Session, shadow: &mut Shadow) {
        let Some(name) = self.nodes.pop_front() else { return };
        let api = session.world().api();
        let on_it = |pod: &RunningPod| {
            let pod = api.objects().pod(pod.key);
            pod.is_some_and(|pod| pod.spec.node_name == name.as_str())
        };
        let all = std::mem::take(&mut self.running);
        let (deleted, left): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(on_it);
        self.running = left;
        for pod in deleted {
            self.delete_pod(session, shadow, pod);
        }
        let key = NamespacedName::new("".into(), name.as_str().into());
        self.says(session, shadow, Delta::Delete { kind: Kind::Node, key });
    }

    /// The server sends the next version of an object, as text.
    fn puts(&mut self, session: &mut Session, shadow: &mut Shadow, kind: Kind, object: &mut Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object: Object = list::read(&object.to_string(), row(kind), "v1").unwrap();
        self.says(session, shadow, Delta::Put(object));
    }

    fn says(&mut self, session: &mut Session, shadow: &mut Shadow, delta: Delta) {
        self.changes += 1;
        shadow.take(session, vec![delta], self.now);
    }

    /// Pseudo-random numbers (SplitMix64).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The end of a generated name.
    fn suffix(&mut self) -> String {
        let letters = b"bcdfghjklmnpqrstvwxz2456789";
        let mut drawn = self.draw();
        let mut next = || {
            let letter = letters[(drawn % 27) as usize];
            drawn /= 27;
            char::from(letter)
        };
        (0..5).map(|_| next()).collect()
    }

    fn uid(&mut self) -> String {
        let (a, b) = (self.draw(), self.draw());
        let [high, middle, low] = [a >> 32, a >> 16 & 0xffff, a & 0xffff];
        format!("{high:08x}-{middle:04x}-{low:04x}-{:04x}-{:012x}", b >> 48, b & 0xffff_ffff_ffff)
    }
}
