//! The interface without a terminal: keys in, pictures out.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::app::Effect;
use super::interface::Interface;
use super::key::{KeyPress, NotAKey};
use super::screenshot::{self, ScreenFormat};
use super::settings::InterfaceSettings;
use super::view::ViewId;
use kubestep_debug::Session;

/// Nobody waits for a frame here.
const SLICE: Duration = Duration::from_secs(3600);

/// An interface over a session, drawn into memory.
pub struct Offscreen {
    interface: Interface,
}

impl Offscreen {
    /// At the start of a session whose input is called `source`, that many columns and lines, in the view
    /// in which a terminal begins.
    ///
    /// # Errors
    /// The theme cannot be used.
    pub fn new(
        session: Session,
        source: String,
        settings: InterfaceSettings,
        size: (u16, u16),
    ) -> anyhow::Result<Offscreen> {
        let mut interface = Interface::new(settings.appearance, settings.keymap, session, source)?;
        interface.set_slice(SLICE);
        interface.app.start();
        interface.resize(size.0, size.1);
        Ok(Offscreen { interface })
    }

    /// Presses keys, as far as they do not leave. What they would write or copy is not done.
    pub fn press(&mut self, keys: &[KeyPress]) {
        for key in keys {
            if let Some(Effect::Quit(_)) = self.interface.key(*key).effect {
                return;
            }
            self.finish();
        }
    }

    /// Shows a view, unless it is on the screen already.
    pub fn show(&mut self, view: ViewId) {
        if self.interface.app.view() != view {
            self.interface.app.show(view);
        }
        self.interface.refresh();
        self.finish();
    }

    /// What is on the screen.
    pub fn picture(&mut self, format: ScreenFormat) -> String {
        screenshot::of(&mut self.interface, format)
    }

    /// Ends what a key has begun, except a clock that plays.
    fn finish(&mut self) {
        let interface = &mut self.interface;
        while interface.app.is_running() || interface.driver.is_working() {
            interface.work();
        }
        while interface.driver.is_searching() {
            let due = interface.work_at().unwrap_or_else(Instant::now);
            sleep(due.saturating_duration_since(Instant::now()));
            interface.work();
        }
        while interface.wants_answer() {
            interface.answer();
        }
    }
}

/// Keys as they are typed: characters stand for themselves, others are named between angle brackets
/// (`nn3jj<enter>:theme light<enter>`).
///
/// # Errors
/// What is between the brackets is no key.
pub fn parse_keys(text: &str) -> Result<Vec<KeyPress>, NotAKey> {
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
                keys.push(KeyPress::char(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::settings::{InterfaceOptions, load};
    use crate::tui::testing::session;
    use kubestep_source::fixtures;

    #[test]
    fn a_picture_waits_for_a_search() {
        let settings = load(&InterfaceOptions::default(), |_| None);
        let session = session(fixtures::find("fragmented").unwrap().cluster);
        let mut screen = Offscreen::new(session, "test".into(), settings, (100, 30)).unwrap();
        screen.press(&parse_keys("c2X").unwrap());
        let text = screen.picture(ScreenFormat::Text);
        assert!(text.contains("1. resize pod default/report cpu=1.5"), "{text}");
    }

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
