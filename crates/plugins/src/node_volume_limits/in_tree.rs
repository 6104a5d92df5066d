//! EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits: each limits the volumes of one in-tree
//! volume plugin on nodes without a CSINode. 1.31 was the last version to have them; no default
//! profile has one.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go` (1.31). The environment
//! variable `KUBE_MAX_PD_VOLS` of kube-scheduler is not read: what runs does not depend on where
//! kubestep is started, and the node's allocatable, which comes first, sets any limit.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::over::csi_node;
use super::{LimitReason, rejection};
use crate::volumes::migration::{AWS, AZURE_DISK, CINDER, GCE, InTree};
use crate::volumes::{self, ClaimVolume};
use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kubestep_config::versions::Switch;
use kubestep_config::{ExtensionPoint, FeatureGates, PluginChange, PluginDescriptor, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{CycleContext, Plugin, PreFilterAnswer};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of EBSLimits.
pub const EBS: PluginDescriptor = descriptor("EBSLimits", "how many EBS volumes a node can attach");
/// What configurations and the manual know of GCEPDLimits.
pub const GCE_PD: PluginDescriptor =
    descriptor("GCEPDLimits", "how many GCE persistent disks a node can attach");
/// What configurations and the manual know of AzureDiskLimits.
pub const AZURE: PluginDescriptor =
    descriptor("AzureDiskLimits", "how many Azure disks a node can attach");
/// What configurations and the manual know of CinderLimits.
pub const OPENSTACK: PluginDescriptor =
    descriptor("CinderLimits", "how many Cinder volumes a node can attach");

const fn descriptor(name: &'static str, doc: &'static str) -> PluginDescriptor {
    PluginDescriptor {
        signs: false,
        history: &[PluginChange::Removed(Switch::InTreeVolumeLimitsRemoved)],
        doc,
        long_doc: "Counts the volumes of one in-tree volume plugin on nodes without a CSINode; on \
                   the others, NodeVolumeLimits counts them for the CSI driver. The limit is the \
                   node's allocatable attachable-volumes-…, else the plugin's own. The environment \
                   of a kube-scheduler is not read: where its KUBE_MAX_PD_VOLS sets a limit for \
                   nodes without that resource, set the resource to the same limit.",
        example: "A node without a CSINode whose allocatable attachable volumes are 2 has 2 of \
                  them: a pod with one more is rejected there.",
        ..PluginDescriptor::new(name, &[ExtensionPoint::PreFilter, ExtensionPoint::Filter])
    }
}

/// Builds EBSLimits for a profile.
pub fn build_ebs(_: &ProfileArgs, _: &FeatureGates) -> Built {
    build(EBS.name, AWS, "attachable-volumes-aws-ebs", ebs_limit)
}

/// Builds GCEPDLimits, up to 1.31.
pub fn build_gce_pd(_: &ProfileArgs, _: &FeatureGates) -> Built {
    build(GCE_PD.name, GCE, "attachable-volumes-gce-pd", |_| 16)
}

/// Builds AzureDiskLimits, up to 1.31.
pub fn build_azure(_: &ProfileArgs, _: &FeatureGates) -> Built {
    build(AZURE.name, AZURE_DISK, "attachable-volumes-azure-disk", |_| 16)
}

/// Builds CinderLimits, up to 1.31.
pub fn build_openstack(_: &ProfileArgs, _: &FeatureGates) -> Built {
    build(OPENSTACK.name, CINDER, "attachable-volumes-cinder", |_| 256)
}

fn build(name: &str, in_tree: InTree, resource: &str, limit: fn(&Labels) -> i64) -> Built {
    Ok(Arc::new(InTreeLimits {
        name: name.into(),
        in_tree,
        resource: resource.into(),
        limit,
        exceeded: rejection(&LimitReason::OverLimit(Vec::new())),
    }))
}

struct InTreeLimits {
    name: Symbol,
    in_tree: InTree,
    /// The allocatable resource that replaces the limit.
    resource: Symbol,
    /// The limit of a node with these labels.
    limit: fn(&Labels) -> i64,
    /// Built once, as every full node gets it.
    exceeded: Status,
}

/// Nitro instances attach fewer volumes.
fn ebs_limit(labels: &Labels) -> i64 {
    let label = |key| labels.get_str(key).copied();
    let instance = label("node.kubernetes.io/instance-type")
        .or_else(|| label("beta.kubernetes.io/instance-type"))
        .unwrap_or_default();
    let families = ["c5", "m5", "r5"];
    let is_nitro = families.iter().any(|family| instance.text().starts_with(family))
        || instance.text().contains("t3")
        || instance.text().contains("z1d");
    if is_nitro { 25 } else { 39 }
}

/// What counts as one volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CountedVolume {
    /// A volume, by the id that the in-tree plugin has for it.
    Id(Symbol),
    /// The volume of a claim whose own is unknown.
    OfClaim(NamespacedName),
}

