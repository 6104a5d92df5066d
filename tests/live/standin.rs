//! A stand-in for an API server: lists in pages, watches with bookmarks, versions that are
//! compacted, tokens that expire, rejected requests, and connections that are cut, slow or repeat
//! lines.
//!
//! It can only simulate known behavior; `real.rs` runs the same tests with a real API server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use kubestep_live::KubeconfigTarget;
use kubestep_live::kinds;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::misbehaving::Mode;
use crate::random::Random;
use crate::writes;

/// The faults of a server.
#[derive(Clone, Default)]
pub struct Faults {
    /// Watch connections are cut within a line, and lines are slow or repeated; by this seed.
    pub seed: Option<u64>,
    /// Lists that are forbidden, by plural.
    pub refused: BTreeSet<&'static str>,
    /// Continuations expire after that many pages, once.
    pub expire_pages: usize,
    /// The accepted token; `None`: any.
    pub token: Option<String>,
    /// Lists that it serves, by path; `None`: those of 1.36 without pod groups.
    pub served: Option<fn(&str) -> bool>,
    /// The version that it reports; `None`: 1.36.
    pub version: Option<&'static str>,
    /// Connections are closed before an answer.
    pub down: bool,
    /// The number of requests that get 429.
    pub busy: usize,
    /// The response to every watch instead of its events.
    pub watches: Option<Mode>,
    /// Writes get errors, or no response, whether or not they were applied; by this seed.
    pub writes: Option<u64>,
    /// Writes with matching paths wait until this changes.
    pub held: Option<fn(&str) -> bool>,
    /// Writes with matching paths get 503 with `Retry-After: 1`.
    pub unavailable: Option<fn(&str) -> bool>,
    /// Writes with matching paths get 409.
    pub conflicts: Option<fn(&str) -> bool>,
}

