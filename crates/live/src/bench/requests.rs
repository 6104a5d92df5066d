//! Requests that create, change and delete the objects of a benchmark.

use std::time::{Duration, Instant};

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::failure::RequestFailure;
use crate::link::Link;

/// Time limit of an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a request is repeated that the server rejects for now, as upstream.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it waits before it is repeated.
const PAUSE: Duration = Duration::from_millis(200);

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Sends requests to a cluster.
pub(super) struct Requests {
    link: Link,
}

impl Requests {
    pub fn new(link: Link) -> Requests {
        Requests { link }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        content: Option<(&str, &Value)>,
    ) -> Result<Value, RequestFailure> {
        let mut request = Request::builder().method(method).uri(path).header("accept", JSON);
        let mut body = Body::empty();
        if let Some((content_type, value)) = content {
            request = request.header("content-type", content_type);
            body = Body::from(value.to_string().into_bytes());
        }
        let request =
            request.body(body).map_err(|error| RequestFailure::Malformed(error.to_string()))?;
        let whole = async {
            let answer =
                self.link.client().0.send(request).await.map_err(RequestFailure::of_client)?;
            let (code, headers) = (answer.status(), answer.headers().clone());
            let body =
                answer.into_body().collect_bytes().await.map_err(RequestFailure::of_client)?;
            match code.is_success() {
                true => Ok(serde_json::from_slice(&body).unwrap_or_default()),
                false => Err(RequestFailure::of_answer(code, &headers, &body)),
            }
        };
        let late =
            |_| RequestFailure::Unreachable(format!("no response within {} s", ANSWER.as_secs()));
        timeout(ANSWER, whole).await.map_err(late)?
    }

    /// Reads an object or a list.
    pub async fn read(&self, path: &str) -> Result<Value, RequestFailure> {
        self.send(&Method::GET, path, None).await
    }

    /// The names of the objects of a list.
    pub async fn names(&self, path: &str) -> Result<Vec<String>, RequestFailure> {
        let list = self.read(path).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
        Ok(items.iter().filter_map(name).collect())
    }

    /// Whether there is an object at this path.
    pub async fn exists(&self, path: &str) -> bool {
        !matches!(self.read(path).await, Err(RequestFailure::Absent(_)))
    }

    /// Creates an object and returns its name. A server that is busy, or has not made the service
    /// account of a new namespace yet, is asked again for a while.
    pub async fn create(&self, path: &str, object: &Value) -> Result<String, RequestFailure> {
        let begun = Instant::now();
        loop {
            match self.send(&Method::POST, path, Some((JSON, object))).await {
                Ok(stored) => {
                    let name = stored["metadata"]["name"].as_str();
                    return Ok(name.unwrap_or_default().to_owned());
                }
                Err(failure) if is_temporary(&failure) && begun.elapsed() < PATIENCE => {
                    sleep(PAUSE).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Changes the given fields, with a JSON merge patch.
    pub async fn patch(&self, path: &str, fields: &Value) -> Result<(), RequestFailure> {
        self.send(&Method::PATCH, path, Some((MERGE_PATCH, fields))).await.map(drop)
    }

    /// Replaces an object, whatever its version is.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<(), RequestFailure> {
        self.send(&Method::PUT, path, Some((JSON, object))).await.map(drop)
    }

    /// Deletes an object; it may be deleted already. `wholly`: at once and without its finalizers.
    pub async fn delete(&self, path: &str, wholly: bool) -> Result<(), RequestFailure> {
        let options = json!({"propagationPolicy": "Background"});
        let whole = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        let options = if wholly && path.contains("/pods/") { whole } else { options };
        if wholly && path.starts_with("/api/v1/namespaces/") && path.contains("/pods/") {
            let fields = json!({"metadata": {"finalizers": null}});
            self.patch(path, &fields).await.or_else(unless_gone)?;
        }
        let done = self.send(&Method::DELETE, path, Some((JSON, &options))).await;
        done.map(drop).or_else(unless_gone)
    }
}

fn unless_gone(failure: RequestFailure) -> Result<(), RequestFailure> {
    match failure {
        RequestFailure::Absent(_) => Ok(()),
        failure => Err(failure),
    }
}

fn is_temporary(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Busy { .. } => true,
        failure => failure.to_string().contains("service account"),
    }
}
