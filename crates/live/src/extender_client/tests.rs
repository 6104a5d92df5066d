//! Calls to a server on this machine: what goes over the wire, and every way it can fail.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use std::thread;

use super::*;
use kubestep_api::duration;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::types::ExtenderTlsConfig;
use kubestep_config::{FeatureGates, ResolvedConfig};
use kubestep_framework::objects::Objects;
use kubestep_framework::record::{CycleRecord, Outcome};
use kubestep_framework::testing::{PodBuilder, node, pod};

/// A request as the server received it.
#[derive(Clone, Debug)]
struct Received {
    /// The request line: `POST /filter HTTP/1.1`.
    line: String,
    /// The header lines, in lower case.
    headers: Vec<String>,
    body: Value,
}

/// An HTTP server that answers each path differently, one request per connection.
struct Server {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

/// The whole answer to a request, including the status line; `None` keeps the caller waiting.
type Answer = fn(&Received) -> Option<String>;

impl Server {
    fn start(answer: Answer) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = receive(&mut stream) else { continue };
                let text = answer(&request);
                log.lock().unwrap().push(request);
                match text {
                    Some(text) => stream.write_all(text.as_bytes()).unwrap(),
                    None => kept.push(stream),
                }
            }
        });
        Server { port, received }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sched//", self.port)
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    fn lines(&self) -> Vec<String> {
        self.received().into_iter().map(|request| request.line).collect()
    }
}

fn receive(stream: &mut impl Read) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines().map(str::to_owned);
        let line = lines.next()?;
        let headers: Vec<String> = lines.map(|line| line.to_ascii_lowercase()).collect();
        let length = headers.iter().find_map(|line| line.strip_prefix("content-length: "))?;
        if body.len() >= length.parse().ok()? {
            return Some(Received { line, headers, body: serde_json::from_str(body).ok()? });
        }
    }
}

