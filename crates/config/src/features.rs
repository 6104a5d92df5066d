//! The feature gates of Kubernetes 1.36 that affect the scheduler, with their stage, default and
//! dependencies.
//!
//! Upstream: `pkg/features/kube_features.go` (table and dependencies) and
//! `staging/src/k8s.io/component-base/featuregate/feature_gate.go` (parsing).

use std::fmt;

use thiserror::Error;

use super::suggest::closest;

/// How mature a feature is in Kubernetes 1.36.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Off by default; may be removed.
    Alpha,
    /// Usually on by default.
    Beta,
    /// Generally available.
    Ga,
}

impl Stage {
    /// The stage as upstream writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Ga => "GA",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

struct Spec {
    feature: Feature,
    name: &'static str,
    stage: Stage,
    default: bool,
    locked: bool,
    needs: &'static [Feature],
    effect: &'static str,
}

macro_rules! features {
    ($($name:ident $stage:ident $default:ident $locked:ident [$($need:ident)*] $effect:literal)*) => {
        /// A feature gate.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Feature { $(#[doc = $effect] $name,)* }

        /// One row for each gate, in the order of the enum.
        const SPECS: &[Spec] = &[$(Spec {
            feature: Feature::$name,
            name: stringify!($name),
            stage: Stage::$stage,
            default: features!(@$default),
            locked: features!(@$locked),
            needs: &[$(Feature::$need),*],
            effect: $effect,
        },)*];
    };
    (@on) => { true };
    (@off) => { false };
    (@locked) => { true };
    (@free) => { false };
}

features! {
    DynamicResourceAllocation Ga on locked [] "Resource claims, device classes and the DynamicResources plugin."
    DRAAdminAccess Ga on locked [DynamicResourceAllocation] "Admin access requests, which do not consume devices."
    DRAPrioritizedList Ga on free [DynamicResourceAllocation] "Requests with alternatives (firstAvailable), scored by the alternative used."
    DRAExtendedResource Beta on free [DynamicResourceAllocation] "Extended resources provided by device classes."
    DRAConsumableCapacity Beta on free [DynamicResourceAllocation] "Devices shared by capacity."
    DRADeviceTaints Beta on free [DynamicResourceAllocation] "Tainted devices are only for claims that tolerate them."
    DRADeviceBindingConditions Beta on free [DynamicResourceAllocation DRAResourceClaimDeviceStatus] "PreBind waits until devices are ready to be bound."
    DRAResourceClaimDeviceStatus Beta on free [] "Devices report their status in the claim."
    DRAPartitionableDevices Beta on free [DynamicResourceAllocation] "Devices that consume shared counters, and nodes selected per device."
    DRASchedulerFilterTimeout Beta on free [DynamicResourceAllocation] "A time limit for the allocation on one node."
    DRAResourceClaimGranularStatusAuthorization Beta on free [DynamicResourceAllocation DRAResourceClaimDeviceStatus] "Finer authorization of claim status writes by the API server."
    VolumeAttributesClass Ga on locked [] "Volumes are matched to claims by their attributes class."
    NodeInclusionPolicyInPodTopologySpread Ga on locked [] "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints."
    MatchLabelKeysInPodTopologySpread Beta on free [] "matchLabelKeys of spread constraints."
    MatchLabelKeysInPodTopologySpreadSelectorMerge Beta on free [MatchLabelKeysInPodTopologySpread] "The API server merges matchLabelKeys into the selector of a spread constraint."
    MatchLabelKeysInPodAffinity Ga on locked [] "The API server merges matchLabelKeys into the selector of a pod affinity term."
    InPlacePodVerticalScaling Ga on locked [] "The resources in the status of a running pod count."
    InPlacePodLevelResourcesVerticalScaling Beta on free [InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures] "The same for resources of the pod as a whole."
    PodLevelResources Beta on free [] "Requests of the pod as a whole replace the sum of its containers."
    SidecarContainers Ga on locked [] "Restartable init containers count as long as the pod runs."
    SchedulerQueueingHints Ga on locked [] "Plugins decide for each event whether it requeues a pod."
    SchedulerAsyncPreemption Beta on free [] "Victims are deleted asynchronously, outside the scheduling cycle."
    SchedulerPopFromBackoffQ Beta on free [] "When the active queue is empty, a pod in backoff is popped early."
    NominatedNodeNameForExpectation Beta on free [] "The selected node is nominated before a binding cycle that waits."
    ClearingNominatedNodeNameAfterBinding Beta on free [] "The API server clears the nominated node when the pod is bound."
    OpportunisticBatching Beta on free [] "The result for a pod is reused for the next identical one."
    NodeDeclaredFeatures Beta on free [] "Nodes declare features; the plugin of that name keeps pods off nodes that lack them."
    PodSchedulingReadiness Ga on locked [] "Scheduling gates."
    PodObservedGenerationTracking Ga on locked [] "Conditions record the pod's generation."
    MutableCSINodeAllocatableCount Ga on locked [] "Changed volume limits requeue pods."
    ComponentFlagz Beta on free [] "The scheduler's /flagz page."
    ComponentStatusz Beta on free [] "The scheduler's /statusz page."
    PodTopologyLabelsAdmission Beta on free [] "The API server copies topology labels of the node to its pods."
    DRADeviceTaintRules Beta off free [DRADeviceTaints] "Devices are tainted by rules."
    SchedulerAsyncAPICalls Beta off free [] "API calls are made asynchronously, outside the scheduling cycle."
    GenericWorkload Alpha off free [] "Pod groups, scheduled together."
    GangScheduling Alpha off free [GenericWorkload] "A pod group is scheduled only if enough of its pods fit."
    TopologyAwareWorkloadScheduling Alpha off free [GenericWorkload] "A pod group is placed within one topology domain."
    WorkloadAwarePreemption Alpha off free [GangScheduling] "Preemption for and of whole pod groups."
    DRAWorkloadResourceClaims Alpha off free [DynamicResourceAllocation GenericWorkload] "Claims shared by a pod group."
    DRANodeAllocatableResources Alpha off free [DynamicResourceAllocation] "Devices that count as CPU or memory of the node."
    DRAListTypeAttributes Alpha off free [DynamicResourceAllocation] "Device attributes that are lists."
    VolumeLimitScaling Alpha off free [] "Pods with CSI volumes are not scheduled to nodes without the driver."
    StorageCapacityScoring Alpha off free [] "Nodes are scored by their free storage capacity."
    TaintTolerationComparisonOperators Alpha off free [] "Tolerations with the operators Lt and Gt."
    CoordinatedLeaderElection Beta off free [] "The API server selects the leader."
}

impl Feature {
    /// All gates, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Feature> {
        SPECS.iter().map(|spec| spec.feature)
    }

