//! The last line: the keys that matter now.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::text::width;
use crate::tui::theme::Scope;

/// A key and what it does, in a word or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHint {
    /// The key as shown.
    pub key: String,
    /// What the key does, in a word or two.
    pub text: String,
}

/// Draws as many whole hints as fit; `last` (help) is always among them.
pub fn draw(buffer: &mut Buffer, area: Rect, hints: &[KeyHint], last: &KeyHint, paint: &Paint) {
    let cost = |hint: &KeyHint| (width(&hint.key) + width(&hint.text) + 3) as u16;
    let end = area.right().saturating_sub(cost(last));
    let mut x = area.x + 1;
    for hint in hints {
        if x + cost(hint) > end {
            break;
        }
        x = draw_hint(buffer, area, x, hint, paint);
    }
    draw_hint(buffer, area, x, last, paint);
}

fn draw_hint(buffer: &mut Buffer, area: Rect, x: u16, hint: &KeyHint, paint: &Paint) -> u16 {
    let x = paint.put(buffer, area, x, area.y, &hint.key, Scope::HintKey);
    paint.put(buffer, area, x + 1, area.y, &hint.text, Scope::HintText) + 2
}
