//! Build information: the embedded scheduler and the program around it.

use prometheus::{Opts, Registry};

use super::builder::gauges;
use crate::{SCHEDULER, SCHEDULER_MINOR};

/// The oldest version that the API can be emulated as.
const MIN_COMPATIBILITY: &str = "1.35";

/// Registers the metrics that do not change.
///
/// # Errors
/// Prometheus rejects a metric's name or labels.
pub fn register(registry: &Registry) -> prometheus::Result<()> {
    let (major, minor) = SCHEDULER_MINOR.split_once('.').unwrap_or((SCHEDULER_MINOR, ""));
    let version = format!("v{SCHEDULER}+kubestep-{}", env!("CARGO_PKG_VERSION"));
    let platform = platform();
    let labels = [
        ("build_date", ""),
        ("compiler", "rustc"),
        ("git_commit", ""),
        ("git_tree_state", ""),
        ("git_version", version.as_str()),
        ("go_version", ""),
        ("major", major),
        ("minor", minor),
        ("platform", platform.as_str()),
    ];
    constant(registry, "kubernetes_build_info", "The version of the embedded scheduler", &labels)?;
    let labels = [
        ("binary", SCHEDULER),
        ("component", "kube"),
        ("emulation", SCHEDULER_MINOR),
        ("min_compat", MIN_COMPATIBILITY),
    ];
    constant(
        registry,
        "version_info",
        "The Kubernetes version that the scheduler emulates",
        &labels,
    )
}

/// A gauge that is always 1, with labels.
fn constant(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[(&str, &str)],
) -> prometheus::Result<()> {
    let (names, values): (Vec<&str>, Vec<&str>) = labels.iter().copied().unzip();
    gauges(registry, Opts::new(name, help), &names)?.with_label_values(&values).set(1);
    Ok(())
}

/// The platform as Go names it: `linux/amd64`.
fn platform() -> String {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{machine}", std::env::consts::OS)
}
