//! How a write is sent: through the gate and the rate limiter, with renewed credentials if they are
//! rejected, and again if the server asks to retry later.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

use crate::failure::RequestFailure;
use crate::link::Link;
use crate::traffic;
use crate::write::limiter::Limiter;
use crate::write::served::ServedVersions;
use crate::write::{WriteGate, WriteOptions};

/// How often a write is sent again to a server that sends `Retry-After`.
const PATIENCE: u32 = 10;
/// Time limit of an answer: the same as the server's for a request.
const ANSWER: Duration = Duration::from_secs(60);
/// Pauses between the attempts of a retried write: client-go's default backoff.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(250)];

/// State shared by all writes of one client.
pub(crate) struct Calls {
    link: Link,
    gate: WriteGate,
    limiter: Limiter,
    dry_run: bool,
    served: ServedVersions,
}

/// The format of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyFormat {
    /// An object, or options.
    Json,
    /// A JSON merge patch: lists are replaced.
    MergePatch,
    /// A strategic merge patch: lists of named things are merged.
    StrategicPatch,
}

impl BodyFormat {
    fn as_str(self) -> &'static str {
        match self {
            BodyFormat::Json => "application/json",
            BodyFormat::MergePatch => "application/merge-patch+json",
            BodyFormat::StrategicPatch => "application/strategic-merge-patch+json",
        }
    }
}

/// One write as an HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct WriteCall {
    pub method: Method,
    /// The path and query on the API server.
    pub path: String,
    /// The format of the body.
    pub content: BodyFormat,
    /// What is sent, in the format of `content`.
    pub body: Value,
}

impl Calls {
    /// Sends through this connection and gate.
    pub fn new(link: Link, gate: WriteGate, options: &WriteOptions) -> Calls {
        let limiter = Limiter::new(options.qps, options.burst);
        let (dry_run, served) = (options.dry_run, ServedVersions::default());
        Calls { link, gate, limiter, dry_run, served }
    }

    /// The API versions that are written.
    pub(super) fn served(&self) -> &ServedVersions {
        &self.served
    }

    /// The gate that all writes pass.
    pub fn gate(&self) -> &WriteGate {
        &self.gate
    }

    /// Reads an object before it is written.
    ///
    /// # Errors
    /// The server did not answer, or not with success.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, RequestFailure> {
        self.link.get(path).await
    }

    /// Sends a write and returns the server's answer.
    ///
    /// # Errors
    /// The server did not answer, or not with success; or the gate closed meanwhile.
    pub async fn make(&self, call: &WriteCall) -> Result<Vec<u8>, RequestFailure> {
        tokio::select! {
            biased;
            reason = self.gate.until_closed() => Err(RequestFailure::Stopped(reason)),
            answer = self.patiently(call) => answer,
        }
    }

    /// Sends an idempotent write, up to four times.
    ///
    /// # Errors
    /// As [`Calls::make`], for the last attempt.
    pub(crate) async fn make_again(&self, call: &WriteCall) -> Result<Vec<u8>, RequestFailure> {
        for pause in PAUSES {
            match self.make(call).await {
                Err(failure) if is_transient(&failure) => sleep(pause).await,
                answer => return answer,
            }
        }
        self.make(call).await
    }

    async fn patiently(&self, call: &WriteCall) -> Result<Vec<u8>, RequestFailure> {
        for _ in 0..PATIENCE {
            let began = Instant::now();
            self.limiter.turn().await;
            traffic::waited(self.link.host(), call.method.as_str(), began.elapsed());
            let answer = self.renewed(call).await;
            let Some(pause) = answer.as_ref().err().and_then(pause) else { return answer };
            sleep(pause.1).await;
            traffic::retried(self.link.host(), call.method.as_str(), pause.0);
        }
        self.renewed(call).await
    }

    async fn renewed(&self, call: &WriteCall) -> Result<Vec<u8>, RequestFailure> {
        let (client, generation) = self.link.client();
        match self.once(&client, call).await {
            Err(RequestFailure::Unauthorized(message)) => {
                if let Err(error) = self.link.renew(generation).await {
                    return Err(RequestFailure::Unauthorized(format!("{message} ({error})")));
                }
                self.once(&self.link.client().0, call).await
            }
            answer => answer,
        }
    }

    async fn once(&self, client: &Client, call: &WriteCall) -> Result<Vec<u8>, RequestFailure> {
        let query = if self.dry_run { "?dryRun=All" } else { "" };
        let request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{query}", call.path))
            .header("accept", "application/json")
            .header("content-type", call.content.as_str());
        let body = serde_json::to_vec(&call.body)
            .map_err(|error| RequestFailure::Malformed(error.to_string()))?;
        let (host, method, size) = (self.link.host(), call.method.as_str(), body.len());
        let request = request
            .body(Body::from(body))
            .map_err(|error| RequestFailure::Malformed(error.to_string()))?;
        let whole = async {
            let began = Instant::now();
            let answer = client.send(request).await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            traffic::count_request(host, method, code, began.elapsed(), size);
            let answer = answer.map_err(RequestFailure::of_client)?;
            let (code, headers) = (answer.status(), answer.headers().clone());
            let body =
                answer.into_body().collect_bytes().await.map_err(RequestFailure::of_client)?;
            traffic::received(host, method, body.len());
            match code.is_success() {
                true => Ok(body.to_vec()),
                false => Err(RequestFailure::of_answer(code, &headers, &body)),
            }
        };
        let late =
            |_| RequestFailure::Unreachable(format!("no response within {} s", ANSWER.as_secs()));
        timeout(ANSWER, whole).await.map_err(late)?
    }
}

/// The status code and the pause before a write is sent again, if the server asks for that: with
/// 429, or with `Retry-After` and an error of its own, as in client-go.
fn pause(failure: &RequestFailure) -> Option<(u16, Duration)> {
    match failure {
        RequestFailure::Busy { after, .. } => Some((429, after.unwrap_or(Duration::from_secs(1)))),
        RequestFailure::Server { code, after, .. } => after.map(|after| (*code, after)),
        _ => None,
    }
}

/// The errors after which upstream retries a status patch: conflict, internal error, service
/// unavailable, connection refused.
fn is_transient(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Server { code, .. } => [409, 500, 503].contains(code),
        RequestFailure::Unreachable(_) => true,
        _ => false,
    }
}
