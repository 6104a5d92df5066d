//! The ports for health and metrics, and their access control, with kube-scheduler's flags.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use clap::Args;

use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_live::metrics::{Metrics, Slis};
use kubestep_live::scheduling::{Lead, SchedulingReport};
use kubestep_live::serve::certificate::{Allowed, Certificate};
use kubestep_live::serve::{self, ConnectionLimits, Endpoints, Health, ListenConfig, Zpages};
use kubestep_live::write::hostname;

use super::reviews::ReviewSettings;

/// The port on which kube-scheduler serves HTTPS.
const PORT: u16 = 10259;

/// Where health and metrics are served.
#[derive(Args, Debug)]
#[command(next_help_heading = "Health and metrics")]
pub(super) struct Ports {
    /// The address to serve on: /healthz, /livez, /readyz, /metrics with kube-scheduler's names,
    /// /configz, /statusz, /flagz
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// The port for HTTPS; 0: none. Without this flag it is 10259 if that is free
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// The port for plain HTTP without authorization; 0: none
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    http_port: u16,
    /// The certificate for HTTPS with its chain (PEM); without it and --cert-dir, a self-signed one
    /// is made for this run
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// A folder with kube-scheduler.crt and kube-scheduler.key, where no files are named
    #[arg(long, value_name = "FOLDER")]
    cert_dir: Option<PathBuf>,
    /// The oldest version of TLS: VersionTLS12 or VersionTLS13
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    tls_min_version: String,
    /// The cipher suites for TLS 1.2; all safe ones if none is named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,
    #[command(flatten)]
    reviews: ReviewSettings,
}

/// Collects metrics and health.
pub(super) struct Observability {
    metrics: Metrics,
    health: Arc<Health>,
}

impl Ports {
    /// Starts to serve. `lease` is the lease's name; "": there is none. Returns notices too.
    ///
    /// # Errors
    /// A given port is not available, or the certificate is invalid.
    pub fn serve(
        &self,
        lease: &str,
        world: &World,
        zpages: Zpages,
    ) -> Result<(Observability, Vec<String>)> {
        let gates = world.scheduler().features();
        let metrics = Metrics::new(lease, gates)?;
        metrics.report_features(gates);
        let health = Arc::new(Health::new(lease));
        let endpoints = Arc::new(Endpoints {
            health: health.clone(),
            registry: metrics.registry(),
            slis: Slis::new()?,
            config: config::to_json(&world.config().completed()),
            zpages,
        });
        let mut notices = Vec::new();
        let secure = self.secure_port.unwrap_or(PORT);
        if secure != 0 {
            let address = SocketAddr::new(self.bind_address, secure);
            let (tls, access) = (Some(self.tls()?), Some(self.reviews.access()));
            let limits = ConnectionLimits::default();
            let listen = ListenConfig { address, tls, access, limits };
            match serve::start(listen, endpoints.clone()) {
                Err(error) if self.secure_port.is_none() => notices.push(not_there(&error)),
                started => drop(started.with_context(|| at(address))?),
            }
        }
        if self.http_port != 0 {
            let address = SocketAddr::new(self.bind_address, self.http_port);
            let limits = ConnectionLimits::default();
            let listen = ListenConfig { address, tls: None, access: None, limits };
            serve::start(listen, endpoints).with_context(|| at(address))?;
        }
        Ok((Observability { metrics, health }, notices))
    }

    fn tls(&self) -> Result<Arc<tokio_rustls::rustls::ServerConfig>> {
        let named = self.tls_cert_file.clone().zip(self.tls_private_key_file.clone());
        let named = named.or_else(|| {
            let folder = self.cert_dir.as_ref()?;
            let [certificate, key] = ["kube-scheduler.crt", "kube-scheduler.key"];
            Some((folder.join(certificate), folder.join(key)))
        });
        let certificate = match named {
            Some((certificate, key)) => Certificate::read(&certificate, &key),
            None => {
                let address = self.bind_address.to_string();
                Certificate::own(vec!["localhost".into(), hostname(), address])
            }
        };
        let (oldest, ciphers) = (self.tls_min_version.clone(), self.tls_cipher_suites.clone());
        let allowed = Allowed { oldest, ciphers };
        Ok(certificate.and_then(|made| made.server(&allowed))?)
    }
}

fn at(address: SocketAddr) -> String {
    format!("health and metrics on {address}")
}

fn not_there(error: &io::Error) -> String {
    format!(
        "health and metrics are not served: port {PORT}: {error} (--secure-port names another, 0 \
         none)"
    )
}

impl Observability {
    /// The health of the scheduler, as it is served.
    pub fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Updates metrics and health.
    pub fn see(&mut self, world: &World, report: &SchedulingReport) {
        match report {
            SchedulingReport::Tick { followed } => {
                self.health.followed.store(*followed, Ordering::Relaxed);
                self.metrics.measure(world);
            }
            SchedulingReport::Lead(Lead::Lost(_)) => {
                self.health.lost.store(true, Ordering::Relaxed)
            }
            _ => {}
        }
        self.metrics.count(report);
    }
}