#[derive(Default)]
pub(crate) struct State {
    /// By path of the list, and by `namespace/name`.
    pub(crate) objects: BTreeMap<String, BTreeMap<String, Value>>,
    pub(crate) version: u64,
    /// Version, path, `ADDED`…, object.
    pub(crate) log: Vec<(u64, String, &'static str, Value)>,
    /// Versions up to this one are compacted.
    compacted: u64,
    /// Lists that are being returned page by page.
    pages: HashMap<String, Vec<Value>>,
    faults: Faults,
    pub(crate) requests: Vec<String>,
    connections: u64,
    /// The number of writes, for their faults.
    writes: u64,
    /// Paths of the writes that were applied without a response.
    pub(crate) unanswered: BTreeSet<String>,
}

/// The server. It stops when the test ends.
pub struct StandIn {
    state: Mutex<State>,
    changed: Condvar,
    port: u16,
    folder: TempDir,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    query: HashMap<String, String>,
    token: String,
    pub(crate) body: Value,
}

impl StandIn {
    /// Starts a server on a free port.
    pub fn start() -> Arc<StandIn> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Mutex::new(State { version: 100, ..State::default() });
        let folder = TempDir::new().unwrap();
        let server = Arc::new(StandIn { state, changed: Condvar::new(), port, folder });
        server.write_kubeconfig("token-1");
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                // The client handles broken connections.
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    /// Writes the kubeconfig with that token.
    pub fn write_kubeconfig(&self, token: &str) {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
             clusters: [{{name: lab, cluster: {{server: \"http://127.0.0.1:{}\"}}}}]\n\
             users: [{{name: me, user: {{token: {token}}}}}]\n\
             contexts: [{{name: lab, context: {{cluster: lab, user: me}}}}]\n",
            self.port
        );
        std::fs::write(self.kubeconfig(), text).unwrap();
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of the kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The cluster for the library.
    pub fn target(&self) -> KubeconfigTarget {
        KubeconfigTarget { kubeconfig: Some(self.kubeconfig()), ..KubeconfigTarget::default() }
    }

    pub fn misbehave(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state.lock().unwrap().faults);
        self.changed.notify_all();
    }

    /// Changes the fields of an object of any kind, by the path of its list and its key in it.
    pub fn put_at(&self, list: &str, key: &str, fields: Value) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version;
        let mut object = state.objects[list][key].clone();
        for (part, fields) in fields.as_object().into_iter().flatten() {
            for (name, value) in fields.as_object().into_iter().flatten() {
                object[part][name] = value.clone();
            }
        }
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let objects = state.objects.entry(list.to_owned()).or_default();
        objects.insert(key.to_owned(), object.clone());
        state.log.push((version, list.to_owned(), "MODIFIED", object));
        self.changed.notify_all();
    }

    /// Creates a lease of the control plane.
    pub fn put_lease(&self, name: &str, spec: Value) {
        let metadata = json!({"name": name, "namespace": "kube-system"});
        let lease = json!({"metadata": metadata, "spec": spec});
        self.put_unread("/apis/coordination.k8s.io/v1/leases", lease);
    }

    /// Creates an object of a kind that no scheduler reads, by the path of its list.
    pub fn put_unread(&self, list: &str, object: Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = format!("{}/{}", text("namespace"), text("name"));
        let mut state = self.state.lock().unwrap();
        state.objects.entry(list.to_owned()).or_default().insert(key, object);
    }

    /// Creates or replaces an object; `object` contains `spec` and other fields besides the
    /// metadata.
    pub fn put(&self, kind: Kind, name: &str, object: Value) {
        self.put_in(kind, kinds::row(kind).unwrap().versions[0], name, object);
    }

    /// As [`StandIn::put`], in another API version.
    pub fn put_in(&self, kind: Kind, version: &str, name: &str, mut object: Value) {
        let path = kinds::row(kind).unwrap().path(version, None);
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version;
        let namespace = if kind.is_namespaced() { "default" } else { "" };
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        object["metadata"]["managedFields"] = json!([{"manager": "somebody"}]);
        let objects = state.objects.entry(path.clone()).or_default();
        let old = objects.insert(format!("{namespace}/{name}"), object.clone());
        let what = if old.is_some() { "MODIFIED" } else { "ADDED" };
        state.log.push((version, path, what, object));
        self.changed.notify_all();
    }

    /// Deletes an object; no effect if it does not exist.
    pub fn delete(&self, kind: Kind, name: &str) {
        let mut state = self.state.lock().unwrap();
        let (path, namespace) = (path(kind), if kind.is_namespaced() { "default" } else { "" });
        let objects = state.objects.entry(path.clone()).or_default();
        let Some(mut object) = objects.remove(&format!("{namespace}/{name}")) else { return };
        state.version += 1;
        object["metadata"]["resourceVersion"] = state.version.to_string().into();
        let version = state.version;
        state.log.push((version, path, "DELETED", object));
        self.changed.notify_all();
    }

    /// Compacts all versions except the current ones.
    pub fn compact(&self) {
        let mut state = self.state.lock().unwrap();
        state.compacted = state.version;
        state.log.clear();
        state.pages.clear();
        self.changed.notify_all();
    }

    /// The kind and name of every object with its version, sorted.
    pub fn contents(&self) -> Vec<(String, String)> {
        let state = self.state.lock().unwrap();
        let mut all = Vec::new();
        for (path, objects) in &state.objects {
            let plural = path.rsplit('/').next().unwrap();
            for (key, object) in objects {
                let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                all.push((format!("{plural} {key}"), version.to_owned()));
            }
        }
        all.sort();
        all
    }

    /// All requests so far: `GET /api/v1/pods`.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        while let Some(request) = read_request(&mut reader)? {
            {
                let mut state = self.state.lock().unwrap();
                if state.faults.down {
                    return Ok(());
                }
                state.requests.push(format!("{} {}", request.method, request.path));
            }
            if request.query.contains_key("watch") {
                return self.watch(&request, &mut writer);
            }
            let Some((code, body)) = self.answer_or_break(&request) else { return Ok(()) };
            let body = body.to_string();
            let after = if code == 503 { "Retry-After: 1\r\n" } else { "" };
            write!(
                writer,
                "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 {after}Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n{body}",
                body.len()
            )?;
        }
        Ok(())
    }

    /// `None`: the connection breaks before the response.
    fn answer_or_break(&self, request: &Request) -> Option<(u16, Value)> {
        if request.method == "GET" {
            return Some(self.answer(request));
        }
        let mut state = self.state.lock().unwrap();
        while state.faults.held.is_some_and(|held| held(&request.path)) {
            state = self.changed.wait(state).unwrap();
        }
        if state.faults.unavailable.is_some_and(|unavailable| unavailable(&request.path)) {
            return Some(status(503, "the server is overloaded"));
        }
        if state.faults.conflicts.is_some_and(|conflicts| conflicts(&request.path)) {
            return Some(status(409, "the object has been modified"));
        }
        state.writes += 1;
        let seed = state.faults.writes.map(|seed| seed * 7_919 + state.writes);
        let luck = seed.map_or(99, |seed| Random::new(seed).below(20));
        let answer = match luck {
            0 | 1 => return None,
            2 => return Some(status(500, "something went wrong inside")),
            3 => return Some(status(429, "too many requests")),
            _ => writes::answer(&mut state, request),
        };
        self.changed.notify_all();
        if luck <= 5 {
            state.unanswered.insert(request.path.clone());
            return None;
        }
        Some(answer)
    }

    pub fn look<T>(&self, at: impl FnOnce(&State) -> T) -> T {
        at(&self.state.lock().unwrap())
    }

    fn answer(&self, request: &Request) -> (u16, Value) {
        let mut state = self.state.lock().unwrap();
        if let Some(rejection) = rejection(&mut state, request) {
            return rejection;
        }
        if request.path == "/version" {
            let version = state.faults.version.unwrap_or("v1.36.2");
            return (200, json!({"gitVersion": version}));
        }
        if let Some(object) = writes::find(&state, &request.path) {
            return (200, object);
        }
        let is_served = state.faults.served.unwrap_or(is_served);
        if !is_served(&request.path) && !state.objects.contains_key(&request.path) {
            return status(404, "the server could not find the requested resource");
        }
        list(&mut state, request)
    }

    fn watch(&self, request: &Request, writer: &mut TcpStream) -> io::Result<()> {
        let (mut random, faulty, mut at) = {
            let mut state = self.state.lock().unwrap();
            state.connections += 1;
            if let Some(mode) = state.faults.watches {
                drop(state);
                return mode.answer(&request.path, writer);
            }
            if let Some((code, body)) = rejection(&mut state, request) {
                let body = body.to_string();
                return write!(
                    writer,
                    "HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
            let seed = state.faults.seed.unwrap_or(0) * 1_000_003 + state.connections;
            (Random::new(seed), state.faults.seed.is_some(), version_of(request))
        };
        write!(writer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let seconds = request.query.get("timeoutSeconds").and_then(|text| text.parse().ok());
        let whole = Duration::from_secs(seconds.unwrap_or(1));
        let until = Instant::now() + if faulty { whole.mul_f32(0.06) } else { whole };
        loop {
            let (lines, end) = self.updates(&request.path, &mut at, until);
            for line in lines {
                if !faulty {
                    chunk(writer, line.as_bytes())?;
                    continue;
                }
                match random.below(20) {
                    // Cut within the line.
                    0 => return chunk(writer, &line.as_bytes()[..line.len() / 2]),
                    // Repeated.
                    1 => chunk(writer, format!("{line}{line}").as_bytes())?,
                    2 => {
                        thread::sleep(Duration::from_millis(3));
                        // In two parts.
                        let (first, second) = line.as_bytes().split_at(line.len() / 3);
                        chunk(writer, first)?;
                        chunk(writer, second)?;
                    }
                    _ => chunk(writer, line.as_bytes())?,
                }
            }
            if end {
                return write!(writer, "0\r\n\r\n");
            }
        }
    }

    /// The events after `at`, and whether the watch is over.
    fn updates(&self, path: &str, at: &mut u64, until: Instant) -> (Vec<String>, bool) {
        let line =
            |what: &str, object: &Value| format!("{}\n", json!({"type": what, "object": object}));
        let mut state = self.state.lock().unwrap();
        loop {
            if state.faults.down {
                return (Vec::new(), true);
            }
            if *at < state.compacted {
                let deleted = status(410, "too old resource version").1;
                return (vec![line("ERROR", &deleted)], true);
            }
            let new = state.log.iter().filter(|(v, p, _, _)| v > at && p == path);
            let new: Vec<String> = new.map(|(_, _, what, object)| line(what, object)).collect();
            *at = state.version;
            if !new.is_empty() {
                return (new, false);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let bookmark = json!({"metadata": {"resourceVersion": at.to_string()}});
                return (vec![line("BOOKMARK", &bookmark)], true);
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

fn path(kind: Kind) -> String {
    let row = kinds::row(kind).unwrap();
    row.path(row.versions[0], None)
}

/// Whether a server of 1.36 without pod groups has the list.
pub fn is_served(path: &str) -> bool {
    // An older server: it has no pod groups.
    !path.contains("v1alpha2") && Kind::all().any(|kind| path == self::path(kind))
}

fn version_of(request: &Request) -> u64 {
    request.query.get("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn rejection(state: &mut State, request: &Request) -> Option<(u16, Value)> {
    let faults = &mut state.faults;
    if faults.token.as_ref().is_some_and(|token| *token != request.token) {
        return Some(status(401, "Unauthorized"));
    }
    if faults.busy > 0 {
        faults.busy -= 1;
        return Some(status(429, "too many requests"));
    }
    let plural = request.path.rsplit('/').next().unwrap_or_default();
    let refused = faults.refused.contains(plural);
    refused.then(|| status(403, &format!("{plural} is forbidden")))
}

fn list(state: &mut State, request: &Request) -> (u16, Value) {
    let limit = request.query.get("limit").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let (version, mut rest) = match request.query.get("continue") {
        Some(token) => match state.pages.remove(token) {
            Some(rest) => (token.split('.').next().unwrap_or_default().to_owned(), rest),
            None => return status(410, "the provided continue parameter is too old"),
        },
        None => {
            let objects = state.objects.get(&request.path);
            let all =
                objects.map(|objects| objects.values().cloned().collect()).unwrap_or_default();
            (state.version.to_string(), all)
        }
    };
    let page: Vec<Value> = rest.drain(..limit.min(rest.len())).collect();
    let mut next = String::new();
    if !rest.is_empty() {
        next = format!("{version}.{}", state.requests.len());
        state.pages.insert(next.clone(), rest);
        if state.faults.expire_pages > 0 {
            state.faults.expire_pages -= 1;
            state.pages.clear();
        }
    }
    let metadata = json!({"resourceVersion": version, "continue": next});
    (200, json!({"kind": "List", "metadata": metadata, "items": page}))
}

pub(crate) fn status(code: u16, message: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "code": code, "message": message}))
}

pub(crate) fn chunk(writer: &mut TcpStream, data: &[u8]) -> io::Result<()> {
    write!(writer, "{:x}\r\n", data.len())?;
    writer.write_all(data)?;
    writer.write_all(b"\r\n")
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (token, body) = (String::new(), Value::Null);
    let mut request = Request { method, path: path.to_owned(), query, token, body };
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= 2 {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            request.body = serde_json::from_slice(&body).unwrap_or_default();
            return Ok(Some(request));
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("authorization") {
            request.token = value.trim().trim_start_matches("Bearer ").to_owned();
        } else if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
}
