//! Reports: the same answers as in the debugger, as text or JSON.

pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod cut;
pub(crate) mod diff;
pub(crate) mod disruption;
pub mod fixes;
pub(crate) mod groups;
pub(crate) mod new_nodes;
pub mod outcome;
pub(crate) mod outline;
pub(crate) mod page;
pub(crate) mod pending;
pub(crate) mod replay;
pub(crate) mod rollout;
pub(crate) mod run;
pub(crate) mod survive;
pub(crate) mod tested;
pub(crate) mod timings;
pub(crate) mod upgrade;
pub(crate) mod usage;
pub(crate) mod verdict;
pub(crate) mod verdict_groups;
pub(crate) mod versions;
pub mod why;

use serde_json::Value;

use kubestep_config::FeatureGates;

/// How many of `total` lines are listed: at most `most`, or one more if that takes no more lines
/// than "and 1 more".
pub(crate) fn lines_shown(total: usize, most: usize) -> usize {
    if total == most.saturating_add(1) { total } else { total.min(most) }
}

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_line_is_shown_in_place_of_a_count_of_one() {
        let shown = [2, 3, 4, 5].map(|total| super::lines_shown(total, 3));
        assert_eq!(shown, [2, 3, 4, 3]);
        assert_eq!(super::lines_shown(7, usize::MAX), 7);
    }
}
