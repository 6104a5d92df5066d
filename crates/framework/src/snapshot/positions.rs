//! Sets of positions in the node order that count their members, and find one by its rank.

use std::sync::Arc;

/// Words of a block: what a change copies.
const WORDS: usize = 32;
/// Positions of a block.
const BLOCK: usize = WORDS * 64;

/// Some consecutive positions.
#[derive(Clone, Debug)]
struct Block {
    words: [u64; WORDS],
    /// How many members are before each word.
    before: [u16; WORDS],
}

/// A set of positions in the node order. Copies share the blocks that are equal.
#[derive(Clone, Default, Debug)]
pub struct PositionSet {
    blocks: Arc<Vec<Arc<Block>>>,
    /// How many members are before each block, and behind the last one.
    before: Arc<Vec<usize>>,
}

impl Block {
    fn new(words: [u64; WORDS]) -> Block {
        let (mut before, mut members) = ([0; WORDS], 0);
        for (word, before) in words.iter().zip(&mut before) {
            *before = members;
            members += ones(*word) as u16;
        }
        Block { words, before }
    }

    fn members(&self) -> usize {
        usize::from(self.before[WORDS - 1]) + ones(self.words[WORDS - 1])
    }

    /// The member with so many members of the block before it.
    fn select(&self, rank: usize) -> Option<usize> {
        let at =
            self.before.partition_point(|before| usize::from(*before) <= rank).checked_sub(1)?;
        let within = select_in_word(self.words[at], rank - usize::from(self.before[at]))?;
        Some(at * 64 + within)
    }
}

impl PositionSet {
    /// The set of those below `positions` for which `is_member` is true.
    pub fn of(positions: usize, mut is_member: impl FnMut(usize) -> bool) -> PositionSet {
        let mut word = |first: usize| {
            let all = first..positions.min(first + 64);
            all.fold(0, |word, at| word | u64::from(is_member(at)) << (at % 64))
        };
        let mut block = |first: usize| {
            Arc::new(Block::new(std::array::from_fn(|index| word(first + index * 64))))
        };
        let blocks: Vec<Arc<Block>> = (0..positions).step_by(BLOCK).map(&mut block).collect();
        let mut before = vec![0];
        for block in &blocks {
            before.push(before.last().map_or(0, |before| before + block.members()));
        }
        PositionSet { blocks: Arc::new(blocks), before: Arc::new(before) }
    }

    /// How many positions are in the set.
    pub fn len(&self) -> usize {
        self.before.last().copied().unwrap_or_default()
    }

    /// Whether no position is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a position is in the set.
    pub fn contains(&self, at: usize) -> bool {
        self.word(at / 64) & bit(at) != 0
    }

    /// Adds or removes a position that is below the number of positions.
    pub fn set(&mut self, at: usize, is_member: bool) {
        if self.contains(at) == is_member {
            return;
        }
        let Some(block) = Arc::make_mut(&mut self.blocks).get_mut(at / BLOCK) else { return };
        let block = Arc::make_mut(block);
        let word = at % BLOCK / 64;
        block.words[word] ^= bit(at);
        let change = if is_member { 1 } else { -1 };
        let before = block.before[word + 1..].iter_mut();
        before.for_each(|before| *before = before.saturating_add_signed(change));
        let change = isize::from(change);
        let before = Arc::make_mut(&mut self.before).iter_mut().skip(at / BLOCK + 1);
        before.for_each(|before| *before = before.saturating_add_signed(change));
    }

    /// How many members are before a position.
    pub fn rank(&self, at: usize) -> usize {
        let Some(block) = self.blocks.get(at / BLOCK) else { return self.len() };
        let word = at % BLOCK / 64;
        let within = usize::from(block.before[word]) + ones(block.words[word] & (bit(at) - 1));
        self.before[at / BLOCK] + within
    }

    /// The member with so many members before it.
    pub fn select(&self, rank: usize) -> Option<usize> {
        let at = self.before.partition_point(|before| *before <= rank).checked_sub(1)?;
        let within = self.blocks.get(at)?.select(rank - self.before[at])?;
        Some(at * BLOCK + within)
    }

    /// The members from `from` to before `to`, in order.
    pub fn members(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        ones_of(from, to, move |at| self.word(at))
    }

