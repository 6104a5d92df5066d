//! Which images are on which nodes.

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_api::Node;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::ImageState;

/// The images of all nodes: the size of each, and the number of nodes that have it.
#[derive(Clone, Default, Debug)]
pub struct Images {
    by_name: HashMap<Symbol, ImageState>,
}

impl Images {
    /// Counts the images of a node. The size of an image is the one that the first node with it
    /// reports.
    pub(crate) fn add_node(&mut self, node: &Node) {
        for (name, size) in names(node) {
            let entry = self.by_name.entry(name);
            entry.or_insert(ImageState { name, num_nodes: 0, size }).num_nodes += 1;
        }
    }

    /// Subtracts the images of a node that was counted.
    pub(crate) fn remove_node(&mut self, node: &Node) {
        for (name, _) in names(node) {
            let Some(image) = self.by_name.get_mut(&name) else { continue };
            image.num_nodes -= 1;
            if image.num_nodes == 0 {
                self.by_name.remove(&name);
            }
        }
    }

    /// The images of a node, sorted by name, each with the number of nodes that have it now.
    pub fn states(&self, node: &Node) -> Arc<[ImageState]> {
        names(node).iter().filter_map(|(name, _)| self.by_name.get(name).copied()).collect()
    }
}

/// The names of a node's images, sorted and without duplicates, each with the size of the first
/// entry of that name.
fn names(node: &Node) -> Vec<(Symbol, i64)> {
    let images = node.status.images.iter();
    let named = images.flat_map(|image| image.names.iter().map(|name| (*name, image.size_bytes)));
    let mut names: Vec<(Symbol, i64)> = named.collect();
    names.sort_by_key(|(name, _)| *name);
    names.dedup_by_key(|(name, _)| *name);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::ContainerImage;

    fn node(name: &str, image: &str, size: i64) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        let images = [image, image]
            .map(|name| ContainerImage { names: vec![name.into()], size_bytes: size }.into());
        node.status.images = images.into();
        node
    }

    #[test]
    fn the_first_node_says_the_size_and_every_node_counts() {
        let mut images = Images::default();
        let (first, second) = (node("a", "app:1", 10), node("b", "app:1", 99));
        images.add_node(&first);
        images.add_node(&second);
        let expected = ImageState { name: "app:1".into(), size: 10, num_nodes: 2 };
        assert_eq!(*images.states(&second), [expected]);
        images.remove_node(&first);
        images.remove_node(&second);
        assert_eq!(*images.states(&second), []);
        assert!(images.by_name.is_empty());
    }
}
