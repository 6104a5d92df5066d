//! What a capture says about itself: when and of what it was made, and what is not in it.

use serde::{Deserialize, Serialize};

use super::item::Note;

/// What a capture says about itself; empty for any other input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// When it was made, RFC 3339.
    pub at: String,
    /// The API server's version.
    pub server_version: String,
    /// The kinds that are not in it.
    pub missing: Vec<MissingKind>,
    /// The feature gates to decide with, as for `--feature-gates`.
    pub feature_gates: Option<String>,
}

/// A kind that a capture does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingKind {
    /// The plural, `csinodes`, and the namespace, if it is about one.
    pub kind: String,
    /// Why it is not there.
    pub reason: String,
    /// What cannot be known without it.
    pub uncertain: String,
}

impl Captured {
    /// Takes one field over. What is not as expected says nothing: it is only about the objects.
    pub(super) fn take(&mut self, note: Note, text: &str) {
        let value: serde_json::Value = kubestep_api::yaml::from_str(text).unwrap_or_default();
        let words = || value.as_str().unwrap_or_default().to_owned();
        match note {
            Note::CapturedAt => self.at = words(),
            Note::ServerVersion => self.server_version = words(),
            Note::FeatureGates => self.feature_gates = Some(words()).filter(|w| !w.is_empty()),
            Note::Missing => self.missing = serde_json::from_value(value).unwrap_or_default(),
        }
    }

    /// What a reader should know.
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
