//! The nodes of the model, in the cache's order and by name.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use kubestep_api::Name;
use kubestep_framework::node::NodeInfo;

/// Nodes with their pods, in the cache's order.
#[derive(Clone, Debug, Default)]
pub struct NodeList {
    list: Vec<Arc<NodeInfo>>,
    places: HashMap<Name, usize>,
}

impl NodeList {
    /// The node of that name. Views ask for the labels of each of thousands of rows.
    pub fn named(&self, name: Name) -> Option<&Arc<NodeInfo>> {
        self.list.get(*self.places.get(&name)?)
    }
}

impl Deref for NodeList {
    type Target = [Arc<NodeInfo>];

    fn deref(&self) -> &[Arc<NodeInfo>] {
        &self.list
    }
}

impl FromIterator<Arc<NodeInfo>> for NodeList {
    fn from_iter<I: IntoIterator<Item = Arc<NodeInfo>>>(nodes: I) -> NodeList {
        let list: Vec<Arc<NodeInfo>> = nodes.into_iter().collect();
        let places = list.iter().enumerate().map(|(at, node)| (node.name, at)).collect();
        NodeList { list, places }
    }
}
