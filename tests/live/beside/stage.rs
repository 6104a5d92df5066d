//! Two control planes, each with its scheduler, with the same inputs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kubestep_live::Link;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use crate::beside::seen::Seen;
use crate::beside::{metrics, profiles};
use crate::control_plane::{ControlPlane, free_port, minor_version};
use crate::objects;
use crate::running::Running;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(90);
/// The longest wait until both sides are in the same state.
const SAME_END: Duration = Duration::from_secs(15);
/// How long they must stay in it.
const STAYS: Duration = Duration::from_millis(1_500);

/// One of the two sides.
pub struct Side {
    plane: ControlPlane,
    runtime: Runtime,
    link: Link,
    scheduler: Running,
    seen: Seen,
    /// The port of the metrics.
    port: u16,
    _config: NamedTempFile,
}

impl Side {
    fn start(upstream: Option<&Path>, config: &str, gates: &str) -> Side {
        let options: &[&str] = match minor_version() {
            ..36 => &[],
            _ => &[
                "--feature-gates=GenericWorkload=true,GangScheduling=true,DRAExtendedResource=true",
                "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            ],
        };
        let plane = ControlPlane::start_with(options);
        let role = "create clusterrolebinding all --clusterrole=cluster-admin";
        plane.kubectl(&format!("{role} --user=system:kube-scheduler"), "");
        let runtime = Runtime::new().unwrap();
        let link = runtime.block_on(Link::new(plane.target("admin"))).unwrap();
        let file = NamedTempFile::with_suffix(".yaml").unwrap();
        let port = if config.contains("PORT") { profiles::extender(&plane) } else { 0 };
        let kubeconfig = plane.kubeconfig("scheduler");
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             clientConnection: {{kubeconfig: {}}}\n{}",
            kubeconfig.display(),
            config.replace("PORT", &port.to_string())
        );
        std::fs::write(file.path(), text).unwrap();
        let mut command = match upstream {
            Some(program) => Command::new(program),
            None => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_kubestep"));
                command.args(["schedule", "--yes-write", "--v=2"]);
                command
            }
        };
        let secure = free_port();
        command.arg("--config").arg(file.path()).arg(format!("--secure-port={secure}"));
        for reviews in ["--authentication-kubeconfig", "--authorization-kubeconfig"] {
            command.arg(reviews).arg(&kubeconfig);
        }
        if !gates.is_empty() {
            command.arg(format!("--feature-gates={gates}"));
        }
        let scheduler = Running::of(command);
        let seen = Seen::default();
        Side { plane, runtime, link, scheduler, seen, port: secure, _config: file }
    }

    fn get(link: &Link, runtime: &Runtime, path: &str) -> Value {
        let answer = runtime.block_on(link.get(path));
        answer.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn look(&mut self, namespace: &str) -> &Seen {
        let Side { link, runtime, seen, .. } = self;
        seen.read(namespace, |path| Side::get(link, runtime, path));
        seen
    }

    /// The body of `/metrics`.
    fn metrics(&self) -> String {
        let mut kubectl = Command::new(self.plane.kubectl_command().get_program());
        kubectl.env("KUBECONFIG", "/dev/null").args(["get", "--raw", "/metrics"]);
        kubectl.args(["--insecure-skip-tls-verify", "--token=admin-token"]);
        let output = kubectl.arg(format!("--server=https://127.0.0.1:{}", self.port)).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The lease, without its holder and times.
    fn lease(&self) -> Value {
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";
        let mut spec = Side::get(&self.link, &self.runtime, path)["spec"].clone();
        for name in ["holderIdentity", "acquireTime", "renewTime"] {
            spec[name] = spec[name].as_str().is_some_and(|text| !text.is_empty()).into();
        }
        spec
    }
}

/// The two sides and the current story.
pub struct Stage {
    upstream: Side,
    ours: Side,
    namespace: String,
}

impl Stage {
    pub fn new(upstream: &Path, config: &str, gates: &str) -> Stage {
        let (upstream, ours) = std::thread::scope(|scope| {
            let upstream = scope.spawn(|| Side::start(Some(upstream), config, gates));
            let ours = Side::start(None, config, gates);
            (upstream.join().unwrap(), ours)
        });
        let mut stage = Stage { upstream, ours, namespace: String::new() };
        for side in stage.sides() {
            let end = Instant::now() + PATIENCE;
            while side.lease()["holderIdentity"] != true {
                assert!(Instant::now() < end, "nobody leads: {}", side.scheduler.output());
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        stage
    }

    fn sides(&mut self) -> [&mut Side; 2] {
        [&mut self.upstream, &mut self.ours]
    }

    /// Begins a story, in a namespace with its name.
    pub fn begin(&mut self, story: &str) {
        eprintln!("story: {story}");
        self.namespace = story.to_owned();
        self.kubectl(&format!("create namespace {story}"), "");
    }

    /// Creates objects on both sides; namespaced ones in the story's namespace.
    pub fn create(&mut self, items: Vec<Value>) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        self.kubectl(&format!("create -n {} -f -", self.namespace), &list.to_string());
        // Watches of different kinds are not synchronized.
        std::thread::sleep(Duration::from_millis(300));
    }

    /// Runs kubectl on both sides.
    pub fn kubectl(&mut self, line: &str, input: &str) {
        let Stage { upstream, ours, .. } = self;
        let (upstream, ours) = (&upstream.plane, &ours.plane);
        std::thread::scope(|scope| {
            scope.spawn(|| upstream.kubectl(line, input));
            ours.kubectl(line, input);
        });
    }

    /// Runs kubectl on both sides in the story's namespace.
    pub fn kubectl_here(&mut self, line: &str, input: &str) {
        self.kubectl(&format!("-n {} {line}", self.namespace), input);
    }

    /// Waits until the condition is true on both sides.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let namespace = self.namespace.clone();
        for (side, name) in self.sides().into_iter().zip(["kube-scheduler", "kubestep"]) {
            let end = Instant::now() + PATIENCE;
            while !is_so(side.look(&namespace)) {
                if Instant::now() > end {
                    let (reported, seen) = (side.scheduler.output(), side.seen.words().join("\n"));
                    panic!("{name}: it did not come: {what}\n{seen}\n{reported}");
                }
                std::thread::sleep(Duration::from_millis(150));
            }
        }
    }

    /// A pod of the story.
    pub fn pod(&self, name: &str, cpu: &str) -> Value {
        let mut pod = objects::pod(name, cpu);
        pod["metadata"]["namespace"] = self.namespace.as_str().into();
        pod
    }

    /// Ends a story and returns the differences. The nodes are deleted.
    pub fn end(&mut self) -> String {
        let namespace = self.namespace.clone();
        let (end, mut same_since) = (Instant::now() + SAME_END, None);
        let differences = loop {
            let [upstream, ours] = self.sides().map(|side| side.look(&namespace).words());
            let found = differences(&upstream, &ours);
            match (found.is_empty(), same_since) {
                (true, Some(since)) if Instant::now() - since > STAYS => break found,
                (true, Some(_)) => {}
                (true, None) => same_since = Some(Instant::now()),
                (false, _) if Instant::now() > end => break found,
                (false, _) => same_since = None,
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        self.kubectl_here("delete pods --all --force --grace-period=0 --wait=false", "");
        self.kubectl("delete nodes --all", "");
        match differences.is_empty() {
            true => String::new(),
            false => format!("{namespace}:\n{differences}"),
        }
    }

    /// The differences in the names and labels of metrics.
    pub fn metrics(&mut self) -> String {
        let [upstream, ours] = self.sides().map(|side| side.metrics());
        metrics::differences(&upstream, &ours)
    }

    /// Stops the schedulers and returns the differences in the lease, held and released.
    pub fn leave(&mut self) -> String {
        let leases = |stage: &mut Stage| stage.sides().map(|side| vec![side.lease().to_string()]);
        let [upstream, ours] = leases(self);
        let held = differences(&upstream, &ours);
        for side in self.sides() {
            side.scheduler.stop();
        }
        let [upstream, ours] = leases(self);
        held + &differences(&upstream, &ours)
    }
}

/// The lines that only one side has.
fn differences(upstream: &[String], ours: &[String]) -> String {
    let without = |all: &[String], others: &[String], sign: &str| {
        let only = all.iter().filter(|line| !others.contains(line));
        only.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    without(upstream, ours, "-") + &without(ours, upstream, "+")
}
