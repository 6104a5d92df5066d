//! How the screen is divided, at every size.
//!
//! ```text
//! kubestep  0 Cycle  1 Timeline  2 Queues  …                      PAUSED   tabs, mode
//! cycle 3 default/web ▸ Filter ▸ NodeResourcesFit ▸ node-1     t+12.5s     breadcrumbs, clock
//! ─ Filter ─ 38/5000 ─ /gpu ──────────────────────────────────────────     the view's panes …
//!  …
//! 2 pods waiting; press 7                                                  status, or the prompt
//! s step  n next  f finish  c continue  / filter  ? help                   hints
//! ```

use ratatui::layout::Rect;

/// Below this the screen shows one sentence instead of half a view.
pub const SMALLEST: (u16, u16) = (60, 15);

/// Width class of a terminal. Views show more columns in wider classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WidthTier {
    /// Up to 99 columns.
    #[default]
    Compact,
    /// 100 to 159 columns.
    Standard,
    /// 160 columns and more.
    Wide,
}

impl WidthTier {
    /// The class of a width in columns.
    pub fn of(width: u16) -> WidthTier {
        match width {
            0..=99 => WidthTier::Compact,
            100..=159 => WidthTier::Standard,
            160.. => WidthTier::Wide,
        }
    }
}

/// Areas of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenAreas {
    /// View names and mode.
    pub tabs: Rect,
    /// Breadcrumbs and clock; no height when switched off.
    pub crumbs: Rect,
    /// The area of the view.
    pub body: Rect,
    /// Status line or prompt.
    pub status: Rect,
    /// The keys that matter now.
    pub hints: Rect,
}

/// Divides `area`; `None` when it is too small for anything but a sentence.
pub fn screen(area: Rect, crumbs: bool) -> Option<ScreenAreas> {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return None;
    }
    let line = |y: u16, height: u16| Rect { x: area.x, y: area.y + y, width: area.width, height };
    let top = 1 + u16::from(crumbs);
    Some(ScreenAreas {
        tabs: line(0, 1),
        crumbs: line(1, u16::from(crumbs)),
        body: line(top, area.height - top - 2),
        status: line(area.height - 2, 1),
        hints: line(area.height - 1, 1),
    })
}

/// Fewest columns of the details beside the rows.
const LEAST_DETAILS: u16 = 60;

/// The line with the title of a pane.
const RULE: u16 = 1;
/// Fewest lines of text in the details below the rows, where these need room.
const LEAST_LINES: u16 = 3;

/// What the two panes of a view need.
#[derive(Clone, Copy, Debug, Default)]
pub struct PaneNeeds {
    /// Columns in which no row is cut.
    pub columns: u16,
    /// Lines of all rows, with everything above them.
    pub lines: u16,
    /// Lines of the details' text.
    pub details: u16,
}

/// Divides a view into its rows and the details of the selected one: below, as high as their text but
/// at most three tenths (5 lines on low screens), or more where a short list leaves it, or at the
/// right where the terminal is wide. There rows that would be cut get more than their part.
pub fn panes(body: Rect, tier: WidthTier, needs: PaneNeeds) -> (Rect, Rect) {
    match tier {
        WidthTier::Wide => {
            let part = body.width / 5 * 3;
            let most = (body.width / 10 * 7).min(body.width.saturating_sub(LEAST_DETAILS));
            // Only two widths, so that the details do not move from view to view and cycle to cycle.
            split_columns(body, if needs.columns <= part { part } else { most.max(part) })
        }
        WidthTier::Compact | WidthTier::Standard => {
            let least = LEAST_LINES + RULE;
            let text = needs.details.saturating_add(RULE);
            let text = text.clamp(least, (body.height * 3 / 10).max(least + 1));
            let left = body.height.saturating_sub(needs.lines);
            split_bottom(body, left.clamp(text, (body.height * 3 / 4).max(text)))
        }
    }
}

/// Columns of the text of details that are as wide as this, with a blank on both sides.
pub fn detail_columns(width: u16) -> usize {
    usize::from(width.saturating_sub(2))
}

