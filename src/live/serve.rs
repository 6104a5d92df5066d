//! Health and metrics over HTTP, for whoever watches over the scheduler: `/healthz`, `/livez`,
//! `/readyz` and `/metrics`, as kube-scheduler has them. With a certificate it is HTTPS.
//!
//! Nobody has to say who they are: what is told holds no object of the cluster.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener as Listener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::live::metrics;

/// What kube-scheduler's metrics are said to be.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the scheduler is, as it says itself.
#[derive(Debug, Default)]
pub struct Health {
    /// Whether the cluster was read and is followed.
    pub followed: AtomicBool,
    /// Whether the lease, if there is one, was not lost.
    pub alive: AtomicBool,
}

/// Answers on an address until the program ends.
///
/// # Errors
/// The address cannot be had, or no thread be started.
pub fn start(
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    health: Arc<Health>,
    registry: Registry,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let work = move || {
        // Only a listener that is no socket fails here.
        let _ended = runtime.block_on(serve(listener, tls, health, registry));
    };
    thread::Builder::new().name("health".into()).spawn(work)?;
    Ok(bound)
}

/// What TLS needs, from PEM files.
///
/// # Errors
/// A file cannot be read or does not hold what it should; which, and why.
pub fn tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| wrong(certificate, &error))?;
    Ok(Arc::new(config))
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    health: Arc<Health>,
    registry: Registry,
) -> io::Result<()> {
    let (listener, tls) = (Listener::from_std(listener)?, tls.map(TlsAcceptor::from));
    loop {
        // Too many open files, or a caller that has gone again: the next may do.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (tls, health, registry) = (tls.clone(), health.clone(), registry.clone());
        tokio::spawn(async move {
            match tls {
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        converse(stream, &health, &registry).await;
                    }
                }
                None => converse(stream, &health, &registry).await,
            }
        });
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    health: &Health,
    registry: &Registry,
) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(answer(request.uri().path(), health, registry))
    });
    // A connection that breaks is the caller's business.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn answer(path: &str, health: &Health, registry: &Registry) -> Response<Full<Bytes>> {
    let said = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
    let alive = (said(&health.alive), "leaderElection");
    let followed = (said(&health.followed), "sched-handler-sync");
    match path {
        "/healthz" | "/livez" => checks(&[alive]),
        "/readyz" => checks(&[alive, followed]),
        "/metrics" => plain(StatusCode::OK, metrics::text(registry)),
        _ => plain(StatusCode::NOT_FOUND, b"404 page not found\n".to_vec()),
    }
}

/// `ok`, or which checks failed, as Kubernetes' components say it.
fn checks(checks: &[(bool, &str)]) -> Response<Full<Bytes>> {
    if checks.iter().all(|(fine, _)| *fine) {
        return plain(StatusCode::OK, b"ok".to_vec());
    }
    let line = |(fine, name): &(bool, &str)| match fine {
        true => format!("[+]{name} ok\n"),
        false => format!("[-]{name} failed\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    plain(StatusCode::INTERNAL_SERVER_ERROR, lines.into_bytes())
}

fn plain(code: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(TEXT));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn health_is_told_and_its_end() {
        let health = Arc::new(Health::default());
        health.alive.store(true, Ordering::Relaxed);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = start(any, None, health.clone(), Registry::new()).unwrap();
        assert!(ask(address, "/livez").ends_with("ok"));
        let ready = ask(address, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 500"), "{ready}");
        assert!(ready.ends_with("[+]leaderElection ok\n[-]sched-handler-sync failed\n"), "{ready}");
        health.followed.store(true, Ordering::Relaxed);
        assert!(ask(address, "/readyz").ends_with("ok"));
        assert!(ask(address, "/metrics").starts_with("HTTP/1.1 200"));
        assert!(ask(address, "/secrets").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_certificate_that_is_none_is_named() {
        let text = tls(Path::new("nowhere.pem"), Path::new("key.pem")).unwrap_err();
        assert!(text.starts_with("nowhere.pem: "), "{text}");
    }
}
