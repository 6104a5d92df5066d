//! Whether the terminal is light or dark: it is asked for its background's colour before anything is
//! drawn (OSC 11, with a question behind it that every terminal answers), and given a moment to answer.
//! An answer that comes later is kept from being taken for keys.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

/// How long the terminal may take. Those that know the question take a few milliseconds, more over a slow
/// line; nobody waits longer than this.
const PATIENCE: Duration = Duration::from_millis(150);

/// How far apart the bytes of one answer are at most.
const TOGETHER: Duration = Duration::from_millis(50);

/// What the terminal's background is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Dark text on it.
    Light,
    /// Light text on it.
    Dark,
}

/// Asks the terminal; `None` if it does not say.
pub fn ask() -> Option<Background> {
    let mut options = QueryOptions::default();
    options.timeout = PATIENCE;
    match theme_mode(options).ok()? {
        ThemeMode::Light => Some(Background::Light),
        ThemeMode::Dark => Some(Background::Dark),
    }
}

/// Tells the keys of a late answer from those that a person types. Read as keys it is `Alt-]`, digits and
/// letters, and at the end `Alt-\` or `Ctrl-g`, all within a moment.
#[derive(Debug, Default)]
pub struct LateAnswer {
    begun: Option<Instant>,
}

impl LateAnswer {
    /// Whether a key that came at `now` belongs to one.
    pub fn takes(&mut self, key: &KeyEvent, now: Instant) -> bool {
        let alt = |c| key.code == KeyCode::Char(c) && key.modifiers == KeyModifiers::ALT;
        if alt(']') {
            self.begun = Some(now);
            return true;
        }
        let Some(begun) = self.begun else { return false };
        if now.saturating_duration_since(begun) > TOGETHER {
            self.begun = None;
            return false;
        }
        let bell = key.code == KeyCode::Char('g') && key.modifiers == KeyModifiers::CONTROL;
        if bell || alt('\\') {
            self.begun = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(c: char, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), modifiers)
    }

    #[test]
    fn a_late_answer_is_no_typing() {
        let (mut late, now) = (LateAnswer::default(), Instant::now());
        let plain = KeyModifiers::NONE;
        assert!(!late.takes(&key('1', plain), now));
        assert!(late.takes(&key(']', KeyModifiers::ALT), now));
        for c in "11;rgb:ffff/0000/ffff".chars() {
            assert!(late.takes(&key(c, plain), now), "{c}");
        }
        assert!(late.takes(&key('\\', KeyModifiers::ALT), now));
        assert!(!late.takes(&key('1', plain), now), "the answer is over");
    }

    #[test]
    fn what_comes_a_while_after_was_typed() {
        let (mut late, now) = (LateAnswer::default(), Instant::now());
        assert!(late.takes(&key(']', KeyModifiers::ALT), now));
        assert!(!late.takes(&key('q', KeyModifiers::NONE), now + Duration::from_millis(80)));
        assert!(!late.takes(&key('q', KeyModifiers::NONE), now + Duration::from_millis(81)));
    }
}
