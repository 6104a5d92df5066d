//! A persistent volume, with the nodes it can be reached from compiled.

use std::sync::Arc;

use crate::volumes::migration::{self, InTree};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{CsiNode, Node, PersistentVolume};

/// Lists the old plugins that a node has handed over to CSI drivers, joined by commas.
pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// A volume, ready to be tried on nodes.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The volume as the scheduler sees it.
    pub volume: Arc<PersistentVolume>,
    nodes: Option<NodeMatcher>,
    /// The old plugin that it is of, and its nodes once a CSI driver serves it, or why none can.
    migrated: Option<(&'static str, Result<Option<NodeMatcher>, String>)>,
}

impl Candidate {
    /// Compiles a volume.
    pub fn new(volume: &Arc<PersistentVolume>) -> Candidate {
        let in_tree = InTree::of_persistent_volume(volume).filter(|in_tree| in_tree.counts);
        let translated = |in_tree: InTree| {
            let nodes = || compile(&migration::translate_topology(in_tree, volume));
            (in_tree.plugin, migration::volume_handle(volume).map(|_| nodes()))
        };
        Candidate {
            volume: volume.clone(),
            nodes: compile(volume),
            migrated: in_tree.map(translated),
        }
    }

    /// Whether the volume can be reached from the node, as it stands.
    pub fn reaches(&self, node: &Node) -> bool {
        accepts(self.nodes.as_ref(), node)
    }

    /// The same, for a volume of an old plugin as the node's CSI driver sees it.
    ///
    /// # Errors
    /// The driver cannot serve the volume, in upstream's words.
    pub fn reaches_migrated(
        &self,
        node: &Node,
        csi_node: Option<&CsiNode>,
    ) -> Result<bool, String> {
        match &self.migrated {
            Some((plugin, nodes)) if is_migrated(csi_node, plugin) => match nodes {
                Ok(nodes) => Ok(accepts(nodes.as_ref(), node)),
                Err(why) => Err(format!("could not translate pv: {why}")),
            },
            _ => Ok(self.reaches(node)),
        }
    }
}

/// The class a volume belongs to; the old annotation wins over the field.
pub fn class_of_volume(volume: &PersistentVolume) -> Symbol {
    let annotated = volume.metadata.annotations.get_str("volume.beta.kubernetes.io/storage-class");
    annotated.copied().unwrap_or(volume.spec.storage_class_name)
}

fn compile(volume: &PersistentVolume) -> Option<NodeMatcher> {
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    Some(NodeMatcher::new(required, ""))
}

/// Only labels are looked at, and what cannot be parsed accepts no node.
fn accepts(nodes: Option<&NodeMatcher>, node: &Node) -> bool {
    nodes.is_none_or(|nodes| nodes.matches(&node.metadata.labels, Symbol::EMPTY) == Ok(true))
}

fn is_migrated(csi_node: Option<&CsiNode>, plugin: &str) -> bool {
    let annotation = csi_node.and_then(|node| node.metadata.annotations.get_str(MIGRATED_PLUGINS));
    annotation.is_some_and(|plugins| plugins.split(',').any(|other| other == plugin))
}
