//! The columns of extended resources in the view of the nodes: GPUs and whatever else devices offer.

use crate::tui::layout::WidthTier;
use crate::tui::text::{Truncation, fit, width};
use crate::tui::widget::grid::GridColumn;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::resource::amount;

/// Most of them that have a column.
const MOST: usize = 3;
/// Most columns of a name.
const NAME: usize = 16;

/// An extended resource that some node offers.
pub struct ExtendedResource {
    name: Symbol,
    /// Columns of the widest amounts.
    width: usize,
}

impl ExtendedResource {
    /// Those that most nodes offer, in the order of their names.
    pub fn of_nodes<'a>(nodes: impl Iterator<Item = &'a NodeInfo>) -> Vec<ExtendedResource> {
        let mut found: Vec<(usize, ExtendedResource)> = Vec::new();
        for node in nodes {
            for (name, _) in node.allocatable.scalars.iter().filter(|(_, amount)| *amount > 0) {
                let at = found.iter().position(|(_, known)| known.name == *name);
                let at = at.unwrap_or_else(|| {
                    found.push((0, ExtendedResource { name: *name, width: 0 }));
                    found.len() - 1
                });
                let (nodes, known) = &mut found[at];
                *nodes += 1;
                known.widen([node].into_iter());
            }
        }
        found.sort_by(|(a, _), (b, _)| b.cmp(a));
        found.truncate(MOST);
        let mut found: Vec<_> = found.into_iter().map(|(_, resource)| resource).collect();
        found.sort_by_key(|resource| resource.name);
        found
    }

    /// Makes room for what some nodes have together.
    pub fn widen<'a>(&mut self, nodes: impl Iterator<Item = &'a NodeInfo>) {
        self.width = self.width.max(self.ratio(nodes).len());
    }

    /// Its column, under the name without its domain.
    pub fn column(&self) -> GridColumn {
        let short = fit(self.name.rsplit('/').next().unwrap_or_default(), NAME, Truncation::Middle);
        let columns = u16::try_from(self.width.max(width(&short))).unwrap_or(u16::MAX);
        GridColumn::number(&short, columns).shown_from(WidthTier::Standard)
    }

    /// Requested and allocatable on some nodes together.
    fn amounts<'a>(&self, nodes: impl Iterator<Item = &'a NodeInfo>) -> (i64, i64) {
        let add = |(requested, all): (i64, i64), node: &NodeInfo| {
            let of_node = [&node.requested, &node.allocatable].map(|of| of.scalar(self.name));
            (requested.saturating_add(of_node[0]), all.saturating_add(of_node[1]))
        };
        nodes.fold((0, 0), add)
    }

    /// `requested/allocatable`, or nothing where none is offered.
    pub fn ratio<'a>(&self, nodes: impl Iterator<Item = &'a NodeInfo>) -> String {
        let show = |value| amount::of(&self.name, value);
        match self.amounts(nodes) {
            (0, 0) => String::new(),
            (requested, all) => format!("{}/{}", show(requested), show(all)),
        }
    }

    /// How full it is in thousandths, below zero where none is offered.
    pub fn fullness<'a>(&self, nodes: impl Iterator<Item = &'a NodeInfo>) -> i64 {
        match self.amounts(nodes) {
            (_, ..=0) => -1,
            (requested, all) => requested.saturating_mul(1_000) / all,
        }
    }
}
