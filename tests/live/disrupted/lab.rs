//! A cluster with the real kube-scheduler and kube-controller-manager, and the test as its kubelets.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, assets, free_port};
use crate::objects::{create, get, node};
use crate::running::Running;

/// The controllers that replace pods, keep budgets, and remove the pods of lost nodes. The one that
/// declares nodes unreachable is not among them, as these nodes have no kubelet.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,\
                           daemonset-controller,disruption-controller,garbage-collector-controller,\
                           pod-garbage-collector-controller,taint-eviction-controller";
/// How long nothing may change for a cluster to be at rest.
const REST: Duration = Duration::from_secs(4);
/// The garbage collector waits 40 seconds before it deletes the pods of a lost node.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Lab {
    pub plane: ControlPlane,
    _processes: [Running; 2],
    kubelets: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Name, CPUs and zone.
pub type Node = (&'static str, &'static str, &'static str);

impl Lab {
    pub fn start() -> Lab {
        let plane = ControlPlane::start();
        let processes = [
            process(&plane, "kube-scheduler", &[]),
            process(
                &plane,
                "kube-controller-manager",
                &[
                    &format!("--controllers={CONTROLLERS}"),
                    "--kube-api-qps=500",
                    "--kube-api-burst=500",
                ],
            ),
        ];
        let kubelets = Arc::new(AtomicBool::new(true));
        let (program, runs) = (plane.kubectl_command(), kubelets.clone());
        let thread = Some(std::thread::spawn(move || run_pods(program, &runs)));
        Lab { plane, _processes: processes, kubelets, thread }
    }

    pub fn kubectl(&self, line: &str) -> String {
        self.plane.kubectl(line, "")
    }

    /// What kubectl prints on an error; fails if there is none.
    pub fn kubectl_fails(&self, line: &str) -> String {
        let output = self.plane.kubectl_command().args(line.split(' ')).output().unwrap();
        assert!(!output.status.success(), "kubectl {line} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn create_nodes(&self, nodes: &[Node]) {
        let with_zone = |(name, cpu, zone): &Node| {
            let mut node = node(name, cpu);
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
            node
        };
        if !nodes.is_empty() {
            create(&self.plane, nodes.iter().map(with_zone).collect());
        }
    }

    pub fn apply(&self, objects: &str) {
        if !objects.trim().is_empty() {
            self.plane.kubectl("apply -f -", objects);
        }
    }

    /// Deletes everything that a story created.
    pub fn clear(&self) {
        for kind in ["deployments", "statefulsets", "daemonsets", "poddisruptionbudgets"] {
            self.kubectl(&format!("delete {kind} --all --wait=false"));
        }
        self.kubectl("delete pods --all --force --grace-period=0");
        self.kubectl("delete nodes --all");
        self.wait("no pods", |lab| lab.pods().is_empty());
    }

    /// The pods of the default namespace.
    pub fn pods(&self) -> Vec<Value> {
        let list = get(&self.plane, "/api/v1/namespaces/default/pods");
        list["items"].as_array().unwrap().clone()
    }

    pub fn wait(&self, what: &str, done: impl Fn(&Lab) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(
                Instant::now() < until,
                "{what}: {}",
                self.kubectl("get pods,pdb,nodes -o wide")
            );
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Waits until every pod runs or was rejected, every budget knows its pods, and nothing has
    /// changed for a while.
    pub fn settle(&self) {
        let (mut seen, mut since) = (String::new(), Instant::now());
        let until = Instant::now() + PATIENCE;
        loop {
            let pods = self.pods();
            let now = format!("{:?}", pods.iter().map(state).collect::<Vec<_>>());
            if now != seen || !pods.iter().all(is_settled) || !self.budgets_are_settled() {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > REST {
                return;
            }
            assert!(Instant::now() < until, "{}", self.kubectl("get pods,pdb -o wide"));
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn budgets_are_settled(&self) -> bool {
        let list = get(&self.plane, "/apis/policy/v1/namespaces/default/poddisruptionbudgets");
        let budgets = list["items"].as_array().unwrap().clone();
        budgets.iter().all(|budget| {
            budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
                && budget["status"]["expectedPods"].as_i64() > Some(0)
        })
    }

    /// `kubestep run` on the cluster with that edit; its report, what it says besides, and its exit
    /// code.
    pub fn kubestep(&self, edit: &str) -> (Value, String, Option<i32>) {
        let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
            .args(["run", "-o", "json", "--edit", edit])
            .env("KUBECONFIG", self.plane.kubeconfig("admin"))
            .output()
            .unwrap();
        let reported = String::from_utf8(output.stderr).unwrap();
        (serde_json::from_slice(&output.stdout).unwrap_or_default(), reported, output.status.code())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.kubelets.store(false, Ordering::Relaxed);
        // A kubelet that failed has nothing to say.
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

fn process(plane: &ControlPlane, name: &str, more: &[&str]) -> Running {
    let program = assets().join(name);
    assert!(program.is_file(), "KUBEBUILDER_ASSETS names a folder without {name}");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(plane.kubeconfig("admin"));
    command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]).args(more);
    command.arg(format!("--secure-port={}", free_port()));
    Running::of(command)
}

/// Does what kubelets would: a pod on a node runs and is ready.
fn run_pods(kubectl: Command, runs: &AtomicBool) {
    let again = |arguments: &[&str]| {
        let mut command = Command::new(kubectl.get_program());
        command.args(kubectl.get_args()).args(arguments).output().unwrap().stdout
    };
    let status = json!({"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    while runs.load(Ordering::Relaxed) {
        let listed = again(&["get", "pods", "-o", "json"]);
        let list: Value = serde_json::from_slice(&listed).unwrap_or_default();
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let starts = |pod: &&Value| {
            pod["spec"]["nodeName"].is_string() && pod["status"]["phase"] == "Pending"
        };
        let names: Vec<&str> =
            pods.iter().filter(starts).filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        if !names.is_empty() {
            let patch = status.to_string();
            let arguments =
                [&["patch", "pods"], &names[..], &["--subresource=status", "-p", &patch]];
            again(&arguments.concat());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Its name, node and phase.
fn state(pod: &Value) -> [String; 3] {
    [&pod["metadata"]["uid"], &pod["spec"]["nodeName"], &pod["status"]["phase"]]
        .map(Value::to_string)
}

/// Whether the pod runs, or was rejected by the scheduler.
fn is_settled(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let rejected = conditions.iter().any(|condition| condition["reason"] == "Unschedulable");
    pod["metadata"]["deletionTimestamp"].is_null()
        && (pod["status"]["phase"] == "Running" || rejected)
}

/// The workload of a pod: its controller; in a StatefulSet and without a controller, the pod itself.
pub fn workload(pod: &Value) -> String {
    let owner = &pod["metadata"]["ownerReferences"][0];
    let name = match owner["kind"].as_str() {
        Some("ReplicaSet" | "DaemonSet") => &owner["name"],
        _ => &pod["metadata"]["name"],
    };
    name.as_str().unwrap_or_default().to_owned()
}

/// Where a pod is.
pub fn place(pod: &Value) -> String {
    pod["spec"]["nodeName"].as_str().unwrap_or("pending").to_owned()
}

/// The pods by name.
pub fn by_name(pods: &[Value]) -> BTreeMap<String, &Value> {
    pods.iter().map(|pod| (pod["metadata"]["name"].as_str().unwrap().to_owned(), pod)).collect()
}
