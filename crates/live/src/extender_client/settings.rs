//! Translates the settings of an extender into those of an HTTP client.

use kube::config::{Config, Kubeconfig};
use serde_json::{Value, json};

use crate::proxy;
use kubestep_config::types::{Extender, ExtenderTlsConfig};

/// The client's settings: no credentials except the configured client certificate, no retries. As
/// upstream, a proxy of the environment is used.
///
/// # Errors
/// The settings contradict each other, a file cannot be read, or its data is not a certificate.
pub(super) fn client_config(extender: &Extender) -> Result<Config, String> {
    let tls = extender.tls_config.clone().unwrap_or_default();
    let has_authority = !tls.ca_file.is_empty() || !tls.ca_data.is_empty();
    if tls.insecure && has_authority {
        return Err("tlsConfig: insecure cannot be combined with a CA".into());
    }
    // As upstream, HTTPS without an authority is not verified.
    let insecure = tls.insecure || (extender.enable_https && !has_authority);
    let cluster = kubeconfig(extender, &tls, insecure);
    let cluster: Kubeconfig = serde_json::from_value(cluster).map_err(|err| err.to_string())?;
    let mut config = Config::try_from(cluster).map_err(|err| root_cause(err.into()))?;
    config.proxy_url = proxy::of_environment(&config.cluster_url);
    config.default_retry = false;
    // The system's certificate authorities are needed only to verify HTTPS, and need not exist
    // otherwise.
    let verifies = !insecure && config.cluster_url.scheme_str() == Some("https");
    if config.root_cert.is_none() && !verifies {
        config.root_cert = Some(Vec::new());
    }
    Ok(config)
}

/// Goes through a kubeconfig, because kube reads certificates from files and base64 only there.
fn kubeconfig(extender: &Extender, tls: &ExtenderTlsConfig, insecure: bool) -> Value {
    let given = |text: &String| (!text.is_empty()).then(|| text.clone());
    let name = "extender";
    let cluster = json!({
        "server": extender.url_prefix.trim_end_matches('/'),
        "insecure-skip-tls-verify": insecure,
        "certificate-authority": given(&tls.ca_file),
        "certificate-authority-data": given(&tls.ca_data),
        "tls-server-name": given(&tls.server_name),
    });
    let user = json!({
        "client-certificate": given(&tls.cert_file),
        "client-certificate-data": given(&tls.cert_data),
        "client-key": given(&tls.key_file),
        "client-key-data": given(&tls.key_data),
    });
    json!({
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    })
}

/// The innermost error. The errors around it only name the layers of the client.
pub(super) fn root_cause(error: anyhow::Error) -> String {
    error.root_cause().to_string()
}
