//! Volumes of Kubernetes' own old plugins, which are served by CSI drivers today: which they
//! are, and the driver and handle that stand for them.
//!
//! Upstream: `staging/src/k8s.io/csi-translation-lib` and
//! `pkg/scheduler/framework/plugins/nodevolumelimits/utils.go`.

use crate::api::{
    Labels, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume,
    Volume,
};
use crate::intern::Symbol;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// An old volume plugin with its successor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InTree {
    /// The old name, as provisioners spell it.
    pub plugin: &'static str,
    /// The CSI driver.
    pub driver: &'static str,
    /// Whether the scheduler counts its volumes as the driver's wherever a CSINode exists.
    pub counts: bool,
}

const AWS: InTree = InTree::new("kubernetes.io/aws-ebs", "ebs.csi.aws.com", true);
const GCE: InTree = InTree::new("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", true);
const AZURE_DISK: InTree = InTree::new("kubernetes.io/azure-disk", "disk.csi.azure.com", true);
const AZURE_FILE: InTree = InTree::new("kubernetes.io/azure-file", "file.csi.azure.com", false);
const CINDER: InTree = InTree::new("kubernetes.io/cinder", "cinder.csi.openstack.org", true);
const PORTWORX: InTree = InTree::new("kubernetes.io/portworx-volume", "pxd.portworx.com", true);
const VSPHERE: InTree =
    InTree::new("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", false);

const ALL: [InTree; 7] = [AWS, GCE, AZURE_DISK, AZURE_FILE, CINDER, PORTWORX, VSPHERE];

impl InTree {
    const fn new(plugin: &'static str, driver: &'static str, counts: bool) -> InTree {
        InTree { plugin, driver, counts }
    }

    /// The old plugin of that name.
    pub fn by_name(plugin: Symbol) -> Option<InTree> {
        ALL.into_iter().find(|in_tree| plugin == in_tree.plugin)
    }

    /// The old plugin of an inline volume.
    pub fn of_volume(volume: &Volume) -> Option<InTree> {
        let present = [
            (AWS, volume.aws_elastic_block_store.is_some()),
            (GCE, volume.gce_persistent_disk.is_some()),
            (AZURE_DISK, volume.azure_disk.is_some()),
            (AZURE_FILE, volume.azure_file.is_some()),
            (CINDER, volume.cinder.is_some()),
            (PORTWORX, volume.portworx_volume.is_some()),
            (VSPHERE, volume.vsphere_volume.is_some()),
        ];
        present.into_iter().find(|(_, present)| *present).map(|(in_tree, _)| in_tree)
    }

    /// The old plugin of a persistent volume.
    pub fn of_persistent_volume(volume: &PersistentVolume) -> Option<InTree> {
        let spec = &volume.spec;
        let present = [
            (AWS, spec.aws_elastic_block_store.is_some()),
            (GCE, spec.gce_persistent_disk.is_some()),
            (AZURE_DISK, spec.azure_disk.is_some()),
            (AZURE_FILE, spec.azure_file.is_some()),
            (CINDER, spec.cinder.is_some()),
            (PORTWORX, spec.portworx_volume.is_some()),
            (VSPHERE, spec.vsphere_volume.is_some()),
        ];
        present.into_iter().find(|(_, present)| *present).map(|(in_tree, _)| in_tree)
    }
}

/// The CSI handle of an inline volume, for the plugins that [count](InTree::counts); `None`
/// where the old volume's name cannot be translated.
pub fn inline_handle(volume: &Volume) -> Option<String> {
    if let Some(disk) = &volume.aws_elastic_block_store {
        return ebs_handle(disk.volume_id);
    }
    if let Some(disk) = &volume.gce_persistent_disk {
        return Some(gce_zonal_handle("UNSPECIFIED", disk.pd_name));
    }
    if let Some(disk) = &volume.azure_disk {
        return Some(disk.disk_uri.to_string());
    }
    if let Some(disk) = &volume.cinder {
        return Some(disk.volume_id.to_string());
    }
    volume.portworx_volume.as_ref().map(|disk| disk.volume_id.to_string())
}

/// The CSI handle of a persistent volume of an old plugin; `None` where it has none.
pub fn volume_handle(volume: &PersistentVolume) -> Option<String> {
    let spec = &volume.spec;
    if let Some(disk) = &spec.aws_elastic_block_store {
        return ebs_handle(disk.volume_id);
    }
    if let Some(disk) = &spec.gce_persistent_disk {
        return gce_handle(&volume.metadata.labels, disk.pd_name);
    }
    if let Some(disk) = &spec.azure_disk {
        return Some(disk.disk_uri.to_string());
    }
    if let Some(disk) = &spec.cinder {
        return Some(disk.volume_id.to_string());
    }
    spec.portworx_volume.as_ref().map(|disk| disk.volume_id.to_string())
}

/// `vol-…` out of `aws://ZONE/vol-…`, or as it stands.
fn ebs_handle(id: Symbol) -> Option<String> {
    let Some(url) = id.strip_prefix("aws://") else { return Some(id.to_string()) };
    let (_zone, path) = url.split_once('/')?;
    let handle = path.trim_matches('/');
    (handle.starts_with("vol-") && !handle.contains('/')).then(|| handle.to_owned())
}

