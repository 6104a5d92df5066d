//! Reports: the same answers as in the debugger, as text or JSON.

pub mod bench;
pub mod config;
pub mod cut;
pub mod diff;
pub mod disruption;
pub mod fixes;
pub mod groups;
pub mod new_nodes;
pub mod outcome;
pub mod outline;
pub mod page;
pub mod replay;
pub mod rollout;
pub mod run;
pub mod survive;
pub mod tested;
pub mod timings;
pub mod upgrade;
pub mod usage;
pub mod verdict;
pub mod verdict_groups;
pub mod versions;
pub mod why;

use serde_json::Value;

use kubestep_config::FeatureGates;

/// Adds the version of kube-scheduler that decided to a document: `kubeVersion`, and
/// `emulatedVersion` where it emulates another one.
pub fn add_version(document: &mut Value, gates: FeatureGates) {
    document["kubeVersion"] = gates.version().to_string().into();
    if gates.emulated() != gates.version() {
        document["emulatedVersion"] = gates.emulated().to_string().into();
    }
}

/// The same as properties of a suite in JUnit.
fn junit_version(gates: FeatureGates) -> String {
    let property = |name: &str, version: String| {
        format!("      <property name=\"{name}\" value=\"{version}\"/>\n")
    };
    let mut text = property("kubeVersion", gates.version().to_string());
    if gates.emulated() != gates.version() {
        text += &property("emulatedVersion", gates.emulated().to_string());
    }
    format!("    <properties>\n{text}    </properties>\n")
}