impl InTreeLimits {
    /// Adds the volumes of a pod. Unless the pod is `new`, missing claims are ignored.
    fn add(
        &self,
        counted: &mut BTreeSet<CountedVolume>,
        pod: &Pod,
        objects: &Objects,
        new: bool,
    ) -> Result<(), Status> {
        for volume in &pod.spec.volumes {
            if let Some(id) = self.inline_id(volume) {
                counted.insert(CountedVolume::Id(id));
                continue;
            }
            let Some(named) = ClaimVolume::of(pod, volume) else { continue };
            if named.key.name.is_empty() {
                return Err(Status::error("PersistentVolumeClaim had no name"));
            }
            let claim = match volumes::find_claim(objects, named.key) {
                Ok(claim) => claim,
                Err(text) if new => {
                    let text = format!("looking up PVC {}: {text}", named.key);
                    return Err(volumes::unresolvable(text));
                }
                Err(_) => continue,
            };
            if named.ephemeral {
                volumes::check_owner(pod, claim).map_err(Status::error)?;
            }
            counted.extend(self.of_claim(objects, claim, named.key));
        }
        Ok(())
    }

    fn of_claim(
        &self,
        objects: &Objects,
        claim: &PersistentVolumeClaim,
        key: NamespacedName,
    ) -> Option<CountedVolume> {
        let cluster_wide = |name| NamespacedName::new(Symbol::EMPTY, name);
        let volume = Some(claim.spec.volume_name).filter(|name| !name.is_empty());
        match volume.and_then(|name| objects.persistent_volumes.get(&cluster_wide(name))) {
            Some(volume) => self.id(volume).map(CountedVolume::Id),
            None => {
                let class =
                    objects.storage_classes.get(&cluster_wide(claim.spec.storage_class_name?));
                let of_plugin = class.is_some_and(|class| class.provisioner == self.in_tree.plugin);
                of_plugin.then_some(CountedVolume::OfClaim(key))
            }
        }
    }

    fn inline_id(&self, volume: &Volume) -> Option<Symbol> {
        match self.in_tree {
            AWS => volume.aws_elastic_block_store.as_ref().map(|disk| disk.volume_id),
            GCE => volume.gce_persistent_disk.as_ref().map(|disk| disk.pd_name),
            AZURE_DISK => volume.azure_disk.as_ref().map(|disk| disk.disk_name),
            _ => volume.cinder.as_ref().map(|disk| disk.volume_id),
        }
    }

    fn id(&self, volume: &PersistentVolume) -> Option<Symbol> {
        let spec = &volume.spec;
        match self.in_tree {
            AWS => spec.aws_elastic_block_store.as_ref().map(|disk| disk.volume_id),
            GCE => spec.gce_persistent_disk.as_ref().map(|disk| disk.pd_name),
            AZURE_DISK => spec.azure_disk.as_ref().map(|disk| disk.disk_name),
            _ => spec.cinder.as_ref().map(|disk| disk.volume_id),
        }
    }

