//! The versions of kube-scheduler: which there are, and how each differs from the one before.
//!
//! A version decides by three tables. [`Feature`](crate::Feature) has the gates with stage, default
//! and lock of each version. [`Switch`] has every change that no gate governs, each with the version
//! that brought it. Descriptors of plugins name the switches that brought the plugin or one of its
//! extension points. [`FeatureGates`](crate::FeatureGates) resolves all of it once: it is the value
//! that reaches every plugin, profile and queue when they are built.
//!
//! [`changes`] lists the differences between two versions, each of which can be applied on its own.

mod between;
mod change;
mod emulated;
mod served;
mod switch;
mod text;

use std::fmt;
use std::str::FromStr;

pub use between::{Between, InProfile, PluginDifference, between};
use change::gate_changes;
pub use change::{GateChange, VersionChange, changes, differences};
pub use emulated::{Emulated, EmulationError};
pub use served::{NotAVersion, Served};
pub use switch::{Behaviour, Evidence, Part, Switch};
pub use text::{between_text, list_text, since_patches, spec_text};

/// The releases whose decisions were recorded, of each version from the oldest one.
const RELEASES: [&str; 6] = ["1.31.14", "1.32.13", "1.33.13", "1.34.9", "1.35.6", "1.36.2"];

/// A minor version of kube-scheduler that is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    minor: u8,
}

impl KubeVersion {
    /// The oldest version served.
    pub const OLDEST: KubeVersion = KubeVersion { minor: 31 };
    /// The newest version served. Its changes are known only as far as they are public.
    pub const NEWEST: KubeVersion = KubeVersion { minor: 37 };
    /// The newest version whose decisions are held to recorded ones; the default.
    pub const NEWEST_PROVED: KubeVersion = KubeVersion { minor: 36 };

    /// All versions served, the oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = KubeVersion> {
        (Self::OLDEST.minor..=Self::NEWEST.minor).map(|minor| KubeVersion { minor })
    }

    /// The number after `1.`.
    pub const fn minor(self) -> u8 {
        self.minor
    }

    /// Version `1.minor`, if it is served.
    pub const fn of_minor(minor: u8) -> Option<KubeVersion> {
        let version = KubeVersion { minor };
        if minor < Self::OLDEST.minor || minor > Self::NEWEST.minor {
            return None;
        }
        Some(version)
    }

    /// Whether recorded decisions of that version prove that kubestep decides the same.
    pub fn is_proved(self) -> bool {
        self <= Self::NEWEST_PROVED
    }

    /// The release whose recorded decisions prove this version; `None` if nothing proves it.
    pub fn proved_by(self) -> Option<&'static str> {
        let index = usize::from(self.minor - Self::OLDEST.minor);
        RELEASES.get(index).copied()
    }

    /// The version before; `None` for the oldest one served.
    pub fn before(self) -> Option<KubeVersion> {
        KubeVersion::of_minor(self.minor - 1)
    }
}

impl Default for KubeVersion {
    /// The newest version whose decisions are proved.
    fn default() -> KubeVersion {
        KubeVersion::NEWEST_PROVED
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("1.{}", self.minor))
    }
}

impl fmt::Debug for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KubeVersion {
    type Err = NotAVersion;

    /// Like [`KubeVersion::nearest`], for callers that need no notice.
    fn from_str(text: &str) -> Result<KubeVersion, NotAVersion> {
        KubeVersion::nearest(text).map(|served| served.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_and_the_default_is_proved() {
        let all: Vec<_> = KubeVersion::all().collect();
        assert!(all.is_sorted() && all.len() == 7);
        assert!(KubeVersion::default().is_proved() && !KubeVersion::NEWEST.is_proved());
        assert_eq!(KubeVersion::of_minor(30), None);
        for version in all {
            let release = version.proved_by().unwrap_or_default();
            assert_eq!(release.starts_with(&format!("{version}.")), version.is_proved());
        }
    }
}
