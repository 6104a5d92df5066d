//! A column: one small value per node slot, shared between cycles while it does not change.
//!
//! Every cycle records verdicts and scores of up to 5,000 nodes. Most of a column equals that of
//! the cycle before, so it is cut into chunks, and only chunks that change are copied.

use std::sync::Arc;

use crate::node::NodeId;

/// Values per chunk.
const CHUNK: usize = 256;

/// One value per node slot.
#[derive(Clone, Debug)]
pub struct Column<T> {
    chunks: Vec<Arc<[T]>>,
    len: usize,
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Copy + PartialEq> Column<T> {
    /// A column of `len` slots, all holding `value`.
    pub fn filled(value: T, len: usize) -> Column<T> {
        let chunk = Arc::from([value; CHUNK]);
        Column { chunks: vec![chunk; len.div_ceil(CHUNK)], len }
    }

    /// A column of the given values, by slot.
    pub fn from_values(values: &[T]) -> Column<T> {
        let chunks = values.chunks(CHUNK).map(Arc::from).collect();
        Column { chunks, len: values.len() }
    }

    /// A column of the given values that shares the equal chunks of `other`.
    pub fn like(other: &Column<T>, values: &[T]) -> Column<T> {
        let mut others = other.chunks.iter();
        let chunk = |chunk: &[T]| match others.next() {
            Some(shared) if **shared == *chunk => shared.clone(),
            _ => Arc::from(chunk),
        };
        Column { chunks: values.chunks(CHUNK).map(chunk).collect(), len: values.len() }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a slot; `None` beyond the end.
    pub fn get(&self, node: NodeId) -> Option<T> {
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
        let Some(chunk) = self.chunks.get_mut(node.index() / CHUNK) else { return };
        let at = node.index() % CHUNK;
        if chunk.get(at).is_some_and(|present| *present != value) {
            Arc::make_mut(chunk)[at] = value;
        }
    }

    /// Extends the column to at least `len` slots; new ones hold `value`.
    pub fn grow(&mut self, value: T, len: usize) {
        if len <= self.len {
            return;
        }
        if let Some(last) = self.chunks.last_mut()
            && last.len() < CHUNK
        {
            let mut longer = [value; CHUNK];
            longer[..last.len()].copy_from_slice(last);
            *last = Arc::from(longer);
        }
        let chunk = Arc::from([value; CHUNK]);
        self.chunks.resize(len.div_ceil(CHUNK), chunk);
        self.len = len;
    }

    /// Address and length of each chunk, to check what columns share.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.chunks.iter().map(|chunk| (chunk.as_ptr().addr(), chunk.len()))
    }

    /// The values in slot order, in contiguous runs.
    pub fn runs(&self) -> impl Iterator<Item = &[T]> {
        let starts = (0..self.len).step_by(CHUNK);
        starts.zip(&self.chunks).map(|(start, chunk)| {
            let end = chunk.len().min(self.len - start);
            &chunk[..end]
        })
    }

    /// The values in slot order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).take(self.len)
    }
}

impl<T: Copy + PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Column<T>) -> bool {
        let same = |(a, b): (&Arc<[T]>, &Arc<[T]>)| Arc::ptr_eq(a, b) || a == b;
        self.len == other.len && self.chunks.iter().zip(&other.chunks).all(same)
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
        let shared = first.chunks.iter().zip(&second.chunks).map(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(Column::like(&second, &[]), Column::from_values(&[]));
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