    fn limit_of(&self, node: &NodeInfo) -> i64 {
        let scalars = &node.allocatable.scalars;
        let allocatable = scalars.iter().find(|(name, _)| *name == self.resource);
        let labels = || node.node.as_ref().map_or(0, |node| (self.limit)(&node.metadata.labels));
        allocatable.map_or_else(labels, |(_, amount)| *amount)
    }

    fn check(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> Result<(), Status> {
        let mut new = BTreeSet::new();
        self.add(&mut new, &cx.pod.pod, cx.objects, true)?;
        if new.is_empty() || csi_node(cx, node).is_some() {
            return Ok(());
        }
        let mut attached = BTreeSet::new();
        for pod in node.pods.iter() {
            self.add(&mut attached, &pod.pod, cx.objects, false)?;
        }
        let all = attached.union(&new).count();
        let fits = i64::try_from(all).is_ok_and(|all| all <= self.limit_of(node));
        if fits { Ok(()) } else { Err(self.exceeded.clone()) }
    }
}

impl Plugin for InTreeLimits {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::always(EventResource::Node, Action::ADD),
            Registration::always(EventResource::Pod, Action::DELETE),
            Registration::always(EventResource::PersistentVolumeClaim, Action::ADD),
        ])
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, _state: &mut CycleState) -> PreFilterAnswer {
        let pod = &cx.pod.pod;
        let may_count =
            |volume| self.inline_id(volume).is_some() || ClaimVolume::of(pod, volume).is_some();
        match pod.spec.volumes.iter().any(may_count) {
            true => PreFilterAnswer::default(),
            false => Status::skip().into(),
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        self.check(cx, node).err().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_framework::testing::{Cluster, info_of, plugin};

    fn pod(name: &str, volumes: Value) -> Value {
        let metadata = json!({"name": name, "namespace": "d", "uid": name});
        json!({"metadata": metadata, "spec": {"volumes": volumes}})
    }

    fn ebs(ids: &[&str]) -> Value {
        let volume = |id: &&str| json!({"awsElasticBlockStore": {"volumeID": id}});
        ids.iter().map(volume).collect()
    }

    fn claimed(claim: &str) -> Value {
        json!([{"persistentVolumeClaim": {"claimName": claim}}])
    }

    /// A node that may have two EBS volumes and has the volume `a`.
    fn cluster() -> Cluster {
        let allocatable = json!({"attachable-volumes-aws-ebs": "2"});
        let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}});
        let mut there = pod("there", ebs(&["a"]));
        there["spec"]["nodeName"] = "n".into();
        Cluster::of(vec![node], vec![there])
    }

    fn put(cluster: Cluster, kind: &str, name: &str, namespace: &str, rest: Value) -> Cluster {
        let mut object = json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        cluster.with(kubestep_framework::testing::object(object))
    }

    /// The message of EBSLimits about the only node; empty if the pod fits.
    fn message_for(cluster: &Cluster, volumes: Value) -> String {
        let plugin = plugin(build_ebs, &ProfileArgs::default());
        let pod = info_of(pod("new", volumes));
        let cx = cluster.cx(&pod);
        let mut state = CycleState::default();
        if plugin.pre_filter(&cx, &mut state).status == Status::skip() {
            return "skipped".to_owned();
        }
        let node = cluster.snapshot.iter().next().unwrap().clone();
        plugin.filter(&cx, &state, &node).message()
    }

    const EXCEEDED: &str = "node(s) exceed max volume count";

    /// Upstream's TestEBSLimits, in part.
    #[test]
    fn distinct_volumes_are_counted_up_to_what_the_node_offers() {
        let cluster = cluster();
        assert_eq!(message_for(&cluster, ebs(&["b"])), "");
        assert_eq!(message_for(&cluster, ebs(&["a", "b"])), "", "a is attached already");
        assert_eq!(message_for(&cluster, ebs(&["b", "c"])), EXCEEDED);
        assert_eq!(message_for(&cluster, json!([{"emptyDir": {}}])), "skipped");
        let cinder = json!([{"cinder": {"volumeID": "x"}}, {"cinder": {"volumeID": "y"}}]);
        assert_eq!(message_for(&cluster, cinder), "skipped");
    }

    #[test]
    fn each_cloud_counts_its_own_disks() {
        let disks = [
            (build_ebs as fn(&ProfileArgs, &FeatureGates) -> Built, "aws-ebs", ebs(&["a"])),
            (build_gce_pd, "gce-pd", json!([{"gcePersistentDisk": {"pdName": "a"}}])),
            (build_azure, "azure-disk", json!([{"azureDisk": {"diskName": "a"}}])),
            (build_openstack, "cinder", json!([{"cinder": {"volumeID": "a"}}])),
        ];
        for (build, resource, _) in &disks {
            let allocatable = json!({(format!("attachable-volumes-{resource}")): "0"});
            let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}});
            let cluster = Cluster::of(vec![node], Vec::new());
            let plugin = plugin(*build, &ProfileArgs::default());
            for (_, other, volumes) in &disks {
                let statuses = cluster.filter(&plugin, &info_of(pod("new", volumes.clone())));
                match resource == other {
                    true => assert_eq!(statuses.unwrap()[0].message(), EXCEEDED, "{resource}"),
                    false => assert!(statuses.unwrap_err().is_skip(), "{resource} {other}"),
                }
            }
        }
    }

    #[test]
    fn a_node_with_a_csi_node_is_left_to_node_volume_limits() {
        let cluster = put(cluster(), "CSINode", "n", "", json!({"spec": {"drivers": []}}));
        assert_eq!(message_for(&cluster, ebs(&["b", "c"])), "");
    }

    #[test]
    fn volumes_of_claims_count_by_their_volume_or_their_class() {
        let volume = json!({"spec": {"awsElasticBlockStore": {"volumeID": "b"}}});
        let class = json!({"provisioner": "kubernetes.io/aws-ebs"});
        let mut cluster = put(cluster(), "PersistentVolume", "v", "", volume);
        cluster = put(cluster, "StorageClass", "ebs", "", class);
        for (name, spec) in [
            ("bound", json!({"volumeName": "v"})),
            ("lost", json!({"volumeName": "none", "storageClassName": "ebs"})),
            ("new", json!({"storageClassName": "ebs"})),
            ("other", json!({"storageClassName": "unknown"})),
        ] {
            cluster = put(cluster, "PersistentVolumeClaim", name, "d", json!({"spec": spec}));
        }
        let with = |claim: &str, ids: &[&str]| {
            let mut volumes = claimed(claim);
            volumes.as_array_mut().unwrap().extend(ebs(ids).as_array().unwrap().clone());
            message_for(&cluster, volumes)
        };
        assert_eq!(with("bound", &["b"]), "", "they are one volume");
        for claim in ["bound", "lost", "new"] {
            assert_eq!((with(claim, &[]), with(claim, &["c"])), (String::new(), EXCEEDED.into()));
        }
        assert_eq!(with("other", &["c"]), "");
        let missing = "looking up PVC d/none: persistentvolumeclaim \"none\" not found";
        assert_eq!(with("none", &[]), missing);
    }

    #[test]
    fn a_node_that_says_nothing_has_the_limit_of_its_instance_type() {
        let of = |instance: &str| {
            let node = json!({"metadata": {"name": "n", "labels":
                {"node.kubernetes.io/instance-type": instance}}});
            let node = Cluster::of(vec![node], Vec::new());
            ebs_limit(&node.snapshot.iter().next().unwrap().node.as_ref().unwrap().metadata.labels)
        };
        assert_eq!(["m5.large", "t3.nano", "z1d.6xlarge"].map(of), [25, 25, 25]);
        assert_eq!(["", "m4.large", "im5"].map(of), [39, 39, 39]);
    }
}
