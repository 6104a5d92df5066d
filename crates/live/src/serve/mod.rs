//! Health, metrics, configuration and state over HTTP: `/healthz`, `/livez`, `/readyz`, `/metrics`,
//! `/metrics/slis`, `/configz`, `/statusz` and `/flagz`, as in kube-scheduler. With a
//! [`certificate`] it is HTTPS, and then a [`guard`] asks the API server what the caller may see.
//!
//! Upstream: `newEndpointsHandler` in `cmd/kube-scheduler/app/server.go`.

mod accept;
pub mod certificate;
mod checks;
mod connections;
pub mod guard;
mod zpages;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::Registry;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener as Listener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::metrics::{self, Slis};
use crate::runtime;

pub use checks::Health;
pub use connections::ConnectionLimits;
use connections::{Connections, Slot};
use guard::{Access, Guard};
pub use zpages::{PageGates, Zpages};

/// The content type of health checks.
const TEXT: &str = "text/plain; charset=utf-8";
/// The content type of kube-scheduler's metrics.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of configurations and rejections.
const JSON: &str = "application/json";
/// Paths in addition to those of health checks and feature gates.
const PATHS: [&str; 3] = ["/configz", "/metrics", "/metrics/slis"];

/// What the paths of the scheduler's port show.
pub struct Endpoints {
    /// The health of the scheduler.
    pub health: Arc<Health>,
    /// The series of `/metrics`.
    pub registry: Registry,
    /// The results of its health checks.
    pub slis: Slis,
    /// Its configuration, with all defaults.
    pub config: Value,
    /// The contents of `/statusz` and `/flagz`.
    pub zpages: Zpages,
}

/// Where and how it is served, and which clients may read it.
pub struct ListenConfig {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The certificate; `None`: plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// Who may read what; `None`: everybody may read everything.
    pub access: Option<Access>,
    /// The limits of connections.
    pub limits: ConnectionLimits,
}

/// State shared by all connections.
struct Served {
    endpoints: Arc<Endpoints>,
    guard: Option<Guard>,
    tls: Option<TlsAcceptor>,
    limits: ConnectionLimits,
}

