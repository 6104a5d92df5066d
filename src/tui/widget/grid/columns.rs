//! Which columns fit, and where they stand.

use super::state::Hidden;
use super::{GridColumn, GridSource, Width};
use crate::tui::layout::WidthTier;
use crate::tui::text::{Align, width};

/// Width of the mark beside the title of the column that is sorted.
const MARK_WIDTH: u16 = 1;
/// Columns before the first one: the debugger's position or a breakpoint, and a person's mark.
pub const MARK: u16 = 2;
/// Text narrower than this says nothing, so such a column is left out instead.
const LEAST_TEXT: u16 = 6;

/// A column on screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedColumn {
    /// Its number in the source.
    pub index: usize,
    /// Offset from the grid's left edge.
    pub x: u16,
    /// Width in terminal columns.
    pub width: u16,
    pub column: GridColumn,
}

/// The columns on screen and whether some are out of sight on either side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnLayout {
    /// From left to right; the first is column 0.
    pub columns: Vec<PlacedColumn>,
    /// Columns that are not on screen.
    pub hidden: Hidden,
}

/// The columns that a terminal of a class shows, by their numbers. To describe one may take a look at
/// thousands of rows, so a frame asks once.
pub struct ShownColumns {
    columns: Vec<(usize, GridColumn)>,
    /// How many are for wider terminals.
    wide: usize,
    /// Blanks between two of them.
    gap: u16,
}

impl ShownColumns {
    /// Those of a source. The title of the column that is sorted gets room for the mark.
    pub fn of(source: &dyn GridSource, tier: WidthTier, sorted: Option<usize>) -> ShownColumns {
        let mut columns: Vec<(usize, GridColumn)> = (0..source.columns())
            .map(|i| (i, source.column(i)))
            .filter(|(i, column)| *i == 0 || column.from <= tier)
            .collect();
        for (_, column) in columns.iter_mut().filter(|(i, _)| Some(*i) == sorted) {
            let title = column.title.split('\n').map(width).max().unwrap_or(0) as u16 + MARK_WIDTH;
            column.width = match column.width {
                Width::Fixed(width) => Width::Fixed(width.max(title)),
                Width::Between(width, most) => Width::Between(width.max(title), most.max(title)),
                Width::Prose(width, most) => Width::Prose(width.max(title), most.max(title)),
            };
        }
        ShownColumns { wide: source.columns() - columns.len(), columns, gap: source.gap() }
    }

    /// The width in which nothing is cut.
    pub fn natural_width(&self) -> u16 {
        let widths =
            self.columns.iter().map(|(_, column)| column.width.most().saturating_add(self.gap));
        widths.fold(MARK, u16::saturating_add)
    }
}

/// Places the frozen first column and as many others from `first` on as fit into `width`.
pub fn place(shown: &ShownColumns, first: usize, width: u16) -> ColumnLayout {
    let hidden = Hidden { wide: shown.wide, ..Hidden::default() };
    let mut placement = ColumnLayout { hidden, ..ColumnLayout::default() };
    let mut used = 0;
    for (index, column) in shown.columns.iter().map(|(index, column)| (*index, column)) {
        if index > 0 && index < first {
            placement.hidden.left += 1;
            continue;
        }
        let x = if index == 0 { 0 } else { used + shown.gap };
        let room = width.saturating_sub(x);
        let least = least_width(column);
        // A number is shown whole or not at all; text may be cut.
        let cuttable = column.align == Align::Left && room >= LEAST_TEXT.min(least);
        if placement.hidden.right > 0 || (index > 0 && room < least && !cuttable) {
            placement.hidden.right += 1;
            continue;
        }
        let own = least.min(room);
        used = x + own;
        placement.columns.push(PlacedColumn { index, x, width: own, column: column.clone() });
    }
    grow(&mut placement.columns, width.saturating_sub(used), shown.gap);
    placement
}

fn least_width(column: &GridColumn) -> u16 {
    match column.width {
        Width::Fixed(width) | Width::Between(width, _) | Width::Prose(width, _) => width,
    }
}

/// Gives spare room to the columns that can use it: prose last, so that a name is whole before a
/// sentence is, and in equal parts, so that one long name takes no other's room.
fn grow(columns: &mut [PlacedColumn], spare: u16, gap: u16) {
    let spare = share(columns, spare, false);
    share(columns, spare, true);
    let mut x = 0;
    for placed in columns {
        placed.x = x;
        x += placed.width + gap;
    }
}

/// Shares room between the columns of prose, or between the others; gives what is left.
fn share(columns: &mut [PlacedColumn], mut spare: u16, prose: bool) -> u16 {
    let lacks = |placed: &PlacedColumn| match placed.column.width {
        Width::Between(_, most) if !prose => most.saturating_sub(placed.width),
        Width::Prose(_, most) if prose => most.saturating_sub(placed.width),
        _ => 0,
    };
    loop {
        let growing = columns.iter().filter(|placed| lacks(placed) > 0).count();
        if growing == 0 || spare == 0 {
            return spare;
        }
        let part = (spare / u16::try_from(growing).unwrap_or(u16::MAX)).max(1);
        for placed in columns.iter_mut() {
            let more = lacks(placed).min(part).min(spare);
            placed.width += more;
            spare -= more;
        }
    }
}

/// The first scrolled column to show, near `first`, so that `chosen` is on screen.
pub fn scroll_to(shown: &ShownColumns, first: usize, chosen: usize, width: u16) -> usize {
    let mut first = first.clamp(1, chosen.max(1));
    let visible = |first| place(shown, first, width).columns.iter().any(|c| c.index == chosen);
    while first < chosen && !visible(first) {
        first += 1;
    }
    first
}