    /// The gate of that name; upper and lower case differ.
    pub fn from_name(name: &str) -> Option<Feature> {
        SPECS.iter().find(|spec| spec.name == name).map(|spec| spec.feature)
    }

    const fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// The name of the gate.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Its stage in 1.36.
    pub const fn stage(self) -> Stage {
        self.spec().stage
    }

    /// Whether it is on by default in 1.36.
    pub const fn default(self) -> bool {
        self.spec().default
    }

    /// Whether it is locked to its default in 1.36.
    pub const fn locked(self) -> bool {
        self.spec().locked
    }

    /// The gates that this one depends on.
    pub const fn needs(self) -> &'static [Feature] {
        self.spec().needs
    }

    /// What the gate changes, in one sentence.
    pub const fn effect(self) -> &'static str {
        self.spec().effect
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which feature gates are on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FeatureGates(u64);

impl Default for FeatureGates {
    /// The defaults of Kubernetes 1.36.
    fn default() -> FeatureGates {
        SPECS
            .iter()
            .filter(|spec| spec.default)
            .fold(FeatureGates(0), |gates, spec| gates.with(spec.feature, true))
    }
}

impl FeatureGates {
    /// Whether `feature` is on.
    pub const fn enabled(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }

    /// A copy with `feature` set, without checking locks and dependencies.
    pub const fn with(self, feature: Feature, on: bool) -> FeatureGates {
        let bit = 1 << feature as u8;
        FeatureGates(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// The gates that differ from the default, in the order of the enum.
    pub fn changed(self) -> impl Iterator<Item = (Feature, bool)> {
        let default = FeatureGates::default();
        Feature::all()
            .filter(move |feature| self.enabled(*feature) != default.enabled(*feature))
            .map(move |feature| (feature, self.enabled(feature)))
    }

    /// Parses the value of `--feature-gates`: `Name=true,Name=false`. Names and values may be
    /// surrounded by spaces, empty parts are skipped, and the last value of a name counts.
    pub fn parse(text: &str) -> Result<FeatureGates, FeatureGateError> {
        let mut pairs = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim()),
                None => return Err(FeatureGateError::NoValue(part.trim().to_owned())),
            };
            let on = parse_bool(value).ok_or_else(|| FeatureGateError::BadValue {
                name: name.to_owned(),
                value: value.to_owned(),
            })?;
            pairs.push((name, on));
        }
        FeatureGates::from_pairs(pairs)
    }

    /// Sets gates by name on top of the defaults. `AllAlpha` and `AllBeta` set every gate of that
    /// stage that is not set by name.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<FeatureGates, FeatureGateError> {
        let mut stages = Vec::new();
        let mut named = Vec::new();
        for (name, on) in pairs {
            match name {
                "AllAlpha" => stages.push((Stage::Alpha, on)),
                "AllBeta" => stages.push((Stage::Beta, on)),
                _ => named.push((lookup(name)?, on)),
            }
        }
        let mut gates = FeatureGates::default();
        for (stage, on) in stages {
            let of_stage = SPECS.iter().filter(|spec| spec.stage == stage);
            gates = of_stage.fold(gates, |gates, spec| gates.with(spec.feature, on));
        }
        for (feature, on) in named {
            gates = gates.set(feature, on)?;
        }
        gates.check_dependencies()
    }

    fn set(self, feature: Feature, on: bool) -> Result<FeatureGates, FeatureGateError> {
        if feature.locked() && on != feature.default() {
            return Err(FeatureGateError::Locked { feature, on });
        }
        Ok(self.with(feature, on))
    }

    fn check_dependencies(self) -> Result<FeatureGates, FeatureGateError> {
        for feature in Feature::all().filter(|feature| self.enabled(*feature)) {
            let missing: Vec<_> =
                feature.needs().iter().copied().filter(|need| !self.enabled(*need)).collect();
            if !missing.is_empty() {
                return Err(FeatureGateError::Dependency { feature, missing });
            }
        }
        Ok(self)
    }
}

