//! Which versions of Kubernetes serve an API version, for kinds whose versions came and went.
//!
//! Upstream: `staging/src/k8s.io/api/*/*/types.go` of each version.

use std::ops::RangeInclusive;

use kubestep_api::Kind;

/// The kinds of a version of devices.
const DEVICES: &[Kind] =
    &[Kind::ResourceClaim, Kind::ResourceClaimTemplate, Kind::ResourceSlice, Kind::DeviceClass];

/// The kinds of storage whose older version went together.
const STORAGE: &[Kind] =
    &[Kind::StorageClass, Kind::CsiDriver, Kind::CsiNode, Kind::VolumeAttachment];

/// A version that is still served.
const STILL: u8 = u8::MAX;

/// Removed before the oldest version that is supported; its first version does not matter.
const REMOVED: u8 = 0;

/// The API version, its kinds, and the minor versions of Kubernetes that serve it, the first and
/// the last.
const TABLE: &[(&str, &[Kind], u8, u8)] = &[
    ("resource.k8s.io/v1alpha3", DEVICES, 31, 33),
    ("resource.k8s.io/v1alpha3", &[Kind::DeviceTaintRule], 33, STILL),
    ("resource.k8s.io/v1beta2", &[Kind::DeviceTaintRule], 36, STILL),
    ("resource.k8s.io/v1", &[Kind::DeviceTaintRule], 37, STILL),
    ("resource.k8s.io/v1beta1", DEVICES, 32, STILL),
    ("resource.k8s.io/v1beta2", DEVICES, 33, STILL),
    ("resource.k8s.io/v1", DEVICES, 34, STILL),
    ("scheduling.k8s.io/v1alpha1", &[Kind::Workload], 35, 35),
    ("scheduling.k8s.io/v1alpha2", &[Kind::Workload, Kind::PodGroup], 36, 36),
    ("scheduling.k8s.io/v1alpha3", &[Kind::Workload, Kind::PodGroup], 37, STILL),
    ("scheduling.k8s.io/v1beta1", &[Kind::Workload, Kind::PodGroup], 37, STILL),
    ("scheduling.k8s.io/v1beta1", &[Kind::PriorityClass], REMOVED, 21),
    ("storage.k8s.io/v1beta1", STORAGE, REMOVED, 21),
    ("storage.k8s.io/v1beta1", &[Kind::CsiStorageCapacity], REMOVED, 26),
    ("policy/v1beta1", &[Kind::PodDisruptionBudget], REMOVED, 24),
];

/// Whether [`served`] knows versions of a kind.
pub(super) fn has_history(kind: Kind) -> bool {
    TABLE.iter().any(|(_, kinds, ..)| kinds.contains(&kind))
}

/// The minor versions of Kubernetes that serve objects of a kind in an API version; `None` if that
/// is not known.
pub fn served(api_version: &str, kind: &str) -> Option<RangeInclusive<u8>> {
    let is_it = |kinds: &[Kind]| kinds.iter().any(|one| one.as_str() == kind);
    let row = TABLE.iter().find(|(version, kinds, ..)| *version == api_version && is_it(kinds));
    row.map(|(_, _, first, last)| *first..=*last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_served_for_a_while() {
        assert_eq!(served("resource.k8s.io/v1alpha3", "ResourceClaim"), Some(31..=33));
        assert_eq!(served("resource.k8s.io/v1", "DeviceClass"), Some(34..=u8::MAX));
        assert_eq!(served("resource.k8s.io/v1", "Pod"), None);
        assert_eq!(served("v1", "Pod"), None);
        assert!(has_history(Kind::PodGroup) && !has_history(Kind::Pod));
    }
}
