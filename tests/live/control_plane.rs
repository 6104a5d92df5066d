//! A real control plane for one test: etcd and kube-apiserver from the folder `KUBEBUILDER_ASSETS`,
//! on free loopback ports, with RBAC and an audit log.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kubestep_live::KubeconfigTarget;
use serde_json::Value;
use tempfile::TempDir;

/// etcd and kube-apiserver. They are killed when the test ends.
pub struct ControlPlane {
    assets: PathBuf,
    folder: TempDir,
    etcd: Child,
    server: Child,
    port: u16,
    etcd_port: u16,
    more: Vec<String>,
}

/// The folder with etcd, kube-apiserver, kubectl and kube-scheduler.
pub fn assets() -> PathBuf {
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    folder.expect("KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kubectl")
}

/// The minor version of the API server in that folder: 36 of 1.36.2.
pub fn minor_version() -> u32 {
    let output = Command::new(assets().join("kube-apiserver")).arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned(); // Kubernetes v1.36.2
    let minor = text.split('.').nth(1).and_then(|minor| minor.parse().ok());
    minor.unwrap_or_else(|| panic!("no version in {text:?}"))
}

impl ControlPlane {
    /// Starts a control plane. Fails the test if `KUBEBUILDER_ASSETS` is not set.
    pub fn start() -> ControlPlane {
        ControlPlane::start_with(&[])
    }

    /// Like [`ControlPlane::start`], with additional options of the API server.
    pub fn start_with(options: &[&str]) -> ControlPlane {
        let assets = assets();
        let folder = TempDir::new().unwrap();
        let [port, etcd_port, peers] = [(); 3].map(|()| free_port());
        let etcd = Command::new(assets.join("etcd"))
            .arg("--data-dir")
            .arg(folder.path().join("etcd"))
            .args([
                "--listen-client-urls",
                &url(etcd_port),
                "--advertise-client-urls",
                &url(etcd_port),
            ])
            .args(["--listen-peer-urls", &url(peers), "--unsafe-no-fsync"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        write_files(&folder, port);
        let more: Vec<String> = options.iter().map(ToString::to_string).collect();
        let server = api_server(&assets, &folder, port, etcd_port, &more);
        let plane = ControlPlane { assets, folder, etcd, server, port, etcd_port, more };
        plane.wait_until_ready();
        plane
    }

    /// Kills the API server and starts it again.
    pub fn restart(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        let (port, etcd_port) = (self.port, self.etcd_port);
        self.server = api_server(&self.assets, &self.folder, port, etcd_port, &self.more);
        self.wait_until_ready();
    }

    /// The kubeconfig of a user: `admin`, `scheduler`, who has kube-scheduler's roles, or
    /// `viewer`, who has no role at first.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.path().join(format!("{user}.kubeconfig"))
    }

    /// The cluster for the library.
    pub fn target(&self, user: &str) -> KubeconfigTarget {
        KubeconfigTarget { kubeconfig: Some(self.kubeconfig(user)), ..KubeconfigTarget::default() }
    }

    /// A kubectl command, to be run in another thread.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(self.assets.join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig("admin"));
        command
    }

    /// Runs kubectl as the administrator, with standard input.
    pub fn kubectl(&self, line: &str, input: &str) -> String {
        let file = self.folder.path().join("input");
        fs::write(&file, input).unwrap();
        let output = Command::new(self.assets.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig("admin"))
            .args(line.split_whitespace())
            .stdin(fs::File::open(file).unwrap())
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}: {reported}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The verbs of requests in the audit log from a user agent.
    pub fn verbs_of(&self, agent: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_agent = events.filter(|event| {
            event["userAgent"].as_str().is_some_and(|name| name.starts_with(agent))
        });
        of_agent.map(|event| event["verb"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The completed requests in the audit log: verb, resource with subresource, object, code.
    pub fn audited(&self) -> Vec<Audited> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let done = events.filter(|event| event["stage"] == "ResponseComplete");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let audited = |event: Value| Audited {
            agent: text(&event["userAgent"]),
            verb: text(&event["verb"]),
            resource: match text(&event["objectRef"]["subresource"]).as_str() {
                "" => text(&event["objectRef"]["resource"]),
                part => format!("{}/{part}", text(&event["objectRef"]["resource"])),
            },
            name: text(&event["objectRef"]["name"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or(0),
        };
        done.map(audited).collect()
    }

    fn wait_until_ready(&self) {
        let until = Instant::now() + Duration::from_secs(90);
        let ready = |path: &str| {
            let mut kubectl = Command::new(self.assets.join("kubectl"));
            kubectl.arg("--kubeconfig").arg(self.kubeconfig("admin"));
            let output = kubectl.args(["get", "--raw", path]).output().unwrap();
            output.status.success()
        };
        // kubectl validates what it creates by the schemas, which may come after all else.
        while !["/readyz", "/openapi/v2", "/openapi/v3"].into_iter().all(ready) {
            assert!(Instant::now() < until, "the API server does not get ready");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// A request in the audit log.
#[derive(Clone, Debug)]
pub struct Audited {
    pub agent: String,
    pub verb: String,
    /// The resource with its subresource.
    pub resource: String,
    pub name: String,
    pub code: u64,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.etcd] {
            // It may have exited already.
            let _killed = child.kill();
            let _waited = child.wait();
        }
    }
}

/// A loopback port on which no process listens.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn write_files(folder: &TempDir, port: u16) {
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "tokens.csv",
        "admin-token,admin,admin,system:masters\nviewer-token,viewer,viewer\n\
         scheduler-token,system:kube-scheduler,scheduler\n",
    );
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    write("audit.yaml", policy);
    for user in ["admin", "viewer", "scheduler"] {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
             clusters: [{{name: lab, cluster: {{server: \"https://127.0.0.1:{port}\", \
             insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: {user}, user: {{token: {user}-token}}}}]\n\
             contexts: [{{name: lab, context: {{cluster: lab, user: {user}}}}}]\n"
        );
        write(&format!("{user}.kubeconfig"), &text);
    }
    let key = Command::new("openssl")
        .args(["genrsa", "-out"])
        .arg(folder.path().join("key.pem"))
        .arg("2048")
        .output();
    assert!(key.is_ok_and(|output| output.status.success()), "openssl makes the server's key");
}

fn api_server(
    assets: &std::path::Path,
    folder: &TempDir,
    port: u16,
    etcd_port: u16,
    more: &[String],
) -> Child {
    let file = |name: &str| folder.path().join(name).display().to_string();
    let options = [
        ("etcd-servers", url(etcd_port)),
        ("secure-port", port.to_string()),
        ("bind-address", "127.0.0.1".into()),
        ("cert-dir", file("certificates")),
        ("service-account-issuer", "https://lab".into()),
        ("service-account-key-file", file("key.pem")),
        ("service-account-signing-key-file", file("key.pem")),
        ("token-auth-file", file("tokens.csv")),
        ("authorization-mode", "RBAC".into()),
        ("audit-log-path", file("audit.log")),
        ("audit-policy-file", file("audit.yaml")),
        ("service-cluster-ip-range", "10.0.0.0/16".into()),
        ("disable-admission-plugins", "ServiceAccount,TaintNodesByCondition".into()),
    ];
    let options = options.map(|(name, value)| format!("--{name}={value}"));
    Command::new(assets.join("kube-apiserver"))
        .args(options)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
