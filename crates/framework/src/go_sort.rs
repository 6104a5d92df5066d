//! Sorting like Go's `sort.Slice`: not stable, but deterministic, so that elements that are equal
//! in the order end up at upstream's positions.
//!
//! Pattern-defeating quicksort as in Go 1.22 and later: insertion sort for up to twelve elements,
//! above that quicksort that detects sorted and reversed runs, groups equal elements, breaks up bad
//! patterns with a fixed generator, and falls back to heapsort. The result equals Go's only if
//! every comparison and every swap does.

/// Up to this length insertion sort is used, which keeps equal elements in order.
const MAX_INSERTION: usize = 12;
/// From this length on the pivot is a median of medians, and nearly sorted ranges are repaired.
const LONG: usize = 50;
/// The number of swaps in the search for a pivot when every comparison caused one: the range is
/// probably reversed.
const MAX_SWAPS: usize = 12;
/// Maximum number of misplaced elements that are repaired before the range is partitioned.
const MAX_REPAIRS: usize = 5;

/// Sorts `items` so that `a` comes before `b` if `less(a, b)`.
pub fn sort<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let (end, limit) = (items.len(), bit_length(items.len()));
    Sorter { items, less }.quicksort(0, end, limit);
}

/// Number of bits of `n` without leading zeros.
fn bit_length(n: usize) -> u32 {
    usize::BITS - n.leading_zeros()
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum RunOrder {
    Unknown,
    Increasing,
    Decreasing,
}

/// The items to sort. All ranges are `start..end` of `items`.
struct Sorter<'a, T, F> {
    items: &'a mut [T],
    less: F,
}

