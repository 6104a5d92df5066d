//! The version that serves what a server, a file or a person names.

use super::{KubeVersion, Switch, VersionChange, changes};
use crate::features::{Feature, FeatureGates};

/// A release of Kubernetes that was asked for, and the version that decides as it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// The version that decides.
    pub version: KubeVersion,
    /// The release as it was asked for.
    pub asked: String,
    /// Whether the minor version is the one asked for, and not only the nearest.
    pub exact: bool,
    /// The minor version that was asked for.
    minor: u64,
    /// The patch release, if one was named.
    patch: Option<u64>,
}

/// A text that is no version of Kubernetes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a version of Kubernetes: write one like 1.36")]
pub struct NotAVersion(pub String);

impl KubeVersion {
    /// The version served for what a server, file or flag names: `1.33`, `v1.33.4`,
    /// `1.33.13+k3s1`. For a version that is not served it is the nearest one.
    ///
    /// # Errors
    /// [`NotAVersion`].
    pub fn nearest(text: &str) -> Result<Served, NotAVersion> {
        let (minor, patch) = numbers(text).ok_or_else(|| NotAVersion(text.to_owned()))?;
        let (oldest, newest) = (u64::from(Self::OLDEST.minor), u64::from(Self::NEWEST.minor));
        let served = u8::try_from(minor.clamp(oldest, newest)).unwrap_or(Self::NEWEST.minor);
        Ok(Served {
            version: KubeVersion { minor: served },
            asked: text.trim().to_owned(),
            exact: u64::from(served) == minor,
            minor,
            patch,
        })
    }
}

impl From<KubeVersion> for Served {
    /// The newest patch release of that version.
    fn from(version: KubeVersion) -> Served {
        let (asked, minor) = (version.to_string(), u64::from(version.minor));
        Served { version, asked, exact: true, minor, patch: None }
    }
}

impl Default for Served {
    /// That of the default version.
    fn default() -> Served {
        KubeVersion::default().into()
    }
}

/// The minor version and the patch release of `v1.33.4-gke.100`, `1.33+` and the like. The major
/// version is 1: others do not exist, or are those of builds that do not know their version.
fn numbers(text: &str) -> Option<(u64, Option<u64>)> {
    let text = text.trim();
    let (minor, rest) = number(text.strip_prefix('v').unwrap_or(text).strip_prefix("1.")?)?;
    let (patch, rest) = match rest.strip_prefix('.') {
        Some(rest) => number(rest).map(|(patch, rest)| (Some(patch), rest))?,
        None => (None, rest),
    };
    (rest.is_empty() || rest.starts_with(['.', '+', '-'])).then_some((minor, patch))
}

/// The number at the start, and what follows.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

impl Served {
    /// The release that decides: the one that was asked for, or the newest patch release of its
    /// version.
    pub fn name(&self) -> String {
        match self.patch.filter(|_| self.exact) {
            Some(patch) => format!("{}.{patch}", self.version),
            None => self.version.to_string(),
        }
    }

    /// What the release has on by default: that of its version, without the changes that came with
    /// a later patch release.
    pub fn gates(&self) -> FeatureGates {
        self.without_later(FeatureGates::of(self.version))
    }

    pub(super) fn without_later(&self, gates: FeatureGates) -> FeatureGates {
        self.later().fold(gates, |gates, (switch, _)| gates.with_switch(switch, false))
    }

    /// The changes that came with a later patch release of the minor version, each with that one.
    pub fn later(&self) -> impl Iterator<Item = (Switch, &'static str)> {
        let patch = self.patch.filter(|_| self.exact);
        Switch::all().filter_map(move |switch| {
            let of_minor = |first: &&str| numbers(first).filter(|(minor, _)| *minor == self.minor);
            let first = switch.patches().iter().find(|first| of_minor(first).is_some())?;
            let (_, of_first) = of_minor(first)?;
            (patch? < of_first?).then_some((switch, *first))
        })
    }

    /// What is known to differ between the release and what decides, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = self.nearest_notice().into_iter().collect();
        notices.extend(self.later().map(|(switch, first)| {
            let (asked, sentence) = (&self.asked, switch.sentence());
            format!("{asked} does not have {switch} yet, which came with {first}: {sentence}")
        }));
        notices.extend(unproved_notice(self.version));
        notices
    }

    fn nearest_notice(&self) -> Option<String> {
        let (asked, version) = (&self.asked, self.version);
        if self.exact {
            return None;
        }
        if self.minor > u64::from(version.minor) {
            return Some(format!(
                "Kubernetes {asked} is newer than {version}, the newest version that kubestep knows, \
                 and is decided as {version}: later changes are unknown"
            ));
        }
        let gates = Feature::all().filter(|gate| gate.changed_in(version, self.minor));
        let gates: Vec<&str> = gates.map(Feature::name).collect();
        let known = match gates.as_slice() {
            [] => "all changes in between are unknown".to_owned(),
            gates => format!(
                "in between, these feature gates changed, and all else is unknown: {}",
                gates.join(", ")
            ),
        };
        Some(format!(
            "Kubernetes {asked} is older than {version}, the oldest version that kubestep knows, and \
             is decided as {version}: {known}"
        ))
    }
}

