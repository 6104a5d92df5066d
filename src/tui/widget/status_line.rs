//! The line above the hints: what just happened.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Paint;
use crate::tui::sanitize;
use crate::tui::text::{Truncation, fit, width};
use crate::tui::theme::Scope;

/// How serious a message is; the sign comes before the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something happened as asked for.
    Info,
    /// Something was ignored or is unusual.
    Warning,
    /// Something could not be done.
    Error,
}

impl Severity {
    /// A sign before the text, empty for information.
    pub fn sign(self) -> &'static str {
        match self {
            Severity::Info => "",
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        }
    }

    pub fn scope(self) -> Scope {
        match self {
            Severity::Info => Scope::MessageInfo,
            Severity::Warning => Scope::MessageWarning,
            Severity::Error => Scope::MessageError,
        }
    }
}

/// Behind a message that is cut: the key of the view with all of it.
const WHOLE: &str = " (M)";

/// Draws a message, shortened to the width.
pub fn draw(buffer: &mut Buffer, area: Rect, severity: Severity, text: &str, paint: &Paint) {
    let line = format!("{}{text}", severity.sign());
    let line = sanitize::clean(&line);
    let room = usize::from(area.width.saturating_sub(1));
    let line = match width(&line) > room {
        true => fit(&line, room.saturating_sub(WHOLE.len()), Truncation::End) + WHOLE,
        false => line,
    };
    paint.put(buffer, area, area.x + 1, area.y, &line, severity.scope());
}
