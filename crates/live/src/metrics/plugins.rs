//! Plugin durations and evaluation counts.
//!
//! Upstream samples a tenth of the cycles and measures each call. Here every cycle is measured, and
//! Filter and Score over all nodes together: a cycle counts once, with the mean of its calls.

use prometheus::{HistogramVec, IntCounterVec};

use crate::metrics::builder::MetricsBuilder;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::{CycleRecord, PluginStatus};
use kubestep_framework::status::Code;
use kubestep_framework::stopwatch::Spent;

/// Durations of plugins and of extension points.
pub struct PluginMetrics {
    /// By plugin, point and status.
    seconds: HistogramVec,
    /// By point, status and profile.
    point_seconds: HistogramVec,
    /// By plugin, point and profile.
    evaluations: IntCounterVec,
}

impl PluginMetrics {
    /// All counters at zero.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(make: &MetricsBuilder<'_>) -> prometheus::Result<PluginMetrics> {
        Ok(PluginMetrics {
            seconds: make.histograms(
                "plugin_execution_duration_seconds",
                "Time of a call of a plugin",
                &["plugin", "extension_point", "status"],
                (0.000_01, 1.5, 20),
            )?,
            point_seconds: make.histograms(
                "framework_extension_point_duration_seconds",
                "Time of all plugins at an extension point",
                &["extension_point", "status", "profile"],
                (0.000_1, 2.0, 12),
            )?,
            evaluations: make.counters(
                "plugin_evaluation_total",
                "Calls of a plugin that did not skip",
                &["plugin", "extension_point", "profile"],
            )?,
        })
    }

    /// Records plugin durations of a cycle; without a record, of work outside of cycles.
    pub fn spent(&self, record: Option<&CycleRecord>, spent: &[Spent]) {
        for one in spent {
            self.one(record, one);
        }
        for point in points(spent) {
            let of_point = spent.iter().filter(|one| one.point == point);
            let nanos: u64 = of_point.map(|one| one.nanos).sum();
            let answers = record.map(|record| record.answers(point)).unwrap_or_default();
            let status = answers.iter().find(|answer| !agrees(answer)).map(code);
            let status = match point {
                // No plugin reports that there is no node.
                ExtensionPoint::Filter => {
                    let none = record.is_some_and(|record| record.feasible.is_empty());
                    if none { Code::Unschedulable } else { Code::Success }
                }
                _ => status.unwrap_or(Code::Success),
            };
            let profile = record.map(|record| record.profile).unwrap_or_default();
            let labels = [point.name(), status.as_str(), profile.as_str()];
            self.point_seconds.with_label_values(&labels).observe(seconds(nanos));
        }
    }

    fn one(&self, record: Option<&CycleRecord>, one: &Spent) {
        let (point, plugin) = (one.point, one.plugin);
        let answers = record.map(|record| record.answers(point)).unwrap_or_default();
        let answer = answers.iter().find(|answer| answer.plugin == plugin);
        let calls = one.nodes.max(one.turns).max(1);
        let seen = |status: Code| {
            let labels = [plugin.as_str(), point.name(), status.as_str()];
            self.seconds.with_label_values(&labels).observe(seconds(one.nanos / calls));
        };
        match answer {
            Some(answer) => seen(code(answer)),
            None => {
                if one.rejected < calls {
                    seen(Code::Success);
                }
                if one.rejected > 0 {
                    seen(Code::Unschedulable);
                }
            }
        }
        let counted = match point {
            ExtensionPoint::Filter | ExtensionPoint::Score => one.nodes,
            ExtensionPoint::PreFilter | ExtensionPoint::PreScore => {
                u64::from(answer.is_some_and(|answer| code(answer) != Code::Skip))
            }
            _ => return,
        };
        let profile = record.map(|record| record.profile).unwrap_or_default();
        let labels = [plugin.as_str(), point.name(), profile.as_str()];
        self.evaluations.with_label_values(&labels).inc_by(counted);
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn code(answer: &PluginStatus) -> Code {
    answer.status.code()
}

fn agrees(answer: &PluginStatus) -> bool {
    matches!(code(answer), Code::Success | Code::Skip)
}

/// The extension points in `spent`, without duplicates.
fn points(spent: &[Spent]) -> Vec<ExtensionPoint> {
    let mut points: Vec<ExtensionPoint> = Vec::new();
    for one in spent {
        if !points.contains(&one.point) {
            points.push(one.point);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::status::Status;
    use prometheus::Registry;

    fn spent(point: ExtensionPoint, plugin: &str, nodes: u64, rejected: u64) -> Spent {
        Spent { point, plugin: plugin.into(), turns: 1, nanos: 8_000, nodes, rejected }
    }

    #[test]
    fn a_cycle_is_reported_by_plugin_and_by_point() {
        let registry = Registry::new();
        let plugins = PluginMetrics::new(&MetricsBuilder { registry: &registry }).unwrap();
        let skipped = PluginStatus::new("NodePorts".into(), Status::skip());
        let record = CycleRecord {
            profile: "p".into(),
            pre_filter: vec![skipped].into(),
            ..CycleRecord::default()
        };
        let list = [
            spent(ExtensionPoint::PreFilter, "NodePorts", 0, 0),
            spent(ExtensionPoint::Filter, "NodeName", 4, 1),
        ];
        plugins.spent(Some(&record), &list);
        let text = String::from_utf8(super::super::text(&registry)).unwrap();
        for line in [
            "scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"NodeName\",profile=\"p\"} 4",
            "scheduler_plugin_evaluation_total{extension_point=\"PreFilter\",plugin=\"NodePorts\",profile=\"p\"} 0",
            "scheduler_plugin_execution_duration_seconds_bucket{extension_point=\"Filter\",plugin=\"NodeName\",status=\"Unschedulable\",le=\"0.00001\"} 1",
            "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Filter\",profile=\"p\",status=\"Unschedulable\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
        }
    }
}
