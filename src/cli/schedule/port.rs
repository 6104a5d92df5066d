//! Where health and metrics are served, as kube-scheduler's flags say it, and by whom.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::live::metrics::Metrics;
use crate::live::scheduling::{Lead, Told};
use crate::live::serve::{self, Health};
use crate::sim::World;

/// Where health and metrics are served.
#[derive(Args, Debug)]
#[command(next_help_heading = "Health and metrics")]
pub(super) struct Ports {
    /// The address to serve on: /healthz, /livez, /readyz, /metrics with kube-scheduler's names
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// The port for HTTPS, as kube-scheduler's 10259; it needs a certificate. Callers need not
    /// say who they are. 0: none
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    secure_port: u16,
    /// The port for plain HTTP; 0: none
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    http_port: u16,
    /// The certificate for HTTPS, with those that signed it (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
}

/// Who counts, and says how it is.
pub(super) struct Watched {
    metrics: Metrics,
    health: Arc<Health>,
}

impl Ports {
    /// Begins to serve. `lease` is the lease's name.
    ///
    /// # Errors
    /// A port cannot be had, or the certificate not be used.
    pub fn serve(&self, lease: &str) -> Result<Watched> {
        let metrics = Metrics::new(lease)?;
        let health = Arc::new(Health::default());
        health.alive.store(true, Ordering::Relaxed);
        let start = |port, tls| {
            let address = SocketAddr::new(self.bind_address, port);
            serve::start(address, tls, health.clone(), metrics.registry())
                .with_context(|| format!("health and metrics on {address}"))
        };
        if self.secure_port != 0 {
            let (Some(certificate), Some(key)) = (&self.tls_cert_file, &self.tls_private_key_file)
            else {
                bail!(
                    "--secure-port needs a certificate: --tls-cert-file and \
                     --tls-private-key-file; --http-port serves without"
                );
            };
            start(
                self.secure_port,
                Some(serve::tls(certificate, key).map_err(anyhow::Error::msg)?),
            )?;
        }
        if self.http_port != 0 {
            start(self.http_port, None)?;
        }
        Ok(Watched { metrics, health })
    }
}

impl Watched {
    /// Takes in what happened.
    pub fn see(&mut self, world: &World, told: &Told) {
        match told {
            Told::Tick { followed } => {
                self.health.followed.store(*followed, Ordering::Relaxed);
                self.metrics.measure(world);
            }
            Told::Lead(Lead::Lost(_)) => self.health.alive.store(false, Ordering::Relaxed),
            _ => {}
        }
        self.metrics.count(told);
    }
}
