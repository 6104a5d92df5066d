//! The messages of the status line, so that none is lost when the next one is shown.

use std::sync::Arc;

use super::widget::status_line::Severity;

/// Messages kept; beyond that the oldest are dropped, and the number of those is shown.
const KEPT: usize = 20_000;

/// A message of the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub severity: Severity,
    /// One sentence, without control characters.
    pub text: String,
    /// How often it was shown without another message in between.
    pub times: u32,
    /// When it was shown first and last, in virtual microseconds since the start.
    pub shown: Option<(i64, i64)>,
}

/// All messages, the newest last; a copy costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    list: Arc<Vec<Message>>,
    dropped: usize,
    /// The number of messages so far.
    revision: u64,
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

    /// Changes with each message.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Adds one; the same text again only counts.
    pub fn add(&mut self, severity: Severity, text: String) {
        self.revision += 1;
        let list = Arc::make_mut(&mut self.list);
        match list.last_mut().filter(|last| last.severity == severity && last.text == text) {
            Some(last) => last.times += 1,
            None => list.push(Message { severity, text, times: 1, shown: None }),
        }
        // A tenth at once, so that not every further message moves the whole list.
        if list.len() > KEPT {
            list.drain(..KEPT / 10);
            self.dropped += KEPT / 10;
        }
        self.fresh = (self.fresh + 1).min(list.len());
    }

    /// Gives those without a time the present one, in virtual microseconds since the start.
    pub fn stamp(&mut self, now: i64) {
        if self.fresh == 0 {
            return;
        }
        let list = Arc::make_mut(&mut self.list);
        let from = list.len().saturating_sub(self.fresh);
        for message in list.iter_mut().skip(from) {
            message.shown = Some((message.shown.map_or(now, |(first, _)| first), now));
        }
        self.fresh = 0;
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
        let shown: Vec<_> = messages.iter().map(|m| (m.times, m.shown)).collect();
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
