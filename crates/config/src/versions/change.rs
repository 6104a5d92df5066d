//! The differences between two versions, each of which can be applied on its own.

use std::fmt;

use super::{KubeVersion, Switch};
use crate::features::{Feature, FeatureGates, GateSpec};

/// One difference between two versions: a row of the table of switches, or the new default of a
/// gate. Default plugins, extension points, weights and arguments follow from these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VersionChange {
    /// A change that no gate governs.
    Switch(Switch),
    /// A gate whose default differs; a version without the gate counts as off.
    Gate(Feature),
}

impl VersionChange {
    /// The name of the switch or gate.
    pub const fn name(self) -> &'static str {
        match self {
            VersionChange::Switch(switch) => switch.name(),
            VersionChange::Gate(gate) => gate.name(),
        }
    }

    /// What it changes, in one sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            VersionChange::Switch(switch) => switch.sentence(),
            VersionChange::Gate(gate) => gate.effect(),
        }
    }

    /// Whether kubestep decides otherwise with the difference than without it.
    pub fn is_decided(self) -> bool {
        match self {
            VersionChange::Switch(switch) => switch.is_decided(),
            VersionChange::Gate(_) => true,
        }
    }

    /// `gates` with this difference as it is in `other`, and all others left alone.
    pub fn applied(self, gates: FeatureGates, other: FeatureGates) -> FeatureGates {
        match self {
            VersionChange::Switch(switch) => gates.with_switch(switch, other.has(switch)),
            VersionChange::Gate(gate) => gates.with(gate, other.enabled(gate)),
        }
    }
}

/// A gate whose stage, default or lock differs between two versions. `None`: that version does not
/// have the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateChange {
    /// The gate that differs.
    pub gate: Feature,
    /// The gate in the first version.
    pub from: Option<GateSpec>,
    /// The gate in the second version.
    pub to: Option<GateSpec>,
}

impl GateChange {
    /// Whether another value is the default; a version without the gate counts as off.
    pub(crate) fn changes_default(&self) -> bool {
        let on = |spec: Option<GateSpec>| spec.is_some_and(|spec| spec.default);
        on(self.from) != on(self.to)
    }
}

/// The gates that differ between two versions, in the order of the table.
pub(crate) fn gate_changes(from: KubeVersion, to: KubeVersion) -> Vec<GateChange> {
    let pair = |gate: Feature| GateChange { gate, from: gate.spec(from), to: gate.spec(to) };
    Feature::all().map(pair).filter(|change| change.from != change.to).collect()
}

impl fmt::Display for VersionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What differs between the defaults of two versions, in the order of the tables: switches, then
/// gates. Applying all of them to the first version gives decisions of the second.
pub fn changes(from: KubeVersion, to: KubeVersion) -> Vec<VersionChange> {
    differences(FeatureGates::of(from), FeatureGates::of(to))
}

/// What differs between two resolved versions, with gates as they are set.
pub fn differences(from: FeatureGates, to: FeatureGates) -> Vec<VersionChange> {
    let switches = Switch::all().filter(|switch| from.has(*switch) != to.has(*switch));
    let gates = Feature::all().filter(|gate| from.enabled(*gate) != to.enabled(*gate));
    switches.map(VersionChange::Switch).chain(gates.map(VersionChange::Gate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_changes_together_lead_from_one_version_to_the_other() {
        for from in KubeVersion::all() {
            for to in KubeVersion::all() {
                let (start, goal) = (FeatureGates::of(from), FeatureGates::of(to));
                let changed = changes(from, to);
                assert_eq!(changed.is_empty(), from == to);
                let end = changed.iter().fold(start, |gates, change| change.applied(gates, goal));
                assert_eq!(differences(end, goal), [], "{from} to {to}");
            }
        }
    }

    #[test]
    fn gates_change_in_stage_default_or_lock() {
        let version = |minor| KubeVersion::of_minor(minor).unwrap();
        let of = |gate: Feature, from, to| {
            let changes = gate_changes(version(from), version(to));
            changes.into_iter().find(|change| change.gate == gate)
        };
        let locked = of(Feature::DynamicResourceAllocation, 34, 35).unwrap();
        assert!(!locked.changes_default() && locked.to.unwrap().locked);
        assert!(of(Feature::DynamicResourceAllocation, 33, 34).unwrap().changes_default());
        assert!(of(Feature::GangScheduling, 36, 37).unwrap().to.is_none());
        assert_eq!(of(Feature::PodSchedulingReadiness, 31, 37), None);
    }

    #[test]
    fn every_change_has_a_name_of_its_own_and_a_sentence() {
        let (oldest, newest) = (KubeVersion::OLDEST, KubeVersion::NEWEST);
        let mut names: Vec<_> = changes(oldest, newest).iter().map(|c| c.name()).collect();
        assert!(changes(oldest, newest).iter().all(|change| change.sentence().ends_with('.')));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
