//! The results of each health check, for `/metrics/slis`.
//!
//! Upstream: `staging/src/k8s.io/component-base/metrics/prometheus/slis`.

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use super::builder::gauges;

/// The series of `/metrics/slis`: the result of each health check.
#[derive(Clone)]
pub struct Slis {
    registry: Registry,
    check: IntGaugeVec,
    checks: IntCounterVec,
}

impl Slis {
    /// No results yet.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new() -> prometheus::Result<Slis> {
        let registry = Registry::new();
        let opts = Opts::new("kubernetes_healthcheck", "1 if the last run of the check passed");
        let check = gauges(&registry, opts, &["name", "type"])?;
        let opts = Opts::new("kubernetes_healthchecks_total", "Results of health checks");
        let checks = IntCounterVec::new(opts, &["name", "status", "type"])?;
        registry.register(Box::new(checks.clone()))?;
        Ok(Slis { registry, check, checks })
    }

    /// Counts the result of a check of a group.
    pub fn observe(&self, group: &str, check: &str, fine: bool) {
        self.check.with_label_values(&[check, group]).set(i64::from(fine));
        let status = if fine { "success" } else { "error" };
        self.checks.with_label_values(&[check, status, group]).inc();
    }

    /// The metrics in the Prometheus text format.
    pub fn text(&self) -> Vec<u8> {
        super::text(&self.registry)
    }
}
