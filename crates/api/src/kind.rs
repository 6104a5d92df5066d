//! The kinds that the scheduler reads, and their names in the API.

use std::fmt;

use crate::custom::{self, CustomKind, KindNames};

/// One row of the table of kinds.
struct KindRow {
    kind: Kind,
    names: KindNames,
    short: &'static str,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $plural:literal $short:literal $group:literal $namespaced:literal),* $(,)?) => {
        /// A kind of object that the scheduler reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($kind,)*
            /// A custom kind that a plugin reads.
            Custom(CustomKind),
        }

        const TABLE: &[KindRow] = &[$(KindRow {
            kind: Kind::$kind,
            names: KindNames { name: $name, plural: $plural, group: $group, namespaced: $namespaced },
            short: $short,
        }),*];

        impl Kind {
            fn names(self) -> &'static KindNames {
                match self {
                    $(Kind::$kind => {
                        const NAMES: KindNames = KindNames {
                            name: $name, plural: $plural, group: $group, namespaced: $namespaced,
                        };
                        &NAMES
                    })*
                    Kind::Custom(kind) => kind.names(),
                }
            }
        }
    };
}

kinds! {
    Node "Node" "nodes" "no" "" false,
    Pod "Pod" "pods" "po" "" true,
    Namespace "Namespace" "namespaces" "ns" "" false,
    PersistentVolume "PersistentVolume" "persistentvolumes" "pv" "" false,
    PersistentVolumeClaim "PersistentVolumeClaim" "persistentvolumeclaims" "pvc" "" true,
    Service "Service" "services" "svc" "" true,
    ReplicationController "ReplicationController" "replicationcontrollers" "rc" "" true,
    ReplicaSet "ReplicaSet" "replicasets" "rs" "apps" true,
    StatefulSet "StatefulSet" "statefulsets" "sts" "apps" true,
    PodDisruptionBudget "PodDisruptionBudget" "poddisruptionbudgets" "pdb" "policy" true,
    PriorityClass "PriorityClass" "priorityclasses" "pc" "scheduling.k8s.io" false,
    PodGroup "PodGroup" "podgroups" "" "scheduling.k8s.io" true,
    Workload "Workload" "workloads" "" "scheduling.k8s.io" true,
    StorageClass "StorageClass" "storageclasses" "sc" "storage.k8s.io" false,
    CsiNode "CSINode" "csinodes" "" "storage.k8s.io" false,
    CsiDriver "CSIDriver" "csidrivers" "" "storage.k8s.io" false,
    CsiStorageCapacity "CSIStorageCapacity" "csistoragecapacities" "" "storage.k8s.io" true,
    VolumeAttachment "VolumeAttachment" "volumeattachments" "" "storage.k8s.io" false,
    ResourceClaim "ResourceClaim" "resourceclaims" "" "resource.k8s.io" true,
    ResourceClaimTemplate "ResourceClaimTemplate" "resourceclaimtemplates" "" "resource.k8s.io" true,
    ResourceSlice "ResourceSlice" "resourceslices" "" "resource.k8s.io" false,
    DeviceClass "DeviceClass" "deviceclasses" "" "resource.k8s.io" false,
    DeviceTaintRule "DeviceTaintRule" "devicetaintrules" "" "resource.k8s.io" false,
}

impl Kind {
    /// All kinds but the custom ones, in the table's order.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The custom kinds that plugins declared.
    pub fn all_custom() -> impl Iterator<Item = Kind> {
        custom::declared().into_iter().map(Kind::Custom)
    }

    /// The API's name, `Pod`.
    pub fn as_str(self) -> &'static str {
        self.names().name
    }

    /// The plural as in URLs, `pods`.
    pub fn plural(self) -> &'static str {
        self.names().plural
    }

    /// The API group, "" for the core group.
    pub fn group(self) -> &'static str {
        self.names().group
    }

    /// Whether the kind is namespaced.
    pub fn is_namespaced(self) -> bool {
        self.names().namespaced
    }

    /// The kind of an object with these `apiVersion` and `kind` fields. With an empty `apiVersion`
    /// the kind alone decides; a kind of that name in another group is not ours.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let is_meant = |names: &KindNames| {
            names.name == kind && (api_version.is_empty() || group == names.group)
        };
        let row = TABLE.iter().find(|row| is_meant(&row.names)).map(|row| row.kind);
        row.or_else(|| Kind::all_custom().find(|kind| is_meant(kind.names())))
    }

    /// The kind by any name that a user types: `Pod`, `pods`, `po`, `widgets.example.com`,
    /// case-insensitive.
    pub fn by_name(name: &str) -> Option<Kind> {
        let is_named = |names: &KindNames, short: &str| {
            let names = [names.name, names.plural, short];
            names.iter().any(|known| !known.is_empty() && known.eq_ignore_ascii_case(name))
        };
        let row = TABLE.iter().find(|row| is_named(&row.names, row.short)).map(|row| row.kind);
        let custom = |kind: &CustomKind| is_named(kind.names(), &kind.full_name());
        row.or_else(|| custom::declared().into_iter().find(custom).map(Kind::Custom))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_its_own_row() {
        assert!(Kind::all().all(|kind| Kind::by_name(kind.as_str()) == Some(kind)));
    }

    #[test]
    fn found_by_version_and_kind() {
        assert_eq!(Kind::of("v1", "Pod"), Some(Kind::Pod));
        assert_eq!(Kind::of("", "Pod"), Some(Kind::Pod));
        assert_eq!(Kind::of("storage.k8s.io/v1", "CSINode"), Some(Kind::CsiNode));
        assert_eq!(Kind::of("serving.knative.dev/v1", "Service"), None);
        assert_eq!(Kind::of("v1", "ConfigMap"), None);
    }

    #[test]
    fn found_by_what_users_type() {
        assert_eq!(Kind::by_name("pods"), Some(Kind::Pod));
        assert_eq!(Kind::by_name("csinode"), Some(Kind::CsiNode));
        assert_eq!(Kind::by_name("PVC"), Some(Kind::PersistentVolumeClaim));
        assert_eq!(Kind::by_name("secrets"), None);
        assert_eq!(Kind::by_name(""), None);
        assert_eq!(Kind::Pod.plural(), "pods");
        assert_eq!(Kind::DeviceClass.group(), "resource.k8s.io");
        assert!(!Kind::DeviceClass.is_namespaced());
    }
}
