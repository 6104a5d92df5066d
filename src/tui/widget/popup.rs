//! A window over the view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::glyph::{BAR, RULE};
use crate::tui::layout::centred;
use crate::tui::sanitize;
use crate::tui::text::{Truncation, fit, width};
use crate::tui::theme::Scope;

/// Clears a framed window of `width` × `height` in the middle of `area` and gives back its inside.
pub fn draw(
    buffer: &mut Buffer,
    area: Rect,
    size: (u16, u16),
    title: &str,
    footer: &str,
    paint: &Paint,
) -> Rect {
    let window = centred(area, size.0, size.1);
    if window.width < 4 || window.height < 3 {
        return Rect { width: 0, height: 0, ..window };
    }
    paint.fill(buffer, window, Scope::Popup);
    frame(buffer, window, paint);
    label(buffer, window, window.y, title, Scope::TitleFocus, paint);
    label(buffer, window, window.bottom() - 1, footer, Scope::HintText, paint);
    Rect { x: window.x + 2, y: window.y + 1, width: window.width - 4, height: window.height - 2 }
}

/// Says at the lower right of a window how much of it is out of sight.
pub fn note(buffer: &mut Buffer, inside: Rect, text: &str, paint: &Paint) {
    let needed = width(text) as u16 + 2;
    if needed <= inside.width / 2 {
        let x = inside.right() - needed;
        let room = Rect { x, width: needed, height: 1, y: inside.bottom() };
        paint.put(buffer, room, x, room.y, &format!(" {text} "), Scope::HintText);
    }
}

fn label(buffer: &mut Buffer, window: Rect, y: u16, text: &str, scope: Scope, paint: &Paint) {
    if !text.is_empty() {
        let clean = sanitize::clean(text);
        let shown = fit(&clean, usize::from(window.width.saturating_sub(6)), Truncation::End);
        let room = Rect { width: (width(&shown) + 4) as u16, ..window };
        paint.put(buffer, room, window.x + 2, y, &format!(" {shown} "), scope);
    }
}

fn frame(buffer: &mut Buffer, window: Rect, paint: &Paint) {
    let line = RULE.repeat(usize::from(window.width - 2));
    let last = window.bottom() - 1;
    let edges = [(window.y, "┌", "┐"), (last, "└", "┘")];
    for (y, left, right) in edges {
        let text = format!("{left}{line}{right}");
        paint.put(buffer, window, window.x, y, &text, Scope::Border);
    }
    for y in window.y + 1..last {
        paint.put(buffer, window, window.x, y, BAR, Scope::Border);
        paint.put(buffer, window, window.right() - 1, y, BAR, Scope::Border);
    }
}
