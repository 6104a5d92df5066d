//! Written expectations, to test a configuration or a cluster: which pod gets which node, which pod
//! stays pending and which plugin rejects it, what a plugin's verdict on a node is.
//!
//! A [`Test`] is a document of kind `Test`; [`check`] compares its expectations with a session.

mod check;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_yaml::Value;

use kubestep_api::yaml;

pub use check::{UnmetExpectation, check, rejected_by};

/// The `apiVersion` of tests.
pub const API_VERSION: &str = "kubestep/v1";
/// The `kind` of tests.
pub const KIND: &str = "Test";

/// A test: a cluster, edits of it, and the expected result.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Test {
    /// Always `kubestep/v1`; anything else is [`TestError::OtherKind`].
    pub api_version: String,
    /// Always `Test`.
    pub kind: String,
    /// A short description; the file's name if absent.
    #[serde(default)]
    pub name: Option<String>,
    /// The cluster: files and folders, relative to the folder of the test.
    pub input: Vec<PathBuf>,
    /// The scheduler's configuration, relative to the same folder.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// The version of kube-scheduler, as `--kube-version` takes it.
    #[serde(default, deserialize_with = "version")]
    pub kube_version: Option<String>,
    /// The version whose gates it has, as `--emulated-version` takes it.
    #[serde(default, deserialize_with = "version")]
    pub emulated_version: Option<String>,
    /// Feature gates, as `--feature-gates` takes them.
    #[serde(default)]
    pub feature_gates: Option<String>,
    /// Replay a recording up to this time: an absolute time, or a duration after its lists.
    #[serde(default)]
    pub until: Option<String>,
    /// Edits to apply first, one per line, as for `--edit`.
    #[serde(default)]
    pub edits: Vec<String>,
    /// How many timers may expire when no pod is ready to be scheduled, such as the ends of
    /// backoffs.
    #[serde(default)]
    pub timers: usize,
    /// What has to hold after the run.
    pub expect: Expect,
}

/// A version, which YAML takes for a number unless it is quoted.
fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) if ["1.3", "1.4"].contains(&number.to_string().as_str()) => {
            Err(D::Error::custom("quote the version: YAML reads 1.30 as 1.3"))
        }
        Value::Number(number) => Ok(Some(number.to_string())),
        other => {
            Err(D::Error::custom(format!("a version such as 1.36 is expected, not {other:?}")))
        }
    }
}

/// What has to hold after a run; empty parts are not checked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// By pod: `namespace/name`, or just the name for `default`; `*` matches any text.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub pods: IndexMap<String, PodExpect>,
    /// By Filter plugin, in the last cycle of a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<VerdictExpect>,
    /// The number of pods without a node at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<usize>,
}

/// The expected state of one or several pods; absent fields are not checked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodExpect {
    /// The node it gets; `*` matches any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Whether it has no node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<bool>,
    /// Whether a plugin holds it at Permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<bool>,
    /// Whether it was deleted, for example preempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
    /// The plugins that rejected it last, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<Vec<String>>,
    /// A part of its last cycle's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node nominated for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominated: Option<String>,
    /// The number of pods that match the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// The expected verdict of a Filter plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerdictExpect {
    /// The pod: `namespace/name`, or just the name for `default`.
    pub pod: String,
    /// Name of the node.
    pub node: String,
    /// Name of the plugin.
    pub plugin: String,
    /// Whether it rejects the node.
    pub rejects: bool,
    /// A part of its reason, if it rejects the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a document is not a test.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TestError {
    /// A field is unknown or has the wrong type.
    #[error("{0}")]
    Field(String),
    /// The same in the expectations of a bundle.
    #[error("expect: {0}")]
    Expect(String),
    /// It is an object of another kind.
    #[error("this is a {kind} of {version}, not a {KIND} of {API_VERSION}")]
    OtherKind {
        /// The document's `kind`.
        kind: String,
        /// The document's `apiVersion`.
        version: String,
    },
    /// `expect` is empty, so the test could not fail.
    #[error("expect: nothing is expected, so nothing would be tested")]
    Empty,
}

impl TestError {
    fn field(error: impl std::fmt::Display) -> TestError {
        TestError::Field(error.to_string())
    }

    fn expect(error: impl std::fmt::Display) -> TestError {
        TestError::Expect(error.to_string())
    }
}

/// Parses a test.
///
/// # Errors
/// A field is unknown or has the wrong type, the kind is another one, or nothing is expected.
pub fn read(document: &Value) -> Result<Test, TestError> {
    let test: Test = serde_path_to_error::deserialize(document).map_err(TestError::field)?;
    if test.api_version != API_VERSION || test.kind != KIND {
        let (version, kind) = (&test.api_version, &test.kind);
        return Err(TestError::OtherKind { kind: kind.clone(), version: version.clone() });
    }
    is_something(test.expect.clone())?;
    Ok(test)
}

/// Parses the expectations of a bundle, JSON or YAML.
///
/// # Errors
/// As [`read`].
pub fn read_expect(text: &str) -> Result<Expect, TestError> {
    let reader = yaml::documents(text).map_err(TestError::expect)?;
    let expect = serde_path_to_error::deserialize(reader);
    is_something(expect.map_err(TestError::expect)?)
}

fn is_something(expect: Expect) -> Result<Expect, TestError> {
    match expect.pods.is_empty() && expect.verdicts.is_empty() && expect.pending.is_none() {
        true => Err(TestError::Empty),
        false => Ok(expect),
    }
}
