//! What a person types into: a command, a filter, or the argument an action asks for.

use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::key::KeyPress;

/// The longest line, in characters. More is no command but pasted by mistake.
pub const LONGEST: usize = 4_096;

/// What the typed line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `:` and a command.
    Command,
    /// `/` and a filter, applied while typing.
    Filter,
    /// The argument of an action that was invoked by its key.
    Argument {
        command: &'static str,
        /// What is asked for.
        what: &'static str,
    },
}

/// A line being typed.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// What the text is used for.
    pub purpose: Purpose,
    input: Input,
    /// Entry of the history shown, counted from the newest; `None` while typing.
    recalled: Option<usize>,
    /// What was typed before the history was entered.
    draft: String,
    /// Completions being cycled through, and which is shown.
    completing: Option<(Vec<String>, usize)>,
}

impl Prompt {
    /// An open prompt with `text` typed already.
    pub fn new(purpose: Purpose, text: &str) -> Prompt {
        let input = Input::new(text.to_owned());
        Prompt { purpose, input, recalled: None, draft: String::new(), completing: None }
    }

    /// An open prompt with the cursor before `end`.
    pub fn with_end(purpose: Purpose, text: &str, end: &str) -> Prompt {
        let mut prompt = Prompt::new(purpose, "");
        prompt.set(text, end);
        prompt
    }

    /// The text with the part that is not editable.
    pub fn text(&self) -> &str {
        self.input.value()
    }

    /// The line before and after the cursor.
    pub fn around_cursor(&self) -> (&str, &str) {
        let text = self.input.value();
        let at = text.char_indices().nth(self.input.cursor()).map_or(text.len(), |(i, _)| i);
        text.split_at(at)
    }

    /// What is completed, up to the end of the word at the cursor, and what follows it.
    pub fn completable(&self) -> (&str, &str) {
        let (before, after) = self.around_cursor();
        let word = after.find(' ').unwrap_or(after.len());
        self.text().split_at(before.len() + word)
    }

    fn length(&self) -> usize {
        self.text().chars().count()
    }

    /// Whether nothing more can be typed.
    pub fn is_full(&self) -> bool {
        self.length() >= LONGEST
    }

    /// Edits the line as a readline would; says whether the text changed.
    pub fn edit(&mut self, key: KeyPress) -> bool {
        let before = self.is_full().then(|| self.input.clone());
        let changed = self.input.handle_event(&crossterm::event::Event::Key(key.event()));
        if let Some(before) = before.filter(|_| self.length() > LONGEST) {
            self.input = before;
            return false;
        }
        let changed = changed.is_some_and(|c| c.value);
        if changed {
            self.completing = None;
            self.recalled = None;
        }
        changed
    }

    /// Inserts pasted text; control characters and line breaks are left out, so that nothing runs unseen.
    /// What is too much for the line is left out, too.
    pub fn paste(&mut self, text: &str) {
        let (before, after) = self.around_cursor();
        let typed = text.chars().filter(|c| !c.is_control());
        let room = LONGEST.saturating_sub(self.length());
        let before = before.chars().chain(typed.take(room)).collect::<String>();
        let cursor = before.chars().count();
        self.input = Input::new(before + after).with_cursor(cursor);
        self.completing = None;
    }

    /// Puts the cursor between `text` and `end`.
    fn set(&mut self, text: &str, end: &str) {
        self.input = Input::new(format!("{text}{end}")).with_cursor(text.chars().count());
    }

    /// Puts `text` in place of what is completed.
    fn replace(&mut self, text: &str) {
        let end = self.completable().1.to_owned();
        self.set(text, &end);
    }

    /// Shows the next of `candidates`, or the previous one; the first call decides the list.
    pub fn complete(&mut self, candidates: impl FnOnce(&str) -> Vec<String>, back: bool) {
        let (list, at) = match self.completing.take() {
            Some((list, at)) => {
                let step = if back { list.len().saturating_sub(1) } else { 1 };
                let next = (at + step) % list.len().max(1);
                (list, next)
            }
            None => (candidates(self.completable().0), 0),
        };
        if let Some(text) = list.get(at).cloned() {
            self.replace(&text);
            self.completing = Some((list, at));
        }
    }

    /// Puts `text` in place of what is completed, as if it had been typed.
    pub fn put(&mut self, text: &str) {
        self.replace(text);
        (self.completing, self.recalled) = (None, None);
    }

