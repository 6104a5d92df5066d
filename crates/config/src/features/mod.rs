//! The feature gates of kube-scheduler, and which of them are on in one version.
//!
//! Upstream: `pkg/features/kube_features.go` (table and dependencies) and
//! `staging/src/k8s.io/component-base/featuregate/feature_gate.go` (parsing).

use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

use super::suggest::closest;
use super::versions::{Behaviour, KubeVersion, Switch};
pub use table::{Feature, FeatureStage, GateSpec};
use table::{GATES, Gate};

#[cfg(test)]
mod emulated_tests;
mod table;
#[cfg(test)]
mod tests;

impl Feature {
    /// All gates of all versions, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Feature> {
        GATES.iter().map(|gate| gate.feature)
    }

    /// The gate of that name, in whichever version; upper and lower case differ.
    pub fn from_name(name: &str) -> Option<Feature> {
        GATES.iter().find(|gate| gate.name == name).map(|gate| gate.feature)
    }

    const fn row(self) -> &'static Gate {
        &GATES[self as usize]
    }

    /// The name of the gate.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Its stage, default and lock in `version`; `None` if that version does not have it.
    pub const fn spec(self, version: KubeVersion) -> Option<GateSpec> {
        self.row().at(version)
    }

    /// Whether the gate changed after version `1.after`, up to `version`.
    pub(crate) fn changed_in(self, version: KubeVersion, after: u64) -> bool {
        let within = |minor: u8| u64::from(minor) > after && minor <= version.minor();
        self.row().history.iter().any(|(minor, _)| within(*minor))
    }

    /// The gates that this one depends on.
    pub const fn needs(self) -> &'static [Feature] {
        self.row().needs
    }

    /// What the gate changes, in one sentence.
    pub const fn effect(self) -> &'static str {
        self.row().effect
    }

    /// The versions served that have the gate, the oldest first.
    pub fn versions(self) -> impl DoubleEndedIterator<Item = KubeVersion> {
        KubeVersion::all().filter(move |version| self.spec(*version).is_some())
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one version of kube-scheduler has on: its feature gates, and the switches for the changes
/// that no gate governs. It is resolved once, and handed to all that is built.
#[derive(Clone, Copy)]
pub struct FeatureGates {
    on: u128,
    /// The gates that were set by name, also those set to their default: another version, or a
    /// later AllAlpha or AllBeta, does not change them.
    named: u128,
    behaviour: Behaviour,
    version: KubeVersion,
    /// The version whose gates count; another than `version` only when it is emulated.
    emulated: KubeVersion,
}

impl PartialEq for FeatureGates {
    /// Whether both decide alike, however their gates were set.
    fn eq(&self, other: &FeatureGates) -> bool {
        self.decides() == other.decides()
    }
}

impl Eq for FeatureGates {}

impl Hash for FeatureGates {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decides().hash(state);
    }
}

impl Default for FeatureGates {
    /// Those of the default version.
    fn default() -> FeatureGates {
        FeatureGates::of(KubeVersion::default())
    }
}

impl FeatureGates {
    /// The defaults of a version.
    pub fn of(version: KubeVersion) -> FeatureGates {
        FeatureGates::emulating(version, version)
    }

    /// The defaults of a kube-scheduler of `version` that runs with `--emulated-version`: the gates
    /// are those of `emulated`, all other behaviour is its own.
    pub fn emulating(version: KubeVersion, emulated: KubeVersion) -> FeatureGates {
        let behaviour = Behaviour::of(version);
        let none = FeatureGates { on: 0, named: 0, behaviour, version, emulated };
        let defaults = Feature::all().filter_map(|gate| Some((gate, none.spec(gate)?.default)));
        defaults.fold(none, |gates, (feature, on)| gates.with(feature, on))
    }

    const fn decides(&self) -> (u128, Behaviour, KubeVersion, KubeVersion) {
        (self.on, self.behaviour, self.version, self.emulated)
    }

