//! Requests to API servers and renewals of the lease, counted over all connections, under
//! client-go's names.
//!
//! Upstream: `staging/src/k8s.io/component-base/metrics/prometheus/restclient`.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

/// Buckets of times, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// Buckets of sizes, in bytes.
const BYTES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The counters of this process, once they are registered.
static TRAFFIC: OnceLock<Traffic> = OnceLock::new();

struct Traffic {
    requests: IntCounterVec,
    seconds: HistogramVec,
    waited: HistogramVec,
    sent: HistogramVec,
    received: HistogramVec,
    retries: IntCounterVec,
    transports: IntCounterVec,
    slow_renewals: IntCounterVec,
}

impl Traffic {
    fn new() -> prometheus::Result<Traffic> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            HistogramVec::new(opts, &["host", "verb"])
        };
        Ok(Traffic {
            requests: counter(
                "rest_client_requests_total",
                "Requests, by status code of the response",
                &["code", "method", "host"],
            )?,
            seconds: histogram(
                "rest_client_request_duration_seconds",
                "Time until a response began",
                &SECONDS,
            )?,
            waited: histogram(
                "rest_client_rate_limiter_duration_seconds",
                "Time that a request waited for the rate limiter",
                &SECONDS,
            )?,
            sent: histogram("rest_client_request_size_bytes", "Bytes of requests", &BYTES)?,
            received: histogram("rest_client_response_size_bytes", "Bytes of responses", &BYTES)?,
            retries: counter(
                "rest_client_request_retries_total",
                "Requests that were repeated because the server asked for it, by its status code",
                &["code", "verb", "host"],
            )?,
            transports: counter(
                "rest_client_transport_create_calls_total",
                "Clients that were built; none comes from a cache",
                &["result"],
            )?,
            slow_renewals: counter(
                "leader_election_slowpath_total",
                "Renewals of the lease that had to read it first",
                &["name"],
            )?,
        })
    }
}

/// Counts from now on, for the endpoints of `registry`.
///
/// # Errors
/// Prometheus rejects a metric's name or labels.
pub fn register(registry: &Registry) -> prometheus::Result<()> {
    if TRAFFIC.get().is_none() {
        // Losing a race is harmless: both are equal.
        let _first = TRAFFIC.set(Traffic::new()?);
    }
    let Some(traffic) = TRAFFIC.get() else { return Ok(()) };
    let Traffic { requests, retries, transports, slow_renewals, .. } = traffic;
    for counter in [requests, retries, transports, slow_renewals] {
        registry.register(Box::new(counter.clone()))?;
    }
    let entries = "rest_client_transport_cache_entries";
    let opts = Opts::new(entries, "Clients in a cache; there is none");
    registry.register(Box::new(IntGauge::with_opts(opts)?))?;
    for histogram in [&traffic.seconds, &traffic.waited, &traffic.sent, &traffic.received] {
        registry.register(Box::new(histogram.clone()))?;
    }
    Ok(())
}

/// Counts a request: its status code (`None`: no answer), the time until the answer began, and the
/// bytes sent.
pub(crate) fn count_request(
    host: &str,
    method: &str,
    code: Option<u16>,
    took: Duration,
    sent: usize,
) {
    let Some(traffic) = TRAFFIC.get() else { return };
    let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
    traffic.requests.with_label_values(&[code.as_str(), method, host]).inc();
    traffic.seconds.with_label_values(&[host, method]).observe(took.as_secs_f64());
    traffic.sent.with_label_values(&[host, method]).observe(sent as f64);
}

/// Counts the bytes of an answer.
pub fn received(host: &str, method: &str, bytes: usize) {
    let Some(traffic) = TRAFFIC.get() else { return };
    traffic.received.with_label_values(&[host, method]).observe(bytes as f64);
}

/// Counts a request that is repeated because of that status code.
pub fn retried(host: &str, method: &str, code: u16) {
    let Some(traffic) = TRAFFIC.get() else { return };
    traffic.retries.with_label_values(&[code.to_string().as_str(), method, host]).inc();
}

/// Counts a client that was built.
pub(crate) fn connected() {
    let Some(traffic) = TRAFFIC.get() else { return };
    traffic.transports.with_label_values(&["uncacheable"]).inc();
}

/// Counts a renewal of the lease of that name that had to read it first.
pub(crate) fn renewed_slowly(lease: &str) {
    let Some(traffic) = TRAFFIC.get() else { return };
    traffic.slow_renewals.with_label_values(&[lease]).inc();
}

/// Counts how long a request waited for the rate limiter.
pub fn waited(host: &str, method: &str, time: Duration) {
    let Some(traffic) = TRAFFIC.get() else { return };
    traffic.waited.with_label_values(&[host, method]).observe(time.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_code() {
        let registry = Registry::new();
        register(&registry).unwrap();
        count_request("h:6443", "GET", Some(200), Duration::from_millis(3), 0);
        count_request("h:6443", "GET", None, Duration::from_millis(3), 0);
        let text = String::from_utf8(crate::metrics::text(&registry)).unwrap();
        for line in [
            "rest_client_requests_total{code=\"200\",host=\"h:6443\",method=\"GET\"} 1",
            "rest_client_requests_total{code=\"<error>\",host=\"h:6443\",method=\"GET\"} 1",
            "rest_client_request_duration_seconds_bucket{host=\"h:6443\",verb=\"GET\",le=\"0.005\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
        }
    }
}
