//! A column: one small value per node slot, shared between cycles while it does not change.
//!
//! Every cycle records verdicts and scores of all nodes. Most of a column equals that of the cycle
//! before, so it is cut into chunks, chunks are joined into groups, and groups into blocks: a change
//! copies one chunk and the short lists that lead to it.

use std::sync::Arc;

use crate::node::NodeId;

/// Values per chunk: what a change of one slot copies.
const CHUNK: usize = 128;
/// Chunks per group, and groups per block.
const FANOUT: usize = 16;
/// Node slots per group.
const GROUP: usize = FANOUT * CHUNK;
/// Node slots per block.
const BLOCK: usize = FANOUT * GROUP;

/// Values that are compared at a time.
const PART: usize = 32;

type Chunk<T> = Arc<[T]>;
type Group<T> = Arc<Vec<Chunk<T>>>;
type Block<T> = Arc<Vec<Group<T>>>;

/// One value per node slot. Copies share the list of blocks until one of them is changed.
#[derive(Clone, Debug)]
pub struct Column<T> {
    blocks: Arc<Vec<Block<T>>>,
    len: usize,
    range: Option<Arc<Range<T>>>,
}

/// The nodes whose values count, as a range of the node order that may wrap around. It lets
/// searches that stop early share the values of all nodes.
#[derive(Clone, Debug)]
pub struct Range<T> {
    /// By slot: the position in the node order; `u32::MAX` where the slot holds no node.
    pub ranks: Arc<Vec<u32>>,
    /// Number of nodes in the order.
    pub nodes: usize,
    /// Where the range starts in the node order.
    pub start: usize,
    /// Number of nodes in the range.
    pub len: usize,
    /// The value of nodes outside of the range.
    pub outside: T,
    /// The value of slots without a node.
    pub free: T,
}

impl<T: Copy> Range<T> {
    /// The value of a slot that is not in the range.
    fn value_outside(&self, node: NodeId) -> Option<T> {
        let rank = self.ranks.get(node.index()).map_or(usize::MAX, |rank| *rank as usize);
        if rank >= self.nodes {
            return Some(self.free);
        }
        let distance = if rank < self.start { rank + self.nodes } else { rank } - self.start;
        (distance >= self.len).then_some(self.outside)
    }
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column { blocks: Arc::default(), len: 0, range: None }
    }
}

impl<T: Copy + PartialEq> Column<T> {
    /// A column of `len` slots, all holding `value`.
    pub fn filled(value: T, len: usize) -> Column<T> {
        let chunk: Chunk<T> = Arc::from([value; CHUNK]);
        let group = |len: usize| Arc::new(vec![chunk.clone(); len.div_ceil(CHUNK)]);
        let mut groups = vec![group(GROUP); len / GROUP];
        if !len.is_multiple_of(GROUP) {
            groups.push(group(len % GROUP));
        }
        Column { blocks: Arc::new(joined(groups).collect()), len, range: None }
    }

    /// A column of the given values, by slot.
    pub fn from_values(values: &[T]) -> Column<T> {
        let group = |values: &[T]| Arc::new(values.chunks(CHUNK).map(Arc::from).collect());
        let groups = values.chunks(GROUP).map(group).collect();
        Column { blocks: Arc::new(joined(groups).collect()), len: values.len(), range: None }
    }

    /// The same values, of which only those in a range count.
    pub fn within(&self, range: Range<T>) -> Column<T> {
        Column { range: Some(Arc::new(range)), ..self.clone() }
    }

    /// A column of the given values that shares the equal chunks of `other`.
    pub fn like(other: &Column<T>, values: &[T]) -> Column<T> {
        let mut others = other.groups();
        let groups = values.chunks(GROUP).map(|values| group_like(others.next(), values)).collect();
        Column { blocks: other.joined_like(groups), len: values.len(), range: None }
    }

    /// The same values, in the chunks of `other` where these are equal.
    pub fn shared_with(self, other: &Column<T>) -> Column<T> {
        let mut others = other.groups();
        let group = |group: &Group<T>| match others.next() {
            Some(other) if !Arc::ptr_eq(group, other) => share_chunks(group, other),
            _ => group.clone(),
        };
        let groups = self.groups().map(group).collect();
        Column { blocks: other.joined_like(groups), ..self }
    }