    /// The version of kube-scheduler.
    pub const fn version(self) -> KubeVersion {
        self.version
    }

    /// The version whose gates count: the version itself unless another one is emulated.
    pub const fn emulated(self) -> KubeVersion {
        self.emulated
    }

    /// The version in words: `1.33`, or `1.36 emulating 1.34`.
    pub fn version_words(self) -> String {
        match self.version == self.emulated {
            true => self.version.to_string(),
            false => format!("{} emulating {}", self.version, self.emulated),
        }
    }

    /// [`FeatureGates::version_words`] where it is not the default version.
    pub fn other_version(self) -> Option<String> {
        let default = KubeVersion::default();
        let is_default = self.version == default && self.emulated == default;
        (!is_default).then(|| self.version_words())
    }

    /// Whether `feature` is on.
    pub const fn enabled(self, feature: Feature) -> bool {
        self.on & (1 << feature as u8) != 0
    }

    /// Whether the version has the change that `switch` stands for.
    pub const fn has(self, switch: Switch) -> bool {
        self.behaviour.has(switch)
    }

    /// All changes that no gate governs.
    pub const fn behaviour(self) -> Behaviour {
        self.behaviour
    }

    /// A copy with `feature` set, without checking locks and dependencies. A gate that a version
    /// merged into another one follows it.
    pub fn with(self, feature: Feature, on: bool) -> FeatureGates {
        let merged = table::MERGED.iter().filter(|(_, into)| *into == feature);
        let followers = merged.filter(|(gate, _)| self.is_merged(*gate));
        let bits = followers.fold(1 << feature as u8, |bits, (gate, _)| bits | 1 << *gate as u8);
        FeatureGates { on: if on { self.on | bits } else { self.on & !bits }, ..self }
    }

    /// Whether the version no longer has the gate.
    fn is_merged(self, gate: Feature) -> bool {
        self.spec(gate).is_none() && gate.versions().all(|version| version < self.version)
    }

    /// A copy with one change of behaviour present or absent.
    pub(crate) const fn with_switch(self, switch: Switch, on: bool) -> FeatureGates {
        FeatureGates { behaviour: self.behaviour.with(switch, on), ..self }
    }

    /// Stage, default and lock of a gate; `None` if the version does not have it, or the emulated one
    /// did not have it yet.
    pub const fn spec(self, feature: Feature) -> Option<GateSpec> {
        match feature.spec(self.version) {
            Some(_) => feature.spec(self.emulated),
            None => None,
        }
    }

    /// The gates that the version has, in the order of the enum.
    pub fn known(self) -> impl Iterator<Item = (Feature, GateSpec)> {
        Feature::all().filter_map(move |feature| Some((feature, self.spec(feature)?)))
    }

    /// The gates that differ from the version's defaults, in the order of the enum.
    pub fn changed(self) -> impl Iterator<Item = (Feature, bool)> {
        let default = FeatureGates::emulating(self.version, self.emulated);
        self.known()
            .map(|(feature, _)| feature)
            .filter(move |feature| self.enabled(*feature) != default.enabled(*feature))
            .map(move |feature| (feature, self.enabled(feature)))
    }

    /// The gates that were set by name or differ from the default, in the format of
    /// `--feature-gates`: what a scheduler of another version is to be started with.
    pub fn as_set(self) -> String {
        let default = FeatureGates::emulating(self.version, self.emulated);
        let is_set = |feature: &Feature| {
            self.is_named(*feature) || self.enabled(*feature) != default.enabled(*feature)
        };
        let set = self.known().map(|(feature, _)| feature).filter(is_set);
        let pairs: Vec<String> =
            set.map(|feature| format!("{feature}={}", self.enabled(feature))).collect();
        pairs.join(",")
    }

    const fn is_named(self, feature: Feature) -> bool {
        self.named & (1 << feature as u8) != 0
    }

    /// [`FeatureGates::parsed`] for the default version.
    pub fn parse(text: &str) -> Result<FeatureGates, FeatureGateError> {
        FeatureGates::default().parsed(text)
    }

