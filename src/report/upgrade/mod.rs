//! What an upgrade of Kubernetes changes for the pods of a cluster, and what of the input the newer
//! scheduler rejects. One type, and one file per output format.

pub mod json;
pub mod junit;
pub mod text;

use crate::report::cut::CutRuns;
use kubestep_config::versions::{Evidence, Switch};
use kubestep_config::{FeatureGateError, FeatureGates};
use kubestep_debug::diff::Pair;
use kubestep_debug::upgrade::Upgrade;

/// The report on an upgrade.
#[derive(Clone, PartialEq, Debug)]
pub struct UpgradeReport {
    /// The releases, as they were named: `1.33`, `v1.36.1`.
    pub releases: Pair<String>,
    /// What of the input the second version rejects or no longer has.
    pub rejected: Vec<RejectedInput>,
    /// What changes for the pods; `None` if the second version does not start with the
    /// configuration.
    pub upgrade: Option<Upgrade>,
    /// Changes that kubestep lists only: it decides as the newer version in both.
    pub listed: Vec<Switch>,
    /// The runs that were ended before they were complete.
    pub cut: CutRuns,
}

/// Something in the input that the second version rejects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RejectedInput {
    pub kind: RejectedKind,
    /// Which: a gate, a field of the configuration, an API version with its kind.
    pub subject: String,
    /// Why, and what to do, in a sentence.
    pub reason: String,
}

impl RejectedInput {
    /// A gate that was set and that the second version does not take.
    pub fn gate(error: &FeatureGateError) -> RejectedInput {
        let subject = match error {
            FeatureGateError::Absent { feature, .. }
            | FeatureGateError::Locked { feature, .. }
            | FeatureGateError::Dependency { feature, .. } => feature.name().to_owned(),
            FeatureGateError::NoValue(name)
            | FeatureGateError::BadValue { name, .. }
            | FeatureGateError::Unknown { name, .. } => name.clone(),
        };
        RejectedInput { kind: RejectedKind::FeatureGate, subject, reason: error.to_string() }
    }
}

/// Inputs that the newer version does not accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RejectedKind {
    /// A feature gate: kube-scheduler does not start with it.
    FeatureGate,
    /// A field of the configuration: kube-scheduler does not start with it.
    Configuration,
    /// An API version of objects, which the API server does not serve.
    ApiVersion,
}

impl RejectedKind {
    /// The identifier in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            RejectedKind::FeatureGate => "featureGate",
            RejectedKind::Configuration => "configuration",
            RejectedKind::ApiVersion => "apiVersion",
        }
    }

    /// In words, for text and JSON.
    pub const fn describe(self) -> &'static str {
        match self {
            RejectedKind::FeatureGate => "feature gate",
            RejectedKind::Configuration => "configuration",
            RejectedKind::ApiVersion => "API version",
        }
    }
}

impl UpgradeReport {
    /// Whether the upgrade changes nothing for the pods, and nothing is rejected.
    pub fn is_empty(&self) -> bool {
        self.rejected.is_empty() && self.upgrade.as_ref().is_some_and(Upgrade::is_empty)
    }

    /// A line for each version whose run was ended before it was complete.
    pub fn ended(&self) -> Vec<String> {
        self.cut.lines(Pair { a: &self.releases.a, b: &self.releases.b })
    }
}

/// The changes between two schedulers that kubestep does not decide by.
pub fn listed(from: FeatureGates, to: FeatureGates) -> Vec<Switch> {
    let differs = |switch: &Switch| from.has(*switch) != to.has(*switch);
    let not_decided =
        |switch: &Switch| matches!(switch.evidence(), Evidence::Listed | Evidence::Announced);
    Switch::all().filter(differs).filter(not_decided).collect()
}
