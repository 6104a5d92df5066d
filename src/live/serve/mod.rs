//! Health, metrics and configuration over HTTP, for whoever watches over the scheduler:
//! `/healthz`, `/livez`, `/readyz`, `/metrics`, `/metrics/slis` and `/configz`, as kube-scheduler
//! has them. With a
//! [`certificate`] it is HTTPS, and then a [`guard`] asks the API server who may see what.
//!
//! Upstream: `newEndpointsHandler` in `cmd/kube-scheduler/app/server.go`.

pub mod certificate;
mod checks;
pub mod guard;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener as Listener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::live::metrics::{self, Slis};

pub use checks::Health;
use guard::{Access, Guard};

/// What health is said to be.
const TEXT: &str = "text/plain; charset=utf-8";
/// What kube-scheduler's metrics are said to be.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What configurations and refusals are said to be.
const JSON: &str = "application/json";

/// What is told.
pub struct Told {
    /// How the scheduler is.
    pub health: Arc<Health>,
    /// What it has counted.
    pub registry: Registry,
    /// What its health checks came to.
    pub slis: Slis,
    /// Its configuration, with everything written out.
    pub config: Value,
}

/// Where, how and to whom it is told.
pub struct Door {
    /// The address.
    pub address: SocketAddr,
    /// The certificate; `None`: plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// Who may see what; `None`: everybody everything.
    pub access: Option<Access>,
}

/// What every connection needs.
struct Served {
    told: Arc<Told>,
    guard: Option<Guard>,
}

/// Answers until the program ends. Gives the address.
///
/// # Errors
/// The address cannot be had, or no thread be started.
pub fn start(door: Door, told: Arc<Told>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(door.address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let served = Arc::new(Served { told, guard: door.access.map(Guard::new) });
    let work = move || {
        // Only a listener that is no socket fails here.
        let _ended = runtime.block_on(serve(listener, door.tls, served));
    };
    thread::Builder::new().name("health".into()).spawn(work)?;
    Ok(bound)
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    served: Arc<Served>,
) -> io::Result<()> {
    let (listener, tls) = (Listener::from_std(listener)?, tls.map(TlsAcceptor::from));
    loop {
        // Too many open files, or a caller that has gone again: the next may do.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (tls, served) = (tls.clone(), served.clone());
        tokio::spawn(async move {
            match tls {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        converse(stream, &served).await;
                    }
                }
                None => converse(stream, &served).await,
            }
        });
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, served: &Served) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let refused = match &served.guard {
            Some(guard) => guard.check(&request).await.err(),
            None => None,
        };
        let answer = refused.unwrap_or_else(|| answer(&request, &served.told));
        Ok::<_, Infallible>(answer)
    });
    // A connection that breaks is the caller's business.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn answer<B>(request: &Request<B>, told: &Told) -> Response<Full<Bytes>> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let seen = |group: &str, check: &str, fine| told.slis.observe(group, check, fine);
    if let Some((fine, text)) = told.health.answer(path, query, seen) {
        let code = if fine { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        return plain(code, TEXT, text.into_bytes());
    }
    match path {
        "/metrics" => plain(StatusCode::OK, METRICS, metrics::text(&told.registry)),
        "/metrics/slis" => plain(StatusCode::OK, METRICS, told.slis.text()),
        "/configz" => plain(StatusCode::OK, JSON, configz(&told.config)),
        _ => plain(StatusCode::NOT_FOUND, TEXT, b"404 page not found\n".to_vec()),
    }
}

fn configz(config: &Value) -> Vec<u8> {
    serde_json::json!({ "componentconfig": config }).to_string().into_bytes()
}

fn plain(code: StatusCode, what: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(what));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::Ordering;

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn serve(access: Option<Access>) -> (SocketAddr, Arc<Health>) {
        let health = Arc::new(Health::new(true));
        let told = Told {
            health: health.clone(),
            registry: Registry::new(),
            slis: Slis::new().unwrap(),
            config: serde_json::json!({"kind": "KubeSchedulerConfiguration"}),
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        (start(Door { address, tls: None, access }, Arc::new(told)).unwrap(), health)
    }

    #[test]
    fn health_is_told_and_its_end() {
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
