//! Volumes of in-tree plugins that CSI drivers serve after migration: which plugins they are, and
//! the driver and handle that stand for each volume.
//!
//! Upstream: `staging/src/k8s.io/csi-translation-lib` and
//! `pkg/scheduler/framework/plugins/nodevolumelimits/utils.go`.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    AzureDiskVolumeSource, Labels, Name, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm, PersistentVolume, Volume,
};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// An in-tree volume plugin and the CSI driver that replaces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InTree {
    /// The in-tree name, as provisioners spell it.
    pub plugin: &'static str,
    /// The CSI driver, by name.
    pub driver: &'static str,
    /// Whether the scheduler counts its volumes as the driver's if the node has a CSINode.
    pub counts: bool,
}

pub(crate) const AWS: InTree = InTree::new("kubernetes.io/aws-ebs", "ebs.csi.aws.com", true);
pub(crate) const GCE: InTree = InTree::new("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", true);
pub(crate) const AZURE_DISK: InTree =
    InTree::new("kubernetes.io/azure-disk", "disk.csi.azure.com", true);
const AZURE_FILE: InTree = InTree::new("kubernetes.io/azure-file", "file.csi.azure.com", false);
pub(crate) const CINDER: InTree =
    InTree::new("kubernetes.io/cinder", "cinder.csi.openstack.org", true);
pub(crate) const PORTWORX: InTree =
    InTree::new("kubernetes.io/portworx-volume", "pxd.portworx.com", true);
const VSPHERE: InTree =
    InTree::new("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", false);

const ALL: [InTree; 7] = [AWS, GCE, AZURE_DISK, AZURE_FILE, CINDER, PORTWORX, VSPHERE];

impl InTree {
    const fn new(plugin: &'static str, driver: &'static str, counts: bool) -> InTree {
        InTree { plugin, driver, counts }
    }

    /// The in-tree plugin of that name.
    pub fn by_name(plugin: Symbol) -> Option<InTree> {
        ALL.into_iter().find(|in_tree| plugin == in_tree.plugin)
    }

    /// The in-tree plugin of an inline volume.
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

