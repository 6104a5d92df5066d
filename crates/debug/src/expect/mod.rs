//! What somebody expects of the scheduler, written down, so that a configuration or a cluster
//! can be tested: which pod gets which node, which stays pending and in whose name, what a
//! plugin says of a node.
//!
//! A [`Test`] is a document of kind `Test`; [`check`] compares its expectations with a session.

mod check;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use kubestep_api::yaml;

pub use check::{Failure, check, rejected_by};

/// The `apiVersion` of tests.
pub const API_VERSION: &str = "kubestep/v1";
/// The `kind` of tests.
pub const KIND: &str = "Test";

/// A test: a cluster, what is done to it, and what is expected then.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Test {
    /// `kubestep/v1`.
    pub api_version: String,
    /// `Test`.
    pub kind: String,
    /// What is tested, in a few words; the file's name if absent.
    #[serde(default)]
    pub name: Option<String>,
    /// The cluster: files and folders, seen from the folder of the test.
    pub input: Vec<PathBuf>,
    /// The scheduler's configuration, seen from there too.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// Feature gates, as `--feature-gates` takes them.
    #[serde(default)]
    pub feature_gates: Option<String>,
    /// Of a recording, up to when: a time, or so long after its lists.
    #[serde(default)]
    pub until: Option<String>,
    /// Changes that are made first, one a line, as `--edit` takes them.
    #[serde(default)]
    pub edits: Vec<String>,
    /// How many timers may run down when no pod can be tried: the ends of backoffs, say.
    #[serde(default)]
    pub timers: usize,
    /// What is expected in the end.
    pub expect: Expect,
}

/// What is expected.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// Of pods, by `namespace/name` or just the name in `default`; `*` stands for any text.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub pods: IndexMap<String, PodExpect>,
    /// Of plugins, in the last cycle of a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<VerdictExpect>,
    /// How many pods have no node in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<usize>,
}

/// What is expected of a pod, or of each of several; what is absent may be anything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodExpect {
    /// The node it gets; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Whether it stays without a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<bool>,
    /// Whether a plugin holds it at Permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<bool>,
    /// Whether it is gone, evicted say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<bool>,
    /// The plugins that rejected it last, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<Vec<String>>,
    /// A part of the message of its last cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node nominated for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominated: Option<String>,
    /// How many pods of that name there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// What is expected of a filter plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerdictExpect {
    /// The pod: `namespace/name`, or the name in `default`.
    pub pod: String,
    /// The node.
    pub node: String,
    /// The plugin.
    pub plugin: String,
    /// Whether it refuses the node.
    pub refuses: bool,
    /// A part of its reason, if it refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A test as it was read back, or what of it is wrong.
///
/// # Errors
/// A field is unknown or of the wrong type, it is of another kind, or nothing is expected.
pub fn read(document: &Value) -> Result<Test, String> {
    let test: Test =
        serde_path_to_error::deserialize(document).map_err(|error| error.to_string())?;
    if test.api_version != API_VERSION || test.kind != KIND {
        let (version, kind) = (&test.api_version, &test.kind);
        return Err(format!("this is a {kind} of {version}, not a {KIND} of {API_VERSION}"));
    }
    is_something(test.expect.clone())?;
    Ok(test)
}

/// The expectations of a bundle, as JSON or YAML.
///
/// # Errors
/// As [`read`].
pub fn read_expect(text: &str) -> Result<Expect, String> {
    let reader = yaml::documents(text).map_err(|error| format!("expect: {error}"))?;
    let expect = serde_path_to_error::deserialize(reader);
    is_something(expect.map_err(|error| format!("expect: {error}"))?)
}

fn is_something(expect: Expect) -> Result<Expect, String> {
    match expect.pods.is_empty() && expect.verdicts.is_empty() && expect.pending.is_none() {
        true => Err("expect: nothing is expected, so nothing would be tested".into()),
        false => Ok(expect),
    }
}
