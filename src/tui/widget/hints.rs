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

impl KeyHint {
    /// Columns, with a blank before, between and behind its words.
    fn columns(&self) -> u16 {
        (width(&self.key) + width(&self.text) + 3) as u16
    }
}

/// As many whole hints as fit into `columns`, each with where it begins; `last` (help) is always
/// among them.
fn placed<'a>(
    columns: u16,
    hints: &'a [KeyHint],
    last: &'a KeyHint,
) -> impl Iterator<Item = (u16, &'a KeyHint)> {
    let end = columns.saturating_sub(last.columns());
    let mut next = 1;
    let fitting = hints.iter().take_while(move |hint| {
        next += hint.columns();
        next <= end
    });
    fitting.chain([last]).scan(1, |x, hint| {
        let at = *x;
        *x += hint.columns();
        Some((at, hint))
    })
}

/// Draws the hints that fit.
pub fn draw(buffer: &mut Buffer, area: Rect, hints: &[KeyHint], last: &KeyHint, paint: &Paint) {
    for (x, hint) in placed(area.width, hints, last) {
        let x = paint.put(buffer, area, area.x + x, area.y, &hint.key, Scope::HintKey);
        paint.put(buffer, area, x + 1, area.y, &hint.text, Scope::HintText);
    }
}

/// The keys of the hint in column `x` of a line of so many columns.
pub fn hit(x: u16, columns: u16, hints: &[KeyHint], last: &KeyHint) -> Option<String> {
    let mut placed = placed(columns, hints, last);
    let found = placed.find(|(at, hint)| (*at..at + hint.columns() - 1).contains(&x));
    found.map(|(_, hint)| hint.key.clone())
}
