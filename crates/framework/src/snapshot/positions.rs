//! Sets of positions in the node order that count their members, and find one by its rank.

use std::sync::Arc;

/// Words of a block: what a change copies.
const WORDS: usize = 32;
/// Positions of a block.
const BLOCK: usize = WORDS * 64;

/// Some consecutive positions.
#[derive(Clone, Debug)]
struct Block {
    words: Arc<[u64; WORDS]>,
    /// How many of them are in the set.
    members: usize,
}

/// A set of positions in the node order. Copies share the blocks that are equal.
#[derive(Clone, Default, Debug)]
pub struct PositionSet {
    blocks: Arc<Vec<Block>>,
    members: usize,
}

impl PositionSet {
    /// The set of those below `positions` for which `is_member` is true.
    pub fn of(positions: usize, mut is_member: impl FnMut(usize) -> bool) -> PositionSet {
        let block = |first: usize| {
            let mut words = [0; WORDS];
            for at in first..positions.min(first + BLOCK) {
                words[(at - first) / 64] |= u64::from(is_member(at)) << (at % 64);
            }
            let members = ones(&words);
            Block { words: Arc::new(words), members }
        };
        let blocks: Vec<Block> = (0..positions).step_by(BLOCK).map(block).collect();
        let members = blocks.iter().map(|block| block.members).sum();
        PositionSet { blocks: Arc::new(blocks), members }
    }

    /// How many positions are in the set.
    pub fn len(&self) -> usize {
        self.members
    }

    /// Whether no position is in the set.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Whether a position is in the set.
    pub fn contains(&self, at: usize) -> bool {
        let block = self.blocks.get(at / BLOCK);
        block.is_some_and(|block| block.words[at % BLOCK / 64] & bit(at) != 0)
    }

    /// Adds or removes a position that is below the number of positions.
    pub fn set(&mut self, at: usize, is_member: bool) {
        if self.contains(at) == is_member {
            return;
        }
        let Some(block) = Arc::make_mut(&mut self.blocks).get_mut(at / BLOCK) else { return };
        Arc::make_mut(&mut block.words)[at % BLOCK / 64] ^= bit(at);
        let change = if is_member { 1 } else { -1 };
        block.members = block.members.saturating_add_signed(change);
        self.members = self.members.saturating_add_signed(change);
    }

    /// How many members are before a position.
    pub fn rank(&self, at: usize) -> usize {
        let (block, word) = (at / BLOCK, at % BLOCK / 64);
        let before: usize = self.blocks.iter().take(block).map(|block| block.members).sum();
        let words = self.blocks.get(block).map_or(&[][..], |block| &block.words[..]);
        let last = words.get(word).map_or(0, |word| word & (bit(at) - 1));
        before + ones(&words[..word.min(words.len())]) + last.count_ones() as usize
    }

    /// The member with so many members before it.
    pub fn select(&self, mut rank: usize) -> Option<usize> {
        for (index, block) in self.blocks.iter().enumerate() {
            if rank >= block.members {
                rank -= block.members;
                continue;
            }
            for (at, word) in block.words.iter().enumerate() {
                let members = word.count_ones() as usize;
                if rank < members {
                    let mut word = *word;
                    (0..rank).for_each(|_| word &= word - 1);
                    return Some(index * BLOCK + at * 64 + word.trailing_zeros() as usize);
                }
                rank -= members;
            }
        }
        None
    }

    /// The members from `from` to before `to`, in order.
    pub fn members(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        ones_of(from, to, move |at| self.word(at))
    }