    fn groups(&self) -> impl Iterator<Item = &Group<T>> {
        self.blocks.iter().flat_map(|block| block.iter())
    }

    /// Groups joined into blocks: into those of the column where these are the same.
    fn joined_like(&self, groups: Vec<Group<T>>) -> Arc<Vec<Block<T>>> {
        let mut own = self.blocks.iter();
        let blocks: Vec<Block<T>> = joined(groups)
            .map(|block| match own.next() {
                Some(own) if are_same(&block, own) => own.clone(),
                _ => block,
            })
            .collect();
        if are_same(&blocks, &self.blocks) { self.blocks.clone() } else { Arc::new(blocks) }
    }

    /// How many slots there are, used or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a slot; `None` beyond the end.
    pub fn get(&self, node: NodeId) -> Option<T> {
        let outside = self.range.as_ref().and_then(|range| range.value_outside(node));
        if outside.is_some() {
            return outside.filter(|_| node.index() < self.len);
        }
        self.stored(node.index())
    }

    /// The value of a slot, whether or not it is in a range.
    fn stored(&self, at: usize) -> Option<T> {
        // The last chunk may be longer than the rest of the column; it has no values there.
        if at >= self.len {
            return None;
        }
        let group = self.blocks.get(at / BLOCK)?.get(at % BLOCK / GROUP)?;
        group.get(at % GROUP / CHUNK)?.get(at % CHUNK).copied()
    }

    /// The values of several slots, whether or not they are in a range; `none` for those beyond the
    /// end.
    pub fn gather<U: From<T> + Copy>(&self, nodes: &[NodeId], none: U) -> Vec<U> {
        if nodes.len() < self.len / CHUNK {
            let stored = |node: &NodeId| self.stored(node.index()).map_or(none, U::from);
            return nodes.iter().map(stored).collect();
        }
        if nodes.len() < self.len / 4 {
            let chunks: Vec<&[T]> = self.runs().collect();
            let value = |node: &NodeId| {
                let chunk = chunks.get(node.index() / CHUNK);
                let value = chunk.and_then(|chunk| chunk.get(node.index() % CHUNK));
                value.map_or(none, |value| U::from(*value))
            };
            return nodes.iter().map(value).collect();
        }
        // So many are read faster from one piece of memory.
        let mut values = Vec::with_capacity(self.len);
        self.runs().for_each(|run| values.extend_from_slice(run));
        let value = |node: &NodeId| values.get(node.index()).map_or(none, |value| U::from(*value));
        nodes.iter().map(value).collect()
    }

    /// Sets the value of a slot. If another column shares the chunk, it is copied first, unless the
    /// value is the same.
    pub fn set(&mut self, node: NodeId, value: T) {
        let at = node.index();
        if self.stored(at).is_some_and(|present| present != value) {
            let block = Arc::make_mut(&mut Arc::make_mut(&mut self.blocks)[at / BLOCK]);
            let group = Arc::make_mut(&mut block[at % BLOCK / GROUP]);
            Arc::make_mut(&mut group[at % GROUP / CHUNK])[at % CHUNK] = value;
        }
    }

    /// Adds the slots whose values differ from those of `other`, which has as many.
    pub fn differences(&self, other: &Column<T>, slots: &mut Vec<NodeId>) {
        for (first, own, theirs) in self.different_chunks(other) {
            // Most parts of a chunk are equal, which takes few steps to find out.
            let parts = own.chunks(PART).zip(theirs.chunks(PART)).enumerate();
            for (part, (own, theirs)) in parts.filter(|(_, (own, theirs))| own != theirs) {
                let first = first + part * PART;
                let values = own.iter().zip(theirs).enumerate().filter(|(_, (a, b))| a != b);
                slots.extend(values.map(|(at, _)| NodeId((first + at) as u32)));
            }
        }
    }

    /// How many values differ from those of `other`, which has as many.
    pub fn count_differences(&self, other: &Column<T>) -> usize {
        let count = |(_, own, theirs): (usize, &[T], &[T])| {
            own.iter().zip(theirs).map(|(a, b)| usize::from(a != b)).sum::<usize>()
        };
        self.different_chunks(other).map(count).sum()
    }

