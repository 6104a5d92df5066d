//! The nodes of a phase of a cycle, in order: those that were evaluated, and those that passed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::node::NodeId;
use crate::snapshot::positions::PositionSet;

/// The average number of adjacent nodes, at least, in a window that is not written out.
const RUN: usize = 8;

/// An immutable list of nodes; copies share it. A search that starts anywhere in the node order and
/// stops early finds other nodes in every cycle, so what it finds is not written out: it is a window
/// on the order, unless the nodes are scattered.
#[derive(Clone)]
pub enum NodeList {
    /// Any nodes.
    Written(Arc<[NodeId]>),
    /// Some consecutive nodes of the node order.
    Window(Arc<NodeWindow>),
}

/// Some consecutive nodes of the node order, which continues with its first node after its last
/// one: all of them, or those whose positions are in a set.
#[derive(Clone, Debug)]
pub struct NodeWindow {
    order: Arc<Vec<NodeId>>,
    /// The position of the first node.
    start: usize,
    len: usize,
    gaps: Option<Gaps>,
}

/// The set that a window is taken from, of which not all consecutive positions are members.
#[derive(Clone, Debug)]
struct Gaps {
    members: PositionSet,
    /// How many members are before the first node of the window.
    before: usize,
}

impl NodeWindow {
    /// The first `len` nodes of the order from position `start` on, at most all.
    pub fn new(order: Arc<Vec<NodeId>>, start: usize, len: usize) -> NodeWindow {
        let len = len.min(order.len());
        NodeWindow { order, start, len, gaps: None }
    }

    /// The first `len` of those in a set of positions, from position `start` on, at most all.
    pub fn among(
        order: Arc<Vec<NodeId>>,
        members: &PositionSet,
        start: usize,
        len: usize,
    ) -> NodeWindow {
        let (before, len) = (members.rank(start), len.min(members.len()));
        let gaps = Gaps { members: members.clone(), before };
        let window = NodeWindow { order, start, len, gaps: Some(gaps) };
        let ends = window.position(0).zip(window.position(len.wrapping_sub(1)));
        let Some((first, last)) = ends else { return NodeWindow { gaps: None, ..window } };
        let covered = if last < first { last + window.order.len() } else { last } - first + 1;
        let gaps = window.gaps.filter(|_| covered > len);
        NodeWindow { order: window.order, start: first, len, gaps }
    }

