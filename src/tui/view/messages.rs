//! All messages: notices, warnings and errors with the time and how often.

use std::fmt::Write as _;

use super::View;
use crate::tui::lines::DetailLine;
use crate::tui::messages::{Message, Messages};
use crate::tui::model::span;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use crate::tui::widget::status_line::Severity;

/// The rows of the messages.
pub struct MessagesView(pub Messages);

impl MessagesView {
    fn message(&self, row: usize) -> Option<&Message> {
        self.0.get(row)
    }
}

/// A sign and a word for a severity, distinguished without colour.
fn sign(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "· notice",
        Severity::Warning => "! warning",
        Severity::Error => "✗ error",
    }
}

fn scope(severity: Severity) -> Scope {
    match severity {
        Severity::Info => Scope::Text,
        severity => severity.scope(),
    }
}

/// Virtual time since the start, as the clock in the second line shows it.
fn time(message: &Message) -> String {
    message.shown.map(|(_, last)| format!("+{}", span(last))).unwrap_or_default()
}

impl GridSource for MessagesView {
    fn rows(&self) -> usize {
        self.0.count()
    }

    fn columns(&self) -> usize {
        4
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::text("severity", 9),
            1 => GridColumn::number("time", 9),
            2 => GridColumn::number("times", 5),
            _ => GridColumn::prose_in(self, column, "message", 30),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(message) = self.message(row) else { return };
        out.scope = scope(message.severity);
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(sign(message.severity)),
            1 => out.write_str(&time(message)),
            2 => write!(out, "{}", message.times),
            _ => out.write_str(&message.text),
        };
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let message = self.message(row)?;
        match column {
            0 => Some(message.severity as i64),
            1 => Some(message.shown.map_or(i64::MIN, |(_, last)| last)),
            _ => None,
        }
    }

    fn key(&self, row: usize) -> u64 {
        (self.0.dropped() + row) as u64
    }

    fn is_failure(&self, row: usize) -> bool {
        self.message(row).is_some_and(|message| message.severity != Severity::Info)
    }
}

impl View for MessagesView {
    fn title(&self) -> String {
        match self.0.dropped() {
            0 => "Messages".into(),
            n => format!("Messages: the newest, {n} older ones are dropped"),
        }
    }

    fn empty(&self) -> String {
        "No messages yet.".into()
    }

    fn failures(&self) -> &'static str {
        "warnings and errors only"
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(message) = self.message(row) else { return Vec::new() };
        let mut lines = vec![DetailLine::text(&message.text).scoped(scope(message.severity))];
        lines.push(DetailLine::field("severity", sign(message.severity)));
        if let Some((first, last)) = message.shown {
            let words = match message.times {
                1 => format!("+{} since the start", span(last)),
                n => format!("{n} times, from +{} to +{}", span(first), span(last)),
            };
            lines.push(DetailLine::field("time", words));
        }
        lines
    }
}
