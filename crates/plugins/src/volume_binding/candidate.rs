//! A persistent volume with its compiled node affinity.

use std::sync::Arc;

use crate::volumes::migration::{self, InTree};
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{CsiNode, Name, Node, PersistentVolume};
use kubestep_framework::error::PluginError;

/// On a CSINode: the in-tree plugins that are migrated to CSI drivers, joined by commas.
pub(crate) const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// A volume, prepared for matching with nodes.
#[derive(Clone, Debug)]
pub struct CandidateVolume {
    /// The volume as the scheduler sees it.
    pub volume: Arc<PersistentVolume>,
    nodes: Option<NodeMatcher>,
    /// The in-tree plugin of the volume, with the node affinity translated for the CSI driver, or
    /// the error of the translation.
    migrated: Option<(&'static str, Result<Option<NodeMatcher>, String>)>,
}

impl CandidateVolume {
    /// Compiles the node affinity of a volume.
    pub fn new(volume: &Arc<PersistentVolume>) -> CandidateVolume {
        let in_tree = InTree::of_persistent_volume(volume).filter(|in_tree| in_tree.counts);
        let translated = |in_tree: InTree| {
            let nodes = || compile(&migration::translate_topology(in_tree, volume));
            (in_tree.plugin, migration::volume_handle(volume).map(|_| nodes()))
        };
        CandidateVolume {
            volume: volume.clone(),
            nodes: compile(volume),
            migrated: in_tree.map(translated),
        }
    }

    /// Whether the volume's node affinity, untranslated, matches the node.
    pub fn reaches(&self, node: &Node) -> bool {
        accepts(self.nodes.as_ref(), node)
    }

    /// Whether every node can access the volume, whatever it migrated.
    pub(crate) fn reaches_all(&self) -> bool {
        let translated = self.migrated.as_ref().is_none_or(|(_, nodes)| matches!(nodes, Ok(None)));
        self.nodes.is_none() && translated
    }

    /// Like [`CandidateVolume::reaches`], but translated if the node migrated the in-tree plugin.
    ///
    /// # Errors
    /// Upstream's message that the volume cannot be translated.
    pub(crate) fn reaches_migrated(
        &self,
        node: &Node,
        csi_node: Option<&CsiNode>,
    ) -> Result<bool, PluginError> {
        match &self.migrated {
            Some((plugin, nodes)) if is_migrated(csi_node, plugin) => match nodes {
                Ok(nodes) => Ok(accepts(nodes.as_ref(), node)),
                Err(why) => Err(format!("could not translate pv: {why}").into()),
            },
            _ => Ok(self.reaches(node)),
        }
    }
}

/// The class of a volume; the beta annotation takes precedence over the field.
pub(crate) fn class_of_volume(volume: &PersistentVolume) -> Name {
    let annotated = volume.metadata.annotations.get_str("volume.beta.kubernetes.io/storage-class");
    annotated.map_or(volume.spec.storage_class_name, |class| Name::new(class))
}

fn compile(volume: &PersistentVolume) -> Option<NodeMatcher> {
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    Some(NodeMatcher::new(required, ""))
}

/// Only labels are matched; invalid node affinity matches no node.
fn accepts(nodes: Option<&NodeMatcher>, node: &Node) -> bool {
    nodes.is_none_or(|nodes| nodes.matches(&node.metadata.labels, Name::EMPTY) == Ok(true))
}

/// Whether the annotation of a node's CSINode lists an in-tree plugin.
pub(crate) fn is_migrated(csi_node: Option<&CsiNode>, plugin: &str) -> bool {
    let annotation = csi_node.and_then(|node| node.metadata.annotations.get_str(MIGRATED_PLUGINS));
    annotation.is_some_and(|plugins| plugins.split(',').any(|other| other == plugin))
}