    /// The in-tree plugin of a persistent volume.
    pub(crate) fn of_persistent_volume(volume: &PersistentVolume) -> Option<InTree> {
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

/// A CSI handle; or upstream's message that the in-tree volume cannot be translated.
pub(crate) type VolumeHandle = Result<String, String>;

/// The CSI handle of an inline volume, for the plugins that [count](InTree::counts).
///
/// # Errors
/// The in-tree volume cannot be translated.
pub(crate) fn inline_handle(volume: &Volume) -> VolumeHandle {
    if let Some(disk) = &volume.aws_elastic_block_store {
        return ebs_handle(disk.volume_id);
    }
    if let Some(disk) = &volume.gce_persistent_disk {
        return Ok(gce_zonal_handle("UNSPECIFIED", disk.pd_name));
    }
    if let Some(disk) = &volume.azure_disk {
        return azure_handle(disk);
    }
    if let Some(disk) = &volume.cinder {
        return Ok(disk.volume_id.to_string());
    }
    match &volume.portworx_volume {
        Some(disk) => Ok(disk.volume_id.to_string()),
        None => Err(untranslatable(&volume.name)),
    }
}

/// The CSI handle of a persistent volume of an in-tree plugin that [counts](InTree::counts).
///
/// # Errors
/// The in-tree volume cannot be translated.
pub(crate) fn volume_handle(volume: &PersistentVolume) -> VolumeHandle {
    let spec = &volume.spec;
    if let Some(disk) = &spec.aws_elastic_block_store {
        return ebs_handle(disk.volume_id);
    }
    if let Some(disk) = &spec.gce_persistent_disk {
        return gce_handle(&volume.metadata.labels, disk.pd_name);
    }
    if let Some(disk) = &spec.azure_disk {
        return azure_handle(disk);
    }
    if let Some(disk) = &spec.cinder {
        return Ok(disk.volume_id.to_string());
    }
    match &spec.portworx_volume {
        Some(disk) => Ok(disk.volume_id.to_string()),
        None => Err(untranslatable(&volume.metadata.name.text())),
    }
}

fn untranslatable(name: &str) -> String {
    format!("could not find in-tree plugin translation logic for {name:?}")
}

/// `vol-…` from `aws://ZONE/vol-…`; any other id unchanged.
fn ebs_handle(id: Symbol) -> VolumeHandle {
    let Some(url) = id.strip_prefix("aws://") else { return Ok(id.to_string()) };
    let path = url.split_once('/').map_or("", |(_zone, path)| path);
    let handle = path.trim_matches('/');
    if handle.starts_with("vol-") && !handle.contains('/') {
        return Ok(handle.to_owned());
    }
    Err(format!(
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({id})"
    ))
}

/// Only managed disks are served by the CSI driver.
fn azure_handle(disk: &AzureDiskVolumeSource) -> VolumeHandle {
    match disk.kind {
        Some(kind) if !kind.eq_ignore_ascii_case("Managed") => {
            Err(format!("kind({kind}) is not supported in csi migration"))
        }
        _ => Ok(disk.disk_uri.to_string()),
    }
}

fn gce_zonal_handle(zone: &str, disk: Symbol) -> String {
    format!("projects/UNSPECIFIED/zones/{zone}/disks/{disk}")
}

/// The zone of a disk is in the volume's labels; a disk in several zones is regional.
fn gce_handle(labels: &Labels, disk: Symbol) -> VolumeHandle {
    let label = |key| labels.get_str(key).filter(|zones| !zones.is_empty());
    let zones = label(BETA_ZONE).or_else(|| label(ZONE));
    let Some(zones) = zones else { return Ok(gce_zonal_handle("UNSPECIFIED", disk)) };
    let zones = zones.text();
    if !zones.contains("__") {
        return Ok(gce_zonal_handle(&zones, disk));
    }
    let region =
        gce_region(&zones).map_err(|why| format!("failed to get region from zones: {why}"));
    Ok(format!("projects/UNSPECIFIED/regions/{}/disks/{disk}", region?))
}

/// The region that all zones have in common.
fn gce_region(zones: &str) -> Result<String, String> {
    let mut regions = BTreeSet::new();
    for zone in zones.split("__") {
        match zone.split('-').collect::<Vec<_>>()[..] {
            [locale, region, _zone] => regions.insert(format!("{locale}-{region}")),
            _ => {
                return Err(format!(
                    "zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, \
                     got: {zone}"
                ));
            }
        };
    }
    let all: Vec<String> = regions.iter().map(|region| format!("{region}:{{}}")).collect();
    match (regions.pop_first(), regions.is_empty()) {
        (Some(region), true) => Ok(region),
        _ => Err(format!("multiple or no regions gotten from zones, got: map[{}]", all.join(" "))),
    }
}

/// The volume with its node affinity translated for the CSI driver: zones use the driver's
/// topology label, and come from the volume's labels if the affinity names none.
pub(crate) fn translate_topology(in_tree: InTree, volume: &PersistentVolume) -> PersistentVolume {
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
    if has_values(terms, zone) {
        rename(terms, zone, driver_zone);
    } else if let Some(zones) = labels.get_str(zone) {
        add_zones(terms, driver_zone, &zones.text());
    }
    if beta && has_values(terms, BETA_REGION) {
        rename(terms, BETA_REGION, REGION);
    }
    if terms.is_empty() {
        translated.spec.node_affinity = volume.spec.node_affinity.clone();
    }
    translated
}

fn expressions<'a>(
    terms: &'a [NodeSelectorTerm],
    key: &'a str,
) -> impl Iterator<Item = &'a NodeSelectorRequirement> {
    let all = terms.iter().flat_map(|term| &term.match_expressions);
    all.filter(move |expression| expression.key == key)
}

