//! Saying things: on the status line, and in the list of messages.

use ratatui::layout::Rect;

use super::{App, Effect};
use crate::tui::layout::{self, PaneNeeds, WidthTier};
use crate::tui::model::Model;
use crate::tui::view::{View, ViewContext, ViewId};
use crate::tui::widget::status_line::Severity;

impl App {
    /// Says something on the status line, and keeps it for the messages view.
    pub fn notify(&mut self, severity: Severity, text: impl Into<String>) {
        let text = text.into();
        self.status = Some((severity, text.clone()));
        self.messages.add(severity, text);
    }

    /// Says on the status line what is of no use later: that this is the last row, for example.
    pub fn hint(&mut self, text: impl Into<String>) {
        self.status = Some((Severity::Info, text.into()));
    }

    /// Says why something cannot be done.
    pub fn fail(&mut self, problem: impl ToString) -> Effect {
        self.notify(Severity::Error, problem.to_string());
        Effect::None
    }

    /// The rows of the view on screen.
    pub fn source<'a>(&self, model: &'a Model) -> Box<dyn View + 'a> {
        self.view.rows(ViewContext {
            model,
            messages: self.messages.clone(),
            width: self.room(),
            height: self.lines(),
            shape: self.current_shape(),
        })
    }

    /// Terminal columns that the view may fill: as many as it likes where wide columns are wanted.
    fn room(&self) -> u16 {
        let screen = Rect::new(0, 0, self.size.0, self.size.1);
        match self.wide {
            true => u16::MAX,
            false => {
                layout::panes(screen, WidthTier::of(self.size.0), PaneNeeds::default()).0.width
            }
        }
    }

    /// Lines that the rows of a view get at least, below the rule with its title.
    fn lines(&self) -> u16 {
        let screen = Rect::new(0, 0, self.size.0, self.size.1);
        let body = layout::screen(screen, self.has_breadcrumbs()).map(|screen| screen.body);
        let tier = WidthTier::of(self.size.0);
        let needs = PaneNeeds { lines: u16::MAX, details: u16::MAX, ..PaneNeeds::default() };
        let rows = body.map(|body| layout::panes(body, tier, needs).0);
        rows.map_or(0, |rows| rows.height.saturating_sub(1))
    }

    /// Changes whenever the rows of the view on screen may.
    pub(super) fn revision(&self, model: &Model) -> u64 {
        match self.view {
            ViewId::Messages => self.messages.revision(),
            _ => model.revision.wrapping_add(self.current_shape().revision() << 40),
        }
    }

    /// What was said since the last time was said now.
    pub(super) fn stamp_messages(&mut self, model: &Model) {
        self.messages.stamp(model.now.0.saturating_sub(model.start.0));
    }
}
