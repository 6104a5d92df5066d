//! One extender: its address, and one request to it.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use kube::client::Body;
use serde_json::{Deserializer, Value};
use tokio::time::timeout;

use crate::extender_client::settings::{client_config, root_cause};
use kubestep_api::duration;
use kubestep_config::types::Extender;

/// The time limit of a call without `httpTimeout`.
const DEFAULT_TIMEOUT: duration::Duration = duration::Duration::from_secs(5);

/// An extender that can be called.
pub(super) struct ExtenderTarget {
    client: Client,
    /// `urlPrefix` without trailing slashes.
    url: String,
    timeout: duration::Duration,
}

impl ExtenderTarget {
    /// Creates the client. Nothing is sent.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub(super) fn new(extender: &Extender) -> Result<ExtenderTarget, String> {
        let config = client_config(extender)?;
        let client = Client::try_from(config).map_err(|error| root_cause(error.into()))?;
        let configured = extender.http_timeout;
        let timeout = if configured.nanos == 0 { DEFAULT_TIMEOUT } else { configured };
        Ok(ExtenderTarget {
            client,
            url: extender.url_prefix.trim_end_matches('/').into(),
            timeout,
        })
    }

    /// Posts `body` to `verb` and returns the response, parsed as JSON.
    ///
    /// # Errors
    /// No answer in time, a status code other than 200, or an answer that is not JSON.
    pub(super) async fn post(&self, verb: &str, body: Vec<u8>) -> Result<Value, String> {
        let url = format!("{}/{verb}", self.url);
        let exchange = self.exchange(&url, verb, body);
        // As in Go, a negative timeout means no limit.
        let Ok(nanos) = u64::try_from(self.timeout.nanos) else { return exchange.await };
        match timeout(Duration::from_nanos(nanos), exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("Post {url:?}: no response within {}", self.timeout)),
        }
    }

    async fn exchange(&self, url: &str, verb: &str, body: Vec<u8>) -> Result<Value, String> {
        let failed = |error: anyhow::Error| format!("Post {url:?}: {}", root_cause(error));
        let request = Request::post(format!("/{verb}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|error| failed(error.into()))?;
        let response = self.client.send(request).await.map_err(|error| failed(error.into()))?;
        let code = response.status().as_u16();
        if code != 200 {
            return Err(format!("failed {verb} with extender at URL {url}, code {code}"));
        }
        let answer = response.into_body().collect_bytes().await;
        let answer = answer.map_err(|error| failed(error.into()))?;
        first_value(&answer).map_err(|error| format!("Post {url:?}: the response {error}"))
    }
}

/// The first JSON value; as upstream, the rest of the text is ignored.
fn first_value(text: &[u8]) -> Result<Value, String> {
    match Deserializer::from_slice(text).into_iter().next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(format!("is not JSON: {error}")),
        None => Err("is empty".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn five_seconds_unless_configured() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let limit = |http_timeout| {
            let url_prefix = "http://127.0.0.1:1".to_owned();
            let extender = Extender { url_prefix, http_timeout, ..Extender::default() };
            ExtenderTarget::new(&extender).unwrap().timeout.to_string()
        };
        assert_eq!(limit(duration::Duration::default()), "5s");
        assert_eq!(limit(duration::Duration::from_secs(2)), "2s");
    }

    #[test]
    fn only_the_first_value_counts() {
        assert_eq!(first_value(br#" {"a": 1} {"b": oops"#), Ok(json!({"a": 1})));
        assert_eq!(first_value(b"null"), Ok(Value::Null));
        assert_eq!(first_value(b" \n"), Err("is empty".into()));
        let error = first_value(b"{\"a\": }").unwrap_err();
        assert_eq!(error, "is not JSON: expected value at line 1 column 7");
    }
}
