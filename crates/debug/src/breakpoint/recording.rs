//! What breakpoints look at, and the order of the moments in it.

use std::sync::Arc;

use crate::frames::{self, Position, Tree};
use crate::ledger::Ledger;
use crate::trace::{EntryId, History};
use kubestep_cluster::World;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::CycleRecord;

/// What breakpoints look at: the history, what was free on the nodes, and the objects of now.
#[derive(Clone, Copy)]
pub struct RecordedRun<'a> {
    /// The entries that are searched for hits.
    pub history: &'a History,
    /// The entries before this one led to the loaded cluster and are not looked at.
    pub start: usize,
    /// What was free on the nodes.
    pub ledger: &'a Ledger,
    /// The cluster where the recording begins, if what came before was forgotten.
    pub beginning: Option<&'a World>,
    /// The cluster's objects as they are now.
    pub objects: &'a Objects,
}

impl RecordedRun<'_> {
    /// A pod that moved between queues: as its nearest cycle knew it, else as it is now.
    pub fn pod(&self, pod: NamespacedName) -> Option<Arc<PodInfo>> {
        let last = self.history.cycles_of(pod).next_back();
        let known = last.and_then(|record| record.info.clone());
        known.or_else(|| self.objects.pod(pod).map(|pod| Arc::new(PodInfo::new(pod.clone()))))
    }
}

/// A moment of the recording; the order is that of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment {
    entry: EntryId,
    rank: Rank,
}

impl Moment {
    /// Where a frame is in a cycle's entry. Other entries have no frames.
    pub fn new(recording: &RecordedRun<'_>, entry: EntryId, frame: Position) -> Moment {
        let record = recording.history.get(entry).and_then(|entry| entry.as_cycle());
        let rank = record.map_or(Rank::FIRST, |record| Ranks::new(record).of(frame));
        Moment { entry, rank }
    }

    /// The entry with a frame's rank in it.
    pub(super) fn ranked(entry: EntryId, rank: Rank) -> Moment {
        Moment { entry, rank }
    }

    /// Right after the first `len` entries; `None`: before all of them.
    pub fn after(len: usize) -> Option<Moment> {
        let last = u32::try_from(len.checked_sub(1)?).ok()?;
        Some(Moment { entry: EntryId(last), rank: Rank::LAST })
    }

    /// Whether it is the end of its entry.
    pub(super) fn is_end(&self) -> bool {
        self.rank == Rank::LAST
    }

    /// The entry of the history that the moment lies in.
    pub fn entry(&self) -> EntryId {
        self.entry
    }
}

/// The place of a frame in the reading order of its cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rank {
    point: usize,
    plugin: usize,
    node: usize,
}

impl Rank {
    /// The rank of the cycle as a whole.
    pub const FIRST: Rank = Rank { point: 0, plugin: 0, node: 0 };
    /// Sorts after all frames of a cycle.
    const LAST: Rank = Rank { point: usize::MAX, plugin: 0, node: 0 };
}

/// Works out ranks; where a cycle's nodes are is found once.
pub struct Ranks<'a> {
    record: &'a CycleRecord,
    /// The plugin whose nodes these are, and their places by slot.
    nodes: Option<(Position, Vec<usize>)>,
}

impl<'a> Ranks<'a> {
    /// Ranks within a cycle.
    pub fn new(record: &'a CycleRecord) -> Ranks<'a> {
        Ranks { record, nodes: None }
    }

    /// The rank of a frame. One that is not in the cycle goes in front of its siblings.
    pub fn of(&mut self, frame: Position) -> Rank {
        let Some(point) = frame.point else { return Rank::FIRST };
        let mut rank = Rank { point: 1 + point.index(), ..Rank::FIRST };
        let Some(plugin) = frame.plugin else { return rank };
        let plugins = frames::plugins(self.record, point);
        rank.plugin = plugins.iter().position(|other| *other == plugin).map_or(1, |at| at + 1);
        if let Some(node) = frame.node {
            rank.node = self.node_places(frame.parent()).get(node.index()).map_or(1, |at| *at);
        }
        rank
    }

    fn node_places(&mut self, plugin: Position) -> &[usize] {
        if self.nodes.as_ref().is_none_or(|(of, _)| *of != plugin) {
            let mut places = vec![0; self.record.nodes.names.len()];
            let tree = Tree { record: Some(self.record), ..Tree::default() };
            let children = frames::children(&tree, plugin);
            for (at, node) in children.iter().filter_map(|child| child.node).enumerate() {
                if let Some(place) = places.get_mut(node.index()) {
                    *place = at + 1;
                }
            }
            self.nodes = Some((plugin, places));
        }
        self.nodes.as_ref().map_or(&[], |(_, places)| places)
    }
}
