//! `--emulated-version`: the version whose feature gates a kube-scheduler has.
//!
//! Upstream: `staging/src/k8s.io/component-base/compatibility` (parsing and range) and
//! `apiserver/pkg/util/compatibility` (the oldest version that can be emulated).

use std::fmt;
use std::str::FromStr;

use super::served::number;
use super::{KubeVersion, Served};
use crate::features::FeatureGates;

/// A version to emulate, as kube-scheduler's flag takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emulated {
    major: u64,
    minor: u64,
}

/// Why a version cannot be emulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmulationError {
    /// The text is no version.
    #[error("{0:?} is not a version: write one like 1.35 or kube=1.35")]
    Malformed(String),
    /// A patch release is named.
    #[error("{0:?} names a patch release: only a minor version like 1.35 can be emulated")]
    Patch(String),
    /// A component that kube-scheduler does not have.
    #[error("component {0:?} does not exist: the only one is \"kube\"")]
    Component(String),
    /// The same component with two versions.
    #[error("{0:?} names a version twice")]
    Twice(String),
    /// The scheduler of that version cannot emulate it.
    #[error("kube-scheduler {version} emulates {oldest} to {version}, not {emulated}")]
    Range {
        /// The version of the scheduler that would emulate it.
        version: KubeVersion,
        /// The oldest version that it emulates.
        oldest: KubeVersion,
        /// The version asked for.
        emulated: String,
    },
    /// kube-scheduler can emulate it, kubestep cannot.
    #[error("kubestep does not know the feature gates of {0}: the oldest it knows are of {oldest}",
        oldest = KubeVersion::OLDEST)]
    Unknown(String),
}

impl FromStr for Emulated {
    type Err = EmulationError;

    /// Parses `1.35`, `v1.35.0` and `kube=1.35`.
    fn from_str(text: &str) -> Result<Emulated, EmulationError> {
        let mut found = None;
        for part in text.split(',') {
            let one = component_version(part)?;
            if found.replace(one).is_some() {
                return Err(EmulationError::Twice(text.to_owned()));
            }
        }
        found.ok_or_else(|| EmulationError::Malformed(text.to_owned()))
    }
}

fn component_version(part: &str) -> Result<Emulated, EmulationError> {
    let (component, version) = part.split_once('=').unwrap_or(("kube", part));
    let version = version.trim();
    let malformed = || EmulationError::Malformed(version.to_owned());
    let (major, rest) =
        number(version.strip_prefix('v').unwrap_or(version)).ok_or_else(malformed)?;
    let rest = rest.strip_prefix('.').ok_or_else(malformed)?;
    let (minor, rest) = number(rest).ok_or_else(malformed)?;
    // As upstream, what follows the numbers does not matter.
    if rest.strip_prefix('.').and_then(number).is_some_and(|(patch, _)| patch != 0) {
        return Err(EmulationError::Patch(version.to_owned()));
    }
    match component.trim() {
        "kube" => Ok(Emulated { major, minor }),
        component => Err(EmulationError::Component(component.to_owned())),
    }
}

impl fmt::Display for Emulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Emulated {
    /// The version, if a kube-scheduler of `version` can emulate it: since 1.33 the three versions
    /// before its own, but none before 1.31; earlier only the one before.
    fn by(&self, version: KubeVersion) -> Result<KubeVersion, EmulationError> {
        let emulated = self.to_string();
        let back = if version.minor >= 33 { 3 } else { 1 };
        let floor = if version.minor >= 33 { KubeVersion::OLDEST.minor } else { 0 };
        let oldest = KubeVersion { minor: (version.minor - back).max(floor) };
        let minor = u8::try_from(self.minor).unwrap_or(u8::MAX);
        if self.major != 1 || minor > version.minor || minor < oldest.minor {
            return Err(EmulationError::Range { version, oldest, emulated });
        }
        KubeVersion::of_minor(minor).ok_or(EmulationError::Unknown(emulated))
    }
}

impl Served {
    /// The defaults of the release where it runs with `--emulated-version`: the gates are those of
    /// the emulated version, all other behaviour is its own.
    ///
    /// # Errors
    /// [`EmulationError::Range`] and [`EmulationError::Unknown`].
    pub fn emulating(&self, emulated: &Emulated) -> Result<FeatureGates, EmulationError> {
        let emulated = emulated.by(self.version)?;
        Ok(self.without_later(FeatureGates::emulating(self.version, emulated)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emulates(version: &str, emulated: &str) -> Result<String, String> {
        let served = KubeVersion::nearest(version).unwrap();
        let emulated: Emulated = emulated.parse().map_err(|e: EmulationError| e.to_string())?;
        let gates = served.emulating(&emulated).map_err(|error| error.to_string())?;
        assert_eq!(gates.behaviour(), served.gates().behaviour());
        Ok(gates.emulated().to_string())
    }

    #[test]
    fn what_kube_scheduler_takes_is_taken() {
        for text in ["1.35", "v1.35", "1.35.0", "kube=1.35", " kube = 1.35 ", "1.35-alpha"] {
            assert_eq!(emulates("1.36", text), Ok("1.35".to_owned()), "{text}");
        }
        for (version, oldest) in [("1.37", "1.34"), ("1.36", "1.33"), ("1.33", "1.31")] {
            assert_eq!(emulates(version, oldest), Ok(oldest.to_owned()), "{version}");
        }
        assert_eq!(emulates("1.32", "1.31"), Ok("1.31".to_owned()));
    }

    #[test]
    fn what_it_rejects_is_rejected() {
        let error = |version, text| emulates(version, text).unwrap_err();
        assert_eq!(error("1.36", "1.32"), "kube-scheduler 1.36 emulates 1.33 to 1.36, not 1.32");
        for (version, text) in
            [("1.35", "1.36"), ("1.33", "1.30"), ("1.32", "1.30"), ("1.36", "2.36")]
        {
            assert!(error(version, text).contains(" emulates "), "{version} {text}");
        }
        assert!(error("1.31", "1.30").starts_with("kubestep does not know"));
        assert!(error("1.36", "1.35.1").contains("patch release"));
        assert!(error("1.36", "wardle=1.35").contains("component \"wardle\""));
        assert!(error("1.36", "1.35,kube=1.34").contains("twice"));
        for text in ["", "1", "x", "kube=", "1.", "35"] {
            assert!(error("1.36", text).contains("is not a version"), "{text}");
        }
    }
}
