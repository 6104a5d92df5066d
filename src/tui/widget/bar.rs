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
    /// Amounts out of `all`; without any, nothing is used. The least amount is seen.
    pub fn of(used: i64, reserved: i64, all: i64) -> Load {
        let share = |part: i64| match (part, all) {
            (1.., 1..) => {
                i64::try_from(i128::from(part) * 1000 / i128::from(all)).map(|it| it.max(1))
            }
            _ => Ok(0),
        };
        let share = |part| share(part).unwrap_or(i64::MAX / 2);
        Load { used: share(used), reserved: share(reserved) }
    }

    /// A bar of `width` cells, coloured by how full it is; what is reserved is hatched, from where the used
    /// part ends.
    pub fn draw(self, width: usize, out: &mut CellWriter) {
        let (full, last) = in_cells(eighths(self.used, 1000, width));
        let scope = Scope::of_load(self.used);
        out.part(&BLOCK.repeat(full), scope);
        let ground = (self.reserved > 0).then_some(Scope::LoadReserved);
        last.into_iter().for_each(|last| out.part_on(last, scope, ground));
        let drawn = full + usize::from(last.is_some());
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

/// The eighths of `width` cells that a part of `all` takes; at least one, so that it is seen.
fn eighths(part: i64, all: i64, width: usize) -> usize {
    if part <= 0 || all <= 0 || width == 0 {
        return 0;
    }
    let (whole, all) = (width * 8, i128::from(all));
    let share = (i128::from(part) * 2 * whole as i128 + all) / (2 * all);
    usize::try_from(share).unwrap_or(whole).clamp(1, whole)
}

/// The full cells of so many eighths, and the sign of the rest.
fn in_cells(eighths: usize) -> (usize, Option<&'static str>) {
    let rest = (eighths % 8).checked_sub(1).and_then(|rest| EIGHTHS.get(rest));
    (eighths / 8, rest.copied())
}

/// A plain bar of at most `width` cells, as long as its share of `all`.
pub fn plain(part: i64, all: i64, width: usize) -> String {
    let (full, last) = in_cells(eighths(part, all, width));
    BLOCK.repeat(full) + last.unwrap_or_default()
}

/// A segment of a stacked bar: how much it is, and the number of its series.
pub type Segment = (i64, usize);

/// Segments beside each other, where `most` is the whole width. Adjacent series differ in their
/// fill, so that they are distinguished without colours. Equal sums end in the same place, and the least
/// amount is seen.
pub fn segments(parts: &[Segment], most: i64, width: usize, out: &mut CellWriter) {
    let parts: Vec<Segment> = parts.iter().filter(|(amount, _)| *amount > 0).copied().collect();
    let ends = segment_ends(&parts, most, width);
    let segment_at = |eighth| ends.iter().position(|end| *end > eighth);
    for cell in 0..width {
        let Some(at) = segment_at(cell * 8) else {
            out.part(" ", Scope::Text);
            continue;
        };
        let (series, end) = (parts[at].1, ends[at]);
        let ground = segment_at(end).map(|next| Scope::of_series(parts[next].1));
        match in_cells(end - cell * 8) {
            (0, Some(rest)) => out.part_on(rest, Scope::of_series(series), ground),
            _ => out.part(fill(series), Scope::of_series(series)),
        }
    }
}

/// Where each segment ends, in eighths. One that others follow ends with a cell, unless it or the next
/// would not be seen then: a fill has no eighths of its own.
fn segment_ends(parts: &[Segment], most: i64, width: usize) -> Vec<usize> {
    let mut sum = 0_i64;
    let mut ends: Vec<usize> = Vec::with_capacity(parts.len());
    for (amount, _) in parts {
        sum = sum.saturating_add(*amount);
        let least = ends.last().map_or(0, |end| end + 1);
        ends.push(eighths(sum, most, width).max(least));
    }
    for (behind, end) in ends.iter_mut().rev().enumerate() {
        *end = (*end).min((width * 8).saturating_sub(behind));
    }
    for at in 1..ends.len() {
        let start = at.checked_sub(2).map_or(0, |before| ends[before]);
        let whole = (ends[at - 1] + 4) / 8 * 8;
        if (start + 1..ends[at]).contains(&whole) {
            ends[at - 1] = whole;
        }
    }
    ends
}

/// The fill of a series.
pub fn fill(series: usize) -> &'static str {
    FILLS[series % FILLS.len()]
}

/// A sparkline of the values, the newest at the right, in at most `width` cells: of more values
/// each cell shows the highest of its share, but the last one the last. `highest` fills the height.
pub fn sparkline(values: &[usize], highest: usize, width: usize) -> String {
    let highest = highest.max(1);
    let columns = values.len().min(width);
    let cell = |at: usize| {
        let share = values.get(at * values.len() / columns..(at + 1) * values.len() / columns);
        let share = share.unwrap_or_default().iter();
        let value = if at + 1 == columns { share.last() } else { share.max() };
        let value = value.copied().unwrap_or(0);
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
        assert_eq!(drawn(Load::of(1, 1, 1_000), 4), "▏▒░░", "the least is seen");
        assert_eq!(drawn(Load::of(1, 0, 100_000), 4), "▏░░░");
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
        assert_eq!(shown(&[(9, 0), (8, 1)]), "███▒▒▋    ", "the whole ends in eighths");
        assert_eq!(shown(&[(9, 0), (7, 1)]), "███▒▒▍    ");
    }

    #[test]
    fn the_least_segment_is_seen_on_the_ground_of_the_next() {
        let shown = |parts: &[Segment]| {
            let mut out = CellWriter::default();
            segments(parts, 201, 4, &mut out);
            let grounds = out.grounds().map(|(text, ground)| (text.to_owned(), ground));
            (out.text.clone(), grounds.collect::<Vec<_>>())
        };
        let (text, grounds) = shown(&[(200, 0), (1, 1)]);
        assert_eq!(text, "███▉");
        assert_eq!(grounds, [("▉".to_owned(), Scope::Series2)]);
        assert_eq!(shown(&[(1, 0), (0, 1), (200, 2)]).0, "▏▓▓▓");
        assert_eq!(shown(&[(0, 0), (1, 1)]).0, "▏   ");
        assert_eq!(shown(&[(1, 0); 201]).0.chars().count(), 4, "more segments than eighths");
    }

    #[test]
    fn a_plain_bar_ends_in_eighths() {
        let shown = [0, 1, 8, 14, 50, 100].map(|percent| plain(percent, 100, 10));
        assert_eq!(shown, ["", "▏", "▊", "█▍", "█████", "██████████"]);
    }

    #[test]
    fn a_sparkline_keeps_peaks() {
        assert_eq!(sparkline(&[0, 1, 2, 7], 7, 10), "▁▂▃█");
        assert_eq!(sparkline(&[0, 1], 7, 10), "▁▂", "the scale of another one");
        assert_eq!(sparkline(&[0, 0, 9, 0, 0, 0], 9, 3), "▁█▁");
        assert_eq!(sparkline(&[0, 0, 0, 0, 9, 0], 9, 3), "▁▁▁", "it ends with the present");
        assert_eq!(sparkline(&[], 0, 5), "");
        assert_eq!(sparkline(&[0, 0], 0, 5), "▁▁");
    }
}