impl<T, F: Fn(&T, &T) -> bool> Sorter<'_, T, F> {
    fn less(&self, a: usize, b: usize) -> bool {
        (self.less)(&self.items[a], &self.items[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
    }

    fn quicksort(&mut self, mut start: usize, mut end: usize, mut limit: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= MAX_INSERTION {
                return self.insertion_sort(start, end);
            }
            if limit == 0 {
                return self.heap_sort(start, end);
            }
            if !balanced {
                self.break_patterns(start, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == RunOrder::Decreasing {
                self.items[start..end].reverse();
                pivot = (end - 1) - (pivot - start);
                hint = RunOrder::Increasing;
            }
            let looks_sorted = balanced && partitioned && hint == RunOrder::Increasing;
            if looks_sorted && self.repair(start, end) {
                return;
            }
            // No element of the range is less than the element before it. If that one equals the
            // pivot, there are many equal elements.
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let middle;
            (middle, partitioned) = self.partition(start, end, pivot);
            let (left, right) = (middle - start, end - middle);
            balanced = left.min(right) >= length / 8;
            if left < right {
                self.quicksort(start, middle, limit);
                start = middle + 1;
            } else {
                self.quicksort(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    fn insertion_sort(&mut self, start: usize, end: usize) {
        for i in start + 1..end {
            self.shift_left(i, start);
        }
    }

    /// Moves the element at `from` left while it is less than its neighbour, at most to `floor`.
    fn shift_left(&mut self, from: usize, floor: usize) {
        let mut i = from;
        while i > floor && self.less(i, i - 1) {
            self.swap(i, i - 1);
            i -= 1;
        }
    }

    fn heap_sort(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, end: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    /// Moves the elements less than the pivot to its left. Returns the pivot's position, and
    /// whether the range was already partitioned.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        self.skip_placed(&mut i, &mut j, start);
        let in_order = i > j;
        while i <= j {
            self.swap(i, j);
            i += 1;
            j -= 1;
            self.skip_placed(&mut i, &mut j, start);
        }
        self.swap(j, start);
        (j, in_order)
    }

    /// Narrows `i..=j` from both sides to the first elements on the wrong side of the pivot.
    fn skip_placed(&self, i: &mut usize, j: &mut usize, pivot: usize) {
        while i <= j && self.less(*i, pivot) {
            *i += 1;
        }
        while i <= j && !self.less(*j, pivot) {
            *j -= 1;
        }
    }

    /// Moves the elements equal to the pivot to the front. Returns where the greater ones start.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        loop {
            while i <= j && !self.less(start, i) {
                i += 1;
            }
            while i <= j && self.less(start, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    /// Repairs a range that is nearly sorted. Returns whether it is sorted now.
    fn repair(&mut self, start: usize, end: usize) -> bool {
        let mut i = start + 1;
        for _ in 0..MAX_REPAIRS {
            while i < end && !self.less(i, i - 1) {
                i += 1;
            }
            if i == end {
                return true;
            }
            if end - start < LONG {
                return false;
            }
            self.swap(i, i - 1);
            if i - start >= 2 {
                // Upstream's floor is the start of the slice, not of the range.
                self.shift_left(i - 1, 0);
            }
            if end - i >= 2 {
                self.shift_right(i + 1, end);
            }
        }
        false
    }

    /// Moves the element before `from` right while its neighbour is less.
    fn shift_right(&mut self, from: usize, end: usize) {
        let mut i = from;
        while i < end && self.less(i, i - 1) {
            self.swap(i, i - 1);
            i += 1;
        }
    }

    /// Swaps three elements around the middle with others. A generator seeded with the length picks
    /// them.
    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        let mut random = length as u64;
        let mask = (1 << bit_length(length)) - 1;
        let first = start + (length / 4) * 2 - 1;
        for i in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut other = random as usize & mask;
            if other >= length {
                other -= length;
            }
            self.swap(first + i, start + other);
        }
    }

    /// The index of the pivot, and whether the range looks sorted or reversed.
    fn choose_pivot(&self, start: usize, end: usize) -> (usize, RunOrder) {
        let quarter = (end - start) / 4;
        let mut swaps = 0;
        let mut at = [start + quarter, start + 2 * quarter, start + 3 * quarter];
        if end - start >= LONG {
            for i in &mut at {
                *i = self.median([*i - 1, *i, *i + 1], &mut swaps);
            }
        }
        let pivot = self.median(at, &mut swaps);
        let hint = match swaps {
            0 => RunOrder::Increasing,
            MAX_SWAPS => RunOrder::Decreasing,
            _ => RunOrder::Unknown,
        };
        (pivot, hint)
    }

    fn median(&self, [a, b, c]: [usize; 3], swaps: &mut usize) -> usize {
        let (a, b) = self.ordered(a, b, swaps);
        let (b, _) = self.ordered(b, c, swaps);
        self.ordered(a, b, swaps).1
    }

    fn ordered(&self, a: usize, b: usize, swaps: &mut usize) -> (usize, usize) {
        if !self.less(b, a) {
            return (a, b);
        }
        *swaps += 1;
        (b, a)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_key(items: &mut [(u8, usize)]) {
        sort(items, |a, b| a.0 < b.0);
    }

    fn numbered(keys: impl IntoIterator<Item = u8>) -> Vec<(u8, usize)> {
        keys.into_iter().zip(0..).collect()
    }

    #[test]
    fn twelve_equal_elements_stay_in_place() {
        let mut items = numbered([7; 12]);
        by_key(&mut items);
        assert_eq!(items, numbered([7; 12]));
    }

    /// The original positions of the elements with these keys after sorting.
    fn places(count: usize, key: fn(usize) -> usize) -> Vec<usize> {
        let mut items: Vec<_> = (0..count).map(|place| (key(place), place)).collect();
        sort(&mut items, |a, b| a.0 < b.0);
        items.into_iter().map(|(_, place)| place).collect()
    }

    #[test]
    fn equal_elements_of_longer_slices_move_as_in_go() {
        assert_eq!(places(13, |_| 7), (0..13).collect::<Vec<_>>());
        assert_eq!(places(13, |i| i % 2), [8, 12, 2, 0, 4, 10, 6, 3, 7, 9, 5, 11, 1]);
        assert_eq!(places(20, |i| 20 - i), (0..20).rev().collect::<Vec<_>>());
    }

    #[test]
    fn long_slices_with_every_kind_of_step_end_up_as_in_go() {
        let checksum = |count, key| {
            let step = |sum: u64, place: usize| sum.wrapping_mul(31).wrapping_add(place as u64);
            places(count, key).into_iter().fold(0, step)
        };
        let misplaced = |i| if i == 20 || i == 50 { 0 } else { i };
        let half_equal = |i: usize| if i % 2 == 1 { 0 } else { i / 8 % 250 };
        assert_eq!(checksum(64, |i| 60 - i / 3), 4757629638950131906);
        assert_eq!(checksum(100, misplaced), 9264411423453259700);
        assert_eq!(checksum(500, |i| i * i % 97), 271076519429955724);
        assert_eq!(checksum(700, |i| i * i * i % 251 % 100), 13325170983388567274);
        assert_eq!(checksum(2000, half_equal), 7290245718334685594);
    }

    proptest! {
        #[test]
        fn sorted_and_complete(keys in prop::collection::vec(0u8..20, 0..300)) {
            let mut items = numbered(keys.clone());
            by_key(&mut items);
            prop_assert!(items.is_sorted_by_key(|(key, _)| *key));
            items.sort_by_key(|(_, place)| *place);
            prop_assert_eq!(items, numbered(keys));
        }

        #[test]
        fn wide_ranges_too(keys in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut items = numbered(keys);
            by_key(&mut items);
            prop_assert!(items.is_sorted_by_key(|(key, _)| *key));
        }

        #[test]
        fn any_order_ends(keys in prop::collection::vec(0u8..9, 0..200)) {
            // An inconsistent order must neither loop forever nor index out of bounds.
            let mut items = keys.clone();
            sort(&mut items, |a, b| (a ^ b) % 3 != 0);
            items.sort_unstable();
            let mut keys = keys;
            keys.sort_unstable();
            prop_assert_eq!(items, keys);
        }
    }
}