/// Left part of `width` columns, a gap of one, and the rest.
pub fn split_columns(area: Rect, width: u16) -> (Rect, Rect) {
    let width = width.min(area.width);
    let left = Rect { width, ..area };
    let gap = u16::from(width < area.width);
    let right = Rect { x: area.x + width + gap, width: area.width - width - gap, ..area };
    (left, right)
}

/// The upper part and the lower `height` lines.
pub fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let upper = Rect { height: area.height - height, ..area };
    (upper, Rect { y: upper.bottom(), height, ..area })
}

/// A window of at most `width` × `height` in the middle of `area`.
pub fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let x = area.x + (area.width - width) / 2;
    Rect { x, y: area.y + (area.height - height) / 2, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_by_twenty_four_leaves_twenty_lines_for_the_view() {
        let screen = screen(Rect::new(0, 0, 80, 24), true).unwrap();
        assert_eq!(screen.body, Rect::new(0, 2, 80, 20));
        assert_eq!((screen.status.y, screen.hints.y), (22, 23));
    }

    #[test]
    fn without_breadcrumbs_the_view_gains_a_line() {
        let screen = screen(Rect::new(0, 0, 80, 24), false).unwrap();
        assert_eq!((screen.body, screen.crumbs.height), (Rect::new(0, 1, 80, 21), 0));
    }

    #[test]
    fn too_small_is_said_and_not_drawn() {
        assert_eq!(screen(Rect::new(0, 0, 59, 24), true), None);
        assert_eq!(screen(Rect::new(0, 0, 80, 14), true), None);
        assert!(screen(Rect::new(0, 0, 60, 15), true).is_some());
    }

    #[test]
    fn areas_tile_the_screen_at_every_size() {
        for width in (60..=220).step_by(7) {
            for height in 15..=70 {
                let s = screen(Rect::new(0, 0, width, height), true).unwrap();
                let heights = [s.tabs, s.crumbs, s.body, s.status, s.hints].map(|r| r.height);
                assert_eq!(heights.iter().sum::<u16>(), height);
                assert_eq!(s.status.y, s.body.bottom());
            }
        }
    }

    #[test]
    fn tiers_follow_the_width() {
        assert_eq!([80, 99, 100, 159, 160].map(WidthTier::of), {
            use WidthTier::{Compact, Standard, Wide};
            [Compact, Compact, Standard, Standard, Wide]
        });
    }

    #[test]
    fn details_get_the_lines_that_a_short_list_leaves() {
        let body = Rect::new(0, 2, 120, 30);
        let heights = |lines, details| {
            let needs = PaneNeeds { columns: 80, lines, details };
            let (rows, details) = panes(body, WidthTier::Standard, needs);
            (rows.height, details.height)
        };
        assert_eq!([5, 18].map(|lines| heights(lines, 1)), [(8, 22), (18, 12)]);
        // Of a long list they take what their text needs, within bounds.
        let of_long = [1, 3, 5, 8, 100].map(|details| heights(500, details));
        assert_eq!(of_long, [(26, 4), (26, 4), (24, 6), (21, 9), (21, 9)]);
        assert_eq!(heights(18, 100), (18, 12), "what a short list leaves is theirs anyway");
    }

    #[test]
    fn beside_the_details_rows_that_would_be_cut_get_more() {
        let widths = |width, columns| {
            let body = Rect::new(0, 2, width, 50);
            let (rows, details) =
                panes(body, WidthTier::Wide, PaneNeeds { columns, lines: 10, details: 0 });
            (rows.width, details.width)
        };
        assert_eq!(
            [60, 130, 500].map(|columns| widths(200, columns)),
            [(120, 79), (140, 59), (140, 59)]
        );
        assert_eq!([60, 500].map(|columns| widths(160, columns)), [(96, 63), (100, 59)]);
    }

    #[test]
    fn windows_never_leave_their_area() {
        let area = Rect::new(3, 2, 10, 5);
        assert_eq!(centred(area, 4, 3), Rect::new(6, 3, 4, 3));
        assert_eq!(centred(area, 40, 30), area);
        assert_eq!(split_columns(area, 20), (area, Rect::new(13, 2, 0, 5)));
        assert_eq!(split_columns(area, 4).1, Rect::new(8, 2, 5, 5));
        assert_eq!(split_bottom(area, 9).0.height, 0);
    }
}