fn gce_zonal_handle(zone: &str, disk: Symbol) -> String {
    format!("projects/UNSPECIFIED/zones/{zone}/disks/{disk}")
}

/// A disk's zone is in the volume's labels; several zones make it a regional disk.
fn gce_handle(labels: &Labels, disk: Symbol) -> Option<String> {
    let label = |key| labels.get_str(key).filter(|zones| !zones.is_empty());
    let zones = label(ZONE).or_else(|| label(BETA_ZONE));
    let Some(zones) = zones else { return Some(gce_zonal_handle("UNSPECIFIED", disk)) };
    let Some((first, _)) = zones.split_once("__") else {
        return Some(gce_zonal_handle(zones, disk));
    };
    let (region, _) = first.rsplit_once('-')?;
    Some(format!("projects/UNSPECIFIED/regions/{region}/disks/{disk}"))
}

/// The volume with its node affinity in the terms of the CSI driver: zones under the driver's
/// own label, taken from the volume's labels where its affinity names none.
pub fn translate_topology(in_tree: InTree, volume: &PersistentVolume) -> PersistentVolume {
    let mut translated = volume.clone();
    let driver_zone = match in_tree {
        AWS => "topology.ebs.csi.aws.com/zone",
        GCE => "topology.gke.io/zone",
        CINDER => "topology.cinder.csi.openstack.org/zone",
        _ => return translated,
    };
    let affinity = translated.spec.node_affinity.get_or_insert_default();
    let terms = &mut affinity.required.get_or_insert_default().node_selector_terms;
    let labels = &volume.metadata.labels;
    let beta = !names(terms, ZONE)
        && (names(terms, BETA_ZONE)
            || (labels.get_str(ZONE).is_none() && labels.get_str(BETA_ZONE).is_some()));
    let zone = if beta { BETA_ZONE } else { ZONE };
    if names(terms, zone) {
        rename(terms, zone, driver_zone);
    } else if let Some(zones) = labels.get_str(zone) {
        add_zones(terms, driver_zone, zones);
    }
    if beta {
        rename(terms, BETA_REGION, REGION);
    }
    if terms.is_empty() {
        translated.spec.node_affinity = volume.spec.node_affinity.clone();
    }
    translated
}

fn names(terms: &[NodeSelectorTerm], key: &str) -> bool {
    terms.iter().flat_map(|term| &term.match_expressions).any(|expression| expression.key == key)
}

fn rename(terms: &mut [NodeSelectorTerm], from: &str, to: &str) {
    let expressions = terms.iter_mut().flat_map(|term| &mut term.match_expressions);
    for expression in expressions.filter(|expression| expression.key == from) {
        expression.key = to.into();
    }
}

/// Adds the zones of a label to every term, or as the only one.
fn add_zones(terms: &mut Vec<NodeSelectorTerm>, key: &str, label: &str) {
    let zones = label.split("__").map(str::trim).filter(|zone| !zone.is_empty());
    let mut values: Vec<Symbol> = zones.map(Symbol::new).collect();
    values.sort();
    values.dedup();
    if values.is_empty() {
        return;
    }
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    let operator = NodeSelectorOperator::In;
    for term in terms {
        let values = values.clone();
        let expression = NodeSelectorRequirement { key: key.into(), operator, values };
        term.match_expressions.push(expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(json: serde_json::Value) -> Volume {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn inline_disks_become_handles_of_drivers() {
        let ebs =
            volume(serde_json::json!({"awsElasticBlockStore": {"volumeID": "aws://us-a/vol-1"}}));
        assert_eq!(InTree::of_volume(&ebs).map(|found| found.driver), Some("ebs.csi.aws.com"));
        assert_eq!(inline_handle(&ebs), Some("vol-1".to_owned()));
        let gce = volume(serde_json::json!({"gcePersistentDisk": {"pdName": "d"}}));
        let handle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d";
        assert_eq!(inline_handle(&gce), Some(handle.to_owned()));
        let rbd = volume(serde_json::json!({"rbd": {"image": "i"}}));
        assert_eq!(InTree::of_volume(&rbd), None);
    }

    #[test]
    fn a_disk_in_several_zones_is_regional() {
        let mut disk: PersistentVolume = serde_json::from_value(serde_json::json!({
            "spec": {"gcePersistentDisk": {"pdName": "d"}},
        }))
        .unwrap();
        let zone = "topology.kubernetes.io/zone";
        disk.metadata.labels = [(zone, "us-east1-b")].into();
        let zonal = "projects/UNSPECIFIED/zones/us-east1-b/disks/d";
        assert_eq!(volume_handle(&disk), Some(zonal.to_owned()));
        disk.metadata.labels = [(zone, "us-east1-b__us-east1-c")].into();
        let regional = "projects/UNSPECIFIED/regions/us-east1/disks/d";
        assert_eq!(volume_handle(&disk), Some(regional.to_owned()));
    }

    #[test]
    fn provisioners_are_known_by_name() {
        let found = InTree::by_name("kubernetes.io/cinder".into());
        assert_eq!(found.map(|found| found.driver), Some("cinder.csi.openstack.org"));
        assert_eq!(InTree::by_name("example.com/mine".into()), None);
    }
}
