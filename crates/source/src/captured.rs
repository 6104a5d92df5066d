//! What a capture records about itself: when and of which server it was made, and what is missing.

use serde::{Deserialize, Serialize};

use super::item::CaptureField;
use kubestep_api::Leases;

/// A capture's own description; empty for any other input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// When it was made, in RFC 3339.
    pub at: String,
    /// The version of the API server.
    pub server_version: String,
    /// The version of the scheduler, where it was named when the capture was made.
    pub kube_version: Option<String>,
    /// The version that the scheduler emulates, in the format of `--emulated-version`.
    pub emulated_version: Option<String>,
    /// The kinds that could not be captured.
    pub missing: Vec<MissingKind>,
    /// The feature gates of the scheduler, in the format of `--feature-gates`.
    pub feature_gates: Option<String>,
    /// The leases of the cluster's components.
    pub leases: Leases,
}

/// A kind that a capture or recording lacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingKind {
    /// The plural, such as `csinodes`, followed by ` in NAMESPACE` if only that namespace is
    /// missing.
    pub kind: String,
    /// Why it is missing.
    pub reason: String,
    /// What is uncertain without it.
    pub uncertain: String,
}

impl Captured {
    /// Stores one field. A malformed field is ignored: it only describes the objects.
    pub(super) fn take(&mut self, note: CaptureField, text: &str) {
        let value: serde_json::Value = kubestep_api::yaml::from_str(text).unwrap_or_default();
        let words = || value.as_str().unwrap_or_default().to_owned();
        let named = || Some(words()).filter(|words| !words.is_empty());
        match note {
            CaptureField::CapturedAt => self.at = words(),
            CaptureField::ServerVersion => self.server_version = words(),
            CaptureField::KubeVersion => self.kube_version = named(),
            CaptureField::EmulatedVersion => self.emulated_version = named(),
            CaptureField::FeatureGates => self.feature_gates = named(),
            CaptureField::Leases => {
                self.leases.leases = serde_json::from_value(value).unwrap_or_default()
            }
            CaptureField::LeaseCandidates => {
                self.leases.candidates = serde_json::from_value(value).unwrap_or_default();
            }
            CaptureField::Missing => {
                self.missing = serde_json::from_value(value).unwrap_or_default()
            }
        }
    }

    /// Warnings for the user, one sentence each.
    pub(super) fn sentences(&self) -> Vec<String> {
        let one = |missing: &MissingKind| {
            format!(
                "the capture has no {} ({}): {}",
                missing.kind, missing.reason, missing.uncertain
            )
        };
        self.missing.iter().map(one).collect()
    }
}