    /// The chunks that are not shared with `other`, of both, with the slot of the first value.
    fn different_chunks<'a>(
        &'a self,
        other: &'a Column<T>,
    ) -> impl Iterator<Item = (usize, &'a [T], &'a [T])> {
        let lists = (!self.is_shared_with(other)).then_some((&self.blocks, &other.blocks));
        let blocks = lists.into_iter().flat_map(|(own, theirs)| different(own, theirs));
        let groups = blocks.flat_map(|(block, own, theirs)| {
            different(own, theirs)
                .map(move |(group, own, theirs)| (block * FANOUT + group, own, theirs))
        });
        groups.flat_map(move |(group, own, theirs)| {
            different(own, theirs).map(move |(chunk, own, theirs)| {
                let first = (group * FANOUT + chunk) * CHUNK;
                let len = own.len().min(theirs.len()).min(self.len - first);
                (first, &own[..len], &theirs[..len])
            })
        })
    }

    /// Extends the column to at least `len` slots; new ones hold `value`.
    pub fn grow(&mut self, value: T, len: usize) {
        if len <= self.len {
            return;
        }
        let mut groups: Vec<Group<T>> = self.groups().cloned().collect();
        if let Some(last) = groups.last_mut() {
            let chunks = Arc::make_mut(last);
            if let Some(last) = chunks.last_mut()
                && last.len() < CHUNK
            {
                let mut longer = [value; CHUNK];
                longer[..last.len()].copy_from_slice(last);
                *last = Arc::from(longer);
            }
        }
        let chunk: Chunk<T> = Arc::from([value; CHUNK]);
        let mut missing = len.div_ceil(CHUNK);
        for at in 0..len.div_ceil(GROUP) {
            let chunks = missing.min(FANOUT);
            missing -= chunks;
            match groups.get_mut(at) {
                Some(group) if group.len() == chunks => {}
                Some(group) => Arc::make_mut(group).resize(chunks, chunk.clone()),
                None => groups.push(Arc::new(vec![chunk.clone(); chunks])),
            }
        }
        (self.blocks, self.len) = (self.joined_like(groups), len);
    }

    /// Whether both are the same list in memory.
    pub fn is_shared_with(&self, other: &Column<T>) -> bool {
        Arc::ptr_eq(&self.blocks, &other.blocks)
    }

    /// Visits the lists and chunks that columns may share, with address and size in bytes. What a
    /// list holds is visited only if `visit` returns `true` for the list.
    pub fn visit_parts(&self, visit: &mut impl FnMut(usize, usize) -> bool) {
        if !visit(Arc::as_ptr(&self.blocks).addr(), size_of_val(&self.blocks[..])) {
            return;
        }
        for block in self.blocks.iter() {
            if !visit(Arc::as_ptr(block).addr(), size_of_val(&block[..])) {
                continue;
            }
            for group in block.iter() {
                if visit(Arc::as_ptr(group).addr(), size_of_val(&group[..])) {
                    for chunk in group.iter() {
                        visit(chunk.as_ptr().addr(), size_of_val(&chunk[..]));
                    }
                }
            }
        }
    }

    /// The values in slot order, in contiguous runs, whether or not they are in a range.
    pub fn runs(&self) -> impl Iterator<Item = &[T]> {
        let starts = (0..self.len).step_by(CHUNK);
        starts.zip(self.groups().flat_map(|group| group.iter())).map(|(start, chunk)| {
            let end = chunk.len().min(self.len - start);
            &chunk[..end]
        })
    }

    /// The values in slot order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let slots = (0..self.len).map(|slot| NodeId(slot as u32));
        self.runs().flatten().zip(slots).map(|(value, slot)| {
            let outside = self.range.as_ref().and_then(|range| range.value_outside(slot));
            outside.unwrap_or(*value)
        })
    }
}

impl<T: Copy + PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Column<T>) -> bool {
        if self.range.is_some() || other.range.is_some() {
            return self.len == other.len && self.iter().eq(other.iter());
        }
        let same = |(a, b): (&[T], &[T])| a.as_ptr() == b.as_ptr() || a == b;
        self.len == other.len && self.runs().zip(other.runs()).all(same)
    }
}