    /// Whether the cursor is behind the last character.
    pub fn is_at_end(&self) -> bool {
        self.input.cursor() >= self.length()
    }

    /// The completions being cycled through, and the index of the one shown.
    pub fn completing(&self) -> Option<(&[String], usize)> {
        self.completing.as_ref().map(|(list, at)| (list.as_slice(), *at))
    }

    /// Recalls an older line, or a newer one; only lines that begin with what was typed.
    pub fn recall(&mut self, history: &[String], older: bool) {
        if self.recalled.is_none() {
            self.draft = self.text().to_owned();
        }
        let fits = |line: &&String| line.starts_with(&self.draft);
        let lines: Vec<&String> = history.iter().rev().filter(fits).collect();
        let next = match (self.recalled, older) {
            (None, true) => Some(0),
            (Some(at), true) => Some((at + 1).min(lines.len().saturating_sub(1))),
            (Some(at), false) => at.checked_sub(1),
            (None, false) => None,
        };
        let text = match next {
            Some(at) => lines.get(at).map(|l| l.as_str()),
            None => Some(self.draft.as_str()),
        };
        if let Some(text) = text.map(str::to_owned) {
            self.set(&text, "");
            self.recalled = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Prompt {
        Prompt::new(Purpose::Command, text)
    }

    #[test]
    fn edits_like_a_readline() {
        let mut prompt = typed("theme dark");
        for key in ["ctrl-w", "l", "x", "backspace", "ctrl-a"] {
            prompt.edit(key.parse().unwrap());
        }
        assert_eq!(prompt.text(), "theme l");
        assert_eq!(prompt.around_cursor(), ("", "theme l"));
    }

    #[test]
    fn pasted_control_characters_are_dropped() {
        let mut prompt = typed("");
        prompt.paste("quit\r\n\x1b[31mx");
        assert_eq!(prompt.text(), "quit[31mx");
    }

    #[test]
    fn a_line_has_a_length_that_a_paste_keeps_to() {
        let mut prompt = typed("ab");
        prompt.edit("left".parse().unwrap());
        prompt.paste("é ");
        assert_eq!(prompt.around_cursor(), ("aé ", "b"));
        prompt.paste(&"x".repeat(1 << 20));
        assert_eq!(prompt.text().chars().count(), LONGEST);
        assert_eq!(prompt.around_cursor().1, "b");
        assert!(!prompt.edit("y".parse().unwrap()) && !prompt.text().contains('y'));
        assert!(prompt.edit("backspace".parse().unwrap()) && !prompt.is_full());
        assert!(prompt.edit("y".parse().unwrap()) && prompt.text().ends_with("yb"));
    }

    #[test]
    fn completion_cycles_both_ways() {
        let mut prompt = typed("th");
        let list = |_: &str| vec!["theme".to_owned(), "three".to_owned()];
        prompt.complete(list, false);
        assert_eq!(prompt.text(), "theme");
        prompt.complete(list, false);
        assert_eq!(prompt.text(), "three");
        prompt.complete(list, false);
        assert_eq!(prompt.text(), "theme");
        prompt.complete(list, true);
        assert_eq!(prompt.text(), "three");
        typed("zz").complete(|_| Vec::new(), false);
    }

    #[test]
    fn what_follows_the_word_at_the_cursor_stays() {
        let mut prompt = Prompt::with_end(Purpose::Command, "force node ", " for pod x");
        assert_eq!(prompt.completable(), ("force node ", " for pod x"));
        let list = |typed: &str| vec![format!("{typed}a"), format!("{typed}b")];
        prompt.complete(list, false);
        prompt.complete(list, false);
        assert_eq!(prompt.around_cursor(), ("force node b", " for pod x"));
        prompt.edit("left".parse().unwrap());
        assert_eq!(prompt.completable(), ("force node b", " for pod x"));
        prompt.put("veto node c");
        assert_eq!(prompt.text(), "veto node c for pod x");
    }

    #[test]
    fn history_recalls_lines_with_the_typed_beginning() {
        let history = ["next 5", "theme dark", "next 9"].map(str::to_owned);
        let mut prompt = typed("ne");
        prompt.recall(&history, true);
        assert_eq!(prompt.text(), "next 9");
        prompt.recall(&history, true);
        prompt.recall(&history, true);
        assert_eq!(prompt.text(), "next 5");
        prompt.recall(&history, false);
        prompt.recall(&history, false);
        assert_eq!(prompt.text(), "ne");
    }
}
