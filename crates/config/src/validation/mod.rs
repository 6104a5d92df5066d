//! Validates the values of a configuration. All problems are reported together, in upstream's
//! order and with upstream's field paths.
//!
//! Upstream: `pkg/scheduler/apis/config/validation/validation.go`,
//! `staging/src/k8s.io/component-base/config/validation/validation.go`.

mod names;
mod profiles;
mod selectors;

use std::collections::BTreeSet;

use serde_json::Value;

use super::features::FeatureGates;
use super::path::FieldPath;
use super::problem::Problem;
use super::types::{Extender, KubeSchedulerConfiguration, LeaderElectionConfiguration};

/// The problems found so far, in upstream's words for their kinds.
#[derive(Default, Debug)]
pub struct Findings {
    /// The problems so far, in the order found.
    pub problems: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, path: &FieldPath, message: String) {
        self.problems.push(Problem::new(path, message));
    }

    /// The field has a `value` that it must not have; `detail` says why.
    pub fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, detail: &str) {
        self.add(path, format!("Invalid value: {}: {detail}", value.into()));
    }

    /// The field must be given.
    pub fn required(&mut self, path: &FieldPath, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.add(path, format!("Required value{colon}{detail}"));
    }

    /// The field must not be given.
    pub fn forbidden(&mut self, path: &FieldPath, detail: &str) {
        self.add(path, format!("Forbidden: {detail}"));
    }

    /// The `value` was given before.
    pub fn duplicate(&mut self, path: &FieldPath, value: &str) {
        self.add(path, format!("Duplicate value: {value:?}"));
    }

    /// The `value` is none of those that are `supported`.
    pub fn unsupported(&mut self, path: &FieldPath, value: &str, supported: &[&str]) {
        let quoted: Vec<_> = supported.iter().map(|text| format!("{text:?}")).collect();
        let list = quoted.join(", ");
        self.add(path, format!("Unsupported value: {value:?}: supported values: {list}"));
    }

    /// A percentage, 0 to 100.
    pub fn percent(&mut self, path: &FieldPath, value: i32) {
        if !(0..=100).contains(&value) {
            self.invalid(path, value, "not in valid range [0, 100]");
        }
    }

    /// A qualified name, as the keys of labels and the names of resources are: one problem for
    /// each reason why it is none.
    pub fn qualified_name(&mut self, path: &FieldPath, name: &str) {
        for reason in names::qualified_name(name) {
            self.invalid(path, name, &reason);
        }
    }
}

/// All problems of a document that went through defaulting.
pub(super) fn validate(
    document: &KubeSchedulerConfiguration,
    gates: &FeatureGates,
) -> Vec<Problem> {
    let root = FieldPath::root();
    let mut found = Findings::default();
    let burst = document.client_connection.burst;
    if burst < 0 {
        let path = root.field("clientConnection").field("burst");
        found.invalid(&path, burst, "must be non-negative");
    }
    leader_election(&mut found, &document.leader_election, &root.field("leaderElection"));
    let parallelism = document.parallelism;
    if parallelism <= 0 {
        let path = root.field("parallelism");
        found.invalid(&path, parallelism, "should be an integer value greater than zero");
    }
    profiles::validate(&mut found, &document.profiles, &root.field("profiles"), gates);
    let path = root.field("percentageOfNodesToScore");
    percentage(&mut found, &path, document.percentage_of_nodes_to_score);
    backoff(&mut found, document);
    extenders(&mut found, &document.extenders, &root.field("extenders"));
    found.problems
}

/// Nothing is checked without leader election.
fn leader_election(found: &mut Findings, config: &LeaderElectionConfiguration, path: &FieldPath) {
    if !config.leader_elect {
        return;
    }
    let durations = [
        ("leaseDuration", config.lease_duration),
        ("renewDeadline", config.renew_deadline),
        ("retryPeriod", config.retry_period),
    ];
    for (name, duration) in durations {
        if duration.nanos <= 0 {
            found.invalid(&path.field(name), duration.to_string(), "must be greater than zero");
        }
    }
    if config.lease_duration <= config.renew_deadline {
        let detail = "must be greater than `RenewDeadline`";
        found.invalid(&path.field("leaseDuration"), config.renew_deadline.to_string(), detail);
    }
    let texts = [
        ("resourceLock", &config.resource_lock),
        ("resourceNamespace", &config.resource_namespace),
        ("resourceName", &config.resource_name),
    ];
    for (name, _) in texts.iter().filter(|(_, text)| text.is_empty()) {
        found.required(&path.field(name), "");
    }
    if config.resource_lock != "leases" {
        let detail = "resourceLock value must be \"leases\"";
        found.invalid(&path.field("resourceLock"), config.resource_lock.as_str(), detail);
    }
}

fn percentage(found: &mut Findings, path: &FieldPath, value: Option<i32>) {
    if let Some(value) = value.filter(|value| !(0..=100).contains(value)) {
        found.invalid(path, value, "not in valid range [0-100]");
    }
}

fn backoff(found: &mut Findings, document: &KubeSchedulerConfiguration) {
    let root = FieldPath::root();
    let initial = document.pod_initial_backoff_seconds;
    if initial <= 0 {
        found.invalid(&root.field("podInitialBackoffSeconds"), initial, "must be greater than 0");
    }
    let max = document.pod_max_backoff_seconds;
    if max < initial {
        let detail = "must be greater than or equal to PodInitialBackoffSeconds";
        found.invalid(&root.field("podMaxBackoffSeconds"), max, detail);
    }
}

fn extenders(found: &mut Findings, extenders: &[Extender], path: &FieldPath) {
    let mut managed = BTreeSet::new();
    for (i, extender) in extenders.iter().enumerate() {
        let path = path.index(i);
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let detail = "must have a positive weight applied to it";
            found.invalid(&path.field("weight"), extender.weight, detail);
        }
        for (j, resource) in extender.managed_resources.iter().enumerate() {
            let path = path.field("managedResources").index(j).field("name");
            extended_resource(found, &path, &resource.name);
            if !managed.insert(resource.name) {
                let detail = "duplicate extender managed resource name";
                found.invalid(&path, resource.name.as_str(), detail);
            }
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        let value = format!("found {binders} extenders implementing bind");
        found.invalid(path, value, "only one extender can implement bind");
    }
}

fn extended_resource(found: &mut Findings, path: &FieldPath, name: &str) {
    let reasons = names::qualified_name(name);
    for reason in &reasons {
        found.invalid(path, name, reason);
    }
    if reasons.is_empty() && !names::is_extended_resource(name) {
        found.invalid(path, name, "is an invalid extended resource name");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_document_reports_what_it_lacks() {
        let mut document = crate::defaults::document(&FeatureGates::default());
        document.profiles.clear();
        document.leader_election.resource_lock.clear();
        let texts: Vec<_> =
            validate(&document, &FeatureGates::default()).iter().map(Problem::to_string).collect();
        assert_eq!(
            texts,
            [
                "leaderElection.resourceLock: Required value",
                "leaderElection.resourceLock: Invalid value: \"\": resourceLock value must be \"leases\"",
                "profiles: Required value",
            ]
        );
    }
}
