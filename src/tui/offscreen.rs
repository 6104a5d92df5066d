//! The interface without a terminal: keys in, pictures out.

use std::time::Duration;

use super::action::{Key, NotAKey};
use super::app::{App, Effect};
use super::driver::{Done, Driver};
use super::picture::{self, Format};
use super::settings::Settings;
use super::view::ViewId;
use kubestep_debug::Session;

/// Nobody waits for a frame here.
const SLICE: Duration = Duration::from_secs(3600);

/// An interface over a session, drawn into memory.
pub struct Offscreen {
    app: App,
    driver: Driver,
}

impl Offscreen {
    /// At the start of a session whose input is called `source`, that many columns and lines.
    ///
    /// # Errors
    /// The theme cannot be used.
    pub fn new(
        session: Session,
        source: String,
        settings: Settings,
        size: (u16, u16),
    ) -> anyhow::Result<Offscreen> {
        let mut app = App::new(settings.appearance, settings.keymap)?;
        app.resize(size.0, size.1);
        let mut offscreen = Offscreen { app, driver: Driver::new(session, source) };
        offscreen.sync();
        Ok(offscreen)
    }

    /// Presses keys, as far as they do not leave. What they would write or copy is not done.
    pub fn press(&mut self, keys: &[Key]) {
        for key in keys {
            let model = self.driver.model(self.app.view());
            match self.app.key(*key, model) {
                Effect::Quit(_) => return,
                Effect::Session(request) => {
                    let done = self.driver.perform(&request);
                    self.app.done(done);
                }
                _ => {}
            }
            self.finish();
        }
    }

    /// Shows a view.
    pub fn show(&mut self, view: ViewId) {
        self.app.show(view);
        self.finish();
    }

    /// What is on the screen.
    pub fn picture(&mut self, format: Format) -> String {
        let model = self.driver.model(self.app.view());
        picture::of(&mut self.app, model, format)
    }

    /// Ends what a key has begun.
    fn finish(&mut self) {
        while self.app.is_running() {
            if let Some(_words) = self.driver.run_slice(SLICE) {
                self.app.set_running(false);
                self.app.done(Done::default());
            }
        }
        self.sync();
        while self.driver.is_working() {
            self.driver.work_slice(SLICE);
            self.sync();
        }
        let model = self.driver.model(self.app.view());
        if let Some(pod) = self.app.wanted_answer(model) {
            self.driver.answer(pod);
            self.sync();
        }
    }

    fn sync(&mut self) {
        let model = self.driver.model(self.app.view());
        self.app.sync(model);
    }
}

/// Keys as they are typed: characters stand for themselves, others are named between angle brackets
/// (`nn3jj<enter>:theme light<enter>`).
///
/// # Errors
/// What is between the brackets is no key.
pub fn parse_keys(text: &str) -> Result<Vec<Key>, NotAKey> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        match named.filter(|(name, _)| name.len() > 1 && !name.contains('<')) {
            Some((name, after)) => {
                keys.push(name.to_lowercase().parse()?);
                rest = after;
            }
            None => {
                keys.push(Key::char(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_characters_and_names() {
        let shown = |text: &str| {
            let keys = parse_keys(text).unwrap();
            keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("n3"), ["n", "3"]);
        assert_eq!(shown("<enter>"), shown("<Enter>"));
        assert_eq!(shown("a<b").len(), 3);
        assert!(parse_keys("<nokey>").is_err());
    }
}
