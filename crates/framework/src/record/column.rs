//! A column: one small value per node slot, shared between cycles while it does not change.
//!
//! Every cycle records verdicts and scores of up to 5,000 nodes. Most of a column equals that of
//! the cycle before, so it is cut into chunks, and only chunks that change are copied.

use std::sync::Arc;

use crate::node::NodeId;

/// Values per chunk: what a change of one slot copies.
const CHUNK: usize = 256;

/// One value per node slot. Copies share the list of chunks until one of them is changed.
#[derive(Clone, Debug)]
pub struct Column<T> {
    chunks: Arc<Vec<Arc<[T]>>>,
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
        Column { chunks: Arc::default(), len: 0, range: None }
    }
}

impl<T: Copy + PartialEq> Column<T> {
    /// A column of `len` slots, all holding `value`.
    pub fn filled(value: T, len: usize) -> Column<T> {
        let chunk = Arc::from([value; CHUNK]);
        Column { chunks: Arc::new(vec![chunk; len.div_ceil(CHUNK)]), len, range: None }
    }

    /// A column of the given values, by slot.
    pub fn from_values(values: &[T]) -> Column<T> {
        let chunks = values.chunks(CHUNK).map(Arc::from).collect();
        Column { chunks: Arc::new(chunks), len: values.len(), range: None }
    }

    /// The same values, of which only those in a range count.
    pub fn within(&self, range: Range<T>) -> Column<T> {
        Column { range: Some(Arc::new(range)), ..self.clone() }
    }

    /// A column of the given values that shares the equal chunks of `other`.
    pub fn like(other: &Column<T>, values: &[T]) -> Column<T> {
        let mut others = other.chunks.iter();
        let chunk = |chunk: &[T]| match others.next() {
            Some(shared) if **shared == *chunk => shared.clone(),
            _ => Arc::from(chunk),
        };
        let chunks: Vec<Arc<[T]>> = values.chunks(CHUNK).map(chunk).collect();
        let pairs = || chunks.iter().zip(other.chunks.iter());
        let is_same = chunks.len() == other.chunks.len() && pairs().all(|(a, b)| Arc::ptr_eq(a, b));
        let chunks = if is_same { other.chunks.clone() } else { Arc::new(chunks) };
        Column { chunks, len: values.len(), range: None }
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
        // The last chunk may be longer than the rest of the column; it has no values there.
        let chunk = self.chunks.get(node.index() / CHUNK).filter(|_| node.index() < self.len)?;
        chunk.get(node.index() % CHUNK).copied()
    }

    /// The values of several slots; `none` for those beyond the end.
    pub fn gather(&self, nodes: &[NodeId], none: T) -> Vec<T> {
        let chunks: Vec<&[T]> = self.runs().collect();
        let value = |node: &NodeId| {
            let chunk = chunks.get(node.index() / CHUNK);
            chunk.and_then(|chunk| chunk.get(node.index() % CHUNK)).copied().unwrap_or(none)
        };
        nodes.iter().map(value).collect()
    }

    /// Sets the value of a slot. If another column shares the chunk, it is copied first, unless the
    /// value is the same.
    pub fn set(&mut self, node: NodeId, value: T) {
        let at = node.index() % CHUNK;
        let present = self.chunks.get(node.index() / CHUNK).and_then(|chunk| chunk.get(at));
        if present.is_some_and(|present| *present != value) {
            let chunk = &mut Arc::make_mut(&mut self.chunks)[node.index() / CHUNK];
            Arc::make_mut(chunk)[at] = value;
        }
    }

