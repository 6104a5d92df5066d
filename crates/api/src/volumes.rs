//! Volumes of pods (`core/v1 Volume`): the sources that the scheduler reads, and the mere presence
//! of the others.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};

use crate::intern::Symbol;
use crate::macros::{api_structs, text};
use crate::{Name, ObjectMeta, PersistentVolumeClaimSpec};

/// A source of which only the presence matters; its content is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Present {}

/// The prefix of the name of the volume with a pod's token; a hyphen and five random characters
/// follow.
const TOKEN_VOLUME: &str = "kube-api-access";

/// The name of a pod's volume.
///
/// The random suffix of the name that the API server gives to the token volume is dropped. No
/// stored object refers to it, and without it pods of one template share their volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct VolumeName(Symbol);

impl From<&str> for VolumeName {
    fn from(name: &str) -> VolumeName {
        let is_token = name.strip_prefix(TOKEN_VOLUME).is_some_and(|end| end.starts_with('-'));
        VolumeName(Symbol::new(if is_token { TOKEN_VOLUME } else { name }))
    }
}

impl From<Symbol> for VolumeName {
    fn from(name: Symbol) -> VolumeName {
        VolumeName::from(name.as_str())
    }
}

impl Deref for VolumeName {
    type Target = Symbol;
    fn deref(&self) -> &Symbol {
        &self.0
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for VolumeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VolumeName, D::Error> {
        text(deserializer, |name| Ok::<_, std::convert::Infallible>(VolumeName::from(name)))
    }
}

impl Volume {
    /// Whether it may be attached to a node and names no claim: its claim is made for the pod, or it
    /// is of an in-tree plugin that may be migrated to a CSI driver.
    pub fn attaches_without_claim(&self) -> bool {
        match &self.persistent_volume_claim {
            Some(claim) => claim.claim_name.is_empty(),
            None => {
                self.ephemeral.is_some()
                    || self.aws_elastic_block_store.is_some()
                    || self.gce_persistent_disk.is_some()
                    || self.azure_disk.is_some()
                    || self.azure_file.is_some()
                    || self.cinder.is_some()
                    || self.portworx_volume.is_some()
                    || self.vsphere_volume.is_some()
            }
        }
    }
}

api_structs! {
    /// A volume of a pod: at most one of the sources is set.
    pub struct Volume {
        pub name: VolumeName,
        pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
        pub ephemeral: Option<Box<EphemeralVolumeSource>>,
        pub csi: Option<CsiVolumeSource>,
        pub gce_persistent_disk: Option<Box<GcePersistentDiskVolumeSource>>,
        pub aws_elastic_block_store: Option<Box<AwsElasticBlockStoreVolumeSource>>,
        pub rbd: Option<Box<RbdVolumeSource>>,
        pub iscsi: Option<Box<IscsiVolumeSource>>,
        pub azure_disk: Option<Box<AzureDiskVolumeSource>>,
        pub azure_file: Option<Present>,
        pub cinder: Option<Box<CinderVolumeSource>>,
        pub portworx_volume: Option<Box<PortworxVolumeSource>>,
        pub vsphere_volume: Option<Present>,
        pub image: Option<Box<ImageVolumeSource>>,
        pub config_map: Option<Present>,
        pub secret: Option<Present>,
        pub projected: Option<Present>,
        #[serde(rename = "downwardAPI")]
        pub downward_api: Option<Present>,
        pub empty_dir: Option<Present>,
        pub host_path: Option<Present>,
        pub nfs: Option<Present>,
    }

    /// A reference to a claim in the pod's namespace.
    pub struct PersistentVolumeClaimVolumeSource {
        pub claim_name: Name,
        pub read_only: bool,
    }

    /// A claim created for this pod alone, named `POD-VOLUME`.
    pub struct EphemeralVolumeSource {
        pub volume_claim_template: Option<PersistentVolumeClaimTemplate>,
    }

    /// The template of that claim.
    pub struct PersistentVolumeClaimTemplate {
        pub metadata: ObjectMeta,
        pub spec: PersistentVolumeClaimSpec,
    }

    /// An inline CSI volume.
    pub struct CsiVolumeSource {
        pub driver: Symbol,
        pub read_only: Option<bool>,
    }

    /// A GCE disk; CSI migration makes it one of `pd.csi.storage.gke.io`.
    pub struct GcePersistentDiskVolumeSource {
        pub pd_name: Symbol,
        pub partition: i32,
        pub read_only: bool,
    }

    /// An EBS volume; CSI migration makes it one of `ebs.csi.aws.com`.
    pub struct AwsElasticBlockStoreVolumeSource {
        #[serde(rename = "volumeID")]
        pub volume_id: Symbol,
        pub partition: i32,
        pub read_only: bool,
    }

    /// A Ceph block device; `pool` defaults to `rbd`.
    pub struct RbdVolumeSource {
        pub monitors: Vec<Symbol>,
        pub image: Symbol,
        pub pool: Symbol,
        pub read_only: bool,
    }

    /// An iSCSI disk, identified by portal, IQN and LUN.
    pub struct IscsiVolumeSource {
        pub target_portal: Symbol,
        pub portals: Vec<Symbol>,
        pub iqn: Symbol,
        pub lun: i32,
        pub read_only: bool,
    }

    /// An Azure disk; CSI migration makes it one of `disk.csi.azure.com`.
    pub struct AzureDiskVolumeSource {
        pub disk_name: Symbol,
        #[serde(rename = "diskURI")]
        pub disk_uri: Symbol,
        pub kind: Option<Symbol>,
        pub read_only: Option<bool>,
    }

    /// An OpenStack volume; CSI migration makes it one of `cinder.csi.openstack.org`.
    pub struct CinderVolumeSource {
        #[serde(rename = "volumeID")]
        pub volume_id: Symbol,
        pub read_only: bool,
    }

    /// A Portworx volume; CSI migration makes it one of `pxd.portworx.com`.
    pub struct PortworxVolumeSource {
        #[serde(rename = "volumeID")]
        pub volume_id: Symbol,
        pub read_only: bool,
    }

    /// An OCI image mounted as a volume; ImageLocality counts it like a container's image.
    pub struct ImageVolumeSource {
        pub reference: Symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_end_of_the_volume_with_the_token_is_left_out() {
        for (written, kept) in [
            ("kube-api-access-x7k2p", "kube-api-access"),
            ("kube-api-access", "kube-api-access"),
            ("kube-api-accessory", "kube-api-accessory"),
            ("data-x7k2p", "data-x7k2p"),
        ] {
            let volume: Volume =
                serde_json::from_value(serde_json::json!({"name": written, "projected": {}}))
                    .unwrap();
            assert_eq!(volume.name.as_str(), kept);
        }
        assert!(serde_json::from_str::<Volume>(r#"{"name": 1}"#).is_err());
    }
}
