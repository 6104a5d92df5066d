//! The distinct volumes of pods, by CSI driver.

use std::collections::BTreeSet;

use crate::volume_binding::is_migrated;
use crate::volumes::migration::{InTree, PORTWORX, inline_handle, volume_handle};
use crate::volumes::{self, ClaimVolume};
use kubestep_api::intern::Symbol;
use kubestep_api::{CsiNode, Name, PersistentVolumeClaim, Pod, Volume};
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::error::PluginError;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

/// The prefix of handles for volumes that do not exist yet. Upstream uses 32 random characters,
/// so such a handle never equals that of an existing volume.
const UNPROVISIONED: &str = "\u{0}unprovisioned-";

/// Why the volumes of a pod could not be counted.
#[derive(Clone, PartialEq, Debug)]
pub enum LookupError {
    /// A claim does not exist.
    NotFound(String),
    /// The error is of another kind.
    Other(String),
}

/// The in-tree plugins whose volumes count on a node for their CSI drivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// Whether the node has a CSINode.
    has_csi_node: bool,
    /// Whether Portworx is one of them.
    portworx: bool,
}

impl Migrated {
    /// How many there are, see [`Migrated::index`].
    pub(super) const COUNT: usize = 4;

    /// A number that no other one has.
    pub(super) fn index(self) -> usize {
        usize::from(self.has_csi_node) + 2 * usize::from(self.portworx)
    }

    /// Those of a node with that CSINode.
    pub fn of(csi_node: Option<&CsiNode>, features: &FeatureGates) -> Migrated {
        // Up to 1.35 gate and annotation decide, of this plugin alone.
        let by_node = || {
            features.enabled(Feature::CSIMigrationPortworx)
                && is_migrated(csi_node, PORTWORX.plugin)
        };
        let portworx = features.has(Switch::PortworxAlwaysMigrated) || by_node();
        Migrated { has_csi_node: csi_node.is_some(), portworx }
    }

    fn counts(self, in_tree: InTree) -> bool {
        self.has_csi_node && in_tree.counts && (self.portworx || in_tree != PORTWORX)
    }
}

/// Distinct volumes as (driver, handle).
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Attachable(BTreeSet<(Symbol, Name)>);

/// Whether a volume may count: it has a claim, or its in-tree plugin can be migrated to CSI.
pub(crate) fn may_attach(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_some() || volume.attaches_without_claim()
}

impl Attachable {
    pub fn add(&mut self, driver: Symbol, handle: Name) {
        self.0.insert((driver, handle));
    }

    /// The volumes that are not in `other`.
    pub(crate) fn without(&self, other: &Attachable) -> Attachable {
        Attachable(self.0.difference(&other.0).copied().collect())
    }

    /// Whether there are no volumes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The drivers, sorted; once for each volume.
    pub fn drivers(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.0.iter().map(|(driver, _)| *driver)
    }

    /// The number of volumes of a driver.
    pub fn count(&self, driver: Symbol) -> i64 {
        self.drivers().filter(|other| *other == driver).count() as i64
    }

    /// Adds the volumes of a pod. Unless the pod is `new`, missing claims are ignored.
    pub fn add_pod(
        &mut self,
        pod: &Pod,
        objects: &Objects,
        migrated: Migrated,
        new: bool,
    ) -> Result<(), LookupError> {
        for volume in &pod.spec.volumes {
            let Some(named) = ClaimVolume::of(pod, volume) else {
                self.add_inline(volume, migrated)?;
                continue;
            };
            if named.key.name.is_empty() {
                return Err(LookupError::Other("PersistentVolumeClaim had no name".to_owned()));
            }
            let claim = match volumes::find_claim(objects, named.key) {
                Ok(claim) => claim,
                Err(text) if new => {
                    let text = format!("looking up PVC {}: {text}", named.key);
                    return Err(LookupError::NotFound(text));
                }
                Err(_) => continue,
            };
            if named.ephemeral {
                let other = |error: PluginError| LookupError::Other(error.to_string());
                volumes::check_owner(pod, claim).map_err(other)?;
            }
            self.0.extend(of_claim(objects, claim, migrated));
        }
        Ok(())
    }

    /// Inline volumes count only if their in-tree plugin is migrated to a CSI driver.
    fn add_inline(&mut self, volume: &Volume, migrated: Migrated) -> Result<(), LookupError> {
        let in_tree = InTree::of_volume(volume).filter(|in_tree| migrated.counts(*in_tree));
        let Some(in_tree) = in_tree else { return Ok(()) };
        let handle = inline_handle(volume).map_err(|why| {
            LookupError::Other(format!(
                "converting volume({}) from inline to csi: {why}",
                volume.name
            ))
        })?;
        self.add(in_tree.driver.into(), handle.into());
        Ok(())
    }
}

/// The driver and handle of the claim's volume, or of the one to be provisioned for it.
fn of_claim(
    objects: &Objects,
    claim: &PersistentVolumeClaim,
    migrated: Migrated,
) -> Option<(Symbol, Name)> {
    let name = claim.spec.volume_name;
    let volume = (!name.is_empty())
        .then(|| objects.persistent_volumes.get(&NamespacedName::new(Symbol::EMPTY, name)))
        .flatten();
    let Some(volume) = volume else { return of_class(objects, claim, migrated) };
    let (driver, handle) = match &volume.spec.csi {
        Some(source) => (source.driver, source.volume_handle),
        None => {
            let in_tree = InTree::of_persistent_volume(volume);
            let in_tree = in_tree.filter(|in_tree| migrated.counts(*in_tree))?;
            (in_tree.driver.into(), volume_handle(volume).ok()?.into())
        }
    };
    (!driver.is_empty() && !handle.is_empty()).then_some((driver, handle))
}

fn of_class(
    objects: &Objects,
    claim: &PersistentVolumeClaim,
    migrated: Migrated,
) -> Option<(Symbol, Name)> {
    let class = NamespacedName::new(Symbol::EMPTY, volumes::class_of(claim));
    let provisioner = objects.storage_classes.get(&class)?.provisioner;
    let driver = match InTree::by_name(provisioner) {
        None => provisioner,
        Some(in_tree) if migrated.counts(in_tree) => in_tree.driver.into(),
        Some(_) => return None,
    };
    let meta = &claim.metadata;
    let handle = format!("{UNPROVISIONED}{}/{}", meta.namespace, meta.name);
    (!driver.is_empty()).then(|| (driver, handle.into()))
}
