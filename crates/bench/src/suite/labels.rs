//! Which workloads run: filters by label, as scheduler_perf has them.

/// The default of upstream's benchmarks.
pub const DEFAULT: &str = "performance";

/// A filter by labels: `short`, `+short` (must have it), `-performance` (must not), separated by
/// commas; all of them have to hold. The empty filter takes every workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFilter {
    parts: Vec<(bool, String)>,
}

impl LabelFilter {
    /// Parses `LABEL,+LABEL,-LABEL`: workloads need all but the last sort.
    pub fn new(text: &str) -> LabelFilter {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let part = |part: &str| match part.strip_prefix('-') {
            Some(label) => (false, label.to_owned()),
            None => (true, part.strip_prefix('+').unwrap_or(part).to_owned()),
        };
        LabelFilter { parts: parts.map(part).collect() }
    }

    /// Whether a workload with these labels runs.
    pub fn takes<'a>(&self, labels: impl Iterator<Item = &'a str> + Clone) -> bool {
        self.parts.iter().all(|(wanted, label)| *wanted == labels.clone().any(|own| own == label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_wanted_or_excluded() {
        let takes =
            |filter: &str, labels: &[&str]| LabelFilter::new(filter).takes(labels.iter().copied());
        assert!(takes("", &[]) && takes("", &["short"]));
        assert!(takes("short", &["fast", "short"]) && !takes("short", &["fast"]));
        assert!(takes("integration-test,-performance", &["integration-test"]));
        assert!(!takes("integration-test, -performance", &["integration-test", "performance"]));
        assert!(takes("performance,+short", &["short", "performance"]));
    }
}
