//! Who may see metrics and configuration over HTTPS, as kube-scheduler's flags say it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use kubestep_live::Target;
use kubestep_live::serve::guard::Access;

use super::flags::time;

/// Whom to ask, and how long an answer counts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Who may see metrics over HTTPS")]
pub(super) struct Reviews {
    /// The kubeconfig of whoever may ask the cluster whose token a caller shows (tokenreviews);
    /// without it every caller is anonymous
    #[arg(long, value_name = "FILE")]
    authentication_kubeconfig: Option<PathBuf>,
    /// How long an answer about a token counts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authentication_token_webhook_cache_ttl: Duration,
    /// The kubeconfig of whoever may ask the cluster what a caller may get
    /// (subjectaccessreviews); without it there is nothing but the paths that are always allowed
    #[arg(long, value_name = "FILE")]
    authorization_kubeconfig: Option<PathBuf>,
    /// Paths for everybody
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    #[arg(default_value = "/healthz,/readyz,/livez")]
    authorization_always_allow_paths: Vec<String>,
    /// How long the answer that a caller may get something counts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authorization_webhook_cache_authorized_ttl: Duration,
    /// How long the answer that a caller may not get something counts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    authorization_webhook_cache_unauthorized_ttl: Duration,
}

impl Reviews {
    /// Who may see what.
    pub fn access(&self) -> Access {
        let target = |path: &Option<PathBuf>| {
            path.clone().map(|path| Target { kubeconfig: Some(path), ..Target::default() })
        };
        Access {
            authentication: target(&self.authentication_kubeconfig),
            authorization: target(&self.authorization_kubeconfig),
            allowed: self.authorization_always_allow_paths.clone(),
            token: self.authentication_token_webhook_cache_ttl,
            right: self.authorization_webhook_cache_authorized_ttl,
            refusal: self.authorization_webhook_cache_unauthorized_ttl,
        }
    }
}
