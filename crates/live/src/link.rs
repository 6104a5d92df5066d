//! The connection to an API server: kubeconfig or the pod's own credentials, the client made of
//! them, and the difference between the server's clock and ours.
//!
//! All requests of this layer go through [`Link::get`] and [`Link::lines`], which can only read.
//! Writers use [`Link::client`] explicitly.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::{DATE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;
use tokio::time::timeout;

use crate::clock;
use crate::credentials::{Plugin, kubeconfig_problem};
use crate::failure::{RequestFailure, root_cause};
use crate::lines::Lines;
use crate::proxy;
use crate::traffic;
use kubestep_api::Time;

/// Time limit of a whole answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Time limit of an API server to start a watch.
const BEGIN: Duration = Duration::from_secs(30);

/// The cluster that the user selects.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigTarget {
    /// The kubeconfig; without it `KUBECONFIG`, `~/.kube/config`, the pod's own credentials.
    pub kubeconfig: Option<PathBuf>,
    /// The context; without it the current one.
    pub context: Option<String>,
    /// The server's address, which overrides that of the kubeconfig.
    pub server: Option<String>,
    /// Whether a credential plugin's standard error is shown when it fails.
    pub verbose: bool,
}

/// Why a cluster cannot be reached.
#[derive(Debug, Error)]
pub enum LinkError {
    /// Neither a kubeconfig nor a service account exists.
    #[error(
        "no kubeconfig found, and this is not a pod in a cluster\n  \
         help: name one with --kubeconfig"
    )]
    Nothing,
    /// The kubeconfig cannot be used.
    #[error(
        "{from}: {problem}\n  help: \"kubectl config get-contexts\" lists the contexts; \
         --kubeconfig and --context choose one"
    )]
    Config {
        /// The kubeconfig's path, or where the configuration comes from.
        from: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server cannot be reached, or its answer cannot be used.
    #[error(
        "{server}: {failure}\n  help: does \"kubectl get nodes\" work? Without the cluster, -f \
         reads a file that \"kubestep capture\" wrote earlier"
    )]
    Unreachable {
        /// Its address, a URL.
        server: String,
        /// The failure of the connection or TLS.
        failure: RequestFailure,
    },
    /// The server rejects every request of this user.
    #[error(
        "{server}: {failure}\n  help: \"kubestep rbac\" prints the role that allows reading a \
         cluster; a cluster administrator can bind it to you"
    )]
    Refused {
        /// Its address, a URL.
        server: String,
        /// The server's answer: no credentials, or no right.
        failure: RequestFailure,
    },
}

/// An open connection to an API server, shared by all its users.
pub struct Link {
    target: KubeconfigTarget,
    name: String,
    server: String,
    namespace: String,
    client: Mutex<Renewable>,
    plugin: Plugin,
    /// Whether the server's certificate is not verified.
    is_insecure: bool,
    /// Microseconds that the server's clock is ahead of ours; `i64::MIN` until known.
    skew: AtomicI64,
}

struct Renewable {
    client: Client,
    generation: u64,
}

impl KubeconfigTarget {
    /// Whether any configuration exists: checked before a cluster is opened by default.
    pub fn is_there(&self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let home = || std::env::home_dir().is_some_and(|home| home.join(".kube/config").is_file());
        self.kubeconfig.is_some()
            || self.server.is_some()
            || self.context.is_some()
            || set("KUBECONFIG")
            || set("KUBERNETES_SERVICE_HOST")
            || home()
    }

    /// Where the configuration comes from, for errors.
    fn from(&self) -> String {
        match (&self.kubeconfig, std::env::var("KUBECONFIG")) {
            (Some(path), _) => path.display().to_string(),
            (None, Ok(path)) if !path.is_empty() => path,
            _ => "~/.kube/config".into(),
        }
    }

    /// The files that the configuration is read from.
    fn files(&self) -> Vec<PathBuf> {
        match (&self.kubeconfig, std::env::var_os("KUBECONFIG")) {
            (Some(path), _) => vec![path.clone()],
            (None, Some(paths)) if !paths.is_empty() => std::env::split_paths(&paths).collect(),
            _ => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
        }
    }