    /// The node order.
    pub fn order(&self) -> &Arc<Vec<NodeId>> {
        &self.order
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position in the node order of the node at an index of the window.
    pub fn position(&self, index: usize) -> Option<usize> {
        let index = Some(index).filter(|index| *index < self.len)?;
        let around = |at: usize, all: usize| if at >= all { at - all } else { at };
        match &self.gaps {
            None => Some(around(self.start + index, self.order.len())),
            Some(Gaps { members, before }) => members.select(around(before + index, members.len())),
        }
    }

    /// The index in the window of the node at a position in the node order.
    pub fn index(&self, position: usize) -> Option<usize> {
        let (at, before, all) = match &self.gaps {
            None => (position, self.start, self.order.len()),
            Some(Gaps { members, before }) => (members.rank(position), *before, members.len()),
        };
        let index = if at < before { at + all } else { at } - before;
        Some(index).filter(|index| *index < self.len)
    }

    /// The ranges of positions in which the nodes at some indexes of the window are, in order. The
    /// second is empty unless the window continues with the first node of the order in between.
    pub fn ranges(&self, from: usize, to: usize) -> [(usize, usize); 2] {
        let ends = self.position(from).zip(to.checked_sub(1).and_then(|last| self.position(last)));
        match ends.filter(|_| from < to) {
            None => [(0, 0); 2],
            Some((first, last)) if first <= last => [(first, last + 1), (0, 0)],
            Some((first, last)) => [(first, self.order.len()), (0, last + 1)],
        }
    }

    /// The positions of the nodes that are not in `known`, in order.
    pub fn outside<'a>(&'a self, known: &'a PositionSet) -> impl Iterator<Item = usize> + 'a {
        let members = self.gaps.as_ref().map(|gaps| &gaps.members);
        let ranges = self.ranges(0, self.len).into_iter();
        ranges.flat_map(move |(from, to)| known.others(members, from, to))
    }

    /// The nodes in order, as the contiguous parts of the order.
    fn parts(&self) -> impl Iterator<Item = &[NodeId]> {
        let ranges = self.ranges(0, self.len).into_iter().filter(|(from, to)| from < to);
        let parts = ranges.flat_map(|(from, to)| {
            let members = self.gaps.as_ref().map(|gaps| &gaps.members);
            let whole = members.is_none().then_some((from, to));
            let runs = members.into_iter().flat_map(move |members| members.runs(from, to));
            whole.into_iter().chain(runs)
        });
        parts.map(|(from, to)| &self.order[from..to])
    }

    /// In about how many contiguous parts of the order the nodes are: at most two without gaps.
    fn count_parts(&self) -> usize {
        let Some(Gaps { members, .. }) = &self.gaps else { return 2 };
        self.ranges(0, self.len).map(|(from, to)| members.count_runs(from, to)).iter().sum()
    }

    /// All nodes in order, written out.
    fn written(&self) -> Vec<NodeId> {
        let mut nodes = Vec::with_capacity(self.len);
        self.parts().for_each(|part| nodes.extend_from_slice(part));
        nodes
    }
}

impl NodeList {
    /// The first `len` of those in a set of positions in the node order, from position `start` on,
    /// at most all.
    pub fn among(
        order: &Arc<Vec<NodeId>>,
        members: &PositionSet,
        start: usize,
        len: usize,
    ) -> NodeList {
        let window = NodeWindow::among(order.clone(), members, start, len);
        match window.count_parts() > 2 + window.len / RUN {
            true => window.written().into(),
            false => window.into(),
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        match self {
            NodeList::Written(nodes) => nodes.len(),
            NodeList::Window(window) => window.len(),
        }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node at an index; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<&NodeId> {
        match self {
            NodeList::Written(nodes) => nodes.get(index),
            NodeList::Window(window) => window.order.get(window.position(index)?),
        }
    }

    /// The first node; `None` if the list is empty.
    pub fn first(&self) -> Option<&NodeId> {
        self.get(0)
    }

    /// All nodes in order.
    pub fn iter(&self) -> impl Iterator<Item = &NodeId> {
        let (written, window) = match self {
            NodeList::Written(nodes) => (Some(&**nodes), None),
            NodeList::Window(window) => (None, Some(window)),
        };
        written.into_iter().chain(window.into_iter().flat_map(|window| window.parts())).flatten()
    }

    /// All nodes in order, as a slice.
    pub fn slice(&self) -> Cow<'_, [NodeId]> {
        match self {
            NodeList::Written(nodes) => Cow::Borrowed(nodes),
            NodeList::Window(window) => {
                let whole = window.parts().next().filter(|first| first.len() == window.len);
                whole.map_or_else(|| window.written().into(), Cow::Borrowed)
            }
        }
    }

    /// All nodes in order, written out.
    pub fn to_vec(&self) -> Vec<NodeId> {
        self.slice().into_owned()
    }

    /// The window on the node order, if it is one.
    pub fn window(&self) -> Option<&NodeWindow> {
        match self {
            NodeList::Written(_) => None,
            NodeList::Window(window) => Some(window),
        }
    }

    /// Whether both are the same list in memory.
    pub fn is_shared_with(&self, other: &NodeList) -> bool {
        match (self, other) {
            (NodeList::Written(one), NodeList::Written(other)) => Arc::ptr_eq(one, other),
            (NodeList::Window(one), NodeList::Window(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Visits the lists that several may share, with address and size in bytes. What a list holds
    /// is visited only if `visit` returns `true` for the list.
    pub fn visit_parts(&self, visit: &mut impl FnMut(usize, usize) -> bool) {
        match self {
            NodeList::Written(nodes) if nodes.is_empty() => {}
            NodeList::Written(nodes) => {
                visit(nodes.as_ptr().addr(), size_of_val(&nodes[..]));
            }
            NodeList::Window(window) => {
                if visit(Arc::as_ptr(window).addr(), size_of::<NodeWindow>())
                    && let Some(gaps) = &window.gaps
                {
                    gaps.members.visit_parts(visit);
                }
            }
        }
    }
}

impl Default for NodeList {
    fn default() -> NodeList {
        NodeList::Written(Arc::default())
    }
}

impl Index<usize> for NodeList {
    type Output = NodeId;

    fn index(&self, index: usize) -> &NodeId {
        match self {
            NodeList::Written(nodes) => &nodes[index],
            NodeList::Window(window) => &window.order[window.position(index).unwrap_or(usize::MAX)],
        }
    }
}

impl From<NodeWindow> for NodeList {
    fn from(window: NodeWindow) -> NodeList {
        NodeList::Window(Arc::new(window))
    }
}

impl From<Vec<NodeId>> for NodeList {
    fn from(nodes: Vec<NodeId>) -> NodeList {
        NodeList::Written(nodes.into())
    }
}

impl From<&[NodeId]> for NodeList {
    fn from(nodes: &[NodeId]) -> NodeList {
        NodeList::Written(nodes.into())
    }
}

impl<const N: usize> From<[NodeId; N]> for NodeList {
    fn from(nodes: [NodeId; N]) -> NodeList {
        NodeList::Written(nodes.into())
    }
}

impl FromIterator<NodeId> for NodeList {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> NodeList {
        NodeList::Written(nodes.into_iter().collect())
    }
}

/// Lists of the same nodes are equal, whatever their form.
impl PartialEq for NodeList {
    fn eq(&self, other: &NodeList) -> bool {
        self.is_shared_with(other) || self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_window_holds_what_the_written_list_holds(
            bits in prop::collection::vec(any::<bool>(), 1..300),
            known in prop::collection::vec(any::<bool>(), 300),
            (start, wanted, everyone) in (0_usize..300, 0_usize..320, any::<bool>()),
        ) {
            let order: Arc<Vec<NodeId>> = Arc::new((0..bits.len() as u32).rev().map(NodeId).collect());
            let start = start % bits.len();
            let members = PositionSet::of(bits.len(), |at| bits[at]);
            let window = match everyone {
                true => NodeWindow::new(order.clone(), start, wanted),
                false => NodeWindow::among(order.clone(), &members, start, wanted),
            };
            let turn = (start..bits.len()).chain(0..start).filter(|at| everyone || bits[*at]);
            let positions: Vec<usize> = turn.take(wanted).collect();
            let expected: Vec<NodeId> = positions.iter().map(|at| order[*at]).collect();
            let list = NodeList::from(window.clone());
            prop_assert_eq!(list.len(), expected.len());
            let nodes = (0..expected.len() + 1).map_while(|at| list.get(at).copied());
            prop_assert_eq!(nodes.collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(&*list.slice(), &expected[..]);
            prop_assert_eq!(&list, &NodeList::from(expected));
            let indexes = positions.iter().map(|at| window.index(*at));
            prop_assert!(indexes.eq((0..positions.len()).map(Some)));
            let known = PositionSet::of(bits.len(), |at| known[at]);
            let unknown: Vec<usize> =
                positions.iter().copied().filter(|at| !known.contains(*at)).collect();
            prop_assert_eq!(window.outside(&known).collect::<Vec<_>>(), unknown);
            for (from, to) in [(0, positions.len()), (positions.len() / 3, positions.len() / 2)] {
                let within = |at: &usize| {
                    window.ranges(from, to).iter().any(|(from, to)| (from..to).contains(&at))
                };
                let found: Vec<usize> = positions.iter().copied().filter(within).collect();
                prop_assert_eq!(found, positions[from..to].to_vec());
            }
        }
    }

    #[test]
    fn windows_of_one_search_share_the_set() {
        let order: Arc<Vec<NodeId>> = Arc::new((0..9000).map(NodeId).collect());
        let members = PositionSet::of(9000, |at| at % 3 == 0);
        let window = |start| NodeList::from(NodeWindow::among(order.clone(), &members, start, 600));
        let (one, other) = (window(10), window(8000));
        let parts = |list: &NodeList| {
            let mut parts = Vec::new();
            list.visit_parts(&mut |address, _| {
                parts.push(address);
                true
            });
            parts
        };
        assert_eq!(parts(&one)[1..], parts(&other)[1..]);
        assert_eq!((one[0], other[599]), (NodeId(12), NodeId(798)));
        assert!(one.is_shared_with(&one.clone()) && !one.is_shared_with(&other));
        assert!(NodeList::default().is_empty() && parts(&NodeList::default()).is_empty());
    }
}