/// Groups joined into blocks.
fn joined<T>(groups: Vec<Group<T>>) -> impl Iterator<Item = Block<T>> {
    let mut groups = groups.into_iter();
    std::iter::from_fn(move || {
        let block: Vec<Group<T>> = groups.by_ref().take(FANOUT).collect();
        (!block.is_empty()).then(|| Arc::new(block))
    })
}

/// The members of two lists, by index, that are not the same in memory.
fn different<'a, T: ?Sized>(
    own: &'a [Arc<T>],
    theirs: &'a [Arc<T>],
) -> impl Iterator<Item = (usize, &'a T, &'a T)> {
    let pairs = own.iter().zip(theirs).enumerate();
    let pairs = pairs.filter(|(_, (own, theirs))| !Arc::ptr_eq(own, theirs));
    pairs.map(|(at, (own, theirs))| (at, &**own, &**theirs))
}

/// A group of these values that shares the equal chunks of `other`.
fn group_like<T: Copy + PartialEq>(other: Option<&Group<T>>, values: &[T]) -> Group<T> {
    let mut others = other.into_iter().flat_map(|group| group.iter());
    let chunk = |chunk: &[T]| match others.next() {
        Some(shared) if **shared == *chunk => shared.clone(),
        _ => Arc::from(chunk),
    };
    let chunks: Vec<Chunk<T>> = values.chunks(CHUNK).map(chunk).collect();
    match other {
        Some(other) if are_same(&chunks, other) => other.clone(),
        _ => Arc::new(chunks),
    }
}

/// A group with the chunks of `other` where these are equal.
fn share_chunks<T: Copy + PartialEq>(group: &Group<T>, other: &Group<T>) -> Group<T> {
    let mut others = other.iter();
    let chunk = |chunk: &Chunk<T>| match others.next() {
        Some(other) if chunk == other => other.clone(),
        _ => chunk.clone(),
    };
    let chunks: Vec<Chunk<T>> = group.iter().map(chunk).collect();
    if are_same(&chunks, other) { other.clone() } else { Arc::new(chunks) }
}