    /// The configuration of kube's client and its name for display.
    async fn config(&self) -> Result<(Config, String), LinkError> {
        let wrong = |error: kube::config::KubeconfigError| {
            let (from, problem) = kubeconfig_problem(&self.files(), &error);
            LinkError::Config { from: from.unwrap_or_else(|| self.from()), problem }
        };
        if let (None, None, Some(server)) = (&self.kubeconfig, &self.context, &self.server)
            && !KubeconfigTarget::default().is_there()
        {
            // The address is set later.
            return Ok((Config::new(http::Uri::from_static("http://localhost")), server.clone()));
        }
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path).map_err(wrong)?,
            None => match Kubeconfig::read() {
                Ok(read) => read,
                Err(_) if self.context.is_none() && !self.is_there() => {
                    return Err(LinkError::Nothing);
                }
                Err(error) => {
                    return Config::incluster()
                        .map(|config| (config, "in-cluster".into()))
                        .map_err(|_| wrong(error));
                }
            },
        };
        let name = self.context.clone().or_else(|| read.current_context.clone());
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let proxy = proxy::of_kubeconfig(&read, self.context.as_deref())
            .map_err(|problem| LinkError::Config { from: self.from(), problem })?;
        let mut config = Config::from_custom_kubeconfig(read, &options).await.map_err(wrong)?;
        config.proxy_url = proxy;
        Ok((config, name.unwrap_or_default()))
    }

    /// `says`: a message may go to standard error if a credential plugin takes long.
    async fn client(&self, says: bool) -> Result<(Client, Config, String), LinkError> {
        let (mut config, name) = self.config().await?;
        if let Some(server) = &self.server {
            config.cluster_url = server.parse().map_err(|error: http::uri::InvalidUri| {
                LinkError::Config { from: "--master".into(), problem: error.to_string() }
            })?;
        }
        config.proxy_url = config.proxy_url.or_else(|| proxy::of_environment(&config.cluster_url));
        // The client must not hide outages by retrying by itself.
        config.default_retry = false;
        let agent = concat!("kubestep/", env!("CARGO_PKG_VERSION"));
        config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
        config.connect_timeout = Some(Duration::from_secs(10));
        let plugin = Plugin::of(&config, self.verbose);
        let failed = |error: kube::Error| LinkError::Config {
            from: self.from(),
            problem: plugin.problem(&error).unwrap_or_else(|| root_cause(&error)),
        };
        let client = match says {
            true => plugin.wait_for(|| Client::try_from(config.clone())),
            false => Client::try_from(config.clone()),
        };
        traffic::connected();
        Ok((client.map_err(failed)?, config, name))
    }
}

impl Link {
    /// Prepares the connection. Credential plugins may run and prompt on the terminal, so call this
    /// before the screen is opened. Nothing is sent to the API server yet. Needs a runtime.
    ///
    /// # Errors
    /// There is no configuration, or it cannot be used.
    pub async fn new(target: KubeconfigTarget) -> Result<Link, LinkError> {
        let (client, config, name) = target.client(true).await?;
        Ok(Link {
            plugin: Plugin::of(&config, target.verbose),
            is_insecure: config.accept_invalid_certs,
            target,
            name,
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            namespace: config.default_namespace,
            client: Mutex::new(Renewable { client, generation: 0 }),
            skew: AtomicI64::new(i64::MIN),
        })
    }