fn http(code: u16, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {code} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn extender(url: &str) -> Extender {
    Extender {
        url_prefix: url.into(),
        filter_verb: "filter".into(),
        prioritize_verb: "prioritize".into(),
        preempt_verb: "preempt".into(),
        bind_verb: "bind".into(),
        weight: 1,
        ..Extender::default()
    }
}

fn call(verb: &str, body: Value) -> ExtenderCall {
    ExtenderCall { extender: 0, verb: verb.into(), body }
}

/// The extender's answer to a filter call.
fn filter(extender: Extender) -> Result<Value, String> {
    connect(&[extender], CallScope::Reads).unwrap()(
        &call("filter", json!({"Pod": null})),
        &Objects::default(),
    )
}

/// The error before anything is sent.
fn rejection(extender: Extender) -> String {
    connect(&[extender], CallScope::Reads).err().unwrap().to_string()
}

/// Rejects n2, scores n3 far above n1, and accepts the proposed victims.
fn pick_n3(request: &Received) -> Option<String> {
    let body = match request.line.split(' ').nth(1)? {
        "/sched/filter" if request.body["NodeNames"].is_array() => {
            json!({"nodenames": ["n1", "n3"], "FailedNodes": {"n2": "not today"}})
        }
        "/sched/filter" => {
            let mut items = request.body["Nodes"]["items"].as_array()?.clone();
            items.retain(|node| node["metadata"]["name"] != "n2");
            json!({"Nodes": {"items": items}, "FailedNodes": {"n2": "not today"}})
        }
        "/sched/prioritize" => json!([{"Host": "n1", "Score": 0}, {"Host": "n3", "Score": 10}]),
        "/sched/preempt" => json!({"NodeNameToMetaVictims": request.body["NodeNameToMetaVictims"]}),
        _ => return http(404, ""),
    };
    http(200, &body.to_string())
}

/// The configuration with one extender that supports all verbs.
fn config(url: &str, more: &str) -> ResolvedConfig {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         extenders:\n- {{urlPrefix: \"{url}\", filterVerb: filter, prioritizeVerb: prioritize, \
         preemptVerb: preempt, bindVerb: bind, weight: 1, {more}}}\n"
    );
    let registry = kubestep_plugins::registry();
    config::resolve(Some(&text), &FeatureGates::default(), &registry.descriptors()).unwrap()
}

/// A cluster of three nodes, each running a pod with the given priority and cpu, whose extender is
/// called.
fn world(config: &ResolvedConfig, used: &str) -> World {
    let mut world =
        World::new(config, FeatureGates::default(), &kubestep_plugins::registry()).unwrap();
    world.api_mut().set_extenders(connect(&config.extenders, CallScope::Reads).unwrap());
    for name in ["n1", "n2", "n3"] {
        world.create(node(name).into());
        world.create(pod(&format!("on-{name}")).requests("cpu", used).on(name).into());
    }
    world
}

fn schedule(world: &mut World) -> Arc<CycleRecord> {
    world.create(pod("new").priority(9).requests("cpu", "2").into());
    world.step().unwrap()
}

#[test]
fn an_extender_with_a_node_cache_gets_names() {
    let server = Server::start(pick_n3);
    let mut world = world(&config(&server.url(), "nodeCacheCapable: true"), "1");
    let record = schedule(&mut world);
    assert_eq!((record.outcome, record.node), (Outcome::Scheduled, Some("n3".into())));
    assert_eq!([0, 1].map(|at| record.score.by_extenders(at)), [Some(0), Some(100)]);
    let requests = server.received();
    let names: Vec<Value> = requests.iter().map(|r| r.body["NodeNames"].clone()).collect();
    assert_eq!(names, [json!(["n1", "n2", "n3"]), json!(["n1", "n3"])]);
    for request in &requests {
        assert_eq!(request.body["Nodes"], Value::Null);
        assert_eq!(request.body["Pod"]["metadata"]["name"], "new");
        let container = &request.body["Pod"]["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"], json!({"cpu": "2"}));
        assert!(request.headers.contains(&"content-type: application/json".into()));
        let secret = request.headers.iter().find(|line| line.starts_with("authorization"));
        assert_eq!(secret, None);
    }
}

#[test]
fn an_extender_without_one_gets_whole_nodes() {
    let server = Server::start(pick_n3);
    let mut world = world(&config(&server.url(), ""), "1");
    assert_eq!(schedule(&mut world).node, Some("n3".into()));
    let requests = server.received();
    assert_eq!(requests[0].body["NodeNames"], Value::Null);
    let items = requests[0].body["Nodes"]["items"].as_array().unwrap();
    let names: Vec<&Value> = items.iter().map(|node| &node["metadata"]["name"]).collect();
    assert_eq!(names, ["n1", "n2", "n3"]);
    assert_eq!(items[0]["status"]["allocatable"]["memory"], "8Gi");
}

#[test]
fn slashes_at_the_end_do_not_count_and_bind_is_never_sent() {
    let server = Server::start(pick_n3);
    let mut world = world(&config(&server.url(), "nodeCacheCapable: true"), "1");
    let record = schedule(&mut world);
    assert_eq!(server.lines(), ["POST /sched/filter HTTP/1.1", "POST /sched/prioritize HTTP/1.1"]);
    // The simulated API server bound it, on behalf of the extender.
    assert!(record.extender_bind.as_ref().unwrap().status.is_success());
    assert!(record.bind.is_empty());
    let bound = world.api().objects().pod(kubestep_framework::testing::key("new")).unwrap();
    assert_eq!(bound.spec.node_name, "n3");
}

#[test]
fn a_binding_is_not_sent_whatever_the_verb() {
    let server = Server::start(pick_n3);
    let one_verb = Extender { bind_verb: "filter".into(), ..extender(&server.url()) };
    let answer = connect(&[one_verb], CallScope::Reads).unwrap();
    let binding = json!({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n1"});
    for verb in ["filter", "bind"] {
        assert_eq!(answer(&call(verb, binding.clone()), &Objects::default()), Ok(json!({})));
    }
    assert_eq!(answer(&call("other", json!({})), &Objects::default()), Ok(json!({})));
    assert_eq!(server.lines(), [""; 0]);
}

#[test]
fn preemption_asks_too() {
    let server = Server::start(|request| match request.line.contains("preempt") {
        false => http(200, &json!({"NodeNames": request.body["NodeNames"]}).to_string()),
        true => {
            let victims = &request.body["NodeNameToMetaVictims"];
            http(200, &json!({"NodeNameToMetaVictims": {"n2": victims["n2"]}}).to_string())
        }
    });
    let mut world = world(&config(&server.url(), "nodeCacheCapable: true"), "3");
    let record = schedule(&mut world);
    assert_eq!(record.nominated_node, Some("n2".into()));
    let asked = server.received().pop().unwrap();
    assert_eq!(asked.line, "POST /sched/preempt HTTP/1.1");
    let victims = |name: &str| json!({"Pods": [{"UID": name}], "NumPDBViolations": 0});
    let expected = json!({
        "n1": victims("default-on-n1"), "n2": victims("default-on-n2"),
        "n3": victims("default-on-n3"),
    });
    assert_eq!(asked.body["NodeNameToMetaVictims"], expected);
}

#[test]
fn other_codes_than_200_are_failures() {
    for (server, code) in [
        (Server::start(|_| http(500, "oops")), 500),
        (Server::start(|_| http(201, "{}")), 201),
        (Server::start(|_| http(503, "{}")), 503),
    ] {
        let port = server.port;
        let text = format!(
            "failed filter with extender at URL http://127.0.0.1:{port}/sched/filter, code {code}"
        );
        assert_eq!(filter(extender(&server.url())), Err(text));
        assert_eq!(server.lines().len(), 1, "nothing is tried twice");
    }
}

#[test]
fn the_text_of_a_failure_ends_the_cycle() {
    let server = Server::start(|_| http(500, ""));
    let record = schedule(&mut world(&config(&server.url(), ""), "1"));
    assert_eq!(record.outcome, Outcome::SchedulerError);
    let port = server.port;
    let text = format!("extender at URL http://127.0.0.1:{port}/sched/filter, code 500");
    assert!(record.message.ends_with(&text), "{}", record.message);
    let ignorable = config(&server.url(), "ignorable: true");
    assert_eq!(schedule(&mut world(&ignorable, "1")).outcome, Outcome::Scheduled);
}

#[test]
fn answers_that_are_no_json() {
    let error = |answer: Answer| {
        let server = Server::start(answer);
        let error = filter(extender(&server.url())).unwrap_err();
        error.replace(&server.port.to_string(), "PORT")
    };
    let url = "Post \"http://127.0.0.1:PORT/sched/filter\": ";
    let broken = error(|_| http(200, "{\"Error\": "));
    let what = "the response is not JSON: EOF while parsing a value at line 1 column 10";
    assert_eq!(broken, format!("{url}{what}"));
    assert_eq!(error(|_| http(200, "")), format!("{url}the response is empty"));
    let cut = error(|_| Some("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".into()));
    assert!(cut.starts_with(url) && cut.contains("end"), "{cut}");
    let server = Server::start(|_| http(200, "{\"Error\": \"\"} and more"));
    assert_eq!(filter(extender(&server.url())), Ok(json!({"Error": ""})));
}

#[test]
fn no_answer_in_time() {
    let server = Server::start(|_| None);
    let http_timeout = duration::Duration::from_micros(80_000);
    let started = Instant::now();
    let error = filter(Extender { http_timeout, ..extender(&server.url()) }).unwrap_err();
    let url = format!("http://127.0.0.1:{}/sched/filter", server.port);
    assert_eq!(error, format!("Post \"{url}\": no response within 80ms"));
    let taken = started.elapsed();
    assert!(taken >= Duration::from_millis(80) && taken < Duration::from_secs(5), "{taken:?}");
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = filter(extender(&url)).unwrap_err();
    assert_eq!(error, format!("Post \"{url}/filter\": Connection refused (os error 111)"));
}

#[test]
fn a_call_from_within_another_runtime() {
    let server = Server::start(|_| http(200, "{}"));
    let runtime = runtime::new().unwrap();
    let answer = runtime.block_on(async { filter(extender(&server.url())) });
    assert_eq!(answer, Ok(json!({})));
}

/// A self-signed certificate for 127.0.0.1 and its key.
const SERVER: &str = include_str!("tests/server.pem");
/// The certificate of an unrelated authority, in base64.
const AUTHORITY: &str = include_str!("tests/other-authority.base64");

/// A server that serves one HTTPS client and answers `{}`. Returns its address.
fn https_server() -> String {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let certificate = CertificateDer::from_pem_slice(SERVER.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(SERVER.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let session = rustls::ServerConnection::new(config).unwrap();
        let mut stream = rustls::StreamOwned::new(session, listener.accept().unwrap().0);
        if receive(&mut stream).is_some() {
            stream.write_all(http(200, "{}").unwrap().as_bytes()).unwrap();
        }
    });
    format!("https://127.0.0.1:{port}")
}

#[test]
fn the_certificate_is_verified_against_the_authority() {
    let (url, mut file) = (https_server(), tempfile::NamedTempFile::new().unwrap());
    file.write_all(SERVER.as_bytes()).unwrap();
    let ca_file = file.path().display().to_string();
    let right = ExtenderTlsConfig { ca_file, ..Default::default() };
    assert_eq!(filter(with_tls(&url, right)), Ok(json!({})));
    let url = https_server();
    let wrong = ExtenderTlsConfig { ca_data: AUTHORITY.into(), ..Default::default() };
    let error = filter(with_tls(&url, wrong)).unwrap_err();
    let what = "invalid peer certificate: UnknownIssuer";
    assert_eq!(error, format!("Post \"{url}/filter\": {what}"));
    assert_eq!(filter(with_tls(&https_server(), Default::default())), Ok(json!({})));
}

fn with_tls(url: &str, tls: ExtenderTlsConfig) -> Extender {
    Extender { enable_https: true, tls_config: Some(tls), ..extender(url) }
}

#[test]
fn settings_that_cannot_be_used() {
    let url = "https://127.0.0.1:1";
    let refused = |tls| rejection(with_tls(url, tls)).replace(url, "URL");
    let ca_data = AUTHORITY.to_owned();
    let both = ExtenderTlsConfig { insecure: true, ca_data, ..Default::default() };
    assert_eq!(refused(both), "extender URL: tlsConfig: insecure cannot be combined with a CA");
    let missing = ExtenderTlsConfig { ca_file: "no/such/ca.pem".into(), ..Default::default() };
    assert_eq!(refused(missing), "extender URL: No such file or directory (os error 2)");
    let half = ExtenderTlsConfig { cert_data: AUTHORITY.into(), ..Default::default() };
    assert!(refused(half).starts_with("extender URL: "));
    assert!(rejection(extender("http://no host/")).starts_with("extender http://no host/: "));
}

#[test]
fn settings_as_those_of_a_client() {
    let config = settings::client_config(&extender("http://127.0.0.1:1/x/")).unwrap();
    assert_eq!(config.cluster_url.to_string(), "http://127.0.0.1:1/x");
    assert!(!config.default_retry && !config.accept_invalid_certs);
    // Without an authority, HTTPS is not verified; with one it is, under the name given.
    let config = settings::client_config(&with_tls("https://a", Default::default())).unwrap();
    assert!(config.accept_invalid_certs);
    let (ca_data, server_name) = (AUTHORITY.to_owned(), "b".to_owned());
    let tls = ExtenderTlsConfig { ca_data, server_name, ..Default::default() };
    let config = settings::client_config(&with_tls("https://a", tls)).unwrap();
    assert!(!config.accept_invalid_certs);
    assert_eq!(config.root_cert.unwrap().len(), 1);
    assert_eq!(config.tls_server_name.as_deref(), Some("b"));
    // Only the address: verified with the system's authorities.
    let config = settings::client_config(&extender("https://a")).unwrap();
    assert!(!config.accept_invalid_certs && config.root_cert.is_none());
}
