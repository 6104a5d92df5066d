//! `kubestep schedule` where the API server is reached through a proxy only.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use kubestep_api::Kind;
use serde_json::json;

use crate::running::{Running, until};
use crate::standin::StandIn;

/// A name that only the proxy can resolve.
const HIDDEN: &str = "api.cluster.invalid:6443";

/// An HTTP proxy that connects every host to one server.
struct Proxy {
    port: u16,
    /// The hosts that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = log.clone();
                // The client handles broken connections.
                thread::spawn(move || tunnel(stream, server, &log));
            }
        });
        Proxy { port, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers CONNECT and copies both directions.
fn tunnel(client: TcpStream, server: u16, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    log.lock().unwrap().push(request.split(' ').nth(1).unwrap_or_default().to_owned());
    let upstream = TcpStream::connect(("127.0.0.1", server))?;
    (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut to, mut from) = (upstream.try_clone()?, upstream);
    thread::spawn(move || io::copy(&mut reader, &mut to));
    io::copy(&mut from, &mut &client).map(drop)
}

/// A cluster with a node and a pod.
fn cluster() -> Arc<StandIn> {
    let server = StandIn::start();
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
    server.put(Kind::Node, "node-0", json!({"status": {"allocatable": room, "capacity": room}}));
    let pod = json!({"schedulerName": "default-scheduler", "containers": [{"name": "c"}]});
    server.put(Kind::Pod, "pod-0", json!({"metadata": {"uid": "uid-0"}, "spec": pod}));
    server
}

/// The scheduler on the hidden server. `more` is a line of the kubeconfig's cluster.
fn start(server: &StandIn, more: &str, variables: &[(&str, &str)]) -> Running {
    let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
    let own = format!("127.0.0.1:{}", server.port());
    let text = text.replace(&format!("\"http://{own}\""), &format!("\"http://{HIDDEN}\"{more}"));
    assert!(text.contains(HIDDEN));
    std::fs::write(server.kubeconfig(), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubestep"));
    command.args(["schedule", "--yes-write", "--leader-elect=false", "--secure-port", "0"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("KUBECONFIG", server.kubeconfig()).envs(variables.iter().copied());
    Running::of(command)
}

fn is_bound(server: &StandIn) -> bool {
    server.look(|state| {
        let pods = state.objects.get("/api/v1/pods");
        pods.is_some_and(|pods| pods.values().all(|pod| pod["spec"]["nodeName"] == "node-0"))
    })
}

#[test]
fn the_kubeconfig_names_the_proxy() {
    let server = cluster();
    let proxy = Proxy::start(server.port());
    let more = format!(", proxy-url: \"{}\"", proxy.url());
    // NO_PROXY is for the environment's proxies only.
    let mut running = start(&server, &more, &[("NO_PROXY", "*")]);
    until("the pod is bound", || is_bound(&server));
    assert!(proxy.asked().iter().all(|host| host == HIDDEN), "{:?}", proxy.asked());
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn the_environment_names_the_proxy() {
    let server = cluster();
    let proxy = Proxy::start(server.port());
    // NO_PROXY is about the server's name, not about the proxy's.
    let variables = [("HTTP_PROXY", proxy.url()), ("NO_PROXY", "127.0.0.1,.svc".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut running = start(&server, "", &variables);
    until("the pod is bound", || is_bound(&server));
    assert!(!proxy.asked().is_empty());
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn an_exempt_server_is_reached_directly() {
    let server = cluster();
    let proxy = Proxy::start(server.port());
    let url = proxy.url();
    let variables = [("HTTP_PROXY", url.as_str()), ("NO_PROXY", "cluster.invalid")];
    let running = start(&server, "", &variables);
    running.wait_for("waiting for the API server");
    assert_eq!(proxy.asked(), Vec::<String>::new());
}
