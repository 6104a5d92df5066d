//! How the interface looks: theme, width, what the first and last lines say.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{App, Effect, Request, chip};
use crate::tui::action::keymap::Match;
use crate::tui::action::presets::{PRESETS, Preset};
use crate::tui::action::{self, key};
use crate::tui::glyph::Charset;
use crate::tui::layout::Tier;
use crate::tui::model::{LiveModel, Model};
use crate::tui::theme::{Scope, Theme};
use crate::tui::widget::hints::Hint;
use crate::tui::widget::status_line::Severity;
use crate::tui::widget::tabs;
use kubestep_framework::record::Outcome;

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
                self.say(Severity::Info, format!("theme {name}"));
                warnings.into_iter().for_each(|w| self.say(Severity::Warning, w));
            }
            Err(problem) => self.say(Severity::Error, problem.to_string()),
        }
    }

    /// Shows columns meant for wider terminals, or not.
    pub fn toggle_wide(&mut self) {
        self.wide = !self.wide;
        let on = if self.wide { "shown" } else { "shown where there is room" };
        self.tell(format!("columns for wide terminals are {on}"));
    }

    /// Uses a preset of keys; without a name, says which there are.
    pub fn use_keys(&mut self, name: &str) -> Effect {
        let words = |preset: &Preset| {
            let mark = if preset.name == self.keymap.preset().name { ", in use" } else { "" };
            format!("{} ({}{mark})", preset.name, preset.about)
        };
        let all: Vec<String> = PRESETS.iter().map(words).collect();
        let all = all.join("; ");
        if name.is_empty() {
            self.say(Severity::Info, format!("keys: {all}"));
            return Effect::None;
        }
        let Some(preset) = Preset::find(name) else {
            return self.fail(format!("there are no keys {name:?}; there are {all}"));
        };
        let (keymap, warnings) = self.keymap.switched(preset);
        self.keymap = keymap;
        self.say(Severity::Info, format!("keys: {name}, {}; ? lists them", preset.about));
        warnings.into_iter().for_each(|warning| self.say(Severity::Warning, warning));
        Effect::None
    }

    /// Shows or hides the line with the position.
    pub fn toggle_breadcrumbs(&mut self) {
        self.breadcrumbs = !self.breadcrumbs;
    }

    /// Starts or stops stepping on its own.
    pub fn toggle_play(&mut self) {
        self.playing = !self.playing;
    }

    /// Remembers the last move for `.`.
    pub fn remember(&mut self, request: &Request) {
        self.last_move = Some(request.clone());
    }

    /// The last move again.
    pub fn repeat(&mut self) -> Effect {
        match self.last_move.clone() {
            Some(request) => Effect::Session(request),
            None => self.fail("nothing to repeat yet".into()),
        }
    }

    /// Width class for choosing columns.
    pub(in crate::tui) fn tier(&self) -> Tier {
        if self.wide { Tier::Wide } else { Tier::of(self.size.0) }
    }

    /// Glyphs in use.
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
            _ if model.going_back.is_some() => ("GOING BACK", Scope::ChipRunning),
            Some(LiveModel { real: Some(real), waiting, .. }) => {
                return chip::of_real(real, *waiting, runs);
            }
            _ => return self.plain_mode(model),
        };
        (word.into(), scope)
    }

    fn plain_mode(&self, model: &Model) -> (Cow<'static, str>, Scope) {
        let (word, scope) = match model.followed() {
            Some(live) if model.at_end && !self.running && !self.playing => {
                let room = tabs::room_for_mode(self.size.0, self.view());
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

    /// The hints of the last line, and help, which always fits.
    pub(in crate::tui) fn hints(&self, model: &Model) -> (Vec<Hint>, Hint) {
        let fix = action::Action::Inspect(action::Inspect::Fixes);
        let is_shown = |s: &&action::Spec| s.action != fix || is_pending(model);
        let valid = action::all().filter(|s| !s.hint.is_empty() && s.place.holds(self.view));
        let valid = valid.filter(is_shown);
        // What works only here is least known, so it comes first.
        let (here, everywhere): (Vec<_>, Vec<_>) =
            valid.partition(|s| s.place != action::Place::ANY);
        let hint = |spec: &action::Spec| {
            let key = self.keymap.keys_of(spec.action).next()?;
            Some(Hint { key, text: spec.hint.to_owned() })
        };
        let hints = here.into_iter().chain(everywhere).filter_map(hint).collect();
        let help = self.keymap.keys_of(action::Action::General(action::General::Help)).next();
        (hints, Hint { key: help.unwrap_or_else(|| ":help".into()), text: "help".into() })
    }

    /// After the beginning of a key sequence: the keys that could follow.
    pub(in crate::tui) fn continuations(&self) -> Vec<Hint> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let Match::Pending(next) = self.keymap.find(&self.pending, self.view) else {
            return Vec::new();
        };
        let text = |action| action::spec(action).help.to_owned();
        next.iter()
            .map(|(key, action)| Hint { key: key.to_string(), text: text(*action) })
            .collect()
    }

    /// The keys typed so far of a sequence.
    pub(in crate::tui) fn pending_text(&self) -> String {
        key::show_sequence(&self.pending)
    }
}

/// Newest cycles whose pods are looked at.
const RECENT: usize = 200;

/// Whether some pod is known to be pending: in a queue, or rejected by the last of its recent cycles.
fn is_pending(model: &Model) -> bool {
    let mut seen = HashSet::new();
    let mut last = model.past_cycles().iter().rev().take(RECENT).filter(|c| seen.insert(c.pod));
    let under_way = model.is_under_way() || !model.idle;
    under_way || !model.queued.is_empty() || last.any(|c| c.outcome == Outcome::Unschedulable)
}
