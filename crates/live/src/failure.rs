//! What can go wrong with a request, grouped by how to react to it.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use thiserror::Error;

use crate::credentials::Plugin;

/// Accepted range of `Retry-After`, in seconds.
const RETRY_AFTER_SECONDS: (u64, u64) = (1, 60);

/// Why a request failed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RequestFailure {
    /// 401: the credentials are not, or no longer, accepted.
    #[error("the credentials are not accepted: {0}")]
    Unauthorized(String),
    /// 403: this user lacks the right.
    #[error("not allowed: {0}")]
    Refused(String),
    /// 404: the server does not serve this path.
    #[error("not served: {0}")]
    Absent(String),
    /// 410 and similar: the server no longer has the requested version.
    #[error("the resource version has expired: {0}")]
    Expired(String),
    /// 429: too many requests.
    #[error("the server is busy: {message}")]
    Busy {
        /// When to retry, if the server says so.
        after: Option<Duration>,
        /// `message` of the server's Status.
        message: String,
    },
    /// Any other status that is not success.
    #[error("the server returned {code}: {message}")]
    Server {
        /// The HTTP status code.
        code: u16,
        /// `message` of the server's Status, or the body.
        message: String,
        /// When to retry, if the server says so.
        after: Option<Duration>,
    },
    /// No answer, or an incomplete one.
    #[error("{0}")]
    Unreachable(String),
    /// Not sent or not waited for, because writing was stopped.
    #[error("writing stopped: {0}")]
    Stopped(String),
    /// An answer that cannot be parsed.
    #[error("the response cannot be read: {0}")]
    Malformed(String),
    /// The server ended a watch, which is normal once it has been open for a while.
    #[error("the server ends each watch immediately")]
    Ended,
}

/// The fields of `metav1.Status` that describe an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    code: u16,
}

impl RequestFailure {
    /// Classifies an answer with an error status code.
    pub fn of_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> RequestFailure {
        let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
            message: String::from_utf8_lossy(body).chars().take(200).collect(),
            ..Status::default()
        });
        let after = headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
        let (shortest, longest) = RETRY_AFTER_SECONDS;
        let after = after.map(|seconds: u64| Duration::from_secs(seconds.clamp(shortest, longest)));
        status.failure(code.as_u16(), after)
    }

    /// Classifies the object of an `ERROR` event of a watch.
    pub(crate) fn of_event(status: &str) -> RequestFailure {
        let status: Status = serde_json::from_str(status).unwrap_or_default();
        let code = status.code;
        status.failure(code, None)
    }

    /// Classifies an error of kube's client, including errors of credentials.
    pub(crate) fn of_client(error: kube::Error) -> RequestFailure {
        RequestFailure::of_client_with(error, &Plugin::default())
    }

    /// Like [`RequestFailure::of_client`], with the credential plugin that may have caused it.
    pub(crate) fn of_client_with(error: kube::Error, plugin: &Plugin) -> RequestFailure {
        let problem = plugin.problem(&error).unwrap_or_else(|| root_cause(&error));
        match error {
            kube::Error::Auth(_) => RequestFailure::Unauthorized(problem),
            _ => RequestFailure::Unreachable(problem),
        }
    }

    /// The server's message if there is one, as it appears in statuses.
    pub fn describe(&self) -> String {
        match self {
            RequestFailure::Unauthorized(message)
            | RequestFailure::Refused(message)
            | RequestFailure::Absent(message)
            | RequestFailure::Expired(message)
            | RequestFailure::Busy { message, .. }
            | RequestFailure::Server { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }

    /// In a word or two, for a status line.
    pub fn short(&self) -> String {
        match self {
            RequestFailure::Unauthorized(_) => "401".into(),
            RequestFailure::Refused(_) => "403".into(),
            RequestFailure::Absent(_) => "404".into(),
            RequestFailure::Expired(_) => "410".into(),
            RequestFailure::Busy { .. } => "429".into(),
            RequestFailure::Server { code, .. } => code.to_string(),
            RequestFailure::Unreachable(_) => "no connection".into(),
            RequestFailure::Stopped(_) => "stopped".into(),
            RequestFailure::Malformed(_) => "bad response".into(),
            RequestFailure::Ended => "watch ends immediately".into(),
        }
    }

    /// When the server asks for a retry: with 429 or an error of its own, as for client-go.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            RequestFailure::Busy { after, .. } | RequestFailure::Server { after, .. } => *after,
            _ => None,
        }
    }

    /// Whether a retry of the same request may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, RequestFailure::Refused(_) | RequestFailure::Absent(_))
    }
}

impl Status {
    fn failure(self, code: u16, after: Option<Duration>) -> RequestFailure {
        let message = match self.message.is_empty() {
            true => "no reason given".to_owned(),
            false => self.message,
        };
        // The server was restored to an older state and has not reached this version yet.
        let from_the_future = code == 504 && message.contains("Too large resource version");
        match code {
            401 => RequestFailure::Unauthorized(message),
            403 => RequestFailure::Refused(message),
            404 => RequestFailure::Absent(message),
            410 => RequestFailure::Expired(message),
            429 => RequestFailure::Busy { after, message },
            _ if from_the_future || self.reason == "Expired" => RequestFailure::Expired(message),
            code => RequestFailure::Server { code, message, after: after.filter(|_| code >= 500) },
        }
    }
}

/// The innermost cause: the errors around it only say that a request failed.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: u16, body: &str) -> RequestFailure {
        let code = StatusCode::from_u16(code).unwrap();
        RequestFailure::of_answer(code, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn sorted_by_what_to_do() {
        let expired = r#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#;
        assert_eq!(failure(410, expired), RequestFailure::Expired("too old".into()));
        assert_eq!(RequestFailure::of_event(expired), RequestFailure::Expired("too old".into()));
        let ahead = r#"{"message":"Too large resource version: 9, current: 3","code":504}"#;
        assert!(matches!(failure(504, ahead), RequestFailure::Expired(_)));
        assert!(matches!(failure(504, "{}"), RequestFailure::Server { code: 504, .. }));
        assert_eq!(failure(403, "no"), RequestFailure::Refused("no".into()));
        assert!(!failure(404, "").may_pass());
        assert!(failure(401, "").may_pass());
    }

    #[test]
    fn a_busy_server_says_when_to_come_again() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        let busy = RequestFailure::of_answer(StatusCode::TOO_MANY_REQUESTS, &headers, b"{}");
        let message = "no reason given".to_owned();
        assert_eq!(busy, RequestFailure::Busy { after: Some(Duration::from_secs(7)), message });
    }

    #[test]
    fn what_a_busy_server_asks_for_has_limits() {
        let after = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            let of = |code| RequestFailure::of_answer(code, &headers, b"{}").retry_after();
            let busy = of(StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(of(StatusCode::SERVICE_UNAVAILABLE), busy, "{text}");
            assert_eq!(of(StatusCode::CONFLICT), None, "{text}");
            busy.map(|after| after.as_secs())
        };
        assert_eq!(["0", "1", "99999999999"].map(after), [Some(1), Some(1), Some(60)]);
        let others = ["-1", "1.5", "99999999999999999999999", "Wed, 21 Oct 2026 07:28:00 GMT"];
        assert_eq!(others.map(after), [None; 4]);
    }
}
