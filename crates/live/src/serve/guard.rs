//! Authentication and authorization: an API server is asked whose token it is, and what that user
//! may get.
//!
//! Both requests are objects to the API, token reviews and subject access reviews, which it does
//! not store. Without a server for token reviews every caller is anonymous; without a server for
//! access reviews only the paths that are always allowed are answered. Client certificates are
//! ignored.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/server/options` (`authentication.go`,
//! `authorization.go`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget, Link};
use crate::serve::{JSON, TEXT, plain};
use crate::write::{BodyFormat, Calls, WriteCall, WriteGate, WriteOptions};

/// Most cached answers; when it is reached, the cache is cleared.
const REMEMBERED: usize = 1_000;
/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Which API servers are asked, and how long an answer is cached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where token reviews are sent.
    pub authentication: Option<KubeconfigTarget>,
    /// Where subject access reviews are sent.
    pub authorization: Option<KubeconfigTarget>,
    /// Paths that are always allowed; `*` at the end matches any rest.
    pub allowed: Vec<String>,
    /// How long the user of a token is cached.
    pub token: Duration,
    /// How long an allowed access is cached.
    pub right: Duration,
    /// How long a denied access is cached.
    pub rejection: Duration,
}

impl Default for Access {
    fn default() -> Access {
        let ten = Duration::from_secs(10);
        Access {
            authentication: None,
            authorization: None,
            allowed: ["/healthz", "/readyz", "/livez"].map(str::to_owned).to_vec(),
            token: ten,
            right: ten,
            rejection: ten,
        }
    }
}

/// The connection to an API server, opened with the first request.
struct ReviewClient {
    target: KubeconfigTarget,
    calls: OnceCell<Calls>,
}

/// Decides who may read an endpoint: the API server authenticates the token and authorizes the
/// path.
pub(super) struct Guard {
    access: Access,
    tokens: Option<ReviewClient>,
    rights: Option<ReviewClient>,
    users: ReviewCache<String, Option<Value>>,
    verdicts: ReviewCache<String, bool>,
}

/// Answers with their expiry.
struct ReviewCache<K, V>(Mutex<HashMap<K, (Instant, V)>>);

/// The response to a rejected request.
type RejectedResponse = Response<Full<Bytes>>;

impl Guard {
    pub fn new(access: Access) -> Guard {
        let asked = |target: &Option<KubeconfigTarget>| {
            target.clone().map(|target| ReviewClient { target, calls: OnceCell::new() })
        };
        Guard {
            tokens: asked(&access.authentication),
            rights: asked(&access.authorization),
            users: ReviewCache(Mutex::default()),
            verdicts: ReviewCache(Mutex::default()),
            access,
        }
    }

    /// Whether a request is allowed.
    ///
    /// # Errors
    /// The response to a request that is not.
    pub async fn check<B>(&self, request: &Request<B>) -> Result<(), RejectedResponse> {
        let (path, verb) = (request.uri().path(), request.method().as_str().to_lowercase());
        let user = match token(request) {
            Some(token) => self.user(token).await.ok_or_else(unauthorized)?,
            None => anonymous(),
        };
        if self.access.allowed.iter().any(|allowed| covers(allowed, path)) || is_master(&user) {
            return Ok(());
        }
        match self.may(&user, path, &verb).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(forbidden(&user, path, &verb)),
            Err(failure) => {
                let text = format!("Internal Server Error: {path:?}: {}\n", failure.describe());
                Err(plain(StatusCode::INTERNAL_SERVER_ERROR, TEXT, text.into_bytes()))
            }
        }
    }

    /// The user of a token; `None`: the token is not valid.
    async fn user(&self, token: &str) -> Option<Value> {
        let Some(asked) = &self.tokens else { return Some(anonymous()) };
        if let Some(known) = self.users.get(token) {
            return known;
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let status = asked.review(path, review).await.ok()?;
        let found = status["authenticated"] == true;
        let user = found.then(|| status["user"].clone());
        self.users.put(token.to_owned(), user.clone(), self.access.token);
        user
    }

    async fn may(&self, user: &Value, path: &str, verb: &str) -> Result<bool, RequestFailure> {
        let Some(asked) = &self.rights else { return Ok(false) };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user["username"], "groups": user["groups"], "uid": user["uid"],
                "extra": user["extra"],
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        });
        let key = review["spec"].to_string();
        if let Some(known) = self.verdicts.get(&key) {
            return Ok(known);
        }
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let may = asked.review(path, review).await?["allowed"] == true;
        let counts = if may { self.access.right } else { self.access.rejection };
        self.verdicts.put(key, may, counts);
        Ok(may)
    }
}

impl ReviewClient {
    /// The status that the server returns for a review.
    async fn review(&self, path: &str, body: Value) -> Result<Value, RequestFailure> {
        let calls = self.calls.get_or_try_init(|| async {
            let link = Link::new(self.target.clone()).await;
            let link = link.map_err(|error| RequestFailure::Unreachable(error.to_string()))?;
            let (gate, options) =
                (WriteGate::closed(""), WriteOptions { qps: -1.0, burst: 1, dry_run: false });
            gate.open();
            Ok::<_, RequestFailure>(Calls::new(link, gate, &options))
        });
        let (method, content) = (Method::POST, BodyFormat::Json);
        let call = WriteCall { method, path: path.to_owned(), content, body };
        let answer = calls.await?.make(&call).await?;
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| RequestFailure::Malformed(format!("{path}: {error}")))?;
        Ok(answer["status"].clone())
    }
}

impl<K: Hash + Eq, V: Clone> ReviewCache<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, value) = known.get(key)?;
        (*until > Instant::now()).then(|| value.clone())
    }

    fn put(&self, key: K, value: V, counts: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, (Instant::now() + counts, value));
    }
}

fn anonymous() -> Value {
    json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]})
}

fn is_master(user: &Value) -> bool {
    user["groups"].as_array().is_some_and(|groups| groups.iter().any(|group| group == MASTERS))
}

/// The bearer token of a request.
fn token<B>(request: &Request<B>) -> Option<&str> {
    let text = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

fn covers(allowed: &str, path: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => path == allowed,
    }
}

fn unauthorized() -> RejectedResponse {
    rejection(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

fn forbidden(user: &Value, path: &str, verb: &str) -> RejectedResponse {
    let user = user["username"].as_str().unwrap_or_default();
    let text = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
    rejection(StatusCode::FORBIDDEN, "Forbidden", &text)
}

fn rejection(code: StatusCode, reason: &str, message: &str) -> RejectedResponse {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    plain(code, JSON, status.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_rest() {
        assert!(covers("/healthz", "/healthz") && !covers("/healthz", "/healthz/ping"));
        assert!(covers("/healthz/*", "/healthz/ping") && covers("*", "/metrics"));
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        let of = |text: &str| {
            let request = Request::builder().header("authorization", text).body(()).unwrap();
            token(&request).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc"), Some("abc".into()));
        assert_eq!(of("Basic abc"), None);
        assert_eq!(of("Bearer "), None);
    }

    #[test]
    fn an_answer_counts_for_a_while() {
        let memory: ReviewCache<String, bool> = ReviewCache(Mutex::default());
        memory.put("a".into(), true, Duration::from_secs(60));
        memory.put("b".into(), true, Duration::ZERO);
        assert_eq!((memory.get("a"), memory.get("b")), (Some(true), None));
    }
}
