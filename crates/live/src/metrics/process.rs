//! Resource usage of the process under the names common to all Prometheus clients, read from
//! Linux's `/proc` at each scrape. On other systems these metrics are absent. The `process` feature
//! of the prometheus crate lacks the network and the memory limit.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge, Opts};
use rustix::param::{clock_ticks_per_second, page_size};

const NAMES: [(&str, &str); 9] = [
    ("process_cpu_seconds_total", "CPU time spent"),
    ("process_max_fds", "Limit of open files"),
    ("process_network_receive_bytes_total", "Bytes received over the network"),
    ("process_network_transmit_bytes_total", "Bytes sent over the network"),
    ("process_open_fds", "Open files"),
    ("process_resident_memory_bytes", "Memory in use"),
    ("process_start_time_seconds", "Start time of the process"),
    ("process_virtual_memory_bytes", "Virtual memory"),
    ("process_virtual_memory_max_bytes", "Limit of virtual memory; -1: unlimited"),
];

/// The `process_*` series: CPU time, memory, open files, network.
pub struct Process {
    series: Vec<ProcessSeries>,
}

enum ProcessSeries {
    Counter(Counter),
    Gauge(Gauge),
}

impl ProcessSeries {
    fn new(name: &str, help: &str) -> prometheus::Result<ProcessSeries> {
        let opts = Opts::new(name, help);
        Ok(match name.ends_with("_total") {
            true => ProcessSeries::Counter(Counter::with_opts(opts)?),
            false => ProcessSeries::Gauge(Gauge::with_opts(opts)?),
        })
    }

    fn collector(&self) -> &dyn Collector {
        match self {
            ProcessSeries::Counter(counter) => counter,
            ProcessSeries::Gauge(gauge) => gauge,
        }
    }

    fn set(&self, value: f64) {
        match self {
            ProcessSeries::Counter(counter) => {
                counter.reset();
                counter.inc_by(value);
            }
            ProcessSeries::Gauge(gauge) => gauge.set(value),
        }
    }
}

impl Process {
    /// Reads nothing yet.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name.
    pub fn new() -> prometheus::Result<Process> {
        let series = NAMES.into_iter().map(|(name, help)| ProcessSeries::new(name, help));
        Ok(Process { series: series.collect::<Result<_, _>>()? })
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.series.iter().flat_map(|series| series.collector().desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(values) = values() else { return Vec::new() };
        let known = self.series.iter().zip(values).filter_map(|(series, value)| {
            series.set(value?);
            Some(series.collector().collect())
        });
        known.flatten().collect()
    }
}

/// The values in the order of [`NAMES`].
fn values() -> Option<[Option<f64>; 9]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may contain any character, so fields are counted after the last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let (page, ticks) = (page_size() as f64, clock_ticks_per_second() as f64);
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let (received, sent) = network();
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    Some([
        field(11).zip(field(12)).map(|(user, system)| (user + system) / ticks),
        limit(&limits, "Max open files"),
        received,
        sent,
        open,
        field(21).map(|pages| pages * page),
        field(19).zip(booted()).map(|(since, booted)| booted + since / ticks),
        field(20),
        limit(&limits, "Max address space"),
    ])
}

fn limit(limits: &str, name: &str) -> Option<f64> {
    let line = limits.lines().find(|line| line.starts_with(name))?;
    match line[name.len()..].split_whitespace().next()? {
        "unlimited" => Some(-1.0),
        number => number.parse().ok(),
    }
}

/// The boot time, in seconds since 1970.
fn booted() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Bytes received and sent over all interfaces.
fn network() -> (Option<f64>, Option<f64>) {
    let Ok(text) = fs::read_to_string("/proc/self/net/dev") else { return (None, None) };
    let (mut received, mut sent) = (0.0, 0.0);
    for (_, counts) in text.lines().filter_map(|line| line.split_once(':')) {
        let counts: Vec<f64> =
            counts.split_whitespace().filter_map(|count| count.parse().ok()).collect();
        received += counts.first().unwrap_or(&0.0);
        sent += counts.get(8).unwrap_or(&0.0);
    }
    (Some(received), Some(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_and_files_are_reported() {
        let process = Process::new().unwrap();
        let families = process.collect();
        let value = |name: &str| {
            let family = families.iter().find(|family| family.name() == name).unwrap();
            let metric = &family.get_metric()[0];
            metric.get_gauge().get_value() + metric.get_counter().get_value()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.6e9);
        assert_eq!(families.len(), NAMES.len());
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        // A second scrape sets a counter to the present value instead of adding it.
        let again = process.collect();
        let cpu = |families: &[MetricFamily]| {
            let family = families.iter().find(|it| it.name() == "process_cpu_seconds_total");
            family.unwrap().get_metric()[0].get_counter().get_value()
        };
        assert!(cpu(&again) >= cpu(&families) && cpu(&again) < cpu(&families) + 60.0);
    }

    #[test]
    fn a_limit_may_be_none() {
        let limits = "Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1_024.0));
        assert_eq!(limit(limits, "Max address space"), Some(-1.0));
    }
}