    /// Name of the kubeconfig's context.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The server with its port, as metrics label it.
    pub(crate) fn host(&self) -> &str {
        let rest = self.server.split_once("://").map_or(self.server.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Warnings about this connection, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let server = &self.server;
        let insecure = self.is_insecure.then(|| {
            format!(
                "the certificate of {server} is not verified (insecure-skip-tls-verify): anyone on \
                 the network path can impersonate the server"
            )
        });
        insecure.into_iter().collect()
    }

    /// The namespace that the context names; `default` without one.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The client with the present credentials and its generation, for [`Link::renew`].
    pub fn client(&self) -> (Client, u64) {
        let current = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        (current.client.clone(), current.generation)
    }

    /// Makes a new client from the present configuration, unless that was done since `generation`:
    /// tokens expire, certificates are replaced.
    ///
    /// # Errors
    /// The configuration cannot be used any more.
    pub async fn renew(&self, generation: u64) -> Result<(), LinkError> {
        if self.client().1 != generation {
            return Ok(());
        }
        let (client, _, _) = self.target.client(false).await?;
        let mut current = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if current.generation == generation {
            *current = Renewable { client, generation: generation + 1 };
        }
        Ok(())
    }

    /// How far the server's clock is ahead of ours, in microseconds; `None` until the first answer.
    pub fn skew(&self) -> Option<i64> {
        Some(self.skew.load(Ordering::Relaxed)).filter(|skew| *skew != i64::MIN)
    }

    /// The time by the server's clock.
    pub fn now(&self) -> Time {
        Time(clock::local().0 + clock::counted(self.skew().unwrap_or(0)))
    }

    /// Requests `path` (with its query) and returns the whole answer. Rejected credentials are
    /// renewed once.
    ///
    /// # Errors
    /// The server did not answer, or not with success.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, RequestFailure> {
        let whole = async {
            let answer = self.ask(path).await?;
            let body =
                answer.into_body().collect_bytes().await.map_err(RequestFailure::of_client)?;
            traffic::received(self.host(), "GET", body.len());
            Ok(body.to_vec())
        };
        let late =
            |_| RequestFailure::Unreachable(format!("no response within {} s", ANSWER.as_secs()));
        timeout(ANSWER, whole).await.map_err(late)?
    }

    /// Requests `path` and returns the answer as a stream of lines.
    ///
    /// # Errors
    /// The server did not answer, or not with success.
    pub async fn lines(&self, path: &str) -> Result<Lines, RequestFailure> {
        let late =
            |_| RequestFailure::Unreachable(format!("no response within {} s", BEGIN.as_secs()));
        let answer = timeout(BEGIN, self.ask(path)).await.map_err(late)??;
        Ok(Lines::new(answer.into_body()))
    }

    async fn ask(&self, path: &str) -> Result<http::Response<Body>, RequestFailure> {
        let (client, generation) = self.client();
        match self.ask_with(&client, path).await {
            Err(RequestFailure::Unauthorized(message)) => {
                if let Err(error) = self.renew(generation).await {
                    let problem = match error {
                        LinkError::Config { problem, .. } => problem,
                        error => error.to_string(),
                    };
                    return Err(RequestFailure::Unauthorized(format!("{message} ({problem})")));
                }
                self.ask_with(&self.client().0, path).await
            }
            answer => answer,
        }
    }

    async fn ask_with(
        &self,
        client: &Client,
        path: &str,
    ) -> Result<http::Response<Body>, RequestFailure> {
        let request = Request::get(path).header("accept", "application/json");
        let request = request
            .body(Body::empty())
            .map_err(|error| RequestFailure::Malformed(error.to_string()))?;
        let began = Instant::now();
        let answer = client.send(request).await;
        let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        traffic::count_request(self.host(), "GET", code, began.elapsed(), 0);
        let answer = answer.map_err(|error| RequestFailure::of_client_with(error, &self.plugin))?;
        self.note_time(answer.headers());
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (code, headers) = (answer.status(), answer.headers().clone());
        let body = answer.into_body().collect_bytes().await.unwrap_or_default();
        Err(RequestFailure::of_answer(code, &headers, &body))
    }

    fn note_time(&self, headers: &HeaderMap) {
        let said = headers.get(DATE).and_then(|date| clock::parse_http(date.to_str().ok()?));
        if let Some(said) = said {
            self.skew.store(said.0 - clock::local().0, Ordering::Relaxed);
        }
    }
}
