//! What the process takes of its machine, under the names that all Prometheus clients use, read
//! from Linux's `/proc` when somebody scrapes. Elsewhere there is nothing to read, and so nothing
//! is told.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Opts};

/// Bytes of a page; what is neither 4 KiB nor known is not told here.
const PAGE: f64 = 4_096.0;
/// Ticks of a second in `/proc`: the same on all of Linux that this runs on.
const TICKS: f64 = 100.0;

const NAMES: [(&str, &str); 9] = [
    ("process_cpu_seconds_total", "CPU time spent"),
    ("process_max_fds", "Files that may be open at once"),
    ("process_network_receive_bytes_total", "Bytes received over the network"),
    ("process_network_transmit_bytes_total", "Bytes sent over the network"),
    ("process_open_fds", "Files that are open"),
    ("process_resident_memory_bytes", "Memory in use"),
    ("process_start_time_seconds", "When the process began"),
    ("process_virtual_memory_bytes", "Memory that is mapped"),
    ("process_virtual_memory_max_bytes", "Memory that may be mapped; -1: any"),
];

/// See the module.
pub struct Process {
    gauges: Vec<Gauge>,
}

impl Process {
    /// Reads nothing yet.
    ///
    /// # Errors
    /// A metric's name is not what Prometheus takes.
    pub fn new() -> prometheus::Result<Process> {
        let gauge = |(name, help): (&str, &str)| Gauge::with_opts(Opts::new(name, help));
        Ok(Process { gauges: NAMES.into_iter().map(gauge).collect::<Result<_, _>>()? })
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().flat_map(|gauge| gauge.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(values) = values() else { return Vec::new() };
        let known = self.gauges.iter().zip(values).filter_map(|(gauge, value)| {
            gauge.set(value?);
            Some(gauge.collect())
        });
        known.flatten().collect()
    }
}

/// In the order of [`NAMES`].
fn values() -> Option<[Option<f64>; 9]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name may hold anything, but ends with the last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let (received, sent) = network();
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    Some([
        field(11).zip(field(12)).map(|(user, system)| (user + system) / TICKS),
        limit(&limits, "Max open files"),
        received,
        sent,
        open,
        field(21).map(|pages| pages * PAGE),
        field(19).zip(booted()).map(|(ticks, booted)| booted + ticks / TICKS),
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

/// When the machine was started.
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
    fn memory_and_files_are_told() {
        let families = Process::new().unwrap().collect();
        let value = |name: &str| {
            let family = families.iter().find(|family| family.name() == name).unwrap();
            family.get_metric()[0].get_gauge().get_value()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.6e9);
        assert_eq!(families.len(), NAMES.len());
    }

    #[test]
    fn a_limit_may_be_none() {
        let limits = "Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1_024.0));
        assert_eq!(limit(limits, "Max address space"), Some(-1.0));
    }
}
