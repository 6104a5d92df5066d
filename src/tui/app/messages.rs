//! Everything that was said, so that nothing is lost when the status line moves on.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::{App, Effect};
use crate::tui::layout::{self, Tier};
use crate::tui::model::Model;
use crate::tui::view::{self, View, ViewId};
use crate::tui::widget::status_line::Severity;

/// Messages kept; beyond that the oldest go, and how many did is said.
const KEPT: usize = 20_000;

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How serious.
    pub severity: Severity,
    /// The words.
    pub text: String,
    /// How often it was said without anything else in between.
    pub times: u32,
    /// When it was said first and last, in virtual microseconds since the start.
    pub said: Option<(i64, i64)>,
}

/// All messages, the newest last; a copy costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    list: Arc<Vec<Message>>,
    dropped: usize,
    /// How often something was said.
    said: u64,
    /// How many at the end may have no time yet, or an old one.
    fresh: usize,
}

impl Messages {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// One of them, counted from the oldest kept.
    pub fn get(&self, at: usize) -> Option<&Message> {
        self.list.get(at)
    }

    /// How many were dropped because there were too many.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.list.iter()
    }

    /// Adds one; the same words again only count.
    fn add(&mut self, severity: Severity, text: String) {
        self.said += 1;
        let list = Arc::make_mut(&mut self.list);
        match list.last_mut().filter(|last| last.severity == severity && last.text == text) {
            Some(last) => last.times += 1,
            None => list.push(Message { severity, text, times: 1, said: None }),
        }
        // A tenth at once, so that not every further message moves the whole list.
        if list.len() > KEPT {
            list.drain(..KEPT / 10);
            self.dropped += KEPT / 10;
        }
        self.fresh = (self.fresh + 1).min(list.len());
    }

    /// Gives those without a time the present one.
    fn stamp(&mut self, now: i64) {
        if self.fresh == 0 {
            return;
        }
        let list = Arc::make_mut(&mut self.list);
        let from = list.len().saturating_sub(self.fresh);
        for message in list.iter_mut().skip(from) {
            message.said = Some((message.said.map_or(now, |(first, _)| first), now));
        }
        self.fresh = 0;
    }
}

impl App {
    /// Says something on the status line, and keeps it for the messages view.
    pub fn say(&mut self, severity: Severity, text: impl Into<String>) {
        let text = text.into();
        self.status = Some((severity, text.clone()));
        self.messages.add(severity, text);
    }

    /// Says on the status line what is of no use later: that this is the last row, for example.
    pub fn tell(&mut self, text: impl Into<String>) {
        self.status = Some((Severity::Info, text.into()));
    }

    /// Says why something cannot be done.
    pub fn fail(&mut self, problem: String) -> Effect {
        self.say(Severity::Error, problem);
        Effect::None
    }

    /// The rows of the view on screen.
    pub fn source<'a>(&self, model: &'a Model) -> Box<dyn View + 'a> {
        view::source(self.view, model, &self.messages, self.room(), self.current_shape())
    }

    /// Terminal columns that the view may fill: as many as it likes where wide columns are wanted.
    fn room(&self) -> u16 {
        let screen = Rect::new(0, 0, self.size.0, self.size.1);
        match self.wide {
            true => u16::MAX,
            false => layout::panes(screen, Tier::of(self.size.0)).0.width,
        }
    }

    /// Changes whenever the rows of the view on screen may.
    pub(super) fn revision(&self, model: &Model) -> u64 {
        match self.view {
            ViewId::Messages => self.messages.said,
            _ => model.revision.wrapping_add(self.current_shape().revision() << 40),
        }
    }

    /// What was said since the last time was said now.
    pub(super) fn stamp_messages(&mut self, model: &Model) {
        self.messages.stamp(model.now.0.saturating_sub(model.start.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_words_count_and_keep_both_times() {
        let mut messages = Messages::default();
        messages.add(Severity::Info, "a".into());
        messages.stamp(1);
        messages.add(Severity::Info, "a".into());
        messages.stamp(5);
        messages.add(Severity::Error, "a".into());
        messages.stamp(9);
        messages.stamp(11);
        let shown: Vec<_> = messages.iter().map(|m| (m.times, m.said)).collect();
        assert_eq!(shown, [(2, Some((1, 5))), (1, Some((9, 9)))]);
    }

    #[test]
    fn a_flood_drops_the_oldest_and_says_so() {
        let mut messages = Messages::default();
        for number in 0..KEPT + 1 {
            messages.add(Severity::Info, number.to_string());
        }
        assert_eq!(messages.count() + messages.dropped(), KEPT + 1);
        assert_eq!(messages.iter().next_back().unwrap().text, KEPT.to_string());
    }
}
