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
mod switch;
mod text;

use std::fmt;
use std::str::FromStr;

pub use between::{Between, InProfile, PluginChange, between};
pub use change::{Change, GateChange, changes, differences, gate_changes};
pub use switch::{Behaviour, Evidence, Part, Switch};
pub use text::{between_text, list_text, spec_text};

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

    /// Whether recorded decisions of that version prove that kubestep decides alike.
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

    /// The version served for what a server, file or flag names: `1.33`, `v1.33.4`,
    /// `1.33.13+k3s1`. For a version that is not served it is the nearest one.
    ///
    /// # Errors
    /// [`NotAVersion`].
    pub fn nearest(text: &str) -> Result<Served, NotAVersion> {
        let (major, minor) = numbers(text).ok_or_else(|| NotAVersion(text.to_owned()))?;
        let (oldest, newest) = (u64::from(Self::OLDEST.minor), u64::from(Self::NEWEST.minor));
        let wanted = match major {
            0 => 0,
            1 => minor,
            _ => u64::MAX,
        };
        let served = u8::try_from(wanted.clamp(oldest, newest)).unwrap_or(Self::NEWEST.minor);
        Ok(Served {
            version: KubeVersion { minor: served },
            asked: text.trim().to_owned(),
            exact: u64::from(served) == wanted,
        })
    }
}

/// The major and minor number of `v1.33.4-gke.100`, `1.33+` and the like.
fn numbers(text: &str) -> Option<(u64, u64)> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let (major, rest) = text.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, suffix) = rest.split_at(end);
    let follows = suffix.is_empty() || suffix.starts_with(['.', '+', '-']);
    follows.then_some((major.parse().ok()?, minor.parse().ok()?))
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

/// The version that serves a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// The version that decides.
    pub version: KubeVersion,
    /// The version as it was asked for.
    pub asked: String,
    /// Whether the minor version is the one asked for, and not only the nearest.
    pub exact: bool,
}

/// A text that is no version of Kubernetes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a version of Kubernetes: write one like 1.36")]
pub struct NotAVersion(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(text: &str) -> (String, bool) {
        let served = KubeVersion::nearest(text).unwrap();
        (served.version.to_string(), served.exact)
    }

    #[test]
    fn a_version_is_read_as_servers_and_people_write_it() {
        for text in ["1.33", "v1.33.4", "1.33.13+k3s1", " v1.33.1-gke.100 ", "1.33+"] {
            assert_eq!(nearest(text), ("1.33".to_owned(), true), "{text}");
        }
        for text in ["", "1", "one.33", "1.x", "1.33beta", "v.33"] {
            assert!(KubeVersion::nearest(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_version_outside_is_served_by_the_nearest() {
        assert_eq!(nearest("1.25.3"), ("1.31".to_owned(), false));
        assert_eq!(nearest("v1.40.0"), ("1.37".to_owned(), false));
        assert_eq!(nearest("2.0"), ("1.37".to_owned(), false));
    }

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