    /// Adds the slots whose values differ from those of `other`, which has as many.
    pub fn differences(&self, other: &Column<T>, slots: &mut Vec<NodeId>) {
        if Arc::ptr_eq(&self.chunks, &other.chunks) {
            return;
        }
        let pairs = self.runs().zip(other.runs()).enumerate();
        for (index, (own, theirs)) in pairs.filter(|(_, (a, b))| a.as_ptr() != b.as_ptr()) {
            let values = own.iter().zip(theirs).enumerate();
            let differing = values.filter(|(_, (a, b))| a != b);
            slots.extend(differing.map(|(at, _)| NodeId((index * CHUNK + at) as u32)));
        }
    }

    /// Extends the column to at least `len` slots; new ones hold `value`.
    pub fn grow(&mut self, value: T, len: usize) {
        if len <= self.len {
            return;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        if let Some(last) = chunks.last_mut()
            && last.len() < CHUNK
        {
            let mut longer = [value; CHUNK];
            longer[..last.len()].copy_from_slice(last);
            *last = Arc::from(longer);
        }
        let chunk = Arc::from([value; CHUNK]);
        chunks.resize(len.div_ceil(CHUNK), chunk);
        self.len = len;
    }

    /// The address of the list of chunks, which columns with the same values mostly share.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.chunks).addr()
    }

    /// Address and length of each chunk, to check what columns share.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.chunks.iter().map(|chunk| (chunk.as_ptr().addr(), chunk.len()))
    }

    /// The values in slot order, in contiguous runs, whether or not they are in a range.
    pub fn runs(&self) -> impl Iterator<Item = &[T]> {
        let starts = (0..self.len).step_by(CHUNK);
        starts.zip(self.chunks.iter()).map(|(start, chunk)| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_a_copy_shares_the_other_chunks() {
        let first = Column::filled(0_u32, 1000);
        let mut second = first.clone();
        second.set(NodeId(300), 7);
        assert_eq!((first.get(NodeId(300)), second.get(NodeId(300))), (Some(0), Some(7)));
        assert!(Arc::ptr_eq(&first.chunks[0], &second.chunks[0]));
        assert!(!Arc::ptr_eq(&first.chunks[1], &second.chunks[1]));
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
        let mut values: Vec<u16> = (0..600).collect();
        let first = Column::from_values(&values);
        values[300] = 7;
        values.push(9);
        let second = Column::like(&first, &values);
        assert_eq!(second, Column::from_values(&values));
        let shared = first.chunks.iter().zip(second.chunks.iter()).map(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.collect::<Vec<_>>(), [true, false, false]);
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
        let first = Column::filled(0_u32, 1000);
        let mut second = first.clone();
        let slots = [NodeId(3), NodeId(300), NodeId(999)];
        slots.iter().for_each(|slot| second.set(*slot, 7));
        let mut found = Vec::new();
        second.differences(&first, &mut found);
        assert_eq!(found, slots);
        first.differences(&first.clone(), &mut found);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn runs_are_the_values_and_no_more() {
        let joined = |column: &Column<u16>| column.runs().flatten().copied().collect::<Vec<_>>();
        for len in [0, 1, CHUNK, CHUNK + 1, 1000] {
            let values: Vec<u16> = (0..len as u16).collect();
            assert_eq!(joined(&Column::from_values(&values)), values);
            assert_eq!(joined(&Column::filled(7, len)), vec![7; len]);
            let (slots, expected) = ([NodeId(0), NodeId(len as u32)], [(len > 0) as u16 * 7, 0]);
            assert_eq!(Column::filled(7, len).gather(&slots, 0), expected);
        }
    }

    #[test]
    fn a_column_that_grew_holds_what_it_held_and_the_new_value() {
        let mut column = Column::from_values(&[1, 2, 3]);
        let before = column.clone();
        column.grow(9, 600);
        assert_eq!(column.iter().take(5).collect::<Vec<_>>(), [1, 2, 3, 9, 9]);
        assert_eq!(
            (column.len(), column.get(NodeId(599)), column.get(NodeId(600))),
            (600, Some(9), None)
        );
        assert_eq!(before.iter().collect::<Vec<_>>(), [1, 2, 3]);
    }
}
