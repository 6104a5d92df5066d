//! The kinds that the scheduler reads, and their names in the API.

use std::fmt;

/// One row of the table of kinds.
struct Row {
    kind: Kind,
    name: &'static str,
    plural: &'static str,
    short: &'static str,
    group: &'static str,
    namespaced: bool,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $plural:literal $short:literal $group:literal $namespaced:literal),* $(,)?) => {
        /// A kind of object that the scheduler reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Kind { $($kind),* }

        /// In the order of the variants, so that a kind is its index.
        const TABLE: &[Row] = &[$(Row {
            kind: Kind::$kind, name: $name, plural: $plural, short: $short, group: $group, namespaced: $namespaced,
        }),*];
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
    /// All kinds, in the table's order.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.kind)
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The API's name, `Pod`.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The plural as in URLs, `pods`.
    pub fn plural(self) -> &'static str {
        self.row().plural
    }

    /// The API group, "" for the core group.
    pub fn group(self) -> &'static str {
        self.row().group
    }

    /// Whether the kind is namespaced.
    pub fn is_namespaced(self) -> bool {
        self.row().namespaced
    }

    /// The kind of an object with these `apiVersion` and `kind` fields. With an empty `apiVersion`
    /// the kind alone decides; a kind of that name in another group is not ours.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        let row = TABLE.iter().find(|row| row.name == kind)?;
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        (api_version.is_empty() || group == row.group).then_some(row.kind)
    }

    /// The kind by any name that a user types: `Pod`, `pods`, `po`, case-insensitive.
    pub fn by_name(name: &str) -> Option<Kind> {
        let is_named = |row: &&Row| {
            let names = [row.name, row.plural, row.short];
            names.iter().any(|known| !known.is_empty() && known.eq_ignore_ascii_case(name))
        };
        TABLE.iter().find(is_named).map(|row| row.kind)
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
        assert!(Kind::all().all(|kind| kind.row().kind == kind));
        assert_eq!(Kind::all().count(), 23);
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