    /// The positions from `from` to before `to` that are not in the set, in order; only those in
    /// `among`, if it is given.
    pub fn others<'a>(
        &'a self,
        among: Option<&'a PositionSet>,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let among = move |at| among.map_or(u64::MAX, |among| among.word(at));
        ones_of(from, to, move |at| !self.word(at) & among(at))
    }

    /// The runs of members from `from` to before `to`, each as its first position and the one after
    /// its last; a run ends where a word does.
    pub fn runs(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        masked_words(from, to, move |at| self.word(at)).flat_map(|(first, mut left)| {
            std::iter::from_fn(move || {
                let start = (left != 0).then(|| left.trailing_zeros())?;
                let len = (left >> start).trailing_ones();
                // The bits of the run are cleared by a carry to the next bit.
                left &= left.wrapping_add(1 << start);
                let start = first + start as usize;
                Some((start, start + len as usize))
            })
        })
    }

    /// How many [`PositionSet::runs`] there are.
    pub fn count_runs(&self, from: usize, to: usize) -> usize {
        masked_words(from, to, |at| self.word(at)).map(|(_, word)| ones(word & !(word << 1))).sum()
    }

    /// Adds the positions that are in one of two sets and not in the other.
    pub fn differences(&self, other: &PositionSet, positions: &mut Vec<usize>) {
        if Arc::ptr_eq(&self.blocks, &other.blocks) {
            return;
        }
        let pairs = self.blocks.iter().zip(other.blocks.iter()).enumerate();
        for (index, _) in pairs.filter(|(_, (a, b))| !Arc::ptr_eq(a, b)) {
            let differing = |at| self.word(at) ^ other.word(at);
            positions.extend(ones_of(index * BLOCK, (index + 1) * BLOCK, differing));
        }
    }

    /// Visits the list and the blocks that sets may share, with address and size in bytes. The
    /// blocks are visited only if `visit` returns `true` for the list.
    pub fn visit_parts(&self, visit: &mut impl FnMut(usize, usize) -> bool) {
        if visit(Arc::as_ptr(&self.blocks).addr(), size_of_val(&self.blocks[..])) {
            for block in self.blocks.iter() {
                visit(Arc::as_ptr(block).addr(), size_of::<Block>());
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
        let same = |(a, b): (&Arc<Block>, &Arc<Block>)| Arc::ptr_eq(a, b) || a.words == b.words;
        let blocks = self.blocks.len();
        blocks == other.blocks.len() && self.blocks.iter().zip(other.blocks.iter()).all(same)
    }
}

/// The bit of a position in its word.
fn bit(at: usize) -> u64 {
    1 << (at % 64)
}

fn ones(word: u64) -> usize {
    word.count_ones() as usize
}

/// The set bit of a word with so many set bits before it, fewer than 64.
fn select_in_word(word: u64, rank: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // How many bits are set in each byte and those below it; no count reaches the high bit.
    let pairs = word - ((word >> 1) & (u64::MAX / 3));
    let nibbles = (pairs & (u64::MAX / 5)) + ((pairs >> 2) & (u64::MAX / 5));
    let up_to = ((nibbles + (nibbles >> 4)) & (u64::MAX / 17)).wrapping_mul(ONES);
    // The bytes whose bits all come before have their high bits set.
    let passed = ((ONES.wrapping_mul(rank as u64) | HIGH) - up_to) & HIGH;
    let shift = 8 * ones(passed) as u32;
    let mut rest = word.checked_shr(shift)?;
    let before = (up_to << 8).checked_shr(shift)? & 0xff;
    (before..rank as u64).for_each(|_| rest &= rest.wrapping_sub(1));
    (rest != 0).then(|| shift as usize + rest.trailing_zeros() as usize)
}

/// The words with the positions from `from` to before `to`, without the bits of others, each with
/// its first position.
fn masked_words(
    from: usize,
    to: usize,
    word: impl Fn(usize) -> u64,
) -> impl Iterator<Item = (usize, u64)> {
    let within = move |index: usize| {
        let first = from.saturating_sub(index * 64).min(63);
        let end = (to - index * 64).min(64);
        (index * 64, word(index) & (u64::MAX << first) & (u64::MAX >> (64 - end)))
    };
    (from / 64..to.div_ceil(64)).filter(move |_| from < to).map(within)
}

/// The positions from `from` to before `to` whose bits are set in words, in order.
fn ones_of(from: usize, to: usize, word: impl Fn(usize) -> u64) -> impl Iterator<Item = usize> {
    masked_words(from, to, word).flat_map(|(first, mut left)| {
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(first + bit)
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
            let runs = changed.runs(from, to).flat_map(|(from, to)| from..to);
            prop_assert_eq!(runs.collect::<Vec<_>>(), expected);
            prop_assert_eq!(changed.count_runs(from, to), changed.runs(from, to).count());
            let others = (from..to).filter(|at| !changed.contains(*at)).collect::<Vec<_>>();
            prop_assert_eq!(changed.others(None, from, to).collect::<Vec<_>>(), others.clone());
            let before = others.into_iter().filter(|at| first.contains(*at));
            let found = changed.others(Some(&first), from, to);
            prop_assert!(found.eq(before));
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
