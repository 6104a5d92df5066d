//! The figures of a measurement, under the names that upstream's data items have.

use std::collections::BTreeMap;

use super::{Histogram, Measurement, Throughput};
use crate::suite::{MetricSelector, THROUGHPUT};

/// The percentiles that are reported.
const PERCENTILES: [u8; 4] = [50, 90, 95, 99];

/// A figure: a metric with its labels, and the values of its buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// `SchedulingThroughput`, `scheduler_scheduling_attempt_duration_seconds` and so on.
    pub metric: &'static str,
    /// Labels of the metric, such as `extension_point`.
    pub labels: BTreeMap<&'static str, String>,
    /// The unit: `pods/s`, `ms` or `s`.
    pub unit: &'static str,
    /// `Average`, `Perc50` and so on, with the values.
    pub data: BTreeMap<String, f64>,
}

/// All figures of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The name of the operation that measured, or its namespace.
    pub name: String,
    /// The figures, one for each metric and set of labels.
    pub figures: Vec<Figure>,
    /// Pods that were scheduled.
    pub scheduled: usize,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How long the scheduler worked of that, in seconds, if it is known.
    pub busy_seconds: Option<f64>,
    /// Seconds between two samples of the throughput.
    pub interval_seconds: f64,
    /// Whether the threshold is met, if there is one.
    pub threshold: Option<ThresholdCheck>,
}

/// A threshold and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdCheck {
    /// The figure that it is for.
    pub selector: MetricSelector,
    /// The value that has to be exceeded; with `expect_lower`, not to be reached.
    pub limit: f64,
    /// What was measured; `None` if there is no such figure.
    pub value: Option<f64>,
}

impl ThresholdCheck {
    /// Whether the threshold is met. As upstream, a value equal to the limit does not meet it.
    pub fn is_met(&self) -> bool {
        self.value.is_some_and(|value| match self.selector.expect_lower {
            true => value < self.limit,
            false => value > self.limit,
        })
    }
}

impl Figures {
    /// The figures of a measurement.
    pub fn new(name: &str, measured: &Measurement) -> Figures {
        let throughput = Throughput::new(measured.begin, measured.end, &measured.scheduled);
        let took = measured.end - measured.begin;
        let mut figures: Vec<Figure> = of_throughput(&throughput).into_iter().collect();
        figures.push(Figure::new("SchedulingDuration", "s", [("Duration".into(), seconds(took))]));
        figures.extend(durations(measured));
        Figures {
            name: name.to_owned(),
            figures,
            scheduled: measured.scheduled.len(),
            seconds: seconds(took),
            busy_seconds: measured.busy.map(seconds),
            interval_seconds: seconds(throughput.interval),
            threshold: None,
        }
    }

    /// Compares the selected figure with the limit; no limit, no check.
    pub fn check(&mut self, selector: &MetricSelector, limit: Option<f64>) {
        let Some(limit) = limit else { return };
        let value = self.find(selector);
        self.threshold = Some(ThresholdCheck { selector: selector.clone(), limit, value });
    }

    /// The value that a selector means; of several figures the worst.
    fn find(&self, selector: &MetricSelector) -> Option<f64> {
        let has = |figure: &Figure, label: &str, value: &String| {
            figure.labels.iter().any(|(own, of)| *own == label && of == value)
        };
        let meant = self.figures.iter().filter(|figure| {
            figure.metric == selector.name
                && selector.labels.iter().all(|(label, value)| has(figure, label, value))
        });
        let values = meant.filter_map(|figure| figure.data.get(&selector.data_bucket).copied());
        match selector.expect_lower {
            true => values.max_by(f64::total_cmp),
            false => values.min_by(f64::total_cmp),
        }
    }

    /// The figure of a metric without labels.
    pub fn figure(&self, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric)
    }

    /// The throughput's value of a bucket, in pods per second.
    pub fn throughput(&self, bucket: &str) -> Option<f64> {
        self.figure(THROUGHPUT)?.data.get(bucket).copied()
    }
}

impl Figure {
    fn new(
        metric: &'static str,
        unit: &'static str,
        data: impl IntoIterator<Item = (String, f64)>,
    ) -> Figure {
        Figure { metric, labels: BTreeMap::new(), unit, data: data.into_iter().collect() }
    }
}

fn of_throughput(throughput: &Throughput) -> Option<Figure> {
    let average = ("Average".to_owned(), throughput.average()?);
    let percentile = |percent: u8| {
        let value = throughput.percentile(usize::from(percent))?;
        Some((format!("Perc{percent}"), value))
    };
    let data = PERCENTILES.into_iter().filter_map(percentile).chain([average]);
    Some(Figure::new(THROUGHPUT, "pods/s", data))
}

/// The durations, as upstream in milliseconds.
fn durations(measured: &Measurement) -> impl Iterator<Item = Figure> + '_ {
    let attempts = measured.attempts.iter().map(|(result, all)| {
        let labels = [("result", (*result).to_owned())];
        of_durations("scheduler_scheduling_attempt_duration_seconds", labels.into(), all)
    });
    let points = measured.points.iter().map(|(point, all)| {
        let labels = [("extension_point", (*point).to_owned())];
        of_durations("scheduler_framework_extension_point_duration_seconds", labels.into(), all)
    });
    let plugins = measured.plugins.iter().map(|((point, plugin), all)| {
        let labels = [("extension_point", (*point).to_owned()), ("plugin", plugin.to_string())];
        of_durations("scheduler_plugin_execution_duration_seconds", labels.into(), all)
    });
    let hints = measured.hints.iter().map(|((event, plugin), all)| {
        let labels = [("event", event.clone()), ("plugin", plugin.to_string())];
        of_durations("scheduler_queueing_hint_execution_duration_seconds", labels.into(), all)
    });
    let pods = [&measured.pods].into_iter().filter(|pods| pods.count() > 0).map(|pods| {
        of_durations("scheduler_pod_scheduling_sli_duration_seconds", BTreeMap::new(), pods)
    });
    attempts.chain(points).chain(plugins).chain(hints).chain(pods)
}

fn of_durations(
    metric: &'static str,
    labels: BTreeMap<&'static str, String>,
    all: &Histogram,
) -> Figure {
    let millis = |nanos: f64| nanos / 1_000_000.0;
    let percentile = |percent: u8| {
        let nanos = all.percentile(u64::from(percent));
        (format!("Perc{percent}"), millis(nanos as f64))
    };
    let more = [
        ("Average".to_owned(), millis(all.average())),
        ("Count".to_owned(), all.count() as f64),
        ("Sum".to_owned(), millis(all.sum() as f64)),
    ];
    let data = PERCENTILES.into_iter().map(percentile).chain(more);
    Figure { labels, ..Figure::new(metric, "ms", data) }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
