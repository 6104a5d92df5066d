//! Drawings out of block characters: bars, segments beside each other, sparklines.
//!
//! Each has a form that is read without colours, and a stand-in in ASCII for every character.

use super::grid::CellWriter;
use crate::tui::glyph::{BLOCK, EIGHTHS, FILLS, HATCH, HEIGHTS, TRACK};
use crate::tui::theme::Scope;

/// Pieces of a drawing, each with its style.
pub type StyledParts = Vec<(String, Scope)>;

/// How much of something is used and reserved, in thousandths of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub used: i64,
    /// What nominated pods reserve beyond that.
    pub reserved: i64,
}

impl Load {
    /// Amounts out of `all`; without any, nothing is used.
    pub fn of(used: i64, reserved: i64, all: i64) -> Load {
        let share = |part: i64| match all {
            1.. => i64::try_from(i128::from(part.max(0)) * 1000 / i128::from(all)),
            _ => Ok(0),
        };
        let share = |part| share(part).unwrap_or(i64::MAX / 2);
        Load { used: share(used), reserved: share(reserved) }
    }

    /// A bar of `width` cells, coloured by how full it is; what is reserved is hatched.
    pub fn draw(self, width: usize, out: &mut CellWriter) {
        let eighths = cells(self.used, width * 8);
        let (full, rest) = (eighths / 8, eighths % 8);
        let scope = Scope::of_load(self.used);
        out.part(&BLOCK.repeat(full), scope);
        if let Some(last) = rest.checked_sub(1).and_then(|eighth| EIGHTHS.get(eighth)) {
            out.part(last, scope);
        }
        let drawn = full + usize::from(rest > 0);
        let until = cells(self.used.saturating_add(self.reserved), width);
        let hatched = match self.reserved {
            0 => 0,
            _ => until.saturating_sub(drawn).max(usize::from(drawn < width)),
        };
        out.part(&HATCH.repeat(hatched), Scope::LoadReserved);
        out.part(&TRACK.repeat(width.saturating_sub(drawn + hatched)), Scope::LoadTrack);
    }
}

/// So many of `width` cells are that many thousandths.
fn cells(thousandths: i64, width: usize) -> usize {
    let share = usize::try_from(thousandths.clamp(0, 1000)).unwrap_or(0);
    (share * width + 500) / 1000
}

/// A segment of a stacked bar: how much it is, and the number of its series.
pub type Segment = (i64, usize);

/// Segments beside each other, where `most` is the whole width. Adjacent series differ in their
/// fill, so that they are distinguished without colours. Rounding is carried on, so that equal sums
/// end in the same cell.
pub fn segments(parts: &[Segment], most: i64, width: usize, out: &mut CellWriter) {
    let (mut sum, mut drawn) = (0_i64, 0);
    for (amount, series) in parts {
        sum = sum.saturating_add((*amount).max(0));
        let end = cells(Load::of(sum, 0, most).used, width);
        out.part(&fill(*series).repeat(end.saturating_sub(drawn)), Scope::of_series(*series));
        drawn = drawn.max(end);
    }
    out.part(&" ".repeat(width.saturating_sub(drawn)), Scope::Text);
}

/// The fill of a series.
pub fn fill(series: usize) -> &'static str {
    FILLS[series % FILLS.len()]
}

/// A sparkline of the values, the newest at the right, in at most `width` cells: of more values
/// each cell shows the highest of its share.
pub fn sparkline(values: &[usize], width: usize) -> String {
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let columns = values.len().min(width);
    let cell = |at: usize| {
        let share = values.get(at * values.len() / columns..(at + 1) * values.len() / columns);
        let value = share.and_then(|share| share.iter().max()).copied().unwrap_or(0);
        match value {
            0 => HEIGHTS[0],
            _ => HEIGHTS[(value * (HEIGHTS.len() - 1)).div_ceil(highest).min(7)],
        }
    };
    (0..columns).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(load: Load, width: usize) -> String {
        let mut out = CellWriter::default();
        load.draw(width, &mut out);
        out.text
    }

    #[test]
    fn a_bar_shows_eighths_and_hatches_what_is_reserved() {
        assert_eq!(drawn(Load::of(0, 0, 4), 4), "░░░░");
        assert_eq!(drawn(Load::of(1, 0, 4), 4), "█░░░");
        assert_eq!(drawn(Load::of(3, 0, 8), 4), "█▌░░");
        assert_eq!(drawn(Load::of(1, 2, 4), 4), "█▒▒░");
        assert_eq!(drawn(Load::of(9, 0, 4), 4), "████", "more than there is");
        assert_eq!(drawn(Load::of(1, 1, 1_000), 4), "▒░░░", "the least reserved is seen");
        assert_eq!(drawn(Load::of(5, 0, 0), 4), "░░░░");
    }

    #[test]
    fn segments_that_sum_up_alike_end_alike() {
        let shown = |parts: &[Segment]| {
            let mut out = CellWriter::default();
            segments(parts, 30, 10, &mut out);
            out.text
        };
        assert_eq!(shown(&[(10, 0), (20, 1)]), "███▒▒▒▒▒▒▒");
        assert_eq!(shown(&[(4, 0), (4, 1), (22, 2)]).trim_end().chars().count(), 10);
        assert_eq!(shown(&[(15, 3)]), "░░░░░     ");
    }

    #[test]
    fn a_sparkline_keeps_peaks() {
        assert_eq!(sparkline(&[0, 1, 2, 7], 10), "▁▂▃█");
        assert_eq!(sparkline(&[0, 0, 9, 0, 0, 0], 3), "▁█▁");
        assert_eq!(sparkline(&[], 5), "");
        assert_eq!(sparkline(&[0, 0], 5), "▁▁");
    }
}
