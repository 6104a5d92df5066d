//! KAI-Scheduler's snapshot: a zip archive with `snapshot.json`, which holds the objects that
//! KAI-Scheduler reads and its configuration. Its queues, pod groups and topologies are custom
//! resources without a meaning for kube-scheduler.
//!
//! Upstream: `pkg/scheduler/plugins/snapshot/snapshot.go` of NVIDIA/KAI-Scheduler.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Contents, ForeignFormat, as_is, first_field, items};
use crate::error::SourceError;
use crate::files::FileText;
use crate::item::Expected;
use kubestep_api::Kind;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    name: "a snapshot of KAI-Scheduler",
    may_be: |text| {
        let fields = ["config", "schedulerParams", "rawObjects", "discovery"];
        first_field(text).is_some_and(|field| fields.contains(&field))
    },
    prepare: as_is,
    read,
    holds: &[
        Kind::Pod,
        Kind::Node,
        Kind::PriorityClass,
        Kind::PersistentVolumeClaim,
        Kind::CsiStorageCapacity,
        Kind::StorageClass,
        Kind::CsiDriver,
        Kind::ResourceClaim,
        Kind::ResourceSlice,
        Kind::DeviceClass,
    ],
    is_scheduler: true,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KaiSnapshot<'a> {
    config: Option<IgnoredAny>,
    #[serde(borrow)]
    raw_objects: Objects<'a>,
}

type RawList<'a> = Option<Vec<&'a RawValue>>;

macro_rules! objects {
    ($($field:ident $name:literal $expected:expr,)*) => {
        #[derive(Deserialize)]
        struct Objects<'a> {
            $(#[serde(borrow, rename = $name)] $field: RawList<'a>,)*
        }

        impl<'a> Objects<'a> {
            /// All lists, with the kind of their items.
            fn lists(self) -> Vec<(Expected, RawList<'a>)> {
                vec![$(($expected, self.$field)),*]
            }
        }
    };
}

objects! {
    nodes "nodes" Expected::Kind(Kind::Node),
    priority_classes "priorityClasses" Expected::Kind(Kind::PriorityClass),
    storage_classes "storageClasses" Expected::Kind(Kind::StorageClass),
    csi_drivers "csiDrivers" Expected::Kind(Kind::CsiDriver),
    capacities "csiStorageCapacities" Expected::Kind(Kind::CsiStorageCapacity),
    claims "persistentVolumeClaims" Expected::Kind(Kind::PersistentVolumeClaim),
    device_classes "deviceClasses" Expected::Kind(Kind::DeviceClass),
    slices "resourceSlices" Expected::Kind(Kind::ResourceSlice),
    resource_claims "resourceClaims" Expected::Kind(Kind::ResourceClaim),
    pods "pods" Expected::Kind(Kind::Pod),
    queues "queues" Expected::Unread("Queue".into()),
    pod_groups "podGroups" Expected::Unread("PodGroup of KAI-Scheduler".into()),
    bind_requests "bindRequests" Expected::Unread("BindRequest".into()),
    config_maps "configMaps" Expected::Unread("ConfigMap".into()),
    topologies "topologies" Expected::Unread("Topology".into()),
}

fn read(file: &FileText) -> Result<Option<Contents<'_>>, Box<SourceError>> {
    let Ok(snapshot) = serde_json::from_str::<KaiSnapshot<'_>>(&file.text) else { return Ok(None) };
    let mut notes =
        vec!["its queues, pod groups, topologies and bind requests have no effect here".to_owned()];
    if snapshot.config.is_some() {
        notes.push("its configuration is KAI-Scheduler's own and is not used".to_owned());
    }
    let lists = snapshot.raw_objects.lists().into_iter();
    let parts = lists.flat_map(|(expected, list)| {
        list.unwrap_or_default().into_iter().map(move |raw| (raw.get(), 1, expected))
    });
    Ok(Some(Contents { items: items(file, parts), notes, ..Contents::default() }))
}