    /// The members from `from` to before `to` that are not in `other`, in order.
    pub fn members_outside<'a>(
        &'a self,
        other: &'a PositionSet,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        ones_of(from, to, move |at| self.word(at) & !other.word(at))
    }

    /// Adds the positions that are in one of two sets and not in the other.
    pub fn differences(&self, other: &PositionSet, positions: &mut Vec<usize>) {
        if Arc::ptr_eq(&self.blocks, &other.blocks) {
            return;
        }
        let pairs = self.blocks.iter().zip(other.blocks.iter()).enumerate();
        for (index, _) in pairs.filter(|(_, (a, b))| !Arc::ptr_eq(&a.words, &b.words)) {
            let differing = |at| self.word(at) ^ other.word(at);
            positions.extend(ones_of(index * BLOCK, (index + 1) * BLOCK, differing));
        }
    }

    /// Visits the list and the blocks that sets may share, with address and size in bytes. The
    /// blocks are visited only if `visit` returns `true` for the list.
    pub fn visit_parts(&self, visit: &mut impl FnMut(usize, usize) -> bool) {
        if visit(Arc::as_ptr(&self.blocks).addr(), size_of_val(&self.blocks[..])) {
            for block in self.blocks.iter() {
                visit(Arc::as_ptr(&block.words).addr(), size_of_val(&*block.words));
            }
        }
    }

    /// Sixty-four positions.
    fn word(&self, at: usize) -> u64 {
        self.blocks.get(at / WORDS).map_or(0, |block| block.words[at % WORDS])
    }
}

/// Sets are equal if they have the same members.
impl PartialEq for PositionSet {
    fn eq(&self, other: &PositionSet) -> bool {
        let same = |(a, b): (&Block, &Block)| Arc::ptr_eq(&a.words, &b.words) || a.words == b.words;
        let blocks = self.blocks.len();
        blocks == other.blocks.len() && self.blocks.iter().zip(other.blocks.iter()).all(same)
    }
}

/// The bit of a position in its word.
fn bit(at: usize) -> u64 {
    1 << (at % 64)
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The positions from `from` to before `to` whose bits are set in words, in order.
fn ones_of(from: usize, to: usize, word: impl Fn(usize) -> u64) -> impl Iterator<Item = usize> {
    let within = move |index: usize| {
        let first = from.saturating_sub(index * 64).min(63);
        let end = (to - index * 64).min(64);
        word(index) & (u64::MAX << first) & (u64::MAX >> (64 - end))
    };
    let words = (from / 64..to.div_ceil(64)).filter(move |_| from < to);
    words.flat_map(move |index| {
        let mut left = within(index);
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(index * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(bits: &[bool]) -> PositionSet {
        PositionSet::of(bits.len(), |at| bits[at])
    }

    proptest! {
        #[test]
        fn a_set_counts_and_finds_what_a_list_of_its_members_does(
            mut bits in prop::collection::vec(any::<bool>(), 1..5000),
            changes in prop::collection::vec((0_usize..5000, any::<bool>()), 0..20),
            range in (0_usize..5000, 0_usize..5000),
        ) {
            let first = set(&bits);
            let mut changed = first.clone();
            for (at, is_member) in changes {
                let at = at % bits.len();
                bits[at] = is_member;
                changed.set(at, is_member);
            }
            let members: Vec<usize> = (0..bits.len()).filter(|at| bits[*at]).collect();
            prop_assert_eq!(&changed, &set(&bits));
            prop_assert_eq!(changed.len(), members.len());
            let selected = (0..members.len() + 2).map_while(|rank| changed.select(rank));
            prop_assert_eq!(selected.collect::<Vec<_>>(), members.clone());
            let (from, to) = (range.0 % bits.len(), range.1 % (bits.len() + 1));
            prop_assert_eq!(changed.rank(to), members.iter().filter(|at| **at < to).count());
            let within = |at: &usize| (from..to).contains(at);
            let expected: Vec<usize> = members.iter().copied().filter(within).collect();
            prop_assert_eq!(changed.members(from, to).collect::<Vec<_>>(), expected.clone());
            let outside = changed.members_outside(&first, from, to).collect::<Vec<_>>();
            let is_new = |at: &usize| !first.contains(*at);
            prop_assert_eq!(outside, expected.into_iter().filter(is_new).collect::<Vec<_>>());
            let mut differences = Vec::new();
            changed.differences(&first, &mut differences);
            let differing = |at: &usize| first.contains(*at) != bits[*at];
            prop_assert_eq!(differences, (0..bits.len()).filter(differing).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_change_copies_one_block() {
        let first = PositionSet::of(3 * BLOCK, |_| true);
        let mut second = first.clone();
        second.set(BLOCK, false);
        let parts = |set: &PositionSet| {
            let mut parts = Vec::new();
            set.visit_parts(&mut |address, _| {
                parts.push(address);
                true
            });
            parts
        };
        let (first, second) = (parts(&first), parts(&second));
        assert_eq!(first.iter().filter(|part| !second.contains(part)).count(), 2);
    }
}
