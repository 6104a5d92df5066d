//! The first line: the views with their digits, and the mode at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::view::ViewId;

/// Draws the line. Where not all names fit, views other than `active` show their digit only.
pub fn draw(buffer: &mut Buffer, area: Rect, active: ViewId, mode: (&str, Scope), paint: &Paint) {
    let chip = format!(" {} ", mode.0);
    let right = area.right().saturating_sub(width(&chip) as u16);
    let room = usize::from(right.saturating_sub(area.x + 1));
    let full = ViewId::ALL.iter().map(|v| width(&label(*v))).sum::<usize>() <= room;
    let mut x = area.x;
    for view in ViewId::ALL {
        let (text, scope) = match (view == active, full) {
            (true, _) => (label(view), Scope::TabActive),
            (false, true) => (label(view), Scope::Tab),
            (false, false) => (format!(" {} ", view.digit()), Scope::Tab),
        };
        x = paint.put(buffer, Rect { width: right - area.x, ..area }, x, area.y, &text, scope);
    }
    paint.put(buffer, area, right, area.y, &chip, mode.1);
}

fn label(view: ViewId) -> String {
    format!(" {} {} ", view.digit(), view.title())
}