impl fmt::Debug for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.changed()).finish()
    }
}

impl fmt::Display for FeatureGates {
    /// The gates that differ from the default, in the format of `--feature-gates`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (feature, on)) in self.changed().enumerate() {
            write!(f, "{}{feature}={on}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Parses the spellings that Go's strconv.ParseBool accepts.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn lookup(name: &str) -> Result<Feature, FeatureGateError> {
    Feature::from_name(name).ok_or_else(|| FeatureGateError::Unknown {
        name: name.to_owned(),
        closest: closest(name, SPECS.iter().map(|spec| spec.name)),
    })
}

/// Why feature gates were rejected.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FeatureGateError {
    /// A part without `=`.
    #[error("feature gate {0:?} has no value: write {0}=true or {0}=false")]
    NoValue(String),
    /// A value that is not a boolean.
    #[error("feature gate {name} has the value {value:?}: write {name}=true or {name}=false")]
    BadValue {
        /// The gate.
        name: String,
        /// The given value.
        value: String,
    },
    /// A gate that is unknown to the scheduler of 1.36.
    #[error("{}", unknown_text(name, *closest))]
    Unknown {
        /// The given name.
        name: String,
        /// The most similar name of a gate.
        closest: Option<&'static str>,
    },
    /// A gate that is locked to its default.
    #[error("feature gate {feature} cannot be set to {on}: it is {stage} and locked to {default} in Kubernetes 1.36",
        stage = feature.stage(), default = feature.default())]
    Locked {
        /// The gate.
        feature: Feature,
        /// The requested value.
        on: bool,
    },
    /// A gate is on although a gate that it depends on is off.
    #[error("{}", dependency_text(*feature, missing))]
    Dependency {
        /// The gate that is on.
        feature: Feature,
        /// The gates that are off.
        missing: Vec<Feature>,
    },
}