/// What no recorded decision proves about a version.
fn unproved_notice(version: KubeVersion) -> Option<String> {
    if version.is_proved() {
        return None;
    }
    let proved = KubeVersion::NEWEST_PROVED;
    let is_decided = |change: &VersionChange| change.is_decided();
    let (decided, other): (Vec<_>, Vec<_>) =
        changes(proved, version).into_iter().partition(is_decided);
    let names = |changes: &[VersionChange]| {
        let names: Vec<&str> = changes.iter().map(|change| change.name()).collect();
        names.join(", ")
    };
    let mut notice =
        format!("no recorded decision proves yet what {version} changed since {proved}");
    if !decided.is_empty() {
        notice += &format!(": {}", names(&decided));
    }
    if !other.is_empty() {
        notice += &format!("; not implemented: {}", names(&other));
    }
    Some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(text: &str) -> (String, bool) {
        let served = KubeVersion::nearest(text).unwrap();
        (served.version.to_string(), served.exact)
    }

    fn notices(text: &str) -> Vec<String> {
        KubeVersion::nearest(text).unwrap().notices()
    }

    #[test]
    fn a_version_is_read_as_servers_and_people_write_it() {
        for text in ["1.33", "v1.33.4", "1.33.13+k3s1", " v1.33.1-gke.100 ", "1.33+", "1.33.0-rc.1"]
        {
            assert_eq!(nearest(text), ("1.33".to_owned(), true), "{text}");
        }
        let nonsense = ["", "1", "one.33", "1.x", "1.33beta", "v.33", "1.33.x", "1.33.", "2.0"];
        for text in nonsense.into_iter().chain(["v0.0.0-master+$Format:%H$", "1.33 1.34"]) {
            assert!(KubeVersion::nearest(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_outside_is_served_by_the_nearest_with_a_notice() {
        assert_eq!(nearest("1.25.3"), ("1.31".to_owned(), false));
        assert_eq!(nearest("v1.40.0"), ("1.37".to_owned(), false));
        let [notice] = notices("1.30").try_into().unwrap();
        assert!(notice.contains("is decided as 1.31"), "{notice}");
        assert!(notice.contains("MatchLabelKeysInPodAffinity"), "{notice}");
        let [notice, unproved] = notices("v1.40.0").try_into().unwrap();
        assert!(notice.starts_with("Kubernetes v1.40.0 is newer than 1.37"), "{notice}");
        assert!(unproved.contains("not implemented: PodGroupsAreQueued"), "{unproved}");
        assert_eq!(notices("1.36").len() + notices("1.31.2").len(), 0);
    }

    #[test]
    fn a_patch_release_is_without_what_came_later() {
        let of = |text| KubeVersion::nearest(text).unwrap();
        for text in ["1.33", "1.33.4", "v1.33.13-eks-1", "1.34.0"] {
            assert!(of(text).gates().has(Switch::SidecarHostPorts), "{text}");
        }
        assert!(!of("v1.33.3-gke.7").gates().has(Switch::SidecarHostPorts));
        assert_eq!(of("1.34").gates(), FeatureGates::of(of("1.34").version));
        let [taint, recreated, config] = notices("v1.34.1").try_into().unwrap();
        assert!(taint.starts_with("v1.34.1 does not have TaintMessageFixed yet"), "{taint}");
        assert!(
            recreated.contains("RecreatedPodDropped yet, which came with 1.34.8"),
            "{recreated}"
        );
        assert!(config.contains("ClassConfigByRequest yet, which came with 1.34.2"), "{config}");
    }

    #[test]
    fn a_correction_reaches_each_version_with_a_patch_release_of_its_own() {
        let has =
            |text| KubeVersion::nearest(text).unwrap().gates().has(Switch::AllocatedClaimsScored);
        assert!(["1.35", "1.35.6", "1.36", "1.36.2", "1.37.0"].into_iter().all(has));
        assert!(!["1.34.9", "1.35.5", "1.36.0", "1.36.1"].into_iter().any(has));
    }
}
