//! How the interface looks: theme, width, what the first and last lines say.

use std::borrow::Cow;

use super::{App, chip};
use crate::tui::command::Command;
use crate::tui::glyph::Charset;
use crate::tui::layout::WidthTier;
use crate::tui::model::{LiveModel, Model};
use crate::tui::theme::{Scope, Theme};
use crate::tui::view;
use crate::tui::widget::status_line::Severity;

impl App {
    /// Uses the theme called `name`, or the next one.
    pub fn set_theme(&mut self, name: &str) {
        let names = self.appearance.library.names();
        let present = names.iter().position(|n| n == self.theme.name());
        let next = present.map_or(0, |at| (at + 1) % names.len().max(1));
        let name = match (name, names.get(next)) {
            ("", Some(next)) => next.clone(),
            _ => name.to_owned(),
        };
        match Theme::load(&self.appearance.library, &name, self.appearance.depth) {
            Ok((theme, warnings)) => {
                self.theme = theme;
                self.notify(Severity::Info, format!("theme {name}"));
                warnings.into_iter().for_each(|w| self.notify(Severity::Warning, w));
            }
            Err(problem) => self.notify(Severity::Error, problem.to_string()),
        }
    }

    /// Shows columns meant for wider terminals, or not.
    pub fn toggle_wide(&mut self) {
        self.wide = !self.wide;
        let on = if self.wide { "shown" } else { "shown where there is room" };
        self.hint(format!("columns for wide terminals are {on}"));
    }

    /// Shows or hides the line with the position.
    pub fn toggle_breadcrumbs(&mut self) {
        self.breadcrumbs = !self.breadcrumbs;
    }

    /// Starts or stops stepping on its own.
    pub fn toggle_play(&mut self) {
        self.playing = !self.playing;
    }

    /// Remembers the last move for `.`. What was selected before it no longer says what to look at.
    pub fn remember(&mut self, command: &Command) {
        self.selected_in.clear();
        self.opened_from = None;
        self.last_move = Some(command.clone());
    }

    /// The last move in time, for the key that repeats it.
    pub fn last_move(&self) -> Option<Command> {
        self.last_move.clone()
    }

    /// Width class for choosing columns.
    pub(in crate::tui) fn tier(&self) -> WidthTier {
        if self.wide { WidthTier::Wide } else { WidthTier::of(self.size.0) }
    }

    pub(in crate::tui) fn charset(&self) -> Charset {
        self.appearance.charset
    }

    /// Whether the position is shown.
    pub(in crate::tui) fn has_breadcrumbs(&self) -> bool {
        self.breadcrumbs
    }

    /// Whether the detail pane has the keys, and how far it is scrolled.
    pub(in crate::tui) fn detail_state(&mut self) -> (bool, &mut usize) {
        (self.detail_focused, &mut self.detail_scroll)
    }

    /// The mode word and its style.
    pub(in crate::tui) fn mode(&self, model: &Model) -> (Cow<'static, str>, Scope) {
        let runs = self.playing || self.running;
        let (word, scope) = match &model.live {
            _ if model.going_back.is_some() => ("REWIND", Scope::ChipRunning),
            Some(LiveModel { scheduling: Some(scheduling), waiting, .. }) => {
                return chip::of_scheduling(scheduling, *waiting, runs);
            }
            _ => return self.plain_mode(model),
        };
        (word.into(), scope)
    }

    fn plain_mode(&self, model: &Model) -> (Cow<'static, str>, Scope) {
        let (word, scope) = match model.followed() {
            Some(live) if model.at_end && !self.running && !self.playing => {
                let room = view::tabs(self.view).room_for_mode(self.size.0);
                return chip::of_followed(live, room);
            }
            _ => self.local_mode(model),
        };
        (word.into(), scope)
    }

    fn local_mode(&self, model: &Model) -> (&'static str, Scope) {
        if self.running {
            ("RUNNING", Scope::ChipRunning)
        } else if self.playing {
            ("PLAYING", Scope::ChipRunning)
        } else if !model.at_end {
            ("REPLAY", Scope::ChipReplay)
        } else if model.idle {
            ("IDLE", Scope::ChipIdle)
        } else {
            ("PAUSED", Scope::Chip)
        }
    }

    /// What to say on the status line, if anything.
    pub(in crate::tui) fn status(&self) -> Option<(Severity, &str)> {
        self.status.as_ref().map(|(severity, text)| (*severity, text.as_str()))
    }
}
