//! Keys: from terminal events, from the table's and the configuration's text, and back to text.
//!
//! Named keys are crokey's (`ctrl-d`, `pageup`, `shift-f11`); a single character stands for itself, so
//! that `S` is shift-s and `?` needs no shift on any keyboard.

use std::fmt;
use std::str::FromStr;

use crokey::{KeyCombination, KeyCombinationFormat};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One key press with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress(KeyCombination);

/// Text that is no key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key; keys are single characters or names like ctrl-d, esc, f5, shift-left")]
pub struct NotAKey(String);

impl KeyPress {
    /// The key that types `c`.
    pub fn char(c: char) -> KeyPress {
        KeyPress::normal(KeyCode::Char(c), KeyModifiers::NONE)
    }

    /// The code and modifiers, normalised: letters carry shift exactly when upper case, other characters
    /// never do, because keyboards differ in what they need shift for.
    fn normal(code: KeyCode, mut modifiers: KeyModifiers) -> KeyPress {
        if let KeyCode::Char(c) = code
            && !c.is_alphabetic()
        {
            modifiers.remove(KeyModifiers::SHIFT);
        }
        KeyPress(KeyCombination::one_key(code, modifiers).normalized())
    }

    /// The character it types, when it is an ordinary character key.
    pub fn typed(self) -> Option<char> {
        let plain = self.0.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match self.0.codes.first() {
            KeyCode::Char(c) if plain => Some(*c),
            _ => None,
        }
    }

    /// The digit of a count, `5` or Alt-5, and whether it needs no Alt.
    pub fn digit(self) -> Option<(u32, bool)> {
        match (self.0.codes.first(), self.0.modifiers) {
            (KeyCode::Char(c), KeyModifiers::ALT) => Some((c.to_digit(10)?, false)),
            (KeyCode::Char(c), KeyModifiers::NONE) => Some((c.to_digit(10)?, true)),
            _ => None,
        }
    }

    /// The same key as a terminal event, for line editing.
    pub fn event(self) -> KeyEvent {
        self.0.into()
    }
}

impl From<KeyEvent> for KeyPress {
    fn from(event: KeyEvent) -> KeyPress {
        let mut modifiers = event.modifiers;
        // Esc and Ctrl-C that are read at once arrive as one key, and Ctrl-C has to work at any time.
        if event.code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
            modifiers.remove(KeyModifiers::ALT);
        }
        KeyPress::normal(event.code, modifiers)
    }
}

impl FromStr for KeyPress {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<KeyPress, NotAKey> {
        let mut chars = text.chars();
        if let (Some(c), None) = (chars.next(), chars.next()) {
            return if c.is_control() { Err(NotAKey(text.into())) } else { Ok(KeyPress::char(c)) };
        }
        let combination = crokey::parse(text).map_err(|_| NotAKey(text.into()))?;
        match combination.codes.get(1) {
            Some(_) => Err(NotAKey(text.into())), // Several keys at once need a protocol few terminals have.
            None => Ok(KeyPress::normal(*combination.codes.first(), combination.modifiers)),
        }
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.typed() {
            Some(c) if c != ' ' => write!(f, "{c}"),
            _ => write!(f, "{}", KeyCombinationFormat::default().format(self.0)),
        }
    }
}

/// A sequence of keys, as in `g g`.
pub fn parse_sequence(text: &str) -> Result<Vec<KeyPress>, NotAKey> {
    text.split_whitespace().map(str::parse).collect()
}

/// A sequence as text.
pub fn show_sequence(keys: &[KeyPress]) -> String {
    keys.iter().map(KeyPress::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> KeyPress {
        text.parse().unwrap()
    }

    #[test]
    fn text_and_terminal_events_agree() {
        let event = |code, modifiers| KeyPress::from(KeyEvent::new(code, modifiers));
        assert_eq!(key("S"), event(KeyCode::Char('S'), KeyModifiers::SHIFT));
        assert_eq!(key("s"), event(KeyCode::Char('s'), KeyModifiers::NONE));
        assert_eq!(key("?"), event(KeyCode::Char('?'), KeyModifiers::NONE));
        assert_eq!(key("?"), event(KeyCode::Char('?'), KeyModifiers::SHIFT));
        assert_eq!(key("ctrl-d"), event(KeyCode::Char('d'), KeyModifiers::CONTROL));
        let both = KeyModifiers::CONTROL.union(KeyModifiers::ALT);
        assert_eq!(key("ctrl-c"), event(KeyCode::Char('c'), both), "Esc right before it");
        assert_eq!(key("backtab"), event(KeyCode::BackTab, KeyModifiers::SHIFT));
        assert_eq!(key("shift-f11"), event(KeyCode::F(11), KeyModifiers::SHIFT));
        assert_eq!(key("-"), event(KeyCode::Char('-'), KeyModifiers::NONE));
        assert_eq!(key("space"), event(KeyCode::Char(' '), KeyModifiers::NONE));
    }

    #[test]
    fn shown_as_a_person_would_write_them() {
        for text in ["S", "?", "-", "<", "Ctrl-d", "Esc", "F11", "Shift-F11", "PageUp", "Space"] {
            assert_eq!(key(text).to_string(), text);
        }
        assert_eq!(show_sequence(&parse_sequence("g g").unwrap()), "g g");
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "ctrl-", "hyper-x", "a-b", "\u{1b}"] {
            assert!(text.parse::<KeyPress>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_plain_characters_are_typed() {
        assert_eq!(key("S").typed(), Some('S'));
        assert_eq!(key("space").typed(), Some(' '));
        assert_eq!(key("ctrl-d").typed(), None);
        assert_eq!(key("esc").typed(), None);
    }
}