fn names(terms: &[NodeSelectorTerm], key: &str) -> bool {
    expressions(terms, key).next().is_some()
}

fn has_values(terms: &[NodeSelectorTerm], key: &str) -> bool {
    expressions(terms, key).any(|expression| !expression.values.is_empty())
}

fn rename(terms: &mut [NodeSelectorTerm], from: &str, to: &str) {
    let expressions = terms.iter_mut().flat_map(|term| &mut term.match_expressions);
    for expression in expressions.filter(|expression| expression.key == from) {
        expression.key = to.into();
    }
}

/// Requires one of a label's zones in every term; without terms, adds one.
fn add_zones(terms: &mut Vec<NodeSelectorTerm>, key: &str, label: &str) {
    let zones = label.split("__").map(str::trim).filter(|zone| !zone.is_empty());
    let mut values: Vec<Name> = zones.map(Name::new).collect();
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
        assert_eq!(inline_handle(&ebs), Ok("vol-1".to_owned()));
        let gce = volume(serde_json::json!({"gcePersistentDisk": {"pdName": "d"}}));
        let handle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d";
        assert_eq!(inline_handle(&gce), Ok(handle.to_owned()));
        let rbd = volume(serde_json::json!({"rbd": {"image": "i"}}));
        assert_eq!(InTree::of_volume(&rbd), None);
    }

    /// KubernetesVolumeIDToEBSVolumeID, and the kinds of Azure disks.
    #[test]
    fn what_cannot_be_translated_is_an_error() {
        let ebs = |id: &str| {
            inline_handle(&volume(serde_json::json!({"awsElasticBlockStore": {"volumeID": id}})))
        };
        let text =
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume";
        assert_eq!(ebs("aws://zone/disk-1"), Err(format!("{text} (aws://zone/disk-1)")));
        assert_eq!(ebs("aws://vol-1"), Err(format!("{text} (aws://vol-1)")));
        assert_eq!(ebs("aws:///vol-1/"), Ok("vol-1".to_owned()));
        let azure = |kind: Option<&str>| {
            let disk = serde_json::json!({"azureDisk": {"diskURI": "uri", "kind": kind}});
            inline_handle(&volume(disk))
        };
        assert_eq!(azure(None), Ok("uri".to_owned()));
        assert_eq!(azure(Some("managed")), Ok("uri".to_owned()));
        let text = "kind(Shared) is not supported in csi migration";
        assert_eq!(azure(Some("Shared")), Err(text.to_owned()));
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
        assert_eq!(volume_handle(&disk), Ok(zonal.to_owned()));
        disk.metadata.labels = [(zone, "us-east1-b__us-east1-c")].into();
        let regional = "projects/UNSPECIFIED/regions/us-east1/disks/d";
        assert_eq!(volume_handle(&disk), Ok(regional.to_owned()));
        let error = |zones: &str| {
            let mut other = disk.clone();
            other.metadata.labels = [(zone, zones)].into();
            volume_handle(&other).unwrap_err()
        };
        assert_eq!(
            error("b__c"),
            "failed to get region from zones: zone in unexpected format, expected: \
             {locale}-{region}-{zone}, got: b"
        );
        assert_eq!(
            error("us-b-c__us-a-b"),
            "failed to get region from zones: multiple or no regions gotten from zones, got: \
             map[us-a:{} us-b:{}]"
        );
        // If both labels are set, the beta label decides.
        let beta = "failure-domain.beta.kubernetes.io/zone";
        disk.metadata.labels = [(zone, "us-a-b"), (beta, "us-east1-b")].into();
        assert_eq!(volume_handle(&disk), Ok(zonal.to_owned()));
    }

    #[test]
    fn provisioners_are_known_by_name() {
        let found = InTree::by_name("kubernetes.io/cinder".into());
        assert_eq!(found.map(|found| found.driver), Some("cinder.csi.openstack.org"));
        assert_eq!(InTree::by_name("example.com/mine".into()), None);
    }
}
