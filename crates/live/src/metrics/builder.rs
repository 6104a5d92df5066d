//! Creates metrics in one registry: names, help, labels, buckets.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    exponential_buckets,
};

/// Start, factor and number of exponential buckets.
pub type Buckets = (f64, f64, usize);

/// Creates and registers metrics. Names are prefixed with `scheduler_`.
pub struct MetricsBuilder<'a> {
    /// The registry that they are registered in.
    pub registry: &'a Registry,
}

impl MetricsBuilder<'_> {
    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(format!("scheduler_{name}"), help)
    }

    fn histogram_opts(
        name: &str,
        help: &str,
        (start, factor, count): Buckets,
    ) -> prometheus::Result<HistogramOpts> {
        let buckets = exponential_buckets(start, factor, count)?;
        Ok(HistogramOpts::new(format!("scheduler_{name}"), help).buckets(buckets))
    }

    /// Registers a counter without labels.
    pub fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        let counter = IntCounter::with_opts(MetricsBuilder::opts(name, help))?;
        self.registry.register(Box::new(counter.clone()))?;
        Ok(counter)
    }

    /// Registers a counter with labels.
    pub fn counters(
        &self,
        name: &str,
        help: &str,
        by: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        let counters = IntCounterVec::new(MetricsBuilder::opts(name, help), by)?;
        self.registry.register(Box::new(counters.clone()))?;
        Ok(counters)
    }

    /// Registers a gauge with labels.
    pub(crate) fn gauges(
        &self,
        name: &str,
        help: &str,
        by: &[&str],
    ) -> prometheus::Result<IntGaugeVec> {
        gauges(self.registry, MetricsBuilder::opts(name, help), by)
    }

    /// Registers a histogram without labels.
    pub(crate) fn histogram(
        &self,
        name: &str,
        help: &str,
        buckets: Buckets,
    ) -> prometheus::Result<Histogram> {
        let histogram = Histogram::with_opts(MetricsBuilder::histogram_opts(name, help, buckets)?)?;
        self.registry.register(Box::new(histogram.clone()))?;
        Ok(histogram)
    }

    /// Registers a histogram with labels.
    pub(crate) fn histograms(
        &self,
        name: &str,
        help: &str,
        by: &[&str],
        buckets: Buckets,
    ) -> prometheus::Result<HistogramVec> {
        let opts = MetricsBuilder::histogram_opts(name, help, buckets)?;
        let histograms = HistogramVec::new(opts, by)?;
        self.registry.register(Box::new(histograms.clone()))?;
        Ok(histograms)
    }
}

/// Registers a gauge with labels under `opts.name`, without a prefix.
pub(crate) fn gauges(
    registry: &Registry,
    opts: Opts,
    by: &[&str],
) -> prometheus::Result<IntGaugeVec> {
    let gauges = IntGaugeVec::new(opts, by)?;
    registry.register(Box::new(gauges.clone()))?;
    Ok(gauges)
}
