//! Authentication and authorization for metrics and configuration over HTTPS, with kube-scheduler's
//! flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use kubestep_live::KubeconfigTarget;
use kubestep_live::serve::guard::Access;

use super::flags::time;

/// Which server to ask, and how long an answer counts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Access to metrics over HTTPS")]
pub(super) struct ReviewSettings {
    /// The kubeconfig for token reviews, which authenticate callers; without it every caller is
    /// anonymous
    #[arg(long, value_name = "FILE")]
    authentication_kubeconfig: Option<PathBuf>,
    /// How long a token review is cached
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authentication_token_webhook_cache_ttl: Duration,
    /// The kubeconfig for subject access reviews, which authorize callers; without it only the
    /// paths that are always allowed are served
    #[arg(long, value_name = "FILE")]
    authorization_kubeconfig: Option<PathBuf>,
    /// Paths that need no authorization
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    #[arg(default_value = "/healthz,/readyz,/livez")]
    authorization_always_allow_paths: Vec<String>,
    /// How long an allowed access review is cached
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authorization_webhook_cache_authorized_ttl: Duration,
    /// How long a denied access review is cached
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authorization_webhook_cache_unauthorized_ttl: Duration,
}

impl ReviewSettings {
    /// Who may read which path of the scheduler's port.
    pub fn access(&self) -> Access {
        let target = |path: &Option<PathBuf>| {
            path.clone().map(|path| KubeconfigTarget {
                kubeconfig: Some(path),
                ..KubeconfigTarget::default()
            })
        };
        Access {
            authentication: target(&self.authentication_kubeconfig),
            authorization: target(&self.authorization_kubeconfig),
            allowed: self.authorization_always_allow_paths.clone(),
            token: self.authentication_token_webhook_cache_ttl,
            right: self.authorization_webhook_cache_authorized_ttl,
            rejection: self.authorization_webhook_cache_unauthorized_ttl,
        }
    }
}
