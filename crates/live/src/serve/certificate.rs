//! What HTTPS needs: the configured certificate, or a self-signed one that lives as long as the
//! program, and the allowed TLS versions and ciphers.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion};

/// Ciphers that upstream's flag accepts and that are too weak to be offered here.
const NOT_OFFERED: [&str; 2] = ["_CBC_", "_RC4_"];

/// A certificate with its key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// The allowed TLS versions and ciphers.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// The oldest version, as upstream writes it: `VersionTLS12`; empty: the oldest supported.
    pub oldest: String,
    /// Names of ciphers for TLS 1.2; empty: all supported.
    pub ciphers: Vec<String>,
}

/// Why the scheduler's port cannot be served over TLS.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or is not PEM of the right kind.
    #[error("{}: {problem}", path.display())]
    File {
        /// Path of the file, as in the flag.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// No random numbers are available, or a name is not allowed in a certificate.
    #[error("no certificate can be created: {0}")]
    Create(String),
    /// The key does not match the certificate.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
    /// An allowed cipher is unknown.
    #[error("--tls-cipher-suites: {cipher} is not one of {known}")]
    UnknownCipher {
        /// The name in `--tls-cipher-suites`.
        cipher: String,
        /// The names that are known, separated by commas.
        known: String,
    },
    /// A version that is not offered.
    #[error(
        "--tls-min-version {0}: versions before TLS 1.2 are insecure and not supported; use \
         VersionTLS12 or VersionTLS13"
    )]
    InsecureVersion(String),
    /// A version that does not exist.
    #[error("--tls-min-version {0}: it can be VersionTLS12 or VersionTLS13")]
    UnknownVersion(String),
}

impl Certificate {
    /// Reads certificate and key from PEM files.
    ///
    /// # Errors
    /// Which file cannot be read or does not contain what it should, and why.
    pub fn read(certificate: &Path, key: &Path) -> Result<Certificate, CertificateError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| wrong(certificate, &error))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        Ok(Certificate { chain, key: private })
    }

    /// Creates a self-signed certificate for the names of this machine.
    ///
    /// # Errors
    /// No random numbers are available, or a name is not allowed in a certificate.
    pub fn own(names: Vec<String>) -> Result<Certificate, CertificateError> {
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| CertificateError::Create(error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Certificate { chain: vec![made.cert.der().clone()], key: key.into() })
    }

    /// The server configuration of rustls.
    ///
    /// # Errors
    /// The key does not match the certificate, or an allowed version or cipher is unknown.
    pub fn server(self, allowed: &Allowed) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut provider = default_provider();
        let names: Vec<&str> = allowed.ciphers.iter().map(|name| name.trim()).collect();
        if !names.is_empty() {
            let offered: Vec<String> = provider.cipher_suites.iter().map(name).collect();
            let weak = |name: &str| NOT_OFFERED.iter().any(|part| name.contains(part));
            let unknown =
                names.iter().find(|name| !weak(name) && !offered.iter().any(|it| it == *name));
            if let Some(unknown) = unknown {
                let known = offered.join(", ");
                let cipher = (*unknown).to_owned();
                return Err(CertificateError::UnknownCipher { cipher, known });
            }
            // As upstream, the ciphers of TLS 1.3 cannot be chosen.
            let chosen = |suite: &_| is_of_tls13(suite) || names.contains(&name(suite).as_str());
            provider.cipher_suites.retain(chosen);
        }
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions(&allowed.oldest)?)
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(self.chain, self.key)
            })
            .map_err(|error| CertificateError::Unusable(error.to_string()))?;
        Ok(Arc::new(config))
    }
}

fn wrong(path: &Path, error: &dyn Display) -> CertificateError {
    CertificateError::File { path: path.to_owned(), problem: error.to_string() }
}

/// A cipher under the name that upstream's flag uses.
fn name(suite: &tokio_rustls::rustls::SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

fn is_of_tls13(suite: &tokio_rustls::rustls::SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}

static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];

fn versions(
    oldest: &str,
) -> Result<&'static [&'static SupportedProtocolVersion], CertificateError> {
    match oldest {
        "" | "VersionTLS12" => Ok(&BOTH),
        "VersionTLS13" => Ok(&NEWEST),
        "VersionTLS10" | "VersionTLS11" => Err(CertificateError::InsecureVersion(oldest.into())),
        other => Err(CertificateError::UnknownVersion(other.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Certificate {
        Certificate::own(vec!["localhost".into(), "127.0.0.1".into()]).unwrap()
    }

    #[test]
    fn a_certificate_that_is_none_is_named() {
        let missing = Certificate::read(Path::new("nowhere.pem"), Path::new("key.pem"));
        let text = missing.map(drop).unwrap_err().to_string();
        assert!(text.starts_with("nowhere.pem: "), "{text}");
    }

    #[test]
    fn what_is_allowed_has_upstreams_names() {
        let with = |oldest: &str, ciphers: &[&str]| {
            let ciphers = ciphers.iter().map(ToString::to_string).collect();
            own().server(&Allowed { oldest: oldest.into(), ciphers }).map(drop)
        };
        let gcm = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(with("", &[]), Ok(()));
        assert_eq!(with("VersionTLS13", &["TLS_AES_128_GCM_SHA256"]), Ok(()));
        assert_eq!(with("VersionTLS12", &[gcm, "TLS_RSA_WITH_AES_128_CBC_SHA"]), Ok(()));
        assert!(with("VersionTLS11", &[]).unwrap_err().to_string().contains("TLS 1.2"));
        assert!(with("", &["TLS_NOTHING"]).unwrap_err().to_string().contains(gcm));
    }
}