/// Whether both lists hold the same values in memory.
fn are_same<T: ?Sized>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_chunks<T: Copy + PartialEq>(one: &Column<T>, other: &Column<T>) -> Vec<bool> {
        one.runs().zip(other.runs()).map(|(a, b)| a.as_ptr() == b.as_ptr()).collect()
    }

    #[test]
    fn writing_a_copy_shares_the_other_chunks() {
        let first = Column::filled(0_u32, 4 * CHUNK - 1);
        let mut second = first.clone();
        let slot = NodeId(CHUNK as u32 + 44);
        second.set(slot, 7);
        assert_eq!((first.get(slot), second.get(slot)), (Some(0), Some(7)));
        assert_eq!(shared_chunks(&first, &second), [true, false, true, true]);
        assert_ne!(first, second);
    }

    #[test]
    fn the_end_is_the_end() {
        let mut column = Column::from_values(&[1, 2, 3]);
        column.set(NodeId(3), 9);
        assert_eq!(column.get(NodeId(3)), None);
        assert_eq!(column.iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_column_shares_what_is_the_same_in_another() {
        let mut values: Vec<u16> = (0..2 * CHUNK as u16 + 9).collect();
        let first = Column::from_values(&values);
        values[CHUNK + 44] = 7;
        values.push(9);
        let second = Column::like(&first, &values);
        assert_eq!(second, Column::from_values(&values));
        assert_eq!(shared_chunks(&first, &second), [true, false, false]);
        let fresh = Column::from_values(&values).shared_with(&first);
        assert_eq!(shared_chunks(&first, &fresh), [true, false, false]);
        assert_eq!(fresh, second);
        let values: Vec<u16> = (0..2 * CHUNK as u16 + 9).collect();
        assert!(Column::from_values(&values).shared_with(&first).is_shared_with(&first));
        assert!(Column::like(&first, &values).is_shared_with(&first));
        assert_eq!(Column::like(&second, &[]), Column::from_values(&[]));
    }

    #[test]
    fn only_the_values_of_a_range_count() {
        // Slot 2 holds no node; the node order is 3, 0, 4, 1.
        let ranks = Arc::new(vec![1, 3, u32::MAX, 0, 2]);
        let column = Column::from_values(&[10, 11, 12, 13, 14]);
        let within = |start, len| {
            let range = Range { ranks: ranks.clone(), nodes: 4, start, len, outside: 0, free: 1 };
            let column = column.within(range);
            let values: Vec<_> = column.iter().collect();
            let one_by_one = (0..6).map(|slot| column.get(NodeId(slot)));
            assert_eq!(
                one_by_one.collect::<Vec<_>>()[..5],
                values.iter().copied().map(Some).collect::<Vec<_>>()
            );
            assert_eq!(column.get(NodeId(5)), None);
            assert_eq!(column, Column::from_values(&values));
            values
        };
        assert_eq!(within(0, 4), [10, 11, 1, 13, 14]);
        assert_eq!(within(1, 2), [10, 0, 1, 0, 14]);
        assert_eq!(within(3, 2), [0, 11, 1, 13, 0]);
        assert_eq!(within(2, 0), [0, 0, 1, 0, 0]);
    }

    #[test]
    fn differences_are_found_in_the_chunks_that_are_not_shared() {
        let first = Column::filled(0_u32, 2 * BLOCK);
        let mut second = first.clone();
        let slots = [3, 300, 999, 9_000, BLOCK as u32 + 9_001].map(NodeId);
        slots.iter().for_each(|slot| second.set(*slot, 7));
        let mut found = Vec::new();
        second.differences(&first, &mut found);
        assert_eq!(found, slots);
        first.differences(&first.clone(), &mut found);
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn runs_are_the_values_and_no_more() {
        let joined = |column: &Column<u16>| column.runs().flatten().copied().collect::<Vec<_>>();
        for len in [0, 1, CHUNK, CHUNK + 1, 1000, GROUP, 2 * GROUP + 300, BLOCK, BLOCK + 300] {
            let values: Vec<u16> = (0..len as u16).collect();
            assert_eq!(joined(&Column::from_values(&values)), values);
            assert_eq!(joined(&Column::filled(7, len)), vec![7; len]);
            let (slots, expected) = ([NodeId(0), NodeId(len as u32)], [(len > 0) as u16 * 7, 0]);
            assert_eq!(Column::filled(7_u16, len).gather(&slots, 0_u16), expected);
        }
    }

    #[test]
    fn a_column_that_grew_holds_what_it_held_and_the_new_value() {
        let mut column = Column::from_values(&[1, 2, 3]);
        let before = column.clone();
        column.grow(9, 3 * CHUNK - 1);
        assert_eq!(column.iter().take(5).collect::<Vec<_>>(), [1, 2, 3, 9, 9]);
        assert_eq!(
            (column.len(), column.iter().last(), column.get(NodeId(3 * CHUNK as u32 - 1))),
            (3 * CHUNK - 1, Some(9), None)
        );
        assert_eq!(before.iter().collect::<Vec<_>>(), [1, 2, 3]);
        column.grow(8, BLOCK + 3 * GROUP + 1);
        let counts = |value| column.iter().filter(|it| *it == value).count();
        // The chunk of the end was filled before.
        let nines = 3 * CHUNK - 3;
        assert_eq!((counts(9), counts(8)), (nines, BLOCK + 3 * GROUP + 1 - 3 * CHUNK));
    }

    #[test]
    fn a_change_touches_one_chunk_and_the_lists_that_lead_to_it() {
        let visited = |column: &Column<u8>| {
            let mut parts = Vec::new();
            column.visit_parts(&mut |address, _| {
                parts.push(address);
                true
            });
            parts
        };
        let first = Column::from_values(&vec![0; BLOCK + GROUP]);
        let mut second = first.clone();
        second.set(NodeId(GROUP as u32), 1);
        let (first, second) = (visited(&first), visited(&second));
        assert_eq!(first.len(), 1 + 2 + 17 + 17 * FANOUT);
        assert_eq!(first.iter().filter(|part| !second.contains(part)).count(), 4);
    }
}
