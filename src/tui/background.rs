//! Whether the terminal is light or dark: it is asked for its background's colour before anything is
//! drawn (OSC 11, with a question behind it that every terminal answers), and given a moment to answer.
//! An answer that comes later is kept from being taken for keys.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

use super::signals;

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
    // The terminal is in raw mode meanwhile, which a signal must not leave behind.
    signals::hold();
    let mut options = QueryOptions::default();
    options.timeout = PATIENCE;
    match theme_mode(options).ok()? {
        ThemeMode::Light => Some(Background::Light),
        ThemeMode::Dark => Some(Background::Dark),
    }
}

/// Tells the keys of a late answer from those that a person types. Read as keys it is `Alt-]`, then
/// `10;rgb:` or `11;rgb:` and hexadecimal numbers, and at the end `Alt-\` or `Ctrl-g`, all within a moment. Esc and `]`
/// typed while the program was busy begin like one, so what does not fit is typing again: above all Ctrl-C.
#[derive(Debug, Default)]
pub struct LateAnswer {
    begun: Option<(Instant, usize)>,
}

/// What stands before the colour's numbers.
const BEFORE: &str = "10;rgb";
/// The most characters that an answer has: four numbers of four digits.
const LONGEST: usize = BEFORE.len() + "a:ffff/ffff/ffff/ffff".len();

impl LateAnswer {
    /// Whether a key that came at `now` belongs to one.
    pub fn takes(&mut self, key: &KeyEvent, now: Instant) -> bool {
        let alt = |c| key.code == KeyCode::Char(c) && key.modifiers == KeyModifiers::ALT;
        if alt(']') {
            self.begun = Some((now, 0));
            return true;
        }
        let Some((begun, length)) = self.begun.take() else { return false };
        if now.saturating_duration_since(begun) > TOGETHER {
            return false;
        }
        let bell = key.code == KeyCode::Char('g') && key.modifiers == KeyModifiers::CONTROL;
        if bell || alt('\\') {
            return true;
        }
        let fits =
            matches!(key.code, KeyCode::Char(c) if key.modifiers.is_empty() && fits(c, length));
        self.begun = fits.then_some((begun, length + 1));
        fits
    }
}

/// Whether an answer may have `c` behind its first `length` characters.
fn fits(c: char, length: usize) -> bool {
    match BEFORE.chars().nth(length) {
        Some('0') => c == '0' || c == '1', // The text's colour is asked for as well.
        Some(expected) => c == expected,
        None => length < LONGEST && (c.is_ascii_hexdigit() || ":/".contains(c)),
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
    fn what_is_no_colour_was_typed_even_at_once() {
        for typed in ["q", "1q", "11;rgb:zz", "11;rgb:ffff/0000/ffff/ffff/ffff"] {
            let (mut late, now) = (LateAnswer::default(), Instant::now());
            late.takes(&key(']', KeyModifiers::ALT), now);
            let taken: Vec<bool> =
                typed.chars().map(|c| late.takes(&key(c, KeyModifiers::NONE), now)).collect();
            assert_eq!(taken.last(), Some(&false), "{typed}");
            assert!(!late.takes(&key('c', KeyModifiers::CONTROL), now), "{typed}");
        }
        let (mut late, now) = (LateAnswer::default(), Instant::now());
        late.takes(&key(']', KeyModifiers::ALT), now);
        assert!(!late.takes(&key('c', KeyModifiers::CONTROL), now), "Ctrl-C leaves at any time");
    }

    #[test]
    fn what_comes_a_while_after_was_typed() {
        let (mut late, now) = (LateAnswer::default(), Instant::now());
        assert!(late.takes(&key(']', KeyModifiers::ALT), now));
        assert!(!late.takes(&key('q', KeyModifiers::NONE), now + Duration::from_millis(80)));
        assert!(!late.takes(&key('q', KeyModifiers::NONE), now + Duration::from_millis(81)));
    }
}
