//! Asynchronous API calls, behind their feature gate: how many are pending, and how they ended.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec};

use crate::metrics::builder::MetricsBuilder;
use kubestep_cluster::remote::CallType;

/// Series about bindings and status patches, which are always made in the background.
pub struct AsyncCalls {
    total: IntCounterVec,
    duration: HistogramVec,
    pending: IntGaugeVec,
}

impl AsyncCalls {
    /// All counters at zero.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(make: &MetricsBuilder<'_>) -> prometheus::Result<AsyncCalls> {
        let labels = ["call_type", "result"];
        Ok(AsyncCalls {
            total: make.counters(
                "async_api_call_execution_total",
                "API calls made in the background, by result",
                &labels,
            )?,
            duration: make.histograms(
                "async_api_call_execution_duration_seconds",
                "Time of an API call made in the background",
                &labels,
                (0.001, 2.0, 15),
            )?,
            pending: make.gauges(
                "pending_async_api_calls",
                "API calls that were sent and are not answered",
                &["call_type"],
            )?,
        })
    }

    /// A call was sent.
    pub fn sent(&self, call: CallType) {
        self.pending.with_label_values(&[call.as_str()]).inc();
    }

    /// A call was answered.
    pub fn answered(&self, (call, took): (CallType, Duration), failed: bool) {
        let labels = [call.as_str(), if failed { "error" } else { "success" }];
        self.total.with_label_values(&labels).inc();
        self.duration.with_label_values(&labels).observe(took.as_secs_f64());
        self.pending.with_label_values(&[call.as_str()]).dec();
    }
}
