//! The line a person types into, with the suggested end in ghost text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::Paint;
use crate::tui::sanitize;
use crate::tui::text::{tail, width};
use crate::tui::theme::Scope;

/// What is shown of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptLine<'a> {
    /// Before the text: `:`, `/`, or a question.
    pub label: &'a str,
    /// What was typed up to the cursor.
    pub before: &'a str,
    /// What was typed after it.
    pub after: &'a str,
    /// Suggested rest, shown when the cursor is at the end.
    pub ghost: &'a str,
    /// At the right edge: a count, or what is wrong with the text.
    pub note: &'a str,
}

/// Draws the line; gives back where the terminal's cursor belongs.
pub fn draw(buffer: &mut Buffer, area: Rect, line: &PromptLine, paint: &Paint) -> Position {
    let note_width = if line.note.is_empty() { 0 } else { width(line.note) as u16 + 2 };
    let note_x = area.right().saturating_sub(note_width);
    paint.put(buffer, area, note_x + 1, area.y, line.note, Scope::TextDim);
    let room = Rect { width: note_x.saturating_sub(area.x), ..area };
    let x = paint.put(buffer, room, area.x, area.y, line.label, Scope::HintKey);
    // The end of a long line is what is being typed, so the beginning goes out of sight.
    let before = sanitize::clean(line.before);
    let shown = tail(&before, usize::from(room.right().saturating_sub(x + 1)));
    let cursor = paint.put(buffer, room, x, area.y, shown, Scope::Prompt);
    let end = paint.put(buffer, room, cursor, area.y, line.after, Scope::Prompt);
    if line.after.is_empty() {
        paint.put(buffer, room, end, area.y, line.ghost, Scope::PromptGhost);
    }
    Position::new(cursor.min(area.right().saturating_sub(1)), area.y)
}