    /// [`FeatureGates::with_pairs`] for the default version.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<FeatureGates, FeatureGateError> {
        FeatureGates::default().with_pairs(pairs)
    }

    /// Parses the value of `--feature-gates`: `Name=true,Name=false`. Names and values may be
    /// surrounded by spaces, empty parts are skipped, and the last value of a name counts.
    pub fn parsed(self, text: &str) -> Result<FeatureGates, FeatureGateError> {
        self.with_pairs(pairs(text)?)
    }

    /// Like [`FeatureGates::parsed`] for gates that were set for another version: those that this
    /// version does not have, or has locked to the other value, are left out and returned.
    pub fn adopted(
        self,
        text: &str,
    ) -> Result<(FeatureGates, Vec<FeatureGateError>), FeatureGateError> {
        let mut left_out = Vec::new();
        let mut kept = Vec::new();
        for (name, on) in pairs(text)? {
            let of_version = match name {
                "AllAlpha" | "AllBeta" => Ok(self),
                _ => self.lookup(name).and_then(|feature| self.set(feature, on)),
            };
            match of_version {
                Ok(_) => kept.push((name, on)),
                Err(
                    error @ (FeatureGateError::Absent { .. } | FeatureGateError::Locked { .. }),
                ) => left_out.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok((self.with_pairs(kept)?, left_out))
    }

    /// Sets gates by name. `AllAlpha` and `AllBeta` set every gate of that stage that is not set by
    /// name, here or before.
    pub fn with_pairs<'a>(
        self,
        pairs: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<FeatureGates, FeatureGateError> {
        let mut stages = Vec::new();
        let mut named = Vec::new();
        for (name, on) in pairs {
            match name {
                "AllAlpha" => stages.push((FeatureStage::Alpha, on)),
                "AllBeta" => stages.push((FeatureStage::Beta, on)),
                _ => named.push((self.lookup(name)?, on)),
            }
        }
        let mut gates = self;
        for (stage, on) in stages {
            let of_stage = self.known().filter(|(_, spec)| spec.stage == stage);
            let of_stage = of_stage.filter(|(feature, _)| !self.is_named(*feature));
            gates = of_stage.fold(gates, |gates, (feature, _)| gates.with(feature, on));
        }
        for (feature, on) in named {
            gates = gates.set(feature, on)?;
        }
        gates.check_dependencies()
    }

    fn set(self, feature: Feature, on: bool) -> Result<FeatureGates, FeatureGateError> {
        match self.spec(feature) {
            Some(spec) if spec.locked && on != spec.default => {
                Err(FeatureGateError::Locked { feature, on, spec, version: self.emulated })
            }
            _ => Ok(FeatureGates {
                named: self.named | 1 << feature as u8,
                ..self.with(feature, on)
            }),
        }
    }

    fn lookup(self, name: &str) -> Result<Feature, FeatureGateError> {
        let version = self.emulated;
        match Feature::from_name(name) {
            Some(feature) if self.spec(feature).is_some() => Ok(feature),
            Some(feature) if feature.spec(self.version).is_none() => {
                Err(FeatureGateError::Absent { feature, version: self.version })
            }
            Some(feature) => Err(FeatureGateError::Absent { feature, version }),
            None => {
                let names = self.known().map(|(feature, _)| feature.name());
                let closest = closest(name, names).and_then(Feature::from_name);
                Err(FeatureGateError::Unknown { name: name.to_owned(), closest, version })
            }
        }
    }

    fn check_dependencies(self) -> Result<FeatureGates, FeatureGateError> {
        if !self.has(Switch::GateDependencies) {
            return Ok(self);
        }
        let on = |feature: &Feature| self.enabled(*feature);
        for feature in Feature::all().filter(on) {
            let known = |need: &Feature| self.spec(*need).is_some();
            let needs = feature.needs().iter().copied().filter(known);
            let missing: Vec<_> = needs.filter(|need| !on(need)).collect();
            if !missing.is_empty() {
                let spec = self.spec(feature);
                return Err(FeatureGateError::Dependency { feature, missing, spec });
            }
        }
        Ok(self)
    }
}

impl fmt::Debug for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.version)?;
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

