//! What every view and widget draws with: the theme, the character set, and how wide the terminal is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::tui::glyph::{Charset, RULE};
use crate::tui::layout::WidthTier;
use crate::tui::theme::{Scope, Theme};
use crate::tui::{sanitize, text};

/// Drawing context of one frame.
#[derive(Clone, Copy)]
pub struct Paint<'a> {
    /// The style of each scope.
    pub theme: &'a Theme,
    /// The glyphs that the terminal shows.
    pub charset: Charset,
    /// Width class of the terminal; decides which columns are shown.
    pub tier: WidthTier,
}

impl Paint<'_> {
    /// The style of a place.
    pub fn style(&self, scope: Scope) -> Style {
        self.theme.style(scope)
    }

    /// Writes `text` from `(x, y)` to the right edge of `area`, cleaned. Returns the next free column.
    pub fn put(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        x: u16,
        y: u16,
        text: &str,
        scope: Scope,
    ) -> u16 {
        self.put_clean(buffer, area, (x, y), &sanitize::clean(text), scope)
    }

    /// The same with text that was cleaned to be measured.
    pub fn put_clean(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        (x, y): (u16, u16),
        text: &str,
        scope: Scope,
    ) -> u16 {
        let inside = y >= area.top() && y < area.bottom();
        let room = if inside { area.right().saturating_sub(x) } else { 0 };
        text::put(buffer, x, y, room, &self.charset.show(text), self.style(scope))
    }

    /// Fills `area` with the blanks and background of `scope`.
    pub fn fill(&self, buffer: &mut Buffer, area: Rect, scope: Scope) {
        let area = area.intersection(buffer.area);
        for position in area.positions() {
            if let Some(cell) = buffer.cell_mut(position) {
                cell.reset();
            }
        }
        buffer.set_style(area, self.style(scope));
    }

    /// A horizontal rule over the whole of line `y`.
    pub fn rule(&self, buffer: &mut Buffer, area: Rect, y: u16) {
        let rule = RULE.repeat(usize::from(area.width));
        self.put(buffer, area, area.left(), y, &rule, Scope::Border);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::color::ColorDepth;
    use crate::tui::theme::Library;

    #[test]
    fn put_escapes_and_stays_inside() {
        let theme = Theme::load(&Library::default(), "dark", ColorDepth::Rgb).unwrap().0;
        let tier = WidthTier::of(80);
        let paint = Paint { theme: &theme, charset: Charset::Unicode, tier };
        let (left, area) = (Rect::new(0, 0, 8, 1), Rect::new(0, 0, 10, 1));
        let mut buffer = Buffer::empty(area);
        let mut put = |area, x, y, text| paint.put(&mut buffer, area, x, y, text, Scope::Text);
        assert_eq!(put(left, 0, 0, "a\x1b[31mlong"), 8);
        assert_eq!(put(area, 10, 0, "out"), 10);
        assert_eq!(put(area, 0, 3, "out"), 0);
        let line: String = buffer.content.iter().map(|c| c.symbol()).collect();
        assert_eq!(line, "a\\u{1b}[  ");
    }
}
