//! Persistent volumes and claims, storage classes, and the CSI objects.

use std::collections::BTreeMap;

use crate::intern::Symbol;
use crate::macros::{api_structs, closed_enum, open_enum};
use crate::{AwsElasticBlockStoreVolumeSource, AzureDiskVolumeSource, CinderVolumeSource, Name};
use crate::{Condition, LabelSelector, NodeSelector, ObjectMeta, ObjectReference};
use crate::{GcePersistentDiskVolumeSource, PortworxVolumeSource, Present, Quantity};
use crate::{IscsiVolumeSource, RbdVolumeSource, ResourceList};

api_structs! {
    /// `v1.PersistentVolume`, with what scheduling decisions read.
    pub struct PersistentVolume {
        pub metadata: ObjectMeta,
        pub spec: PersistentVolumeSpec,
        pub status: PersistentVolumeStatus,
    }

    /// A volume's properties and its source (inlined, as in the API).
    pub struct PersistentVolumeSpec {
        pub capacity: ResourceList,
        pub access_modes: Vec<PersistentVolumeAccessMode>,
        pub claim_ref: Option<ObjectReference>,
        pub persistent_volume_reclaim_policy: Symbol,
        pub storage_class_name: Name,
        pub volume_mode: Option<PersistentVolumeMode>,
        pub node_affinity: Option<VolumeNodeAffinity>,
        pub volume_attributes_class_name: Option<Name>,
        pub csi: Option<CsiPersistentVolumeSource>,
        pub gce_persistent_disk: Option<GcePersistentDiskVolumeSource>,
        pub aws_elastic_block_store: Option<AwsElasticBlockStoreVolumeSource>,
        pub azure_disk: Option<AzureDiskVolumeSource>,
        pub azure_file: Option<Present>,
        pub cinder: Option<CinderVolumeSource>,
        pub portworx_volume: Option<PortworxVolumeSource>,
        pub vsphere_volume: Option<Present>,
        pub rbd: Option<RbdVolumeSource>,
        pub iscsi: Option<IscsiVolumeSource>,
        pub host_path: Option<Present>,
        pub local: Option<Present>,
        pub nfs: Option<Present>,
    }

    /// The nodes from which a volume is accessible.
    pub struct VolumeNodeAffinity {
        pub required: Option<NodeSelector>,
    }

    /// `v1.CSIPersistentVolumeSource`; the driver and handle identify the volume.
    pub struct CsiPersistentVolumeSource {
        pub driver: Symbol,
        pub volume_handle: Name,
        pub read_only: bool,
    }

    /// The phase of a volume, and why it is in it.
    pub struct PersistentVolumeStatus {
        pub phase: PersistentVolumePhase,
        pub message: String,
        pub reason: Symbol,
    }

    /// A claim to a persistent volume.
    pub struct PersistentVolumeClaim {
        pub metadata: ObjectMeta,
        pub spec: PersistentVolumeClaimSpec,
        pub status: PersistentVolumeClaimStatus,
    }

    /// The specification of a claim. An absent class is the cluster's default, an empty one is
    /// none.
    pub struct PersistentVolumeClaimSpec {
        pub access_modes: Vec<PersistentVolumeAccessMode>,
        pub selector: Option<LabelSelector>,
        pub resources: VolumeResourceRequirements,
        pub volume_name: Name,
        pub storage_class_name: Option<Name>,
        pub volume_mode: Option<PersistentVolumeMode>,
        pub volume_attributes_class_name: Option<Name>,
    }

    /// A claim's requested and limited amounts.
    pub struct VolumeResourceRequirements {
        pub requests: ResourceList,
        pub limits: ResourceList,
    }

    /// A claim's phase and actual capacity.
    pub struct PersistentVolumeClaimStatus {
        pub phase: PersistentVolumeClaimPhase,
        pub access_modes: Vec<PersistentVolumeAccessMode>,
        pub capacity: ResourceList,
        pub conditions: Vec<Condition>,
    }

    /// `storage.k8s.io/v1` StorageClass: provisioner, binding mode and topologies.
    pub struct StorageClass {
        pub metadata: ObjectMeta,
        pub provisioner: Symbol,
        pub parameters: BTreeMap<Symbol, String>,
        pub reclaim_policy: Option<Symbol>,
        pub allow_volume_expansion: Option<bool>,
        pub volume_binding_mode: Option<VolumeBindingMode>,
        pub allowed_topologies: Vec<TopologySelectorTerm>,
    }

    /// A topology in which a class may provision: all expressions must match.
    pub struct TopologySelectorTerm {
        pub match_label_expressions: Vec<TopologySelectorLabelRequirement>,
    }

    /// A label that must have one of the values.
    pub struct TopologySelectorLabelRequirement {
        pub key: Symbol,
        pub values: Vec<Name>,
    }

    /// The CSI drivers of a node.
    pub struct CsiNode {
        pub metadata: ObjectMeta,
        pub spec: CsiNodeSpec,
    }

    /// The drivers that are installed on the node.
    pub struct CsiNodeSpec {
        pub drivers: Vec<CsiNodeDriver>,
    }

    /// A driver on a node.
    pub struct CsiNodeDriver {
        pub name: Symbol,
        #[serde(rename = "nodeID")]
        pub node_id: Name,
        pub topology_keys: Vec<Symbol>,
        pub allocatable: Option<VolumeNodeResources>,
    }

    /// How many volumes of a driver a node can hold; absent means no limit.
    pub struct VolumeNodeResources {
        pub count: Option<i32>,
    }

    /// `storage.k8s.io/v1` CSIDriver: whether the driver reports its free storage.
    pub struct CsiDriver {
        pub metadata: ObjectMeta,
        pub spec: CsiDriverSpec,
    }

    /// A driver's properties that the scheduler reads.
    pub struct CsiDriverSpec {
        pub attach_required: Option<bool>,
        pub storage_capacity: Option<bool>,
        pub volume_lifecycle_modes: Vec<Symbol>,
        pub prevent_pod_scheduling_if_missing: Option<bool>,
    }

    /// How much a class can still provision in a topology.
    pub struct CsiStorageCapacity {
        pub metadata: ObjectMeta,
        pub node_topology: Option<LabelSelector>,
        pub storage_class_name: Name,
        pub capacity: Option<Quantity>,
        pub maximum_volume_size: Option<Quantity>,
    }

    /// A volume attached to a node.
    pub struct VolumeAttachment {
        pub metadata: ObjectMeta,
        pub spec: VolumeAttachmentSpec,
        pub status: VolumeAttachmentStatus,
    }

    /// The volume, node and driver of an attachment.
    pub struct VolumeAttachmentSpec {
        pub attacher: Symbol,
        pub source: VolumeAttachmentSource,
        pub node_name: Name,
    }

    /// The volume, by the name of its object.
    pub struct VolumeAttachmentSource {
        pub persistent_volume_name: Option<Name>,
        pub inline_volume_spec: Option<Box<PersistentVolumeSpec>>,
    }

    /// Whether it is attached.
    pub struct VolumeAttachmentStatus {
        pub attached: bool,
    }
}

open_enum! {
    /// How a volume may be mounted.
    pub enum PersistentVolumeAccessMode {
        ReadWriteOnce = "ReadWriteOnce", ReadOnlyMany = "ReadOnlyMany",
        ReadWriteMany = "ReadWriteMany", ReadWriteOncePod = "ReadWriteOncePod",
    }
}

closed_enum! {
    /// Whether a volume is a file system or a raw device.
    pub enum PersistentVolumeMode { Filesystem = "Filesystem", Block = "Block" } default Filesystem
}

closed_enum! {
    /// When a class binds its claims.
    pub enum VolumeBindingMode {
        Immediate = "Immediate", WaitForFirstConsumer = "WaitForFirstConsumer",
    } default Immediate
}

open_enum! {
    /// `status.phase` of a PersistentVolume.
    pub enum PersistentVolumePhase {
        Pending = "Pending", Available = "Available", Bound = "Bound", Released = "Released",
        Failed = "Failed",
    }
}

open_enum! {
    /// `status.phase` of a PersistentVolumeClaim.
    pub enum PersistentVolumeClaimPhase { Pending = "Pending", Bound = "Bound", Lost = "Lost" }
}