fn unknown_text(name: &str, closest: Option<&'static str>) -> String {
    let start = format!("no feature gate {name:?} changes the scheduler of Kubernetes 1.36");
    match closest.and_then(Feature::from_name) {
        Some(other) => {
            format!(
                "{start}; did you mean {other} ({}, default {})?",
                other.stage(),
                other.default()
            )
        }
        None => start,
    }
}

fn dependency_text(feature: Feature, missing: &[Feature]) -> String {
    let names: Vec<_> = missing.iter().map(|need| need.name()).collect();
    let settings: Vec<_> = names.iter().map(|name| format!("{name}=true")).collect();
    format!(
        "feature gate {feature} is on ({}), but needs {}, which is off: add {}{}",
        if feature.default() { "the default" } else { "not the default" },
        names.join(" and "),
        settings.join(","),
        if feature.locked() { String::new() } else { format!(" or set {feature}=false") },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        FeatureGates::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_consistent() {
        for (i, feature) in Feature::all().enumerate() {
            assert_eq!(feature as usize, i);
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
            assert!(feature.stage() != Stage::Alpha || !feature.default());
            assert!(!feature.locked() || feature.stage() == Stage::Ga);
        }
        assert_eq!(Feature::all().count(), 46);
        assert!(FeatureGates::default().check_dependencies().is_ok());
    }

    #[test]
    fn gates_are_set_as_on_the_command_line() {
        let gates = FeatureGates::parse(" GenericWorkload = true ,,GangScheduling=1").unwrap();
        assert!(gates.enabled(Feature::GangScheduling));
        assert!(gates.enabled(Feature::OpportunisticBatching));
        assert_eq!(gates.to_string(), "GenericWorkload=true,GangScheduling=true");
        assert_eq!(FeatureGates::parse("").unwrap(), FeatureGates::default());
        let last = FeatureGates::parse("OpportunisticBatching=false,OpportunisticBatching=t");
        assert_eq!(last.unwrap(), FeatureGates::default());
    }

    #[test]
    fn a_stage_is_set_but_for_the_gates_named() {
        let gates = FeatureGates::parse("VolumeLimitScaling=false,AllAlpha=true").unwrap();
        assert!(gates.enabled(Feature::StorageCapacityScoring));
        assert!(!gates.enabled(Feature::VolumeLimitScaling));
        assert!(!gates.enabled(Feature::SchedulerAsyncAPICalls));
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_the_reason() {
        assert_eq!(
            error("GangSheduling=true"),
            "no feature gate \"GangSheduling\" changes the scheduler of Kubernetes 1.36; \
             did you mean GangScheduling (ALPHA, default false)?"
        );
        assert_eq!(
            error("Quux=true"),
            "no feature gate \"Quux\" changes the scheduler of Kubernetes 1.36"
        );
        assert_eq!(
            error("SidecarContainers=false"),
            "feature gate SidecarContainers cannot be set to false: \
             it is GA and locked to true in Kubernetes 1.36"
        );
        assert_eq!(
            error("GangScheduling=true"),
            "feature gate GangScheduling is on (not the default), but needs GenericWorkload, \
             which is off: add GenericWorkload=true or set GangScheduling=false"
        );
        assert_eq!(
            error("GangScheduling"),
            "feature gate \"GangScheduling\" has no value: \
             write GangScheduling=true or GangScheduling=false"
        );
        assert_eq!(
            error("GangScheduling=yes"),
            "feature gate GangScheduling has the value \"yes\": \
             write GangScheduling=true or GangScheduling=false"
        );
    }

    #[test]
    fn a_locked_gate_may_be_given_its_value() {
        assert_eq!(FeatureGates::parse("SidecarContainers=true").unwrap(), FeatureGates::default());
    }
}
