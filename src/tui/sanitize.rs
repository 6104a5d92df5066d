//! Makes text from a cluster safe to draw, in two layers: [`clean`] turns dangerous characters into
//! visible escapes and is applied once, where text is measured or else by `Paint::put`; [`scrub`]
//! checks a finished frame once more, so that a view that writes to the buffer by itself cannot break
//! the promise.

use ratatui::buffer::Buffer;

pub use kubestep_output::clean::{clean, is_safe};

/// The last check before a frame goes out: any cell that still holds an unsafe character becomes `?`.
/// Returns how many cells were replaced, which is zero unless a view bypassed the text writer.
pub fn scrub(buffer: &mut Buffer) -> usize {
    let mut replaced = 0;
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        let plain = matches!(symbol.as_bytes(), [b' '..=b'~'] | []);
        if !plain && !symbol.chars().all(is_safe) {
            cell.set_char('?');
            replaced += 1;
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn scrub_catches_a_view_that_writes_by_itself() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        buffer.set_string(0, 0, "ok", Style::new());
        buffer.content[2].set_symbol("\u{202e}x");
        assert_eq!(scrub(&mut buffer), 1);
        assert_eq!(buffer.content[2].symbol(), "?");
        assert_eq!(buffer.content[0].symbol(), "o");
    }
}
