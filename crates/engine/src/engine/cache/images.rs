//! Which images are on which nodes (C-010).

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::Node;
use crate::engine::node::ImageState;
use crate::intern::Symbol;

/// One image name: its size and the nodes that have it.
#[derive(Clone, Debug)]
struct Image {
    size: i64,
    nodes: BTreeSet<Symbol>,
}

/// All image names of the cluster.
#[derive(Clone, Default, Debug)]
pub struct Images {
    by_name: HashMap<Symbol, Image>,
}

impl Images {
    /// Counts the images of a node in. The size of an image is that of the first node seen
    /// with it.
    pub fn add_node(&mut self, node: &Node) {
        for image in &node.status.images {
            for name in &image.names {
                let entry = self.by_name.entry(*name);
                let entry = entry
                    .or_insert_with(|| Image { size: image.size_bytes, nodes: BTreeSet::new() });
                entry.nodes.insert(node.metadata.name);
            }
        }
    }

    /// Counts the images of a node out.
    pub fn remove_node(&mut self, node: &Node) {
        for name in node.status.images.iter().flat_map(|image| &image.names) {
            let Some(image) = self.by_name.get_mut(name) else { continue };
            image.nodes.remove(&node.metadata.name);
            if image.nodes.is_empty() {
                self.by_name.remove(name);
            }
        }
    }

    /// The images of a node with how many nodes have each right now, sorted by name.
    pub fn states(&self, node: &Node) -> Arc<Vec<(Symbol, ImageState)>> {
        let names = node.status.images.iter().flat_map(|image| &image.names);
        let mut states: Vec<(Symbol, ImageState)> = names
            .filter_map(|name| {
                let image = self.by_name.get(name)?;
                let num_nodes = image.nodes.len() as u32;
                Some((*name, ImageState { size: image.size, num_nodes }))
            })
            .collect();
        states.sort_unstable_by_key(|(name, _)| *name);
        states.dedup_by_key(|(name, _)| *name);
        Arc::new(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ContainerImage;

    fn node(name: &str, image: &str, size: i64) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.status.images = vec![ContainerImage { names: vec![image.into()], size_bytes: size }];
        node
    }

    #[test]
    fn the_first_node_says_the_size_and_every_node_counts() {
        let mut images = Images::default();
        let (first, second) = (node("a", "app:1", 10), node("b", "app:1", 99));
        images.add_node(&first);
        images.add_node(&second);
        let expected = [(Symbol::new("app:1"), ImageState { size: 10, num_nodes: 2 })];
        assert_eq!(images.states(&second).as_slice(), expected);
        images.remove_node(&first);
        images.remove_node(&second);
        assert_eq!(images.states(&second).as_slice(), []);
    }
}
