//! Which images are on which nodes (C-010).

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_api::Node;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::ImageState;

/// All image names of the cluster: how large, and on how many nodes.
#[derive(Clone, Default, Debug)]
pub struct Images {
    by_name: HashMap<Symbol, ImageState>,
}

impl Images {
    /// Counts the images of a node in. The size of an image is that of the first node seen
    /// with it.
    pub fn add_node(&mut self, node: &Node) {
        for (name, size) in names(node) {
            let entry = self.by_name.entry(name);
            entry.or_insert(ImageState { name, num_nodes: 0, size }).num_nodes += 1;
        }
    }

    /// Counts the images of a node out that was counted in.
    pub fn remove_node(&mut self, node: &Node) {
        for (name, _) in names(node) {
            let Some(image) = self.by_name.get_mut(&name) else { continue };
            image.num_nodes -= 1;
            if image.num_nodes == 0 {
                self.by_name.remove(&name);
            }
        }
    }

    /// The images of a node with how many nodes have each right now, sorted by name.
    pub fn states(&self, node: &Node) -> Arc<[ImageState]> {
        names(node).iter().filter_map(|(name, _)| self.by_name.get(name).copied()).collect()
    }
}

/// The names of a node's images, sorted and each once, with the size of the first so named.
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