/// Serves in the background until the program ends. Returns the address.
///
/// # Errors
/// The address cannot be used, or no thread can be started.
pub fn start(config: ListenConfig, endpoints: Arc<Endpoints>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(config.address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let served = Arc::new(Served {
        endpoints,
        guard: config.access.map(Guard::new),
        tls: config.tls.map(TlsAcceptor::from),
        limits: config.limits,
    });
    let work = move || async move {
        // Accepting fails only on a listener that is not a socket.
        let _ended = serve(listener, served).await;
    };
    runtime::spawn("health", work)?;
    Ok(bound)
}

async fn serve(listener: TcpListener, served: Arc<Served>) -> io::Result<()> {
    let listener = Listener::from_std(listener)?;
    let connections = Connections::new(served.limits.connections);
    let accept = async || listener.accept().await.map(|(stream, _)| stream);
    connections.serve(accept, |stream, slot| served.clone().connection(stream, slot)).await;
    Ok(())
}

impl Served {
    async fn connection(self: Arc<Self>, stream: TcpStream, slot: Slot) {
        match &self.tls {
            Some(tls) => {
                let handshake = timeout(self.limits.handshake, tls.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    self.converse(stream, &slot).await;
                }
            }
            None => self.converse(stream, &slot).await,
        }
    }

    async fn converse<S>(&self, stream: S, slot: &Slot)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| async move {
            Ok::<_, Infallible>(slot.answering(self.answer(&request)).await)
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(self.limits.head);
        // Errors of a connection concern only its caller.
        let _ended = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let refused = match &self.guard {
            Some(guard) => guard.check(request).await.err(),
            None => None,
        };
        let mut answer = refused.unwrap_or_else(|| self.endpoints.answer(request));
        let uncached = HeaderValue::from_static("no-cache, private");
        answer.headers_mut().insert(header::CACHE_CONTROL, uncached);
        answer
    }
}

impl Endpoints {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let seen = |group: &str, check: &str, fine| self.slis.observe(group, check, fine);
        if let Some((fine, text)) = self.health.answer(path, query, seen) {
            let code = if fine { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
            return plain(code, TEXT, text.into_bytes());
        }
        let listed = || self.paths();
        if let Some(page) = self.zpages.answer(path, query, request.headers(), listed) {
            return page;
        }
        match path {
            "/metrics" => plain(StatusCode::OK, METRICS, metrics::text(&self.registry)),
            "/metrics/slis" => plain(StatusCode::OK, METRICS, self.slis.text()),
            "/configz" => plain(StatusCode::OK, JSON, configz(&self.config)),
            _ => plain(StatusCode::NOT_FOUND, TEXT, b"404 page not found\n".to_vec()),
        }
    }

    /// The paths that `/statusz` lists.
    fn paths(&self) -> Vec<String> {
        let fixed = PATHS.into_iter().map(str::to_owned);
        self.health.paths().chain(fixed).chain(self.zpages.paths()).collect()
    }
}

fn configz(config: &Value) -> Vec<u8> {
    serde_json::json!({ "componentconfig": config }).to_string().into_bytes()
}

fn plain(code: StatusCode, content: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    // As Go sets it for error responses; it stops browsers from guessing the type.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn serve(access: Option<Access>) -> (SocketAddr, Arc<Health>) {
        serve_within(access, ConnectionLimits::default())
    }

    fn serve_within(access: Option<Access>, limits: ConnectionLimits) -> (SocketAddr, Arc<Health>) {
        let health = Arc::new(Health::new("kube-scheduler"));
        let gates = PageGates { statusz: true, flagz: true, cbor: false };
        let endpoints = Endpoints {
            health: health.clone(),
            registry: Registry::new(),
            slis: Slis::new().unwrap(),
            config: serde_json::json!({"kind": "KubeSchedulerConfiguration"}),
            zpages: Zpages::new(gates, Default::default()),
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ListenConfig { address, tls: None, access, limits };
        (start(config, Arc::new(endpoints)).unwrap(), health)
    }

    #[test]
    fn connections_that_are_silent_are_closed() {
        let (connections, time) = (1_000, Duration::from_millis(200));
        let (address, _) =
            serve_within(None, ConnectionLimits { connections, handshake: time, head: time });
        let mut silent: Vec<TcpStream> =
            (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
        // One of them has started to send a request.
        silent[0].write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
        let began = Instant::now();
        for stream in &mut silent {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "nothing is answered");
        }
        assert!(began.elapsed() >= time / 2);
    }

    #[test]
    fn silent_connections_leave_room_for_a_health_check() {
        let (connections, time) = (8, Duration::from_secs(60));
        let (address, _) =
            serve_within(None, ConnectionLimits { connections, handshake: time, head: time });
        let silent: Vec<TcpStream> =
            (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(ask(address, "/healthz").ends_with("\r\n\r\nok"));
        drop(silent);
    }

    #[test]
    fn a_page_lists_what_is_answered() {
        let (address, _) = serve(None);
        let page = ask(address, "/statusz");
        let paths = "Paths: /configz /flagz /healthz /livez /metrics /readyz\n";
        assert!(page.ends_with(paths), "{page}");
        let (address, _) = serve(Some(Access::default()));
        assert!(ask(address, "/statusz").starts_with("HTTP/1.1 403"));
    }

    #[test]
    fn health_is_reported_and_its_end() {
        let (address, health) = serve(None);
        assert!(ask(address, "/livez").ends_with("\r\n\r\nok"));
        let ready = ask(address, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 500"), "{ready}");
        let checks = "[+]leaderElection ok\n[+]shutdown ok\n[-]sched-handler-sync failed: reason \
                      withheld\nreadyz check failed\n";
        assert!(ready.ends_with(checks), "{ready}");
        health.followed.store(true, Ordering::Relaxed);
        assert!(ask(address, "/readyz").ends_with("\r\n\r\nok"));
        assert!(ask(address, "/livez?verbose").ends_with("[+]ping ok\nlivez check passed\n"));
        assert!(ask(address, "/readyz?exclude=shutdown").ends_with("\r\n\r\nok"));
        assert!(ask(address, "/metrics").starts_with("HTTP/1.1 200"));
        let slis = ask(address, "/metrics/slis");
        for line in [
            "kubernetes_healthcheck{name=\"sched-handler-sync\",type=\"readyz\"} 1",
            "kubernetes_healthchecks_total{name=\"sched-handler-sync\",status=\"error\",type=\"readyz\"} 1",
            "kubernetes_healthchecks_total{name=\"sched-handler-sync\",status=\"success\",type=\"readyz\"} 2",
            "kubernetes_healthchecks_total{name=\"shutdown\",status=\"success\",type=\"readyz\"} 2",
            "kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"livez\"} 2",
        ] {
            assert!(slis.lines().any(|found| found == line), "{line} in:\n{slis}");
        }
        assert!(ask(address, "/secrets").starts_with("HTTP/1.1 404"));
        let config = r#"{"componentconfig":{"kind":"KubeSchedulerConfiguration"}}"#;
        assert!(ask(address, "/configz").ends_with(config));
    }

    #[test]
    fn with_nobody_to_ask_only_health_is_for_everybody() {
        let (address, _) = serve(Some(Access::default()));
        assert!(ask(address, "/healthz").ends_with("ok"));
        let refused = ask(address, "/metrics");
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        let text = r#"forbidden: User \"system:anonymous\" cannot get path \"/metrics\""#;
        assert!(refused.contains(text), "{refused}");
    }
}
