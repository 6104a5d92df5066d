//! How a view shows its rows, as a person chose it: what is folded, grouped, or drawn as a map.

use std::collections::BTreeSet;

/// What is folded, grouped or mapped in one view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewShape {
    /// What is folded by default is shown, too: skipped plugins, equal scores.
    pub unfolded: bool,
    /// The key of the label that nodes are grouped by.
    pub group_by: Option<String>,
    /// Which of the view's heat maps is drawn instead of rows.
    pub map: Option<usize>,
    /// A filter or an order is about every single row: none are grouped.
    pub flat: bool,
    /// Keys of the rows that are unfolded one by one.
    open: BTreeSet<u64>,
    changes: u64,
}

impl ViewShape {
    /// Unfolds the row with this key, or folds it again.
    pub fn toggle(&mut self, key: u64) {
        if !self.open.remove(&key) {
            self.open.insert(key);
        }
        self.changes += 1;
    }

    /// Whether the row with this key is unfolded.
    pub fn is_open(&self, key: u64) -> bool {
        self.unfolded || self.open.contains(&key)
    }

    /// Shows all that is folded, or folds it again.
    pub fn toggle_all(&mut self) {
        self.unfolded = !self.unfolded;
        self.open.clear();
        self.changes += 1;
    }

    /// Groups by a label, or no longer.
    pub fn group(&mut self, key: Option<String>) {
        (self.group_by, self.map) = (key, None);
        self.open.clear();
        self.changes += 1;
    }

    /// The next of `maps` heat maps, and rows again after the last.
    pub fn next_map(&mut self, maps: usize) {
        let next = self.map.map_or(0, |map| map + 1);
        self.set_map((next < maps).then_some(next));
    }

    /// That heat map, or rows.
    pub fn set_map(&mut self, map: Option<usize>) {
        self.map = map;
        self.changes += 1;
    }

    /// A row for each node.
    pub fn plain(self) -> ViewShape {
        ViewShape { map: None, group_by: None, flat: true, ..self }
    }

    /// Changes whenever the rows may.
    pub fn revision(&self) -> u64 {
        2 * self.changes + u64::from(self.flat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_follow_each_other_and_end_with_rows() {
        let mut shape = ViewShape::default();
        let shown: Vec<_> = (0..4)
            .map(|_| {
                shape.next_map(2);
                shape.map
            })
            .collect();
        assert_eq!(shown, [Some(0), Some(1), None, Some(0)]);
    }

    #[test]
    fn rows_unfold_one_by_one_and_all_together() {
        let mut shape = ViewShape::default();
        shape.toggle(7);
        assert!(shape.is_open(7) && !shape.is_open(8));
        let before = shape.revision();
        shape.toggle_all();
        assert!(shape.is_open(8) && shape.revision() != before);
        shape.toggle_all();
        assert!(!shape.is_open(7), "folding all folds every row");
    }
}