/// The names and values of `Name=true,Name=false`.
fn pairs(text: &str) -> Result<Vec<(&str, bool)>, FeatureGateError> {
    text.split(',').filter(|part| !part.is_empty()).map(pair).collect()
}

fn pair(part: &str) -> Result<(&str, bool), FeatureGateError> {
    let Some((name, value)) = part.split_once('=') else {
        return Err(FeatureGateError::NoValue(part.trim().to_owned()));
    };
    let (name, value) = (name.trim(), value.trim());
    let bad = || FeatureGateError::BadValue { name: name.to_owned(), value: value.to_owned() };
    Ok((name, parse_bool(value).ok_or_else(bad)?))
}

/// Parses the spellings that Go's strconv.ParseBool accepts.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
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
        /// The name as it was given.
        name: String,
        /// The value as it was given.
        value: String,
    },
    /// A gate that no version of the scheduler has.
    #[error("{}", unknown_text(name, *closest, *version))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The gate with the most similar name.
        closest: Option<Feature>,
        /// The version that was asked.
        version: KubeVersion,
    },
    /// A gate of other versions.
    #[error("{}", absent_text(*feature, *version))]
    Absent {
        /// The gate that the version does not have.
        feature: Feature,
        /// The version that does not have it.
        version: KubeVersion,
    },
    /// A gate that is locked to its default.
    #[error("feature gate {feature} cannot be set to {on}: it is {stage} and locked to {default} in Kubernetes {version}",
        stage = spec.stage, default = spec.default)]
    Locked {
        /// The gate that cannot be changed.
        feature: Feature,
        /// Whether it should be on.
        on: bool,
        /// The gate as that version has it.
        spec: GateSpec,
        /// The emulated version, which has no such gate.
        version: KubeVersion,
    },
    /// A gate is on although a gate that it depends on is off.
    #[error("{}", dependency_text(*feature, missing, *spec))]
    Dependency {
        /// The gate that is on.
        feature: Feature,
        /// The gates that are off.
        missing: Vec<Feature>,
        /// The gate as the version has it.
        spec: Option<GateSpec>,
    },
}

fn unknown_text(name: &str, closest: Option<Feature>, version: KubeVersion) -> String {
    let start = format!("no feature gate {name:?} changes the scheduler of Kubernetes {version}");
    match closest.and_then(|other| Some((other, other.spec(version)?))) {
        Some((other, GateSpec { stage, default, .. })) => {
            format!("{start}; did you mean {other} ({stage}, default {default})?")
        }
        None => start,
    }
}

fn absent_text(feature: Feature, version: KubeVersion) -> String {
    let start = format!("Kubernetes {version} has no feature gate {feature}");
    let mut versions = feature.versions();
    match (versions.next(), feature.versions().next_back()) {
        (Some(first), _) if version < first => format!("{start}: it came with {first}"),
        (_, Some(last)) if version > last => format!("{start}: {last} was the last to have it"),
        _ => start,
    }
}

fn dependency_text(feature: Feature, missing: &[Feature], spec: Option<GateSpec>) -> String {
    let names: Vec<_> = missing.iter().map(|need| need.name()).collect();
    let settings: Vec<_> = names.iter().map(|name| format!("{name}=true")).collect();
    let by_default = spec.is_some_and(|spec| spec.default);
    let locked = spec.is_some_and(|spec| spec.locked);
    format!(
        "feature gate {feature} is on ({}), but needs {}, which is off: add {}{}",
        if by_default { "the default" } else { "not the default" },
        names.join(" and "),
        settings.join(","),
        if locked { String::new() } else { format!(" or set {feature}=false") },
    )
}
